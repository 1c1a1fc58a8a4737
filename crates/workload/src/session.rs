//! Interfaces between transactions and connections ([`Session`]), and between workloads and the load engine ([`Workload`]).

use std::future::Future;

use mydyno_model::record::OperationInfo;
use mydyno_wire::reply::ResultSink;
use mydyno_wire::{ServerError, Value, WireError};

/// Number of a statement in [`Workload::statements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(pub u32);

/// Type of a statement's parameter, fixed for the lifetime of a prepared statement.
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

/// Value of a parameter, of the type that the statement declares for it.
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
    /// Whether [`Session::execute_keeping`] or [`Session::stream`] may send it: connections then keep its column
    /// definitions.
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
    /// A text, recorded under an operation of [`Workload::operations`]. It may contain several statements if the
    /// connection permits that.
    Text(usize, &'a [u8]),
}

/// Why a transaction did not complete.
#[derive(Debug)]
pub enum Fault {
    /// The server answered with an error; the connection is usable.
    Server(Box<ServerError>),
    /// The connection is lost or out of sync.
    Lost(Box<mydyno_wire::WireError>),
}

/// A connection, as transactions use it.
pub trait Session {
    /// Sends a prepared statement with its parameters and waits for the whole answer.
    ///
    /// # Errors
    /// [`Fault`]; the transaction returns it, and the load engine rolls back, counts it and decides whether to retry.
    fn execute(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Answer, Fault>>;

    /// As [`Self::execute`], and keeps the first row of the result for later statements. It allocates memory for each
    /// cell; the statement must have [`StatementSpec::keeps_row`].
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

    /// Number of times the connection was reopened. Statements of another generation do not exist any more: a workload
    /// that prepares statements prepares them again when this number has changed.
    fn generation(&self) -> u64 {
        0
    }

    /// Prepares a statement while running. It does not count as a statement of the workload; its time is part of the
    /// transaction.
    ///
    /// # Errors
    /// As [`Self::execute`]; also if the session cannot prepare.
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

/// The server's error for an unknown statement, ER_UNKNOWN_STMT_HANDLER.
pub fn unknown_statement() -> Fault {
    Fault::Server(Box::new(ServerError {
        code: 1243,
        sqlstate: "HY000".to_owned(),
        message: "the statement was prepared on an earlier connection or has been closed".to_owned(),
    }))
}

/// When a connection begins its next transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// When the arrivals of the load say so.
    ByArrivals,
    /// At this instant, in nanoseconds since the run began.
    At(u64),
    /// Not yet known: to be asked again after so many nanoseconds.
    AskAgain(u64),
}

/// A workload's own counts, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts<'a> {
    /// Names, the same for all streams of a workload.
    pub names: &'static [&'static str],
    /// The amount to add to each.
    pub values: &'a [u64],
}

/// The transactions of one connection, in their order. The load engine calls [`Self::begin`] before the first attempt
/// of a transaction and [`Self::redraw`] before each further attempt.
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

    /// The counts that the transaction that has just completed adds to its window.
    fn counts(&self) -> Counts<'_> {
        Counts::default()
    }

    /// Whether the connection has nothing more to send: it is then closed, and the load ends with its last connection.
    /// Asked after each [`Self::begin`].
    fn is_over(&self) -> bool {
        false
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

    /// The stream of one connection: it depends only on the seed and the connection's number.
    fn stream(&self, connection: u64) -> Self::Stream;

    /// Whether a failed transaction leaves something to roll back.
    fn transactional(&self) -> bool;

    /// Whether it changes data.
    fn writes(&self) -> bool;

    /// Whether no transaction changes the number of rows.
    fn keeps_row_count(&self) -> bool {
        true
    }

    /// Statements that reset the tables to the initial state of a step, sent before each step on a connection to the
    /// workload's database.
    fn before_step(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of the longest text for [`Session::query`].
    fn longest_query_bytes(&self) -> usize {
        0
    }

    /// When a stream begins its next transaction; its last one ended at `ended_ns`, in nanoseconds since the run began.
    /// Asked before each [`TransactionStream::begin`].
    fn due(&self, stream: &mut Self::Stream, ended_ns: u64) -> Due {
        let _ = (stream, ended_ns);
        Due::ByArrivals
    }

    /// Sends one attempt at the current transaction of the stream. One that sends nothing has handed its work to another
    /// connection: it is recorded under [`TransactionStream::operation`] only, and not counted as a transaction.
    ///
    /// # Errors
    /// The first [`Fault`] of a statement.
    fn transaction<S: Session>(
        &self,
        stream: &mut Self::Stream,
        session: &mut S,
    ) -> impl Future<Output = Result<(), Fault>>;
}
