//! [`Sql`] over mydyno's own client.

use std::time::Duration;

use mydyno_wire::{Client, Rows, WireError};

use crate::sql::{Sql, SqlError, Table};

impl Sql for Client {
    fn table(&mut self, sql: &str, limit: Option<Duration>) -> Result<Table, SqlError> {
        let usual = self.read_timeout();
        if let Some(limit) = limit {
            self.set_read_timeout(Some(usual.map_or(limit, |u| u.min(limit))));
        }
        let rows = self.query(sql);
        self.set_read_timeout(usual);
        rows.map(texts).map_err(|e| reason(&e))
    }
}

fn texts(rows: Rows) -> Table {
    let text = |cell: Vec<u8>| {
        String::from_utf8(cell).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    };
    Table {
        columns: rows.columns.into_iter().map(|column| column.name).collect(),
        rows: rows.rows.into_iter().map(|row| row.into_iter().map(|cell| cell.map(text)).collect()).collect(),
    }
}

fn reason(error: &WireError) -> SqlError {
    match error.server_error() {
        Some(e) => SqlError::Refused { code: e.code, message: e.message.clone() },
        None => SqlError::Connection(error.to_string()),
    }
}
