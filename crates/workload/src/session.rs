//! What a transaction sees of a connection, and what the load engine sees of a workload.

use std::future::Future;

use mydyno_model::record::OperationInfo;
use mydyno_wire::{ServerError, Value};

/// Number of a statement in [`Workload::statements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(pub u32);

/// Type of a statement's parameter: fixed for the life of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// A signed 64-bit integer.
    Int,
    /// A string or byte string of exactly this length.
    Fixed(usize),
    /// A string or byte string of at most this length.
    Bytes(usize),
}

/// Value of a parameter, of the type that the statement declares at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param<'a> {
    /// A signed 64-bit integer.
    Int(i64),
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
    /// Whether it may be sent by [`Session::execute_keeping`]: connections then remember its columns.
    pub keeps_row: bool,
}

/// What an answer said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// Rows of the result.
    pub rows: u64,
    /// Rows changed.
    pub affected_rows: u64,
}

/// What an answer said, and the first row of its first result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kept {
    /// What it said.
    pub answer: Answer,
    /// The row; `None` where there is none.
    pub row: Option<Vec<Value>>,
}

/// Why a transaction did not complete.
#[derive(Debug)]
pub enum Fault {
    /// The server answered with an error; the connection is usable.
    Server(Box<ServerError>),
    /// The connection is gone or out of step.
    Lost(Box<mydyno_wire::WireError>),
}

/// What a transaction sees of a connection.
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
}

/// The transactions of one connection, in their order. The load engine calls [`Self::begin`] before the first attempt
/// at a transaction and [`Self::redraw`] before each further attempt.
pub trait TransactionStream {
    /// Starts the next transaction.
    fn begin(&mut self);

    /// Returns to the start of the current transaction, so that it is drawn again with the same parameters.
    fn redraw(&mut self);
}

/// What the load engine sees of a workload.
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
