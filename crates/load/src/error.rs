//! Errors of a step.

use mydyno_wire::WireError;
use thiserror::Error;

/// A step could not start, or could not run to its end.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A connection could not be opened.
    #[error("connection {number} of {of}: {source}")]
    Connect {
        /// Its number, from 1.
        number: usize,
        /// Number of connections of the step.
        of: usize,
        /// The refusal.
        source: Box<WireError>,
    },
    /// A statement could not be prepared.
    #[error("connection {number} of {of}: preparing {sql:?}: {source}")]
    Prepare {
        /// The connection's number, from 1.
        number: usize,
        /// Number of connections of the step.
        of: usize,
        /// The statement.
        sql: String,
        /// The refusal.
        source: Box<WireError>,
    },
    /// The operating system refused something that the load generator needs.
    #[error("{what}: {source}")]
    System {
        /// The refused action, and what would permit it.
        what: String,
        /// The refusal.
        source: std::io::Error,
    },
    /// A worker thread could not be started, or panicked: a defect of this program.
    #[error("a worker thread of the load generator failed: {0}")]
    Worker(String),
    /// The user interrupted the run while connections were being opened.
    #[error("interrupted before the load started")]
    Interrupted,
}
