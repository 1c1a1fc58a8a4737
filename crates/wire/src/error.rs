//! Errors between this program and a server.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::time::Duration;

use thiserror::Error;

/// An error packet of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The server's number, as in 1213.
    pub code: u16,
    /// Five characters, as in `40001`; `HY000` where the server sent none.
    pub sqlstate: String,
    /// The server's text.
    pub message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {} ({}): {}", self.code, self.sqlstate, self.message)
    }
}

/// The reason why a connection, a statement or an answer failed. Texts name the input and the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The server answered a command with an error.
    #[error("{0}")]
    Server(ServerError),
    /// The server refused the connection: password, schema, host, too many connections.
    #[error("{endpoint} refused {user}: {error}; {remedy}")]
    Refused {
        /// The server.
        endpoint: String,
        /// User that asked, as in `'app'`.
        user: String,
        /// The server's error.
        error: Box<ServerError>,
        /// Suggested remedy.
        remedy: String,
    },
    /// No server was reached.
    #[error("cannot connect to {endpoint}: {source}; {remedy}")]
    Unreachable {
        /// The address.
        endpoint: String,
        /// The system's reason.
        source: io::Error,
        /// Suggested remedy.
        remedy: String,
    },
    /// Sending or receiving failed.
    #[error("the connection failed {during}: {source}")]
    Io {
        /// The operation, as in `reading the answer`.
        during: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The other side did not answer in time.
    #[error("no complete answer within {} s {during}; {remedy}", (after.as_secs_f64() * 1e3).round() / 1e3)]
    Timeout {
        /// The operation that timed out.
        during: &'static str,
        /// The limit that was set.
        after: Duration,
        /// Suggested remedy.
        remedy: Cow<'static, str>,
    },
    /// The caller's cancellation flag was set.
    #[error("interrupted while {during}")]
    Cancelled {
        /// State of the connection.
        during: &'static str,
    },
    /// The other side sent what the protocol does not allow here.
    #[error("not a valid {packet} packet while {state}: {detail}")]
    Protocol {
        /// The packet.
        packet: &'static str,
        /// State of the connection.
        state: &'static str,
        /// The defect.
        detail: String,
    },
    /// Authentication cannot continue.
    #[error("cannot authenticate by {plugin}: {detail}")]
    Auth {
        /// The authentication plugin that the server asked for.
        plugin: String,
        /// The reason and the remedy.
        detail: String,
    },
    /// TLS was requested and could not be established.
    #[error("TLS with {endpoint} failed: {detail}")]
    Tls {
        /// The server, or `this side` for files that cannot be used.
        endpoint: String,
        /// The reason and the remedy.
        detail: String,
    },
    /// The other side closed the connection.
    #[error("the server closed the connection while {state}; {remedy}")]
    Closed {
        /// State of the connection.
        state: &'static str,
        /// Suggested remedy.
        remedy: &'static str,
    },
    /// An answer exceeds its limit.
    #[error("{what} is larger than the limit of {limit_bytes} bytes; {remedy}")]
    TooLarge {
        /// Name of the item that is too large.
        what: &'static str,
        /// The bound.
        limit_bytes: usize,
        /// Suggested remedy.
        remedy: &'static str,
    },
    /// The request cannot be carried out.
    #[error("{0}")]
    Unsupported(String),
}

impl WireError {
    /// The server's error, where a server sent one.
    pub fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            Self::Refused { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Whether the caller's cancellation flag ended the call.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. })
    }

    /// The server's error number, or the number that MySQL's own client gives such a failure (2002, 2003, 2013 …).
    pub fn code(&self) -> u16 {
        match self {
            Self::Server(error) => error.code,
            Self::Refused { error, .. } => error.code,
            Self::Unreachable { endpoint, source, .. } => match source.kind() {
                io::ErrorKind::NotFound if !endpoint.starts_with('/') => 2005,
                _ if endpoint.starts_with('/') => 2002,
                _ => 2003,
            },
            Self::Io { .. } | Self::Closed { .. } | Self::Timeout { .. } | Self::Cancelled { .. } => 2013,
            Self::Protocol { .. } => 2027,
            Self::Tls { .. } => 2026,
            Self::Auth { .. } => 2059,
            Self::TooLarge { .. } => 2020,
            Self::Unsupported(_) => 2054,
        }
    }

    /// A protocol error.
    pub fn protocol(packet: &'static str, state: &'static str, detail: impl Into<String>) -> Self {
        Self::Protocol { packet, state, detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_to_the_millisecond() {
        let after = Duration::from_nanos(4_999_995_113);
        let error = WireError::Timeout { during: "reading", after, remedy: "allow more time".into() };
        assert_eq!(error.to_string(), "no complete answer within 5 s reading; allow more time");
    }
}
