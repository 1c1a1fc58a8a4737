//! Bounds of the reading, and columns of its rows.

use std::collections::BTreeMap;

use crate::source::{Missing, Read};
use crate::sql::Row;

/// Tables that are read where there are more than [`COUNTED`]: each by statements of its own, some 0.5 ms of the server's CPU.
pub const SAMPLE: usize = 512;

/// Entries kept in a list of tables or indexes.
pub const LISTED_OF_TABLES: usize = 500;

/// Tables up to which the server counts engines and names are fetched: for each of them older servers read a file, and a
/// name takes its way through both programs.
pub const COUNTED: u64 = 5000;

/// Names kept in a list.
pub const LISTED: usize = 20;

/// Schemas that belong to the server, as a list for SQL.
pub const OURS: &str = "('mysql', 'information_schema', 'performance_schema', 'sys')";

/// A column as text; empty where it is NULL.
pub fn text(row: &Row, place: usize) -> &str {
    row.get(place).and_then(Option::as_deref).unwrap_or_default()
}

/// A column as a whole number, without decimals.
pub fn whole(row: &Row, place: usize) -> Read<u64> {
    let digits = text(row, place).split('.').next().unwrap_or_default();
    digits.parse().map_err(|_| Missing::Error(format!("expected a number, found {:?}", text(row, place))))
}

/// Rows by their first cell, the name of the table, without it.
pub fn by_table(rows: Vec<Row>) -> BTreeMap<String, Vec<Row>> {
    let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let mut cells = row.into_iter();
        if let Some(Some(table)) = cells.next() {
            tables.entry(table).or_default().push(cells.collect());
        }
    }
    tables
}

/// The place of a part of an index: the index's name, and the part's number within it, which is the last cell.
pub fn in_order(row: &Row) -> (String, u64) {
    (text(row, 0).to_owned(), whole(row, row.len().saturating_sub(1)).unwrap_or(0))
}
