//! A blocking client for control work: whole results, bounded in memory and time.

mod at_work;
mod channel;
mod connect;
mod results;
mod sent;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use channel::Channel;
pub use sent::Sent;

use crate::bulk::BulkRows;
use crate::capability::Capabilities;
use crate::column::Column;
use crate::command;
use crate::envelope::Envelope;
use crate::error::WireError;
use crate::execute;
use crate::options::ConnectOptions;
pub use crate::reply::Prepared;
use crate::reply::ResultSink;
use crate::rows::Rows;
use crate::server::ServerVersion;
use crate::session::Session;
use crate::session_change::SessionChange;
use crate::value::Value;

/// Result of a statement without rows. For a text with several, affected rows and warnings are summed and the rest is
/// that of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Rows that were changed.
    pub affected_rows: u64,
    /// First value of AUTO_INCREMENT that was made.
    pub last_insert_id: u64,
    /// Warnings.
    pub warnings: u32,
    /// Status flags, see [`crate::capability::status`].
    pub status: u16,
}

/// A connection to a server. Dropping it sends COM_QUIT.
#[derive(Debug)]
pub struct Client {
    channel: Channel,
    session: Session,
    max_result_bytes: usize,
    /// Columns of prepared statements as the server last sent them, for results without definitions.
    columns: HashMap<u32, Arc<[Column]>>,
    /// Session changes that the last answer reported.
    changes: Vec<SessionChange>,
}

impl Client {
    /// Connects and authenticates.
    ///
    /// # Errors
    /// The server is unreachable, refuses, exceeds the time limit, or has an incompatible protocol; the texts name the
    /// remedy.
    pub fn connect(options: &ConnectOptions) -> Result<Self, WireError> {
        let endpoint = options.endpoint.to_string();
        let _span = tracing::debug_span!("connect", ?endpoint, user = ?options.user).entered();
        let (channel, session) = Channel::open(options, at_work::look)
            .inspect_err(|error| tracing::debug!(error = ?error.to_string(), "no connection"))?;
        Ok(Self {
            channel,
            session,
            max_result_bytes: options.max_result_bytes,
            columns: HashMap::new(),
            changes: Vec::new(),
        })
    }

    /// The server.
    pub fn server(&self) -> &ServerVersion {
        &self.session.version
    }

    /// Parameters negotiated with the server.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Session changes of the last statement, where the server reports them and was requested to (see
    /// [`ConnectOptions::session_tracking`]); of a text with several statements, those of the last one.
    pub fn session_changes(&self) -> &[SessionChange] {
        &self.changes
    }

    /// Answers whose first packet, an OK packet, had a wrong sequence number; MySQL and MariaDB send none.
    pub fn misnumbered_answers(&self) -> u64 {
        self.channel.misnumbered
    }

    /// The server's process, over a Unix socket (see [`crate::net::Socket::peer_pid`]).
    pub fn peer_pid(&self) -> Option<u32> {
        self.channel.peer_pid()
    }

    /// The limit for the whole answer to one command.
    pub fn read_timeout(&self) -> Option<Duration> {
        self.channel.read_timeout()
    }

