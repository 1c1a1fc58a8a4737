//! Batches of rows that are sent to the server.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use mydyno_wire::{BulkRows, Client, Prepared, Sent, WireError};

use super::check::Sum;
use super::fillers::Shared;
use super::{PrepareError, doing};
use crate::mark;
use crate::table::{Both, Fields, RowDigest, Table, Tuple};

/// How rows are sent, and the state that connections share.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    /// Maximum number of bytes of one exchange.
    pub limit_bytes: usize,
    /// Whether to send values of a prepared statement, where the server supports many at once.
    pub as_values: bool,
    /// State shared with the other connections.
    pub shared: &'a Shared<'a>,
}

/// Inserts rows, and adds them to `sum`. It prepares the next rows while the server works.
pub(crate) fn insert(
    client: &mut Client,
    mut ids: RangeInclusive<u64>,
    table: &dyn Table,
    exchange: &Exchange<'_>,
    sum: &mut Sum,
) -> Result<(), PrepareError> {
    let inserting = || doing(format!("inserting into {}", table.name()));
    let mut batch = Batch::new(client, table, exchange.limit_bytes, exchange.as_values)?;
    let mut rows = batch.load(&mut ids, sum);
    while rows > 0 {
        exchange.shared.wait_for_turn(rows)?;
        let sent = batch.send(client).map_err(inserting())?;
        let next = batch.load(&mut ids, sum);
        sent.finish().map_err(inserting())?;
        exchange.shared.done.fetch_add(rows, Ordering::Relaxed);
        rows = next;
    }
    batch.close(client)
}

/// Rows of a table for consecutive exchanges.
struct Batch<'a> {
    table: &'a dyn Table,
    form: Form,
    rows: u64,
    limit_bytes: usize,
}

/// How rows are sent.
enum Form {
    /// All in the text of one INSERT, which is truncated after its head for the next.
    Text { sql: Vec<u8>, head_bytes: usize },
    /// As values of a prepared INSERT, so that the server need not parse text or digits.
    Values { insert: Prepared, rows: BulkRows },
}

impl<'a> Batch<'a> {
    /// An empty batch for exchanges of this maximum size.
    fn new(
        client: &mut Client,
        table: &'a dyn Table,
        limit_bytes: usize,
        as_values: bool,
    ) -> Result<Self, PrepareError> {
        let head = format!("INSERT INTO {} ({}) VALUES ", mark::quoted(table.name()), table.columns());
        let form = if as_values && client.can_execute_bulk() {
            let columns = table.column_count();
            let marks = vec!["?"; columns].join(",");
            let insert = client
                .prepare(&format!("{head}({marks})"))
                .map_err(doing(format!("preparing to insert into {}", table.name())))?;
            Form::Values { insert, rows: BulkRows::new(columns) }
        } else {
            let mut sql = Vec::with_capacity(limit_bytes);
            sql.extend_from_slice(head.as_bytes());
            Form::Text { sql, head_bytes: head.len() }
        };
        Ok(Self { table, form, rows: 0, limit_bytes })
    }

    /// Replaces the rows by as many of the next ones as fit, and adds these to `sum`. Returns their number.
    fn load(&mut self, ids: &mut RangeInclusive<u64>, sum: &mut Sum) -> u64 {
        match &mut self.form {
            Form::Text { sql, head_bytes } => sql.truncate(*head_bytes),
            Form::Values { rows, .. } => rows.clear(),
        }
        self.rows = 0;
        while !self.is_full() {
            let Some(id) = ids.next() else { break };
            sum.add(self.add(id));
        }
        self.rows
    }

    /// Adds row `id`, and returns its digest.
    fn add(&mut self, id: u64) -> u32 {
        let mut digest = RowDigest::new(self.table);
        match &mut self.form {
            Form::Text { sql, .. } => {
                if self.rows > 0 {
                    sql.push(b',');
                }
                let mut tuple = Tuple::open(sql);
                self.table.row(id, &mut Both(&mut tuple, &mut digest));
                tuple.close();
            }
            Form::Values { rows, .. } => self.table.row(id, &mut Both(&mut Values(rows), &mut digest)),
        }
        self.rows += 1;
        digest.finish()
    }

    /// Whether another row may not fit; one row always fits.
    fn is_full(&self) -> bool {
        let bytes = match &self.form {
            Form::Text { sql, .. } => sql.len(),
            Form::Values { rows, .. } => rows.size_bytes(),
        };
        self.rows > 0 && bytes + self.table.sql_bytes() + 1 > self.limit_bytes
    }

    /// Sends the rows; the next can be loaded before the answer is read.
    fn send<'c>(&self, client: &'c mut Client) -> Result<Sent<'c>, WireError> {
        match &self.form {
            Form::Text { sql, .. } => client.send_bytes(sql),
            Form::Values { insert, rows } => client.send_bulk_rows(insert, rows),
        }
    }

    /// Releases the prepared statement at the server.
    fn close(self, client: &mut Client) -> Result<(), PrepareError> {
        match self.form {
            Form::Text { .. } => Ok(()),
            Form::Values { insert, .. } => {
                client.close_statement(&insert).map_err(doing("closing a prepared statement"))
            }
        }
    }
}

/// A row as values of a prepared statement.
struct Values<'a>(&'a mut BulkRows);

impl Fields for Values<'_> {
    fn int(&mut self, value: i64) {
        self.0.int(value);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.0.bytes(value);
    }

    fn null(&mut self) {
        self.0.null();
    }
}
