//! Checks rows against the seed.

use std::collections::BTreeMap;

use mydyno_wire::Client;

use super::{PrepareError, Tables, doing, key};
use crate::condition::Condition;
use crate::mark::{self, DataMark};
use crate::table::{RowDigest, Table};

/// Number and digest of the rows of a table, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    /// Number of rows.
    pub rows: u64,
    /// Sum of their [`RowDigest`]s, which is independent of their order.
    pub digest: u128,
}

impl Sum {
    /// Adds a row.
    pub fn add(&mut self, digest: u32) {
        self.rows += 1;
        self.digest += u128::from(digest);
    }

    /// The rows `first` to `last` as generated from the seed.
    pub fn of_seed(table: &dyn Table, first: u64, last: u64) -> Self {
        let mut sum = Self::default();
        for id in first..=last {
            sum.add(RowDigest::of(table, id));
        }
        sum
    }

    /// The rows on the server; `part` is empty or a WHERE clause.
    pub fn of_server(
        client: &mut Client,
        table: &dyn Table,
        name: &str,
        part: &str,
    ) -> Result<Self, PrepareError> {
        let digest = match table.digest_columns().as_str() {
            "" => "0".to_owned(),
            // Some servers sum as floating-point numbers, which they print with an exponent.
            columns => format!("CAST(COALESCE(SUM(CRC32(CONCAT_WS(',',{columns}))),0) AS UNSIGNED)"),
        };
        let sql = format!("SELECT COUNT(*), {digest} FROM {name}{part}");
        let rows = client.query(&sql).map_err(doing(format!("checking {name}")))?;
        let cell = |column: usize| Some(rows.rows.first()?.get(column)?.as_deref()?.to_vec());
        let number = |column| String::from_utf8(cell(column)?).ok()?.parse::<u128>().ok();
        Ok(Self { rows: number(0).unwrap_or(0) as u64, digest: number(1).unwrap_or(0) })
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows with checksum {}", self.rows, self.digest)
    }
}

/// The conditions that are violated or whose statement failed. The database must be selected.
pub(crate) fn violations(client: &mut Client, conditions: &[Condition]) -> Vec<PrepareError> {
    let violation = |condition: &Condition| {
        let rows = match client.query(&condition.sql).map_err(doing(format!("checking {}", condition.about)))
        {
            Ok(rows) => rows,
            Err(error) => return Some(error),
        };
        let found = rows.scalar().map_or_else(|| "no row".to_owned(), |text| text.into_owned());
        let (table, expected) = (condition.about.clone(), condition.expected.clone());
        (found != expected).then_some(PrepareError::Inconsistent { table, found, expected })
    };
    conditions.iter().filter_map(violation).collect()
}

impl Tables {
    /// Checks the rows: their number and ends as long as no run has added or removed any, their bytes as long as no run
    /// has changed them. The expected values come from the seed alone.
    ///
    /// # Errors
    /// Every table that differs.
    pub fn check(&self, client: &mut Client) -> Result<DataMark, Vec<PrepareError>> {
        let data = self.require(client).map_err(|e| vec![e])?;
        let noted = mark::is_noted(client, &self.database, &self.count_note());
        let count_changed = noted.map_err(|e| vec![doing("reading the mark")(e)])?;
        let mut errors = Vec::new();
        // The seed of the mark generated the rows; this run's may differ.
        let seeded = self.data.reseeded(data.seed);
        for table in &seeded {
            if let Err(error) = self.check_table(client, table.as_ref(), data.used, count_changed) {
                errors.push(error);
            }
        }
        client.use_schema(&self.database).map_err(|e| vec![doing("choosing the database")(e)])?;
        errors.extend(self.on_a_snapshot(client).map_err(|e| vec![e])?);
        if errors.is_empty() { Ok(data) } else { Err(errors) }
    }

    /// The conditions that are violated, all asked of one consistent snapshot, so that they hold also while a run changes
    /// the rows, where the engine keeps snapshots.
    fn on_a_snapshot(&self, client: &mut Client) -> Result<Vec<PrepareError>, PrepareError> {
        if self.data.conditions.is_empty() {
            return Ok(Vec::new());
        }
        let snapshot = || doing("opening a snapshot");
        for sql in [
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        ] {
            client.execute(sql).map_err(snapshot())?;
        }
        let found = violations(client, &self.data.conditions);
        client.execute("COMMIT").map_err(doing("ending the snapshot"))?;
        Ok(found)
    }

    fn check_table(
        &self,
        client: &mut Client,
        table: &dyn Table,
        used: bool,
        count_changed: bool,
    ) -> Result<(), PrepareError> {
        let name = format!("{}.{}", mark::quoted(&self.database), mark::quoted(table.name()));
        if used && count_changed {
            return Ok(());
        }
        let (found, (first, last)) =
            (Sum::of_server(client, table, &name, "")?, key::ends(client, table, &name)?);
        let rows = table.rows();
        let (lowest, highest) = (key::of_row(table, rows.min(1)), key::of_row(table, rows));
        let mut wrong = BTreeMap::new();
        if !count_changed && (found.rows, &first, &last) != (rows, &lowest, &highest) {
            let text = |rows, first: &[i64], last: &[i64]| {
                format!("{rows} rows from {} to {}", key::show(first), key::show(last))
            };
            wrong.insert(text(found.rows, &first, &last), text(rows, &lowest, &highest));
        } else if !used {
            let expected = Sum::of_seed(table, 1, table.rows());
            if found != expected {
                wrong.insert(found.to_string(), expected.to_string());
            }
        }
        match wrong.pop_first() {
            None => Ok(()),
            Some((found, expected)) => {
                Err(PrepareError::Inconsistent { table: table.name().to_owned(), found, expected })
            }
        }
    }
}
