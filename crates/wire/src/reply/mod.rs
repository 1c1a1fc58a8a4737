//! The answer to a command, counted as its bytes arrive: nothing is materialised, and only the text of an error is
//! allocated.
//!
//! Protocol: <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response.html> and
//! <https://mariadb.com/docs/server/reference/clientserver-protocol/4-server-response-packets/result-set-packets>.

mod first_row;
mod header;
mod parser;
mod prepared;
mod results;
mod stash;

pub use first_row::FirstRow;
pub(crate) use header::HeaderForm;
pub use parser::ReplyParser;
pub use prepared::{PrepareReader, Prepared};
pub use results::{ResultReader, ResultSink, Row};

use crate::error::ServerError;

/// Kind of command that a reply answers: it determines the encoding of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// A text statement (COM_QUERY), or a command that is answered by OK alone.
    Text,
    /// A prepared statement (COM_STMT_EXECUTE).
    Prepared,
}

/// A complete reply. With several results, rows and affected rows are summed and the rest is that of the last one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Rows received.
    pub rows: u64,
    /// Rows that the statement changed.
    pub affected_rows: u64,
    /// First value of AUTO_INCREMENT that it made.
    pub last_insert_id: u64,
    /// Warnings.
    pub warnings: u16,
    /// Status flags, see [`crate::capability::status`].
    pub status: u16,
    /// Whether an answer whose first packet had a wrong sequence number was accepted; MySQL and MariaDB send none.
    pub misnumbered: bool,
    /// The server's error, which ends a reply, also in the middle of its rows.
    pub error: Option<Box<ServerError>>,
}

/// Progress of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    More,
    /// The reply is complete.
    Done(Reply),
}
