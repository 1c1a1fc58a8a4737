//! Connections of a script, their statements and the rows of their last results.

use mydyno_wire::reply::{ResultSink, Row};
use mydyno_wire::{Column, Value, WireError};

use super::super::engine::Engine;
use super::super::log::Log;
use super::super::stats::Count;
use super::client::{ScriptClient, Statement};
use super::target::{LOST, Target, message};

/// Levels of errors, as `sysbench.sql.error` has them.
const IGNORABLE: u8 = 1;
const FATAL: u8 = 2;

/// The parts of a thread that its connections need.
pub(super) struct Context<'a> {
    pub(super) target: &'a Target,
    pub(super) engine: &'a Engine,
    pub(super) log: &'a Log,
    pub(super) thread: usize,
}

/// A statement of a script.
pub(super) struct Prepared {
    /// `None` where statements are sent as texts.
    server: Option<Statement>,
    sql: Vec<u8>,
}

/// A connection; without a client in a dry run.
pub(super) struct Connection {
    place: usize,
    client: Option<ScriptClient>,
    /// By number; `None` for those that are closed.
    statements: Vec<Option<Prepared>>,
    /// Rows of the last result that had any.
    rows: Rows,
    /// Number of the last statement.
    serial: u64,
    /// The last error.
    pub(super) failure: Failure,
}

/// An error as a script sees it.
#[derive(Debug, Default)]
pub(super) struct Failure {
    pub(super) number: u16,
    pub(super) state: String,
    pub(super) text: String,
}

impl Failure {
    fn of(error: &WireError) -> Self {
        let state = error.server_error().map_or("HY000", |error| error.sqlstate.as_str()).to_owned();
        Self { number: error.code(), state, text: message(error) }
    }
}

/// The answer to a statement: 0 or an error's level; columns; rows, or affected rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answer {
    pub(super) level: u8,
    pub(super) columns: usize,
    pub(super) rows: u64,
    /// Number of the statement.
    pub(super) serial: u64,
}

/// The rows of a result in one buffer.
#[derive(Debug, Default)]
pub(super) struct Rows {
    columns: usize,
    bytes: Vec<u8>,
    /// End of each cell in `bytes`; `None` for NULL.
    cells: Vec<Option<usize>>,
    /// Next cell, and the end of the last one that was read.
    next: usize,
    read: usize,
}

impl Rows {
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(64 << 10);
        self.cells.clear();
        (self.columns, self.next, self.read) = (0, 0, 0);
    }

    /// The next row: each cell, `None` for NULL. `None` behind the last row.
    pub(super) fn next_row(&mut self) -> Option<impl Iterator<Item = Option<&[u8]>>> {
        if self.columns == 0 || self.next >= self.cells.len() {
            return None;
        }
        let cells = &self.cells[self.next..self.next + self.columns];
        self.next += self.columns;
        let mut from = self.read;
        self.read = cells.iter().rev().find_map(|end| *end).unwrap_or(from);
        let bytes = &self.bytes;
        Some(cells.iter().map(move |end| {
            let end = (*end)?;
            let cell = &bytes[from..end];
            from = end;
            Some(cell)
        }))
    }
}

/// Collects the first result that has columns.
struct Collected<'a> {
    rows: &'a mut Rows,
    affected: u64,
    keeps: bool,
}

impl ResultSink for Collected<'_> {
    fn columns(&mut self, columns: &[Column]) {
        self.keeps = self.rows.columns == 0;
        if self.keeps {
            self.rows.columns = columns.len();
        }
    }

    fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
        if !self.keeps {
            return Ok(());
        }
        let rows = &mut *self.rows;
        row.texts(|cell| match cell {
            Some(text) => {
                rows.bytes.extend_from_slice(text);
                rows.cells.push(Some(rows.bytes.len()));
            }
            None => rows.cells.push(None),
        })
    }

    fn end(&mut self, end: &mydyno_wire::packet::OkPacket) {
        self.affected += end.affected_rows;
    }

    fn wants_names(&self) -> bool {
        false
    }
}

impl Connection {
    /// Connects to the next server. `None` after a failure, which is printed.
    pub(super) fn open(context: &Context<'_>) -> Option<Self> {
        let place = context.target.next_place();
        let client = match context.target.dry_run {
            true => None,
            false => Some(context.target.connect(place, context.log)?),
        };
        let (statements, rows, failure) = (Vec::new(), Rows::default(), Failure::default());
        Some(Self { place, client, statements, rows, serial: 0, failure })
    }

    /// Connects again to the same server; the statements of before are gone.
    pub(super) fn reopen(&mut self, context: &Context<'_>) -> bool {
        self.client = None;
        if !context.target.dry_run {
            self.client = context.target.connect(self.place, context.log);
        }
        let open = self.client.is_some() || context.target.dry_run;
        if open {
            context.engine.count(context.thread, Count::Reconnect);
        }
        open
    }

    /// Sends a text.
    pub(super) fn query(&mut self, context: &Context<'_>, sql: &[u8]) -> Answer {
        self.answered(context, "mysql_drv_query()", sql, |client, sink| client.query(sql, sink))
    }

