//! The options of a look and the inputs of collectors.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::cancel::Cancellation;
use crate::process::Process;
use crate::source::{Missing, Read, Source};
use crate::table_files::Listing;

/// Reason why facts of a server are absent when only a host is examined.
pub(crate) const NO_CONNECTION: &str = "no connection to a server";

/// The amount of facts that are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Depth {
    /// The facts of a run's record: a few milliseconds and a handful of statements.
    #[default]
    Record,
    /// The additional facts of an audit.
    Audit,
}

/// How much a look reads, and how long it may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The amount of facts that are collected.
    pub depth: Depth,
    /// Time between the two readings of counters, for rates. Without it counters are read once.
    pub window: Option<Duration>,
    /// Multiplies every collector's deadline; above 1 for a slow connection to the host.
    pub patience: f64,
    /// Time for reading definitions of very many tables; two thirds of it are pauses.
    pub tables_within: Duration,
    /// Ends the look early; facts that were not read then carry that reason.
    pub cancellation: Cancellation,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            depth: Depth::Record,
            window: None,
            patience: 1.0,
            tables_within: Self::TABLES_WITHIN,
            cancellation: Cancellation::default(),
        }
    }
}

impl Options {
    /// Time for reading definitions of very many tables, unless another is asked for.
    pub const TABLES_WITHIN: Duration = Duration::from_secs(7);

    /// The options of an audit.
    pub fn audit() -> Self {
        Self { depth: Depth::Audit, window: Some(Duration::from_secs(1)), ..Self::default() }
    }
}

/// The inputs of collectors.
#[derive(Debug, Clone)]
pub struct Context {
    /// The host's files.
    pub source: Source,
    /// The server's process, when it runs on this host and is known.
    pub server: Read<Process>,
    /// The server's variables as text; empty without a connection.
    pub variables: Arc<BTreeMap<String, String>>,
    /// The server's status at the start, when the look has a window.
    pub first_status: Option<Arc<StatusReading>>,
    /// The options of the look.
    pub options: Options,
    /// Files of tables, once they were listed.
    pub(crate) table_files: Arc<OnceLock<Read<Listing>>>,
}

/// SHOW GLOBAL STATUS at an instant.
#[derive(Debug, Clone)]
pub struct StatusReading {
    /// When the answer arrived.
    pub at: Instant,
    /// Statements that this look had sent by then.
    pub sent: u32,
    /// Names in lower case, with their texts.
    pub values: BTreeMap<String, String>,
}

impl Context {
    /// A path of the server, which may be relative to its data directory.
    pub(crate) fn within_datadir(&self, path: &str) -> String {
        match (path.starts_with('/'), self.datadir()) {
            (false, Ok(datadir)) => format!("{datadir}/{path}"),
            _ => path.to_owned(),
        }
    }

    /// The server's data directory, without a slash at its end.
    ///
    /// # Errors
    /// The server has not told it.
    pub(crate) fn datadir(&self) -> Read<&str> {
        let told = self.variable("datadir").map(|path| path.trim_end_matches('/'));
        told.ok_or_else(|| Missing::Absent("the data directory is not known".to_owned()))
    }

    /// A server variable that is not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }
}
