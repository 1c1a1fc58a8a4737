//! Queries to a server: read-only statements whose results are rows of text.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::bounds::{LONGEST_REASON, shortened};
use crate::dialect::Dialect;
use crate::source::Missing;
use crate::sql_form::{MIXED_COLLATIONS, bounded, by_bytes};
pub use crate::sql_text::{only_reads, quoted};
use crate::wording::{Since, mysql};

/// One row; a NULL is `None`.
pub type Row = Vec<Option<String>>;

/// Rows with the names of their columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Names of the columns, as the server gives them.
    pub columns: Vec<String>,
    /// Rows in order.
    pub rows: Vec<Row>,
}

impl Table {
    /// A cell by the name of its column, in any case; `None` when it is NULL or there is no such cell.
    pub fn cell(&self, row: usize, column: &str) -> Option<&str> {
        let place = self.columns.iter().position(|c| c.eq_ignore_ascii_case(column))?;
        self.rows.get(row)?.get(place)?.as_deref()
    }
}

/// Rows that several readers look at.
pub(crate) type Shared = Result<Arc<Vec<Row>>, SqlError>;

/// A connection that returns all rows of a statement.
pub trait Sql {
    /// Sends one statement and returns its rows. A connection that can give up does so after `limit`, if there is one.
    ///
    /// # Errors
    /// The server's refusal with its code, or the reason why there is no answer; after exceeding the limit the
    /// connection may be closed.
    fn table(&mut self, sql: &str, limit: Option<Duration>) -> Result<Table, SqlError>;

    /// Opens the connection anew after a statement outlived its limit, and ends that statement where the server still
    /// executes it. A connection that cannot do so refuses.
    ///
    /// # Errors
    /// The reason why there is no new connection.
    fn open_anew(&mut self) -> Result<(), SqlError> {
        Err(SqlError::Connection("this connection cannot be opened anew".to_owned()))
    }
}

/// Why a statement gave no rows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SqlError {
    /// The server refused.
    #[error("error {code}: {message}")]
    Refused {
        /// The error code, as in 1142.
        code: u16,
        /// The server's text.
        message: String,
    },
    /// The connection gave no answer.
    #[error("{0}")]
    Connection(String),
    /// The statement had no complete answer within its limit; the connection is of no more use.
    #[error("no complete answer within {} s, the time that these facts are given", (limit.as_secs_f64() * 10.0).round() / 10.0)]
    Unanswered {
        /// The limit.
        limit: Duration,
    },
    /// The statement does more than read, and was not sent.
    #[error("not sent, because facts are only read: {0}")]
    NotReadOnly(String),
    /// The deadline had passed before the statement was sent.
    #[error("not sent: the deadline of these facts had passed")]
    OutOfTime,
    /// The rows take more memory than allowed.
    #[error("the answer is larger than {} MiB, more than facts are taken from", limit >> 20)]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// This version of the server does not support the statement; it was not sent.
    #[error("this version of the server does not have it")]
    NotInThisVersion,
}

/// Codes of a missing privilege: 1044, 1045 and 1698 no access, 1142 and 1143 no right on a table or column, 1227 a
/// named privilege, 1370 no right on a routine.
const REFUSALS: [u16; 7] = [1044, 1045, 1142, 1143, 1227, 1370, 1698];

/// Codes of features that this version lacks: 1049 schema, 1051 and 1146 table, 1054 column, 1064 syntax, 1109 table of
/// information_schema, 1193 variable, 1286 engine, 1305 routine, 1356 a view that is invalid.
const UNKNOWN: [u16; 10] = [1049, 1051, 1054, 1064, 1109, 1146, 1193, 1286, 1305, 1356];

impl SqlError {
    /// This error as the reason for a missing fact. `privilege` is the one that the statement needs.
    pub fn missing(&self, privilege: &str) -> Missing {
        match self {
            Self::Refused { code, message } if REFUSALS.contains(code) => {
                Missing::Denied(format!("{message} (error {code}); it needs {privilege}"))
            }
            Self::Refused { code, message } if UNKNOWN.contains(code) => {
                Missing::Absent(format!("this server does not have it: {message} (error {code})"))
            }
            Self::NotInThisVersion => Missing::Absent(self.to_string()),
            other => Missing::Error(other.to_string()),
        }
    }

    /// Whether the statement took longer than it was given: 3024 by MySQL's limit, 1969 by MariaDB's.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self, Self::Refused { code: 3024 | 1969, .. } | Self::Unanswered { .. })
    }
}

/// Longest value that is kept, in bytes; SHOW ENGINE INNODB STATUS returns at most 1 MiB.
const LONGEST_CELL: usize = 1 << 20;