    fn answered(
        &mut self,
        context: &Context<'_>,
        name: &str,
        sql: &[u8],
        ask: impl FnOnce(&mut ScriptClient, &mut Collected<'_>) -> Result<(), WireError>,
    ) -> Answer {
        self.rows.clear();
        self.serial += 1;
        let mut collected = Collected { rows: &mut self.rows, affected: 0, keeps: false };
        let asked = match &mut self.client {
            Some(client) => ask(client, &mut collected),
            None if context.target.dry_run => Ok(()),
            None => Err(WireError::Closed { state: "using a closed connection", remedy: "connect first" }),
        };
        let affected = collected.affected;
        if let Err(error) = asked {
            return self.failed(context, name, sql, &error);
        }
        let columns = self.rows.columns;
        context.engine.count(
            context.thread,
            match (columns, affected) {
                (1.., _) => Count::Read,
                (0, 1..) => Count::Write,
                _ => Count::Other,
            },
        );
        let rows = self.rows.cells.len().checked_div(columns).map_or(affected, |rows| rows as u64);
        Answer { level: 0, columns, rows, serial: self.serial }
    }

    /// The rows of the statement of this number, unless another one followed.
    pub(super) fn take_rows(&mut self, serial: u64) -> Option<Rows> {
        (serial == self.serial).then(|| std::mem::take(&mut self.rows))
    }

    fn failed(&mut self, context: &Context<'_>, name: &str, sql: &[u8], error: &WireError) -> Answer {
        self.failure = Failure::of(error);
        let number = self.failure.number;
        let ignored = context.target.ignores(number);
        let level = if ignored && (!LOST.contains(&number) || self.reopen(context)) {
            context.engine.count_error(context.thread, number);
            IGNORABLE
        } else {
            let query = String::from_utf8_lossy(sql);
            let text = &self.failure.text;
            context.log.fatal(&match query.is_empty() {
                true => format!("{name} returned error {number} ({text})"),
                false => format!("{name} returned error {number} ({text}) for query '{query}'"),
            });
            FATAL
        };
        Answer { level, ..Answer::default() }
    }

    /// Prepares a statement; its number. `None` after a failure, which is printed and kept.
    pub(super) fn prepare(&mut self, context: &Context<'_>, sql: &[u8]) -> Option<usize> {
        let server = match &mut self.client {
            Some(client) if context.target.prepares => match client.prepare(sql) {
                Ok(statement) => Some(statement),
                // 1295: the protocol of prepared statements does not know this one.
                Err(error) if error.code() == 1295 => None,
                Err(error) => {
                    self.failure = Failure::of(&error);
                    context.log.fatal("mysql_stmt_prepare() failed");
                    let Failure { number, text, .. } = &self.failure;
                    context.log.fatal(&format!("MySQL error: {number} \"{text}\""));
                    return None;
                }
            },
            _ => None,
        };
        self.statements.push(Some(Prepared { server, sql: sql.to_vec() }));
        Some(self.statements.len() - 1)
    }

    /// Runs a prepared statement.
    pub(super) fn execute(
        &mut self,
        context: &Context<'_>,
        statement: usize,
        values: impl FnOnce() -> Vec<Value>,
    ) -> Answer {
        if context.target.dry_run {
            context.engine.count(context.thread, Count::Other);
            return Answer::default();
        }
        let Some(mut of) = self.statements.get_mut(statement).and_then(Option::take) else {
            let gone = WireError::Unsupported("the statement is closed".to_owned());
            return self.failed(context, "mysql_stmt_execute()", b"", &gone);
        };
        let given = values();
        let answer = match &mut of.server {
            Some(server) => {
                let name = "mysql_stmt_execute()";
                self.answered(context, name, &of.sql, |client, sink| client.execute(server, &given, sink))
            }
            None => {
                let sql = with_values(&of.sql, &given);
                self.query(context, &sql)
            }
        };
        self.statements[statement] = Some(of);
        answer
    }

    /// Closes a statement.
    pub(super) fn close_statement(&mut self, statement: usize) {
        let closed = self.statements.get_mut(statement).and_then(Option::take);
        if let (Some(Prepared { server: Some(server), .. }), Some(client)) = (closed, &mut self.client) {
            client.close_statement(server.id);
        }
    }
}

/// A text with values in the place of its question marks, those in quotes excepted.
fn with_values(text: &[u8], values: &[Value]) -> Vec<u8> {
    let mut sql = Vec::with_capacity(text.len() + values.len() * 8);
    let mut values = values.iter();
    let mut quote = None;
    for byte in text {
        match (quote, byte) {
            (None, b'?') => match values.next() {
                Some(value) => literal(value, &mut sql),
                None => sql.push(b'?'),
            },
            (None, b'\'' | b'"' | b'`') => {
                quote = Some(*byte);
                sql.push(*byte);
            }
            (Some(open), _) if open == *byte => {
                quote = None;
                sql.push(*byte);
            }
            _ => sql.push(*byte),
        }
    }
    sql
}

fn literal(value: &Value, sql: &mut Vec<u8>) {
    match value {
        Value::Int(number) => sql.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(number) => sql.extend_from_slice(number.to_string().as_bytes()),
        Value::Bytes(text) => {
            sql.push(b'\'');
            for byte in text {
                if matches!(byte, b'\'' | b'\\') {
                    sql.push(b'\\');
                }
                sql.push(*byte);
            }
            sql.push(b'\'');
        }
        _ => sql.extend_from_slice(b"NULL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_get_values_outside_of_quotes() {
        let values = [Value::Int(7), Value::Bytes(b"it's".to_vec()), Value::Null];
        let sql = with_values(b"SELECT '?', ?, ?, ?", &values);
        assert_eq!(String::from_utf8(sql).unwrap(), "SELECT '?', 7, 'it\\'s', NULL");
    }
}
