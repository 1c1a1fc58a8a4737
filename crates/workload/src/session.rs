//! What a transaction sees of a connection, and what the load engine sees of a workload.

use std::future::Future;

use mydyno_model::record::OperationInfo;
use mydyno_wire::ServerError;

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
}

/// Value of a parameter, of the type that the statement declares at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param<'a> {
    /// A signed 64-bit integer.
    Int(i64),
    /// Bytes; their length is the declared one.
    Bytes(&'a [u8]),
}

/// A statement that each connection prepares before the load starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementSpec {
    /// Text with `?` for parameters.
    pub sql: String,
    /// Their types.
    pub params: Vec<ParamType>,
    /// Index in [`Workload::operations`] under which it is recorded.
    pub operation: usize,
}

/// What an answer said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// Rows of the result.
    pub rows: u64,
    /// Rows changed.
    pub affected_rows: u64,
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
}

/// What the load engine sees of a workload.
pub trait Workload: Sync {
    /// What one connection's stream of operations depends on, besides the options: cheap to copy, so that a
    /// transaction that is tried again asks the same.
    type Stream: Clone;

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

    /// Asks one transaction.
    ///
    /// # Errors
    /// The first [`Fault`] of a statement.
    fn transaction<S: Session>(
        &self,
        stream: &mut Self::Stream,
        session: &mut S,
    ) -> impl Future<Output = Result<(), Fault>>;
}