/// Memory limit for the rows of one statement, in bytes.
const LARGEST_TABLE: usize = 8 << 20;

/// Memory of a cell in addition to its text.
const CELL_BYTES: usize = 64;

/// Longest pause after an answer.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// Servers with a dictionary of all objects.
const DICTIONARY: [Since; 1] = [mysql(80_000..)];

/// How much longer than the server the client waits for a statement that the server ends by itself: the connection then
/// stays of use.
const GRACE: Duration = Duration::from_millis(300);

/// How often a connection is opened anew in one look.
const MOST_RENEWALS: u32 = 3;

/// A connection that sends read-only statements only, and none after its deadline. After each answer it pauses for as long
/// as the answer took, at most for [`LONGEST_REST`]: on a server at capacity, statements without a pause would delay the
/// other sessions.
pub struct ReadOnly<'a> {
    inner: &'a mut dyn Sql,
    deadline: Option<Instant>,
    /// Limit of each statement, within the deadline.
    longest: Option<Duration>,
    rest_until: Option<Instant>,
    /// How many times as long as an answer took the server is left alone.
    rests: u32,
    dialect: Option<Dialect>,
    /// The error that ended the connection. Later statements get this first error, because theirs would only say that the
    /// connection is closed.
    lost: Option<SqlError>,
    renewals: u32,
    /// The number of tables, once it was asked for.
    pub(crate) tables: Option<u64>,
    /// Answers that several collectors use.
    shared: BTreeMap<String, Shared>,
    /// Statements that were sent.
    pub sent: u32,
}

