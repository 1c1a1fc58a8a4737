//! Why a step could not run.

use mydyno_wire::WireError;
use thiserror::Error;

/// The reason why a step could not run, or could not start.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A connection could not be opened.
    #[error("connection {number} of {of}: {source}")]
    Connect {
        /// Number of the connection, from 1.
        number: usize,
        /// Number of connections of the step.
        of: usize,
        /// The error of the server or of the connection.
        source: Box<WireError>,
    },
    /// A statement could not be prepared.
    #[error("connection {number} of {of}: preparing {sql:?}: {source}")]
    Prepare {
        /// Number of the connection, from 1.
        number: usize,
        /// Number of connections of the step.
        of: usize,
        /// The statement.
        sql: String,
        /// The error of the server or of the connection.
        source: Box<WireError>,
    },
    /// The operating system refused something that the load generator needs.
    #[error("{what}: {source}")]
    System {
        /// The refused operation, and the way to permit it.
        what: String,
        /// The refusal.
        source: std::io::Error,
    },
    /// A worker thread could not be started, or panicked: a defect of this program.
    #[error("a worker thread of the load generator failed: {0}")]
    Worker(String),
    /// The user asked to stop while connections were being opened.
    #[error("interrupted before the load started")]
    Interrupted,
}
