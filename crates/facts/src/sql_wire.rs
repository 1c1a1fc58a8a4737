//! [`Sql`] over mydyno's own client.

use std::time::Duration;

use mydyno_wire::{Client, ConnectOptions, Rows, WireError};

use crate::sql::{Sql, SqlError, Table};

/// Limit for opening a connection anew, and for each statement that ends what the lost one executes.
const ANEW: Duration = Duration::from_secs(2);

impl Sql for Client {
    fn table(&mut self, sql: &str, limit: Option<Duration>) -> Result<Table, SqlError> {
        let usual = self.read_timeout();
        // A limit of the user's own is named with the option that sets it.
        let ours = limit.filter(|limit| usual.is_none_or(|usual| *limit < usual));
        if ours.is_some() {
            self.set_read_timeout(ours);
        }
        let rows = self.query(sql);
        self.set_read_timeout(usual);
        rows.map(texts).map_err(|e| match (&e, ours) {
            (WireError::Timeout { .. }, Some(limit)) => SqlError::Unanswered { limit },
            _ => reason(&e),
        })
    }
}

/// A connection that is opened anew after a statement that outlived its limit.
pub struct Renewing {
    client: Client,
    options: ConnectOptions,
    /// The statement that was sent last.
    sent: String,
}

impl Renewing {
    /// A connection with the options by which it was opened.
    pub fn new(client: Client, options: ConnectOptions) -> Self {
        Self { client, options, sent: String::new() }
    }
}

impl Sql for Renewing {
    fn table(&mut self, sql: &str, limit: Option<Duration>) -> Result<Table, SqlError> {
        sql.clone_into(&mut self.sent);
        self.client.table(sql, limit)
    }

    fn open_anew(&mut self) -> Result<(), SqlError> {
        let mut options = self.options.clone();
        options.connect_timeout = options.connect_timeout.min(ANEW);
        options.read_timeout = Some(ANEW);
        let mut client = Client::connect(&options).map_err(|e| reason(&e))?;
        end(&mut client, self.client.server().connection_id, &self.sent)?;
        client.set_read_timeout(self.options.read_timeout);
        self.client = client;
        Ok(())
    }
}

/// Ends connection `id` where it still executes `sql`. Behind a proxy the number may be that of another connection, so its
/// statement is compared first. Where the server refuses this, the statement runs to its end.
///
/// # Errors
/// The new connection gives no answer either.
fn end(client: &mut Client, id: u32, sql: &str) -> Result<(), SqlError> {
    let now = format!("SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = {id}");
    let rows = match client.table(&now, Some(ANEW)) {
        Err(SqlError::Refused { .. }) => return Ok(()),
        rows => rows?,
    };
    let runs = rows.cell(0, "INFO").is_some_and(|info| !info.is_empty() && sql.starts_with(info));
    if runs {
        let ended = client.execute(&format!("KILL {id}"));
        tracing::debug!(id, ended = ended.is_ok(), "a statement that was left running");
    }
    Ok(())
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