impl<'a> ReadOnly<'a> {
    /// Guards a connection.
    pub fn new(inner: &'a mut dyn Sql) -> Self {
        Self {
            inner,
            deadline: None,
            longest: None,
            rest_until: None,
            rests: 1,
            dialect: None,
            lost: None,
            renewals: 0,
            tables: None,
            shared: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Sets the server's version, from the text of VERSION(); it selects the wordings of statements.
    pub(crate) fn speaks_to(&mut self, version: &str) {
        self.dialect = Dialect::of(version);
    }

    /// The server's dialect, where the version is known.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// Whether the server is known to have a dictionary of all objects (MySQL since 8.0): it finds triggers, views and
    /// definitions of tables without opening the tables.
    pub(crate) fn has_dictionary(&self) -> bool {
        self.dialect.is_some_and(|dialect| dialect.is(&DICTIONARY))
    }

    /// Sets the deadline after which nothing is sent.
    pub fn until(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Leaves the server alone for so many times as long as each answer takes, until the next call.
    pub fn rest(&mut self, times: u32) {
        self.rests = times;
    }

    /// Limits each statement until the next call, so that one that waits for a lock takes no time from those after it.
    pub fn at_most(&mut self, longest: Option<Duration>) {
        self.longest = longest;
    }

    /// The rows of a statement with the names of their columns.
    ///
    /// # Errors
    /// The statement is not a single SELECT or SHOW that only reads; the deadline has passed; or the server refuses.
    /// After the connection is lost, each statement gets the reason of the loss; after a statement that outlived its
    /// limit, the connection is opened anew where that is possible.
    pub fn table(&mut self, sql: &str) -> Result<Table, SqlError> {
        match self.once(sql) {
            Err(SqlError::Refused { code: MIXED_COLLATIONS, .. }) => self.once(&by_bytes(sql)),
            answer => answer,
        }
    }

    fn once(&mut self, sql: &str) -> Result<Table, SqlError> {
        if !only_reads(sql) {
            return Err(SqlError::NotReadOnly(sql.to_owned()));
        }
        if let Some(lost) = self.lost.clone()
            && !self.renewed(&lost)
        {
            return Err(lost);
        }
        if let Some(rest) = self.rest_until.take() {
            std::thread::sleep(rest.saturating_duration_since(Instant::now()));
        }
        let asked = Instant::now();
        let left = self.deadline.map(|d| d.saturating_duration_since(asked));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(SqlError::OutOfTime);
        }
        let left = left.into_iter().chain(self.longest).min();
        self.sent += 1;
        let answer = match left {
            Some(left) => match bounded(sql, left, self.dialect) {
                Some(bounded) => self.inner.table(&bounded, Some(left + GRACE)),
                None => self.inner.table(sql, Some(left)),
            },
            None => self.inner.table(sql, None),
        };
        let answer = answer.map_err(bounded_error).and_then(bounded_table);
        if let Err(lost @ (SqlError::Connection(_) | SqlError::Unanswered { .. })) = &answer {
            self.lost = Some(lost.clone());
        }
        let took = asked.elapsed();
        let rows = answer.as_ref().map(|table| table.rows.len()).unwrap_or_default();
        tracing::debug!(?sql, ?took, rows, answered = answer.is_ok(), "query");
        self.rest_until = Some(asked + took + self.rests * took.min(LONGEST_REST));
        answer
    }

    /// Whether a lost connection was opened anew. One that the server closed stays lost: the server may be gone.
    fn renewed(&mut self, lost: &SqlError) -> bool {
        let in_time = self.deadline.is_none_or(|deadline| Instant::now() < deadline);
        if !matches!(lost, SqlError::Unanswered { .. }) || !in_time || self.renewals >= MOST_RENEWALS {
            return false;
        }
        self.renewals += 1;
        match self.inner.open_anew() {
            Ok(()) => self.lost = None,
            Err(error) => {
                tracing::debug!(error = ?error.to_string(), "no new connection");
                self.renewals = MOST_RENEWALS;
            }
        }
        self.lost.is_none()
    }

    /// The rows of a statement.
    ///
    /// # Errors
    /// As [`ReadOnly::table`].
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, SqlError> {
        self.table(sql).map(|table| table.rows)
    }

    /// The rows of a statement that several collectors need, which is sent once. Where there was no answer in time, the next one
    /// asks anew.
    ///
    /// # Errors
    /// As [`ReadOnly::table`].
    pub(crate) fn shared(&mut self, sql: &str) -> Shared {
        if let Some(known) = self.shared.get(sql) {
            return known.clone();
        }
        let answer = self.rows(sql).map(Arc::new);
        let is_final = match &answer {
            Ok(_) => true,
            Err(error) => matches!(error, SqlError::Refused { .. }) && !error.is_late(),
        };
        if is_final {
            self.shared.insert(sql.to_owned(), answer.clone());
        }
        answer
    }
}

/// An answer within limits: long cells are cut, and too many cells are an error.
fn bounded_table(mut table: Table) -> Result<Table, SqlError> {
    let mut bytes: usize = table.columns.iter().map(|name| name.len() + CELL_BYTES).sum();
    for row in &mut table.rows {
        bytes += CELL_BYTES;
        for cell in row {
            *cell = cell.take().map(|text| shortened(text, LONGEST_CELL));
            bytes += CELL_BYTES + cell.as_ref().map_or(0, String::len);
        }
        if bytes > LARGEST_TABLE {
            return Err(SqlError::TooLarge { limit: LARGEST_TABLE });
        }
    }
    Ok(table)
}

/// A refusal or a lost connection, with its text cut to the limit.
fn bounded_error(error: SqlError) -> SqlError {
    match error {
        SqlError::Refused { code, message } => {
            SqlError::Refused { code, message: shortened(message, LONGEST_REASON) }
        }
        SqlError::Connection(why) => SqlError::Connection(shortened(why, LONGEST_REASON)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_and_unknown_names_become_statuses() {
        let refused = |code: u16| SqlError::Refused { code, message: "no".to_owned() }.missing("PROCESS");
        assert_eq!(refused(1227), Missing::Denied("no (error 1227); it needs PROCESS".to_owned()));
        assert!(matches!(refused(1109), Missing::Absent(_)));
        assert!(matches!(refused(3024), Missing::Error(_)));
    }

    #[test]
    fn an_answer_is_bounded_in_cells_and_in_rows() {
        let one = Table { columns: vec!["a".to_owned()], rows: vec![vec![Some("x".repeat(3 << 20))]] };
        let cut = bounded_table(one).unwrap();
        assert!(cut.rows[0][0].as_ref().unwrap().len() < LONGEST_CELL + 20);
        let rows = vec![vec![None]; LARGEST_TABLE / CELL_BYTES];
        let error = bounded_table(Table { columns: vec![], rows }).unwrap_err();
        assert_eq!(error.to_string(), "the answer is larger than 8 MiB, more than facts are taken from");
    }

    struct Nothing;
    impl Sql for Nothing {
        fn table(&mut self, _: &str, _: Option<Duration>) -> Result<Table, SqlError> {
            Ok(Table::default())
        }
    }

    #[test]
    fn nothing_is_sent_after_the_deadline() {
        let mut nothing = Nothing;
        let mut sql = ReadOnly::new(&mut nothing);
        assert!(sql.rows("SELECT 1").is_ok());
        sql.until(Instant::now());
        assert_eq!(sql.rows("SELECT 1"), Err(SqlError::OutOfTime));
        assert_eq!(sql.sent, 1);
    }

    #[test]
    fn a_statement_has_its_own_limit_within_the_deadline() {
        /// Notes the limits.
        #[derive(Default)]
        struct Limits(Vec<Option<Duration>>);
        impl Sql for Limits {
            fn table(&mut self, _: &str, limit: Option<Duration>) -> Result<Table, SqlError> {
                self.0.push(limit);
                Ok(Table::default())
            }
        }
        let mut limits = Limits::default();
        let mut sql = ReadOnly::new(&mut limits);
        sql.speaks_to("5.5.62");
        let most = Duration::from_millis(250);
        sql.at_most(Some(most));
        sql.rows("SELECT 1").unwrap();
        sql.until(Instant::now() + Duration::from_secs(3600));
        sql.rows("SELECT 1").unwrap();
        sql.at_most(None);
        sql.rows("SELECT 1").unwrap();
        assert_eq!(limits.0[..2], [Some(most), Some(most)]);
        assert!(limits.0[2] > Some(most));
    }

    #[test]
    fn a_lost_connection_is_asked_nothing_more_and_its_reason_stays_the_first_one() {
        /// Answers with the elements of a list, last first.
        struct Answers(Vec<Result<Table, SqlError>>);
        impl Sql for Answers {
            fn table(&mut self, _: &str, _: Option<Duration>) -> Result<Table, SqlError> {
                self.0.pop().unwrap()
            }
        }
        let silent = SqlError::Connection("no complete answer within 5 s".to_owned());
        let refused = SqlError::Refused { code: 1227, message: "no".to_owned() };
        let mut answers = Answers(vec![Err(silent.clone()), Ok(Table::default()), Err(refused.clone())]);
        let mut sql = ReadOnly::new(&mut answers);
        assert_eq!(sql.rows("SELECT 1"), Err(refused));
        assert_eq!(sql.rows("SELECT 2"), Ok(Vec::new()));
        for _ in 0..3 {
            assert_eq!(sql.rows("SELECT 3"), Err(silent.clone()));
        }
        assert_eq!(sql.sent, 3);
    }

    #[test]
    fn after_an_answer_the_server_is_left_alone_for_as_long_as_it_took() {
        /// Takes some milliseconds, and notes when it was asked and when it had answered.
        #[derive(Default)]
        struct Slow(Vec<[Instant; 2]>);
        impl Sql for Slow {
            fn table(&mut self, _: &str, _: Option<Duration>) -> Result<Table, SqlError> {
                let asked = Instant::now();
                std::thread::sleep(Duration::from_millis(5));
                self.0.push([asked, Instant::now()]);
                Ok(Table::default())
            }
        }
        let mut slow = Slow::default();
        let mut sql = ReadOnly::new(&mut slow);
        for _ in 0..3 {
            sql.rows("SELECT 1").unwrap();
        }
        for pair in slow.0.windows(2) {
            let [[asked, answered], [next, _]] = [pair[0], pair[1]];
            assert!(next - answered >= answered - asked, "{pair:?}");
        }
    }

    #[test]
    fn after_a_statement_that_outlived_its_limit_the_next_one_has_a_new_connection() {
        /// Leaves the first statement unanswered, and can be opened anew as often as it is told.
        struct Slow {
            asked: u32,
            opened: u32,
            may: u32,
        }
        impl Sql for Slow {
            fn table(&mut self, _: &str, limit: Option<Duration>) -> Result<Table, SqlError> {
                self.asked += 1;
                match self.asked {
                    1 => Err(SqlError::Unanswered { limit: limit.unwrap_or_default() }),
                    _ => Ok(Table::default()),
                }
            }

            fn open_anew(&mut self) -> Result<(), SqlError> {
                if self.opened == self.may {
                    return Err(SqlError::Connection("refused".to_owned()));
                }
                self.opened += 1;
                Ok(())
            }
        }
        let mut slow = Slow { asked: 0, opened: 0, may: 1 };
        let mut sql = ReadOnly::new(&mut slow);
        let error = sql.rows("SELECT 1").unwrap_err();
        assert!(error.to_string().contains("no complete answer within"), "{error}");
        assert_eq!(sql.rows("SELECT 2"), Ok(Vec::new()));
        assert_eq!(slow.opened, 1);

        let mut slow = Slow { asked: 0, opened: 0, may: 0 };
        let mut sql = ReadOnly::new(&mut slow);
        for _ in 0..3 {
            assert!(sql.rows("SELECT 1").is_err());
        }
        assert_eq!(slow.asked, 1, "nothing is sent on a connection of no more use");
    }
}
