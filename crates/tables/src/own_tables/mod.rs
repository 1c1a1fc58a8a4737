//! Tables of workloads that bring their own: described as data, filled from generators on several connections, also
//! within one table, and resumed after an interrupted prepare.

mod check;
mod fill;
mod finish;
mod making;
mod parts;
mod rows;
mod server_table;

pub use finish::{changes_rows, target};
use mydyno_model::Warning;
use mydyno_wire::{Client, WireError};
use serde_json::{Value, json};

use crate::condition::Condition;
use crate::fingerprint;
use crate::generator::Generator;
use crate::mark::{self, DataMark, Owner};
use crate::prepare::{self, PrepareError, Tuning, doing};
use crate::sql_text::{self, Token};

/// Values that do not fit and missing engines are errors, and a 0 is stored as 0 even in an AUTO_INCREMENT column, so
/// that a table matches its description.
const STRICT: &str =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'";

/// A table and its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSpec {
    /// Name, unqualified.
    pub name: String,
    /// Its CREATE TABLE statement.
    pub create: String,
    /// Columns that are filled; the others have their defaults.
    pub columns: Vec<ColumnSpec>,
    /// Initial number of rows.
    pub rows: u64,
    /// Statements that run after the filling, such as indexes.
    pub after: Vec<String>,
    /// Position of its description, as in `shop.toml:12:1`; empty for tables of built-in workloads.
    pub place: String,
}

impl TableSpec {
    /// Bytes of the longest values of a row; `number_bytes` for each number.
    fn values_bytes(&self, number_bytes: usize) -> u64 {
        self.columns.iter().map(|c| c.generator.longest().max(number_bytes) as u64).sum()
    }

    /// Whether its statement asks for MEMORY.
    fn is_memory(&self) -> bool {
        let words = sql_text::tokens(&self.create);
        let mut words = words.iter().map(|(token, _)| *token).filter(|token| *token != Token::Mark('='));
        let is = |token: Token<'_>, list: &[&str]| matches!(token, Token::Word(word) if list.iter().any(|w| word.eq_ignore_ascii_case(w)));
        while let Some(token) = words.next() {
            if is(token, &["ENGINE"]) {
                return words.next().is_some_and(|engine| is(engine, &["MEMORY", "HEAP"]));
            }
        }
        false
    }
}

/// A column and how its values are made.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    /// Name.
    pub name: String,
    /// Values.
    pub generator: Generator,
    /// Position of its description; empty for tables of built-in workloads.
    pub place: String,
}

/// A statement that detects after a run whether its figures are doubtful.
#[derive(Debug, Clone, PartialEq)]
pub struct DoubtSpec {
    /// A SELECT that returns the number of rows that give cause for doubt.
    pub sql: String,
    /// Warning if there are any.
    pub warning: Warning,
}

/// The tables of a workload in a database.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnTables {
    /// Key in the mark.
    pub family: &'static str,
    /// The database.
    pub database: String,
    /// The tables in the order of their creation.
    pub tables: Vec<TableSpec>,
    /// Conditions that must hold before and after runs.
    pub checks: Vec<Condition>,
    /// Conditions that make a run's figures doubtful.
    pub doubts: Vec<DoubtSpec>,
    /// Seed of the rows.
    pub seed: u64,
    /// Whether a run needs rows that only its own seed generates.
    pub of_seed: bool,
    /// How they are filled.
    pub tuning: Tuning,
}

impl OwnTables {
    /// Everything except the seed that determines the rows.
    fn shape(&self) -> Value {
        let names: Vec<&str> = self.tables.iter().map(|t| t.name.as_str()).collect();
        let rows: Vec<u64> = self.tables.iter().map(|t| t.rows).collect();
        let columns = |t: &TableSpec| {
            t.columns.iter().map(|c| format!("{} {:?}", c.name, c.generator)).collect::<Vec<_>>()
        };
        let recipes: Vec<_> = self.tables.iter().map(|t| (&t.create, columns(t), &t.after)).collect();
        let recipe = fingerprint::short(format!("{recipes:?}").as_bytes());
        json!({"tables": names, "rows": rows, "recipe": recipe})
    }

