//! The counters of a server that may restart, stop or hang while it is sampled.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mydyno_facts::{ReadOnly, Sql, SqlError};

use crate::bus::Counters;
use crate::followed::ServerPid;
use crate::own_sessions::OwnSessions;
use crate::statements;
use crate::values::Values;

/// Time limit for all statements of one reading. It lies above the longest pause of a healthy server and below the time after
/// which a reader would take the values for current.
const LIMIT: Duration = Duration::from_secs(5);

/// MySQL's number for a connection that was lost during a query (CR_SERVER_LOST).
const SERVER_LOST: u16 = 2013;

/// A connection, and the server's process where it is visible.
pub struct Connected<S> {
    /// The connection.
    pub sql: S,
    /// The server's process on this host.
    pub pid: Option<u32>,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The server's error number, or that of MySQL's client.
    pub code: u16,
    /// The reason.
    pub why: String,
}

/// Opens connections to the server.
pub trait Connect: Send {
    /// A connection.
    type Connection: Sql + Send;

    /// Opens one.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    fn connect(&mut self) -> Result<Connected<Self::Connection>, Lost>;
}

/// An event of the watched server that its counters do not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerNote {
    /// The connection failed; the values are missing until it is back.
    Lost(Lost),
    /// A connection was opened after a loss.
    Back,
    /// A group of counters is refused, and why.
    Refused(String),
}

