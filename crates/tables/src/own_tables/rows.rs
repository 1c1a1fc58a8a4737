//! Rows of a table that a workload brings: a row depends on the seed, the table's place and the row's number only.

use std::sync::Arc;

use mydyno_stats::rng::Rng;

use super::{OwnTables, TableSpec};
use crate::generator::{Made, RowPosition};
use crate::mark;
use crate::purpose::Purpose;
use crate::table::{Fields, Table};

/// A table with its rows.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    spec: TableSpec,
    /// Place among the workload's tables.
    number: usize,
    family: &'static str,
    seed: u64,
    columns: String,
    /// Columns that the server returns as they were sent, so that a digest can verify them.
    digested: Vec<bool>,
}

impl Rows {
    /// The rows of table `number`. As long as its columns on the server are unknown, the digest covers none of them.
    pub fn new(tables: &OwnTables, number: usize) -> Self {
        let spec = tables.tables[number].clone();
        let names: Vec<String> = spec.columns.iter().map(|c| mark::quoted(&c.name)).collect();
        Self {
            number,
            family: tables.family,
            seed: tables.seed,
            columns: names.join(","),
            digested: vec![false; names.len()],
            spec,
        }
    }

    /// The same with digests of these columns.
    pub fn digesting(self, digested: Vec<bool>) -> Self {
        Self { digested, ..self }
    }

    /// A value of a row as an SQL literal.
    pub fn value(&self, column: usize, row: u64) -> String {
        let mut rng = self.rng(row);
        let (mut text, mut sql) = (Vec::new(), Vec::new());
        for column in &self.spec.columns[..=column] {
            sql.clear();
            column.generator.push_sql(&mut rng, RowPosition::Row(row), &mut text, &mut sql);
        }
        String::from_utf8_lossy(&sql).into_owned()
    }

    fn rng(&self, row: u64) -> Rng {
        Rng::stream(self.seed, &[Purpose::Data as u64, fnv(self.family), self.number as u64, row])
    }

    fn longest_values_bytes(&self) -> usize {
        self.spec.columns.iter().map(|c| c.generator.longest().max(8)).sum()
    }
}

impl Table for Rows {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn create(&self) -> String {
        self.spec.create.clone()
    }

    fn columns(&self) -> &str {
        &self.columns
    }

    fn column_count(&self) -> usize {
        self.spec.columns.len()
    }

    fn rows(&self) -> u64 {
        self.spec.rows
    }

    fn row(&self, id: u64, fields: &mut dyn Fields) {
        let (mut rng, mut text) = (self.rng(id), Vec::new());
        for column in &self.spec.columns {
            text.clear();
            match column.generator.make(&mut rng, RowPosition::Row(id), &mut text) {
                Made::Int(number) => fields.int(number),
                Made::Text => fields.bytes(&text),
            }
        }
    }

    fn row_bytes(&self) -> u64 {
        2 * (40 + self.longest_values_bytes() as u64)
    }

    /// Quotes and the hexadecimal form may double the length.
    fn sql_bytes(&self) -> usize {
        2 * self.longest_values_bytes() + 24 * self.spec.columns.len()
    }

    fn reseeded(&self, seed: u64) -> Arc<dyn Table> {
        Arc::new(Self { seed, ..self.clone() })
    }

    fn is_ascii(&self) -> bool {
        self.spec.columns.iter().all(|c| c.generator.is_ascii())
    }

    fn is_digested(&self, column: usize) -> bool {
        self.digested.get(column).copied().unwrap_or(false)
    }

    fn digest_columns(&self) -> String {
        let columns = self.spec.columns.iter().zip(&self.digested);
        let digested = columns.filter(|(_, digested)| **digested).map(|(c, _)| mark::quoted(&c.name));
        digested.collect::<Vec<_>>().join(",")
    }
}

/// FNV-1a, which gives each family a different label.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::super::tests::tables;
    use super::*;
    use crate::table::{RowDigest, Tuple};

    fn row(tables: &OwnTables, row: u64) -> String {
        let mut sql = Vec::new();
        let mut tuple = Tuple::open(&mut sql);
        Rows::new(tables, 0).row(row, &mut tuple);
        tuple.close();
        String::from_utf8(sql).unwrap()
    }

    #[test]
    fn a_row_depends_on_seed_family_and_number() {
        let one = tables(10);
        assert_eq!(row(&one, 3), row(&one, 3));
        assert!(row(&one, 3).starts_with("(3,") && row(&one, 3).ends_with(",'book')"), "{}", row(&one, 3));
        assert_ne!(row(&one, 3), row(&OwnTables { seed: 2, ..one.clone() }, 3));
        assert_ne!(row(&one, 3), row(&OwnTables { family: "other", ..one.clone() }, 3));
    }

    #[test]
    fn a_value_is_that_of_its_row() {
        let one = tables(10);
        let price = one.value(0, 1, 7);
        assert_eq!(row(&one, 7), format!("(7,{price},'book')"));
    }

    #[test]
    fn a_digest_is_of_the_columns_that_read_as_they_were_sent() {
        let one = tables(10);
        let rows = Rows::new(&one, 0).digesting(vec![true, false, true]);
        assert_eq!(RowDigest::of(&rows, 4), crc32fast::hash(b"4,book"));
        assert_eq!(rows.digest_columns(), "`id`,`kind`");
        assert_eq!(RowDigest::of(&Rows::new(&one, 0), 4), crc32fast::hash(b""));
    }
}
