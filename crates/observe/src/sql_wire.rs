//! [`Sql`] over mydyno's own client.

use std::time::Duration;

use mydyno_wire::{Client, Rows, WireError};

use crate::sql::{Row, Sql, SqlError};

impl Sql for Client {
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, SqlError> {
        self.query(sql).map(texts).map_err(|e| reason(&e))
    }

    fn rows_within(&mut self, sql: &str, limit: Duration) -> Result<Vec<Row>, SqlError> {
        let usual = self.read_timeout();
        self.set_read_timeout(Some(usual.map_or(limit, |u| u.min(limit))));
        let rows = self.rows(sql);
        self.set_read_timeout(usual);
        rows
    }
}

fn texts(rows: Rows) -> Vec<Row> {
    let text = |cell: Vec<u8>| {
        String::from_utf8(cell).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    };
    rows.rows.into_iter().map(|row| row.into_iter().map(|cell| cell.map(text)).collect()).collect()
}

fn reason(error: &WireError) -> SqlError {
    match error.server_error() {
        Some(e) => SqlError::Refused { code: e.code, message: e.message.clone() },
        None => SqlError::Connection(error.to_string()),
    }
}