/// An optional group of counters.
type Group = (&'static str, &'static str, fn(&mut ReadOnly<'_>, &mut Values) -> Result<(), SqlError>);

/// Groups that a server may refuse: name, privilege, reading.
const OPTIONAL: [Group; 4] = [
    (
        "information_schema.INNODB_METRICS (and sessions of other accounts)",
        "PROCESS",
        statements::innodb_metrics,
    ),
    ("performance_schema file times", "SELECT on performance_schema", statements::file_calls),
    ("performance_schema statement times", "SELECT on performance_schema", statements::statement_times),
    ("performance_schema errors", "SELECT on performance_schema", statements::errors),
];

/// Reads the counters of a server over one connection, which is opened again after it was lost.
///
/// | value | meaning |
/// |---|---|
/// | `server.connection.opened` | connections that were opened so far |
/// | `server.connection.error_now` | number of the error, while there is no connection |
/// | `server.connection.statements` | statements that mydyno sent so far to sample |
/// | `server.connection.sessions_now` | mydyno's sessions that sample |
/// | `server.connection.busy_now` | those of them, without this one, that executed a statement while the status was read |
/// | `server.pid_now` | the server's process, where it is visible |
pub struct WatchedServer<C: Connect> {
    connect: C,
    connection: Option<C::Connection>,
    own_id: Option<String>,
    pid: ServerPid,
    refused: BTreeSet<&'static str>,
    opened: u32,
    own: OwnSessions,
    lost: bool,
    note: Box<dyn FnMut(ServerNote) + Send>,
}

impl<C: Connect> WatchedServer<C> {
    /// Takes over an open connection. `pid` is set anew after each reconnection; `note` is called on the reading thread.
    pub fn new(
        connect: C,
        first: Connected<C::Connection>,
        pid: ServerPid,
        note: impl FnMut(ServerNote) + Send + 'static,
    ) -> Self {
        pid.set(first.pid);
        Self {
            connect,
            connection: Some(first.sql),
            own_id: None,
            pid,
            refused: BTreeSet::new(),
            opened: 1,
            own: OwnSessions::default(),
            lost: false,
            note: Box::new(note),
        }
    }

    /// The sessions that sample this server, for others that do.
    pub fn own_sessions(&self) -> OwnSessions {
        self.own.clone()
    }

    /// Reads everything over the connection that is open.
    fn read_open(&mut self) -> Option<Result<Values, SqlError>> {
        let connection = self.connection.as_mut()?;
        let mut sql = ReadOnly::new(connection);
        sql.until(Instant::now() + LIMIT);
        let mut values = Values::default();
        let (own_id, own) = (&mut self.own_id, &self.own);
        let mut required = || {
            let busy = own.busy_now();
            statements::status(&mut sql, &mut values)?;
            values.set("server.connection.busy_now", f64::from(busy.max(own.busy_now())));
            if own_id.is_none() {
                *own_id = sql.rows("SELECT CONNECTION_ID()")?.into_iter().flatten().next().flatten();
                own_id.iter().for_each(|id| own.add(id.clone()));
            }
            statements::sessions(&mut sql, own, &mut values)
        };
        let mut ended = required();
        for (name, privilege, reading) in OPTIONAL {
            if ended.is_err() || self.refused.contains(name) {
                continue;
            }
            let before = values.numbers.len();
            match reading(&mut sql, &mut values) {
                Err(lost @ (SqlError::Connection(_) | SqlError::Unanswered { .. } | SqlError::OutOfTime)) => {
                    ended = Err(lost)
                }
                Err(error) => {
                    self.refused.insert(name);
                    (self.note)(ServerNote::Refused(format!("{name}: {}", error.missing(privilege))));
                }
                Ok(()) if values.numbers.len() == before => _ = self.refused.insert(name),
                Ok(()) => {}
            }
        }
        self.own.count_sent(sql.sent);
        Some(ended.map(|()| values))
    }

    /// Opens a connection where there is none.
    fn open(&mut self) -> Result<(), Lost> {
        if self.connection.is_some() {
            return Ok(());
        }
        let connected = self.connect.connect()?;
        self.pid.set(connected.pid);
        self.connection = Some(connected.sql);
        self.own_id = None;
        self.refused.clear();
        self.opened += 1;
        Ok(())
    }

    fn lose(&mut self, lost: Lost) {
        self.connection = None;
        self.own_id.take().iter().for_each(|id| self.own.remove(id));
        if !self.lost {
            self.lost = true;
            (self.note)(ServerNote::Lost(lost));
        }
    }
}

impl<C: Connect> Counters for WatchedServer<C> {
    fn group(&self) -> &'static str {
        "server"
    }

    fn read(&mut self, values: &mut Values) {
        self.own.reads_counters(true);
        // A server that was restarted between two readings answers a new connection at once.
        for _ in 0..2 {
            if let Err(lost) = self.open() {
                values.set("server.connection.error_now", f64::from(lost.code));
                self.lose(lost);
                break;
            }
            match self.read_open() {
                Some(Ok(read)) => {
                    values.numbers.extend(read.numbers);
                    if std::mem::take(&mut self.lost) {
                        (self.note)(ServerNote::Back);
                    }
                    break;
                }
                Some(Err(error)) => self.lose(Lost { code: SERVER_LOST, why: error.to_string() }),
                None => {}
            }
        }
        self.own.reads_counters(false);
        values.set("server.connection.opened", f64::from(self.opened));
        values.set("server.connection.statements", self.own.sent() as f64);
        values.set("server.connection.sessions_now", self.own.count() as f64);
        values.set_some("server.pid_now", self.pid.get().map(f64::from));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use mydyno_facts::Table;

    use super::*;

    /// Answers that are left of a connection; then it is lost.
    struct Fake(u32);

    impl Sql for Fake {
        fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
            if self.0 == 0 {
                return Err(SqlError::Connection("reset by peer".to_owned()));
            }
            self.0 -= 1;
            if sql.contains("INNODB_METRICS") {
                return Err(SqlError::Refused { code: 1227, message: "Access denied".to_owned() });
            }
            let row = |cells: [&str; 2]| cells.map(|cell| Some(cell.to_owned())).to_vec();
            let rows = if sql.contains("STATUS") { vec![row(["Questions", "7"])] } else { Vec::new() };
            Ok(Table { columns: Vec::new(), rows })
        }
    }

    /// Connections that follow each other; `None` is a refusal.
    struct Later(Vec<Option<(Fake, u32)>>);

    impl Connect for Later {
        type Connection = Fake;

        fn connect(&mut self) -> Result<Connected<Fake>, Lost> {
            match self.0.pop().flatten() {
                Some((sql, pid)) => Ok(Connected { sql, pid: Some(pid) }),
                None => Err(Lost { code: 2002, why: "no such socket".to_owned() }),
            }
        }
    }

    #[test]
    fn a_lost_server_leaves_values_out_until_it_is_back_as_another_process() {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let pid = ServerPid::default();
        let heard = Arc::clone(&notes);
        let later = Later(vec![Some((Fake(100), 9)), None]);
        // As many answers as one reading asks for.
        let first = Connected { sql: Fake(7), pid: Some(8) };
        let mut server =
            WatchedServer::new(later, first, pid.clone(), move |n| heard.lock().unwrap().push(n));
        let mut read = || {
            let mut values = Values::default();
            server.read(&mut values);
            values.numbers
        };
        let whole = read();
        assert_eq!((whole["server.status.questions"], whole["server.pid_now"]), (7.0, 8.0));
        let gone = read();
        assert!(!gone.keys().any(|name| name.starts_with("server.status.")), "{gone:?}");
        assert_eq!(gone["server.connection.error_now"], 2002.0);
        let back = read();
        assert_eq!((back["server.status.questions"], back["server.connection.opened"]), (7.0, 2.0));
        assert_eq!((back["server.pid_now"], pid.get()), (9.0, Some(9)));
        assert!(!back.contains_key("server.connection.error_now"));
        let notes = notes.lock().unwrap();
        assert!(
            matches!(&notes[0], ServerNote::Refused(why) if why.contains("it needs PROCESS")),
            "{notes:?}"
        );
        assert!(
            matches!(&notes[1], ServerNote::Lost(lost) if lost.why.contains("reset by peer")),
            "{notes:?}"
        );
        assert_eq!(notes[2..].iter().filter(|note| **note == ServerNote::Back).count(), 1, "{notes:?}");
    }
}