    /// Fingerprint of fresh rows.
    pub fn fingerprint(&self) -> String {
        fingerprint::data(&self.shape(), self.seed)
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|t| t.rows).sum()
    }

    /// Approximate size of the tables on disk in bytes: values, some 40 bytes a row for the engine, and as much again
    /// for indexes and half-filled pages. MEMORY tables need no disk.
    pub fn disk_bytes(&self) -> u64 {
        let on_disk = self.tables.iter().filter(|t| !t.is_memory());
        on_disk.map(|t| t.rows.saturating_mul(2 * (40 + t.values_bytes(8)))).sum()
    }

    /// Minimum memory in bytes of each table in an engine without files; the server reports the actual limit when the
    /// table is created.
    pub fn heap_bytes(&self) -> Vec<u64> {
        let in_memory = self.tables.iter().filter(|t| t.is_memory());
        in_memory.map(|t| t.rows.saturating_mul(t.values_bytes(1))).collect()
    }

    /// The mark, if it states that these tables are complete.
    ///
    /// # Errors
    /// A foreign database, or the server's error.
    pub fn existing(&self, client: &mut Client) -> Result<Option<DataMark>, PrepareError> {
        let looking = || doing(format!("looking at database {:?}", self.database));
        match mark::owner(client, &self.database).map_err(looking())? {
            Owner::Foreign => Err(PrepareError::Foreign { database: self.database.clone() }),
            Owner::Missing => Ok(None),
            Owner::Ours => {
                let data = mark::data(client, &self.database, self.family).map_err(looking())?;
                let fits = |d: &DataMark| {
                    d.complete && d.shape == self.shape() && (!self.of_seed || d.seed == self.seed)
                };
                let Some(data) = data.filter(fits) else { return Ok(None) };
                for table in &self.tables {
                    let there = self.exists(client, &table.name)?;
                    // MEMORY tables lose their rows when the server stops.
                    let lost = there
                        && table.is_memory()
                        && table.rows > 0
                        && prepare::is_empty(client, &self.database, &table.name)?;
                    if !there || lost {
                        return Ok(None);
                    }
                }
                Ok(Some(data))
            }
        }
    }

    /// The mark of tables that a run can use.
    ///
    /// # Errors
    /// Missing or incomplete tables, other tables, a foreign database.
    pub fn require(&self, client: &mut Client) -> Result<DataMark, PrepareError> {
        let names: Vec<&str> = self.tables.iter().map(|t| t.name.as_str()).collect();
        self.existing(client)?.ok_or_else(|| PrepareError::NotPrepared {
            database: self.database.clone(),
            what: format!(
                "complete tables of this workload and these options{} ({})",
                if self.of_seed { format!(" from seed {}", self.seed) } else { String::new() },
                names.join(", ")
            ),
        })
    }

    fn exists(&self, client: &mut Client, table: &str) -> Result<bool, PrepareError> {
        let sql = format!(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
            mark::literal(&self.database),
            mark::literal(table)
        );
        Ok(!client.query(&sql).map_err(doing("listing the tables"))?.is_empty())
    }

    /// Sets the session variables that creating and filling the tables depend on.
    fn set_up(&self, client: &mut Client) -> Result<(), WireError> {
        client.execute(STRICT).map(drop)
    }

    /// A value of a row as an SQL literal.
    pub fn value(&self, table: usize, column: usize, row: u64) -> String {
        rows::Rows::new(self, table).value(column, row)
    }

    /// Records in the mark that a run is about to change rows.
    ///
    /// # Errors
    /// The server's error.
    pub fn note_use(&self, client: &mut Client, data: &DataMark) -> Result<(), PrepareError> {
        let used = DataMark { used: true, ..data.clone() };
        mark::set_data(client, &self.database, self.family, &used)
            .map_err(doing("noting that the rows are in use"))
    }

    /// Warnings about a run, from the rows that it left.
    ///
    /// # Errors
    /// The server's error.
    pub fn doubts(&self, client: &mut Client) -> Result<Vec<Warning>, PrepareError> {
        if self.doubts.is_empty() {
            return Ok(Vec::new());
        }
        client.use_schema(&self.database).map_err(doing("choosing the database"))?;
        let mut warnings = Vec::new();
        for doubt in &self.doubts {
            let rows = client.query(&doubt.sql).map_err(doing("looking at the rows after the run"))?;
            if rows.number::<u64>(0, 0).unwrap_or(0) > 0 {
                warnings.push(doubt.warning.clone());
            }
        }
        Ok(warnings)
    }
}

fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" ({place})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Constant;

    /// Tables of a workload for tests.
    pub(super) fn tables(rows: u64) -> OwnTables {
        let column =
            |name: &str, generator| ColumnSpec { name: name.to_owned(), generator, place: String::new() };
        let table = TableSpec {
            name: "item".to_owned(),
            create: "CREATE TABLE item (id INT, price INT, kind VARCHAR(9))".to_owned(),
            columns: vec![
                column("id", Generator::Sequence { from: 1, step: 1 }),
                column("price", Generator::Uniform { low: 100, high: 999 }),
                column("kind", Generator::Constant(Constant::Text("book".into()))),
            ],
            rows,
            after: Vec::new(),
            place: String::new(),
        };
        OwnTables {
            family: "test",
            database: "d".to_owned(),
            tables: vec![table],
            checks: Vec::new(),
            doubts: Vec::new(),
            seed: 1,
            of_seed: false,
            tuning: Tuning::default(),
        }
    }

    #[test]
    fn what_decides_the_rows_decides_the_fingerprint() {
        let one = tables(10);
        let mut other = tables(10);
        other.tables[0].columns[1].generator = Generator::Uniform { low: 100, high: 998 };
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_ne!(one.fingerprint(), tables(11).fingerprint());
        assert_ne!(one.fingerprint(), OwnTables { seed: 2, ..one.clone() }.fingerprint());
        assert_eq!(one.fingerprint(), OwnTables { database: "e".to_owned(), ..one.clone() }.fingerprint());
    }

    #[test]
    fn rows_take_disk_or_memory_as_their_engine_keeps_them() {
        let mut tables = tables(10);
        let on_disk = tables.disk_bytes();
        assert!(on_disk > 0 && tables.heap_bytes().is_empty());
        let in_memory = TableSpec {
            create: "CREATE TABLE b (id INT) ENGINE = Heap".to_owned(),
            ..tables.tables[0].clone()
        };
        tables.tables.push(in_memory);
        // Two numbers of a byte at the least, and "book".
        assert_eq!((tables.disk_bytes(), tables.heap_bytes()), (on_disk, vec![60]));
    }
}
