//! Progress of a prepare, recorded in the mark so that the next one can resume: the filled parts of each table, and the
//! statements that have run after the filling.
//!
//! A workload's table need not have a key, so the filled parts cannot be derived from its rows. Where the engine has
//! transactions, the record of a part is committed together with its rows.

use std::collections::BTreeMap;

use mydyno_wire::Client;

use super::OwnTables;
use crate::mark;
use crate::prepare::check::Sum;
use crate::prepare::{PrepareError, doing};

/// Maximum number of rows of a part, and minimum unless the table has fewer.
const MOST_ROWS: u64 = 20_000;
const FEWEST_ROWS: u64 = 1_000;

/// Approximate number of parts of a table, so that all connections have work until the end.
const PARTS: u64 = 64;

/// Approximate maximum of bytes of a part, which is one transaction.
const MOST_BYTES: u64 = 16 << 20;

/// Rows of each part of a table except the last. The number depends on the table only, so that parts are the same in
/// the next prepare, whatever the number of connections.
pub(super) fn part_rows(rows: u64, row_bytes: usize) -> u64 {
    let fit = (MOST_BYTES / row_bytes.max(1) as u64).max(1);
    (rows / PARTS).clamp(FEWEST_ROWS, MOST_ROWS).min(fit)
}

/// A statement after the filling that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Begun {
    /// Its number among those of all tables.
    pub number: usize,
    /// Fingerprint of the table's definition before it.
    pub before: String,
}

/// Progress notes of a prepare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Notes {
    /// Row counts and digests of complete parts, by table and part.
    pub parts: BTreeMap<(usize, u64), Sum>,
    /// Whether all rows are complete and verified.
    pub filled: bool,
    /// Number of statements after the filling that have run.
    pub finished: usize,
    /// The one that was begun last.
    pub begun: Option<Begun>,
}

impl OwnTables {
    fn note_name(&self, what: &str) -> String {
        format!("{}.{what}", self.family)
    }

    pub(super) fn notes(&self, client: &mut Client) -> Result<Notes, PrepareError> {
        let mut notes = Notes::default();
        let prefix = self.note_name("");
        let found = mark::notes(client, &self.database, &prefix).map_err(doing("reading the mark"))?;
        for (name, value) in found {
            let what: Vec<&str> = name[prefix.len()..].split('.').collect();
            match what.as_slice() {
                ["part", table, part] => {
                    let sum = value.split_once(' ').and_then(|(rows, digest)| {
                        Some(Sum { rows: rows.parse().ok()?, digest: digest.parse().ok()? })
                    });
                    if let (Ok(table), Ok(part), Some(sum)) = (table.parse(), part.parse(), sum) {
                        notes.parts.insert((table, part), sum);
                    }
                }
                ["filled"] => notes.filled = true,
                ["finished"] => notes.finished = value.parse().unwrap_or(0),
                ["begun"] => {
                    notes.begun = value.split_once(' ').and_then(|(number, before)| {
                        Some(Begun { number: number.parse().ok()?, before: before.to_owned() })
                    });
                }
                _ => {}
            }
        }
        Ok(notes)
    }

    /// Records that a part is filled.
    pub(super) fn note_part(
        &self,
        client: &mut Client,
        table: usize,
        part: u64,
        sum: Sum,
    ) -> Result<(), PrepareError> {
        let name = self.note_name(&format!("part.{table}.{part}"));
        self.write_note(client, &name, &format!("{} {}", sum.rows, sum.digest))
    }

    /// Deletes the records of a table's parts.
    pub(super) fn forget_parts(&self, client: &mut Client, table: usize) -> Result<(), PrepareError> {
        let prefix = self.note_name(&format!("part.{table}."));
        mark::forget(client, &self.database, &prefix).map_err(doing("forgetting what was prepared"))
    }

    /// Deletes all records, because the tables are new or complete.
    pub(super) fn forget_notes(&self, client: &mut Client) -> Result<(), PrepareError> {
        for what in ["part.", "filled", "finished", "begun"] {
            mark::forget(client, &self.database, &self.note_name(what))
                .map_err(doing("forgetting what was prepared"))?;
        }
        Ok(())
    }

    pub(super) fn note_filled(&self, client: &mut Client) -> Result<(), PrepareError> {
        self.write_note(client, &self.note_name("filled"), "yes")
    }

    pub(super) fn note_begun(&self, client: &mut Client, begun: &Begun) -> Result<(), PrepareError> {
        self.write_note(client, &self.note_name("begun"), &format!("{} {}", begun.number, begun.before))
    }

    /// Deletes the record of a statement that was begun but has not run.
    pub(super) fn forget_begun(&self, client: &mut Client) -> Result<(), PrepareError> {
        mark::forget(client, &self.database, &self.note_name("begun"))
            .map_err(doing("forgetting what was begun"))
    }

    pub(super) fn note_finished(&self, client: &mut Client, statements: usize) -> Result<(), PrepareError> {
        self.write_note(client, &self.note_name("finished"), &statements.to_string())
    }

    fn write_note(&self, client: &mut Client, name: &str, value: &str) -> Result<(), PrepareError> {
        mark::note(client, &self.database, name, Some(value)).map_err(doing("noting what is prepared"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_by_the_table_alone() {
        assert_eq!(part_rows(100, 50), FEWEST_ROWS);
        assert_eq!(part_rows(640_000, 50), 10_000);
        assert_eq!(part_rows(1 << 40, 50), MOST_ROWS);
        // A row of 64 KiB: 256 make 16 MiB.
        assert_eq!(part_rows(1 << 40, 64 << 10), 256);
        assert_eq!(part_rows(10, 1 << 30), 1);
    }
}
