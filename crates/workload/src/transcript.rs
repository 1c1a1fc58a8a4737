//! Records the operations of a workload without a server: every statement is answered as if it found one row with
//! unknown content.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mydyno_wire::Value;
use mydyno_wire::packet::OkPacket;
use mydyno_wire::reply::ResultSink;

use crate::session::{
    Answer, Command, Fault, Handle, Kept, Param, Session, Statement, StatementSpec, TransactionStream as _,
    Workload, unknown_statement,
};

/// One statement of a transaction.
#[derive(Debug, Clone, Copy)]
pub struct SentStatement<'a> {
    /// Index in [`Workload::operations`].
    pub operation: usize,
    /// Its text, with `?` for parameters if it is prepared.
    pub sql: &'a [u8],
    /// Values of the parameters.
    pub params: &'a [Param<'a>],
}

/// One line: the text, then the values.
impl fmt::Display for SentStatement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.sql))?;
        for (number, param) in self.params.iter().enumerate() {
            f.write_str(if number == 0 { "  -- " } else { ", " })?;
            match param {
                Param::Int(n) => write!(f, "{n}")?,
                Param::Double(x) => write!(f, "{x}")?,
                Param::Bytes(bytes) => write!(f, "'{}'", String::from_utf8_lossy(bytes))?,
                Param::Null => f.write_str("NULL")?,
            }
        }
        Ok(())
    }
}

/// The answer to every statement: one row found or changed.
const FOUND: Answer = Answer { rows: 1, affected_rows: 1 };

/// Passes the statements of the first transactions of a connection to `sink`. A statement that keeps its row gets none,
/// so transactions that need its values end there: fingerprints in records depend on it.
pub fn replay<W: Workload>(
    workload: &W,
    connection: u64,
    transactions: usize,
    sink: &mut dyn FnMut(&SentStatement<'_>),
) {
    replay_with_row(workload, connection, transactions, None, sink);
}

/// As [`replay`], with this row for statements that keep their row.
pub fn replay_with_row<W: Workload>(
    workload: &W,
    connection: u64,
    transactions: usize,
    row: Option<&[Value]>,
    sink: &mut dyn FnMut(&SentStatement<'_>),
) {
    let mut stream = workload.stream(connection);
    let mut reciter = Replayer { workload, sink, row, handles: Vec::new() };
    for _ in 0..transactions {
        stream.begin();
        // The session answers at once and never fails, so the transaction never fails either.
        let asked = pin!(workload.transaction(&mut stream, &mut reciter));
        let done = asked.poll(&mut Context::from_waker(Waker::noop()));
        debug_assert!(matches!(done, Poll::Ready(Ok(()))));
    }
}

struct Replayer<'a, W> {
    workload: &'a W,
    sink: &'a mut dyn FnMut(&SentStatement<'_>),
    row: Option<&'a [Value]>,
    /// Statements that were prepared while running.
    handles: Vec<Option<StatementSpec>>,
}

impl<W: Workload> Replayer<'_, W> {
    fn prepared(&mut self, statement: Statement, params: &[Param<'_>]) {
        let spec = &self.workload.statements()[statement.0 as usize];
        (self.sink)(&SentStatement { operation: spec.operation, sql: spec.sql.as_bytes(), params });
    }
}

impl<W: Workload> Session for Replayer<'_, W> {
    async fn execute(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Answer, Fault> {
        self.prepared(statement, params);
        Ok(FOUND)
    }

    async fn execute_keeping(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Kept, Fault> {
        self.prepared(statement, params);
        Ok(Kept { answer: FOUND, row: self.row.map(<[Value]>::to_vec) })
    }

    async fn query(&mut self, operation: usize, sql: &[u8]) -> Result<Answer, Fault> {
        (self.sink)(&SentStatement { operation, sql, params: &[] });
        Ok(FOUND)
    }

    async fn prepare(&mut self, spec: &StatementSpec) -> Result<Handle, Fault> {
        self.handles.push(Some(spec.clone()));
        Ok(Handle { number: self.handles.len() as u32 - 1, generation: 0 })
    }

    fn close(&mut self, handle: Handle) {
        if let Some(spec) = self.handles.get_mut(handle.number as usize) {
            *spec = None;
        }
    }

    /// One result without columns, since the rows are unknown.
    async fn stream<S: ResultSink>(&mut self, command: Command<'_>, sink: &mut S) -> Result<Answer, Fault> {
        match command {
            Command::Prepared(statement, params) => self.prepared(statement, params),
            Command::Text(operation, sql) => (self.sink)(&SentStatement { operation, sql, params: &[] }),
            Command::Handle(handle, params) => {
                let spec = self.handles.get(handle.number as usize).and_then(Option::as_ref);
                let spec = spec.ok_or_else(unknown_statement)?;
                (self.sink)(&SentStatement { operation: spec.operation, sql: spec.sql.as_bytes(), params });
            }
        }
        sink.end(&OkPacket { affected_rows: FOUND.affected_rows, ..OkPacket::default() });
        Ok(FOUND)
    }
}