    /// Sets another limit for the whole answer to one command; for `None` see [`ConnectOptions::read_timeout`].
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.channel.set_read_timeout(timeout);
    }

    /// Runs a text and returns the rows of its first result with columns; later ones are read and dropped.
    ///
    /// # Errors
    /// The server's, or the connection's. A result beyond the memory limit fails as [`WireError::TooLarge`] and the
    /// connection is closed.
    pub fn query(&mut self, sql: &str) -> Result<Rows, WireError> {
        self.command(|out| command::query(out, sql.as_bytes()))?;
        self.results(None).map(first_with_columns)
    }

    /// Runs a text and returns all its results.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_all(&mut self, sql: &str) -> Result<Vec<Rows>, WireError> {
        self.command(|out| command::query(out, sql.as_bytes()))?;
        self.results(None).map(|(rows, _)| rows)
    }

    /// Runs a text and passes the rows of every result to `sink` as they arrive; none are kept.
    ///
    /// # Errors
    /// The server's, the connection's or the sink's.
    pub fn stream(&mut self, sql: &[u8], sink: &mut impl ResultSink) -> Result<(), WireError> {
        self.command(|out| command::query(out, sql))?;
        self.stream_results(None, sink)
    }

    /// [`Self::stream`] for a prepared statement.
    ///
    /// # Errors
    /// As [`Self::stream`]; also when there are not as many values as parameters.
    pub fn stream_prepared(
        &mut self,
        statement: &Prepared,
        values: &[Value],
        sink: &mut impl ResultSink,
    ) -> Result<(), WireError> {
        self.send_prepared(statement, values)?;
        self.stream_results(Some(statement.id), sink)
    }

    /// Runs a text and drops its rows, however many.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn execute(&mut self, sql: &str) -> Result<Done, WireError> {
        self.execute_bytes(sql.as_bytes())
    }

    /// [`Self::execute`] for a text that need not be UTF-8.
    ///
    /// # Errors
    /// As [`Self::execute`].
    pub fn execute_bytes(&mut self, sql: &[u8]) -> Result<Done, WireError> {
        self.send_bytes(sql)?.finish()
    }

    /// [`Self::execute_bytes`] without waiting for the answer.
    ///
    /// # Errors
    /// The connection's; [`Sent::finish`] returns the server's.
    pub fn send_bytes(&mut self, sql: &[u8]) -> Result<Sent<'_>, WireError> {
        self.command(|out| command::query(out, sql))?;
        Ok(Sent::new(self))
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, WireError> {
        self.command(|out| command::stmt_prepare(out, sql.as_bytes()))?;
        self.prepare_answer()
    }

    /// Runs a prepared statement and returns the rows of its first result with columns.
    ///
    /// # Errors
    /// As [`Self::query`]; also when there are not as many values as parameters.
    pub fn execute_prepared(&mut self, statement: &Prepared, values: &[Value]) -> Result<Rows, WireError> {
        self.send_prepared(statement, values)?;
        self.results(Some(statement.id)).map(first_with_columns)
    }

    fn send_prepared(&mut self, statement: &Prepared, values: &[Value]) -> Result<(), WireError> {
        if values.len() != statement.params.len() {
            return Err(WireError::Unsupported(format!(
                "the prepared statement has {} parameters, {} values were given",
                statement.params.len(),
                values.len()
            )));
        }
        self.command(|out| execute::execute(out, statement.id, values))
    }

    /// Runs a prepared statement once for each row, in one exchange.
    ///
    /// # Errors
    /// [`WireError::Unsupported`] where the server does not support it (all but MariaDB 10.2 and newer) or the rows
    /// differ in length or in the types of a column; the server's, or the connection's.
    pub fn execute_bulk(&mut self, statement: &Prepared, rows: &[Vec<Value>]) -> Result<Done, WireError> {
        let mut bulk = BulkRows::new(statement.params.len());
        for value in rows.iter().flatten() {
            bulk.value(value);
        }
        // Rows of different lengths may add up.
        if rows.iter().any(|row| row.len() != statement.params.len()) {
            return Err(rows_do_not_fit(statement));
        }
        self.execute_bulk_rows(statement, &bulk)
    }

    /// Runs a prepared statement once for each row, in one exchange.
    ///
    /// # Errors
    /// As [`Self::execute_bulk`].
    pub fn execute_bulk_rows(&mut self, statement: &Prepared, rows: &BulkRows) -> Result<Done, WireError> {
        self.send_bulk_rows(statement, rows)?.finish()
    }

    /// [`Self::execute_bulk_rows`] without waiting for the answer, so that the next rows can be generated meanwhile.
    ///
    /// # Errors
    /// As [`Self::execute_bulk`], but [`Sent::finish`] returns the server's.
    pub fn send_bulk_rows(&mut self, statement: &Prepared, rows: &BulkRows) -> Result<Sent<'_>, WireError> {
        if !self.can_execute_bulk() {
            return Err(WireError::Unsupported(format!(
                "{} cannot execute a statement for many rows at once (COM_STMT_BULK_EXECUTE); send one by one",
                self.session.version.text
            )));
        }
        if !rows.fit(statement.params.len()) {
            return Err(rows_do_not_fit(statement));
        }
        self.command(|out| rows.packet(out, statement.id))?;
        Ok(Sent::new(self))
    }

    /// Whether the server executes a statement for many rows at once (MariaDB 10.2 and newer).
    pub fn can_execute_bulk(&self) -> bool {
        self.has(Capabilities::MARIADB_BULK)
    }

    /// Closes a prepared statement.
    ///
    /// # Errors
    /// Sending fails.
    pub fn close_statement(&mut self, statement: &Prepared) -> Result<(), WireError> {
        self.columns.remove(&statement.id);
        self.command(|out| command::stmt_close(out, statement.id))
    }

    /// Selects another schema.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn use_schema(&mut self, schema: &str) -> Result<(), WireError> {
        self.command(|out| command::init_db(out, schema.as_bytes()))?;
        self.skim().map(drop)
    }

    /// Checks that the server answers (COM_PING).
    ///
    /// # Errors
    /// It does not, or is shutting down.
    pub fn ping(&mut self) -> Result<(), WireError> {
        self.command(command::ping)?;
        self.skim().map(drop)
    }

    /// Resets the session's variables, statements, locks and temporary tables to those of a new one.
    ///
    /// # Errors
    /// [`WireError::Unsupported`] on servers without it (before MySQL 5.7.3 and MariaDB 10.2.4); the server's, or the
    /// connection's.
    pub fn reset(&mut self) -> Result<(), WireError> {
        let version = &self.session.version;
        let can = if version.is_mariadb() { version.at_least(10, 2, 4) } else { version.at_least(5, 7, 3) };
        if !can {
            return Err(WireError::Unsupported(format!(
                "{} cannot reset a session (COM_RESET_CONNECTION); connect anew instead",
                version.text
            )));
        }
        self.command(command::reset_connection)?;
        self.columns.clear();
        self.skim().map(drop)
    }

    /// Sends COM_QUIT and closes the connection.
    ///
    /// # Errors
    /// Sending fails.
    pub fn quit(mut self) -> Result<(), WireError> {
        self.command(command::quit)?;
        self.channel.leave_open();
        Ok(())
    }

    /// The authenticated socket, in blocking mode and without time limits, for a caller that drives it itself. Prepared
    /// statements stay valid.
    ///
    /// # Errors
    /// The connection is encrypted or compressed (use [`Self::into_enveloped_parts`]), bytes of the server are waiting
    /// that answer no command, or the system's.
    pub fn into_parts(self) -> Result<(OwnedFd, Session), WireError> {
        match self.into_enveloped_parts()? {
            (fd, session, None) => Ok((fd, session)),
            (_, session, Some(_)) => Err(WireError::Unsupported(format!(
                "this connection is {}, which is not possible here: use --ssl-mode=DISABLED and no compression",
                if session.tls.is_some() { "encrypted" } else { "compressed" }
            ))),
        }
    }

    /// [`Self::into_parts`] for any connection: all that is sent must go through [`Envelope::seal`], all that is
    /// received through [`Envelope::open`], where there is an envelope.
    ///
    /// # Errors
    /// Bytes of the server are waiting that answer no command, or the system's.
    pub fn into_enveloped_parts(self) -> Result<(OwnedFd, Session, Option<Box<Envelope>>), WireError> {
        let (fd, envelope) = self.channel.into_parts()?;
        Ok((fd, self.session, envelope))
    }

    fn command(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        self.changes.clear();
        self.channel.command(write)
    }

    fn has(&self, capability: Capabilities) -> bool {
        self.session.capabilities.has(capability)
    }
}

fn rows_do_not_fit(statement: &Prepared) -> WireError {
    WireError::Unsupported(format!(
        "rows for one exchange need {} values each and one type a column",
        statement.params.len()
    ))
}

/// The first result with columns, else the last one.
fn first_with_columns((mut results, _): (Vec<Rows>, Done)) -> Rows {
    let position = results.iter().position(|r| !r.columns.is_empty());
    match position {
        Some(i) => results.swap_remove(i),
        None => results.pop().unwrap_or_default(),
    }
}
