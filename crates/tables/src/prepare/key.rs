//! The key of a table's rows: one column with the row's number, or several that ascend with it.

use mydyno_wire::Client;

use super::{PrepareError, doing};
use crate::table::{Fields, Table};

/// Columns of the key, in their order.
fn columns(table: &dyn Table) -> Vec<&str> {
    table.columns().split(',').map(str::trim).take(table.key_columns()).collect()
}

/// Keeps the first columns of a row.
struct Leading {
    values: Vec<i64>,
    most: usize,
}

impl Fields for Leading {
    fn int(&mut self, value: i64) {
        if self.values.len() < self.most {
            self.values.push(value);
        }
    }

    fn bytes(&mut self, _: &[u8]) {}

    fn null(&mut self) {}
}

/// The key of row `id`; zeros for row 0, which represents an empty table.
pub(crate) fn of_row(table: &dyn Table, id: u64) -> Vec<i64> {
    let most = table.key_columns();
    if most == 1 || id == 0 {
        return vec![if most == 1 { id as i64 } else { 0 }; most];
    }
    let mut leading = Leading { values: Vec::with_capacity(most), most };
    table.row(id, &mut leading);
    leading.values
}

/// A WHERE clause for the rows from `first` to `last`, with a range for which the server uses an index on the key.
pub(crate) fn between(table: &dyn Table, first: u64, last: u64) -> String {
    let columns = columns(table);
    let (low, high) = (of_row(table, first), of_row(table, last));
    let same = low.iter().zip(&high).take_while(|(a, b)| a == b).count().min(columns.len() - 1);
    let mut terms: Vec<String> = (0..same).map(|i| format!("{} = {}", columns[i], low[i])).collect();
    terms.push(format!("{} BETWEEN {} AND {}", columns[same], low[same], high[same]));
    if same + 1 < columns.len() {
        terms.push(beyond(&columns[same..], &low[same..], ">"));
        terms.push(beyond(&columns[same..], &high[same..], "<"));
    }
    format!(" WHERE {}", terms.join(" AND "))
}

/// A condition for the rows beyond a key, the key included, in the order of its columns: `>` for later rows, `<` for
/// earlier ones.
fn beyond(columns: &[&str], key: &[i64], than: &str) -> String {
    match (columns, key) {
        ([column], [value]) => format!("{column} {than}= {value}"),
        ([column, columns @ ..], [value, key @ ..]) => {
            format!("({column} {than} {value} OR {column} = {value} AND {})", beyond(columns, key, than))
        }
        _ => "TRUE".to_owned(),
    }
}

/// The first and the last key; zeros for an empty table.
pub(crate) fn ends(
    client: &mut Client,
    table: &dyn Table,
    name: &str,
) -> Result<(Vec<i64>, Vec<i64>), PrepareError> {
    let columns = columns(table);
    if let [key] = columns.as_slice() {
        let sql = format!("SELECT COALESCE(MIN({key}),0), COALESCE(MAX({key}),0) FROM {name}");
        let rows = client.query(&sql).map_err(doing(format!("checking {name}")))?;
        let end = |column| vec![rows.number(0, column).unwrap_or(0)];
        return Ok((end(0), end(1)));
    }
    let mut end = |direction: &str| {
        let order: Vec<String> = columns.iter().map(|column| format!("{column}{direction}")).collect();
        let sql = format!("SELECT {} FROM {name} ORDER BY {} LIMIT 1", columns.join(","), order.join(","));
        let rows = client.query(&sql).map_err(doing(format!("checking {name}")))?;
        Ok((0..columns.len()).map(|column| rows.number(0, column).unwrap_or(0)).collect())
    };
    Ok((end("")?, end(" DESC")?))
}

/// Formats a key for messages: `17`, or `(1,2,17)`.
pub(crate) fn show(key: &[i64]) -> String {
    let values: Vec<String> = key.iter().map(ToString::to_string).collect();
    if let [value] = values.as_slice() { value.clone() } else { format!("({})", values.join(",")) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Seven rows a group, groups from 1 on.
    #[derive(Debug)]
    struct Grouped(usize);

    impl Table for Grouped {
        fn name(&self) -> &str {
            "grouped"
        }
        fn create(&self) -> String {
            String::new()
        }
        fn columns(&self) -> &str {
            "a,b,c,text"
        }
        fn key_columns(&self) -> usize {
            self.0
        }
        fn rows(&self) -> u64 {
            98
        }
        fn row(&self, id: u64, fields: &mut dyn Fields) {
            let n = id as i64 - 1;
            fields.int(n / 14 + 1);
            fields.int(n / 7 % 2 + 1);
            fields.int(n % 7 + 1);
            fields.bytes(b"x");
        }
        fn row_bytes(&self) -> u64 {
            10
        }
        fn sql_bytes(&self) -> usize {
            20
        }
        fn reseeded(&self, _: u64) -> Arc<dyn Table> {
            Arc::new(Self(self.0))
        }
    }

    #[test]
    fn one_column_is_the_row_s_number() {
        assert_eq!(between(&Grouped(1), 3, 9), " WHERE a BETWEEN 3 AND 9");
        assert_eq!((of_row(&Grouped(1), 9), show(&[9])), (vec![9], "9".to_owned()));
    }

    #[test]
    fn rows_of_one_group_are_a_range_of_the_last_column() {
        assert_eq!(between(&Grouped(3), 9, 12), " WHERE a = 1 AND b = 2 AND c BETWEEN 2 AND 5");
        assert_eq!(show(&of_row(&Grouped(3), 9)), "(1,2,2)");
    }

    #[test]
    fn rows_of_several_groups_end_within_the_first_and_the_last() {
        assert_eq!(
            between(&Grouped(3), 6, 16),
            " WHERE a BETWEEN 1 AND 2 AND (a > 1 OR a = 1 AND (b > 1 OR b = 1 AND c >= 6)) \
             AND (a < 2 OR a = 2 AND (b < 1 OR b = 1 AND c <= 2))"
        );
    }
}
