//! Interfaces between transactions and connections ([`Session`]), and between workloads and the load engine ([`Workload`]).

use std::future::Future;

use mydyno_model::record::OperationInfo;
use mydyno_wire::reply::ResultSink;
use mydyno_wire::{ServerError, Value, WireError};

/// Number of a statement in [`Workload::statements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(pub u32);

/// Type of a statement's parameter: fixed for the life of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// A signed 64-bit integer.
    Int,
    /// A floating-point number, sent as DOUBLE.
    Double,
    /// A string or byte string of exactly this length.
    Fixed(usize),
    /// A string or byte string of at most this length.
    Bytes(usize),
}

/// Value of a parameter, of the type that the statement declares at its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Param<'a> {
    /// A signed 64-bit integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// Bytes; their length is the declared one, or at most that.
    Bytes(&'a [u8]),
    /// NULL, whatever type is declared.
    Null,
}

/// A statement that each connection prepares before the load starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatementSpec {
    /// Text with `?` for parameters.
    pub sql: String,
    /// Their types.
    pub params: Vec<ParamType>,
    /// Index in [`Workload::operations`] under which it is recorded.
    pub operation: usize,
    /// Whether [`Session::execute_keeping`] or [`Session::stream`] may send it: connections then keep its columns.
    pub keeps_row: bool,
}

/// Counts of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// Rows of the result.
    pub rows: u64,
    /// Rows changed.
    pub affected_rows: u64,
}

/// Counts of an answer, and the first row of its first result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kept {
    /// Its counts.
    pub answer: Answer,
    /// The row; `None` where there is none.
    pub row: Option<Vec<Value>>,
}

/// A statement that a session prepared while running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    /// Number within the session.
    pub number: u32,
    /// [`Session::generation`] in which it was prepared.
    pub generation: u64,
}

/// A command that returns rows to the workload.
#[derive(Debug, Clone, Copy)]
pub enum Command<'a> {
    /// A statement of [`Workload::statements`] with [`StatementSpec::keeps_row`].
    Prepared(Statement, &'a [Param<'a>]),
    /// A statement that was prepared while running.
    Handle(Handle, &'a [Param<'a>]),
    /// A text, recorded under an operation of [`Workload::operations`]. It may hold several statements where the
    /// connection permits that.
    Text(usize, &'a [u8]),
}

/// Why a transaction did not complete.
#[derive(Debug)]
pub enum Fault {
    /// The server answered with an error; the connection is usable.
    Server(Box<ServerError>),
    /// The connection is gone or out of step.
    Lost(Box<mydyno_wire::WireError>),
}

/// A connection, as transactions use it.
pub trait Session {
    /// Sends a prepared statement with its parameters and waits for the whole answer.
    ///
    /// # Errors
    /// [`Fault`]; the transaction passes it on, the load engine rolls back, counts and decides.
    fn execute(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Answer, Fault>>;

    /// As [`Self::execute`], and keeps the first row of the result, for statements whose later ones need it. It
    /// costs an allocation for each cell; the statement is one that [`StatementSpec::keeps_row`].
    ///
    /// # Errors
    /// As [`Self::execute`].
    fn execute_keeping(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Kept, Fault>>;

    /// Sends a statement as text and waits for the whole answer; it is recorded under `operation`, an index in
    /// [`Workload::operations`].
    ///
    /// # Errors
    /// As [`Self::execute`].
    fn query(&mut self, operation: usize, sql: &[u8]) -> impl Future<Output = Result<Answer, Fault>>;

    /// How often the connection was opened again. Statements of another generation are gone: a workload that prepares
    /// statements prepares them again when this number has changed.
    fn generation(&self) -> u64 {
        0
    }

    /// Prepares a statement while running. It is not counted as a statement of the workload; the time that it takes is
    /// part of the transaction.
    ///
    /// # Errors
    /// As [`Self::execute`]; also where the session cannot prepare.
    fn prepare(&mut self, spec: &StatementSpec) -> impl Future<Output = Result<Handle, Fault>> {
        let _ = spec;
        std::future::ready(Err(unsupported("prepare statements while running")))
    }

    /// Releases a statement that was prepared while running. The server does not answer.
    fn close(&mut self, handle: Handle) {
        let _ = handle;
    }

    /// Sends a command and passes the rows of all its results to `sink` as they arrive, without keeping them.
    ///
    /// # Errors
    /// As [`Self::execute`], also after rows have been passed on. A handle of another generation is the server's error
    /// 1243 (unknown statement).
    fn stream<S: ResultSink>(
        &mut self,
        command: Command<'_>,
        sink: &mut S,
    ) -> impl Future<Output = Result<Answer, Fault>> {
        let _ = (command, sink);
        std::future::ready(Err(unsupported("stream rows")))
    }
}

fn unsupported(what: &str) -> Fault {
    Fault::Lost(Box::new(WireError::Unsupported(format!("this session cannot {what}"))))
}

/// The server's error for a statement that it does not know, ER_UNKNOWN_STMT_HANDLER.
pub fn unknown_statement() -> Fault {
    Fault::Server(Box::new(ServerError {
        code: 1243,
        sqlstate: "HY000".to_owned(),
        message: "the statement was prepared on an earlier connection or has been closed".to_owned(),
    }))
}

/// The transactions of one connection, in their order. The load engine calls [`Self::begin`] before the first attempt
/// at a transaction and [`Self::redraw`] before each further attempt.
pub trait TransactionStream {
    /// Starts the next transaction.
    fn begin(&mut self);

    /// Returns to the start of the current transaction, so that it is drawn again with the same parameters.
    fn redraw(&mut self);

    /// The operation, beside the first, under which the transaction that has just completed is recorded: its kind, where the
    /// workload has transactions of several kinds.
    fn operation(&self) -> Option<usize> {
        None
    }
}

/// A workload, as the load engine uses it.
pub trait Workload: Sync {
    /// State of one connection's transactions: random generator, counters, buffers.
    type Stream: TransactionStream;

    /// Operations that are recorded; the first is the transaction.
    fn operations(&self) -> &[OperationInfo];

    /// Statements that each connection prepares.
    fn statements(&self) -> &[StatementSpec];

    /// The stream of one connection: it depends on the seed and the connection's number only.
    fn stream(&self, connection: u64) -> Self::Stream;

    /// Whether a failed transaction leaves something to roll back.
    fn transactional(&self) -> bool;

    /// Whether it changes data.
    fn writes(&self) -> bool;

    /// Whether each transaction leaves as many rows as it found.
    fn keeps_row_count(&self) -> bool {
        true
    }

    /// Statements that put the tables back to where a step starts from, sent before each step on a connection to
    /// the workload's database.
    fn before_step(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of the longest text that [`Session::query`] gets.
    fn longest_query_bytes(&self) -> usize {
        0
    }

    /// Sends one attempt at the current transaction of the stream.
    ///
    /// # Errors
    /// The first [`Fault`] of a statement.
    fn transaction<S: Session>(
        &self,
        stream: &mut Self::Stream,
        session: &mut S,
    ) -> impl Future<Output = Result<(), Fault>>;
}
