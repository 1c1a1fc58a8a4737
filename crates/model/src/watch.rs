//! Intervals of a watch, as `mydyno watch --json` prints them, and the manifest of a recorded watch.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// File names inside the folder of a recorded watch. The samples are in [`crate::record::file::OBSERVE`].
pub mod file {
    /// [`super::WatchManifest`].
    pub const MANIFEST: &str = "watch.json";
    /// Lines of [`super::WatchNote`].
    pub const NOTES: &str = "notes.jsonl";
}

/// One interval: `mydyno watch --json` prints one per line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchInterval {
    /// Schema, end of the interval, writer.
    #[serde(flatten)]
    pub header: Header,
    /// End of the interval in seconds since the watch began.
    pub at_s: f64,
    /// Length of the interval in seconds.
    pub over_s: f64,
    /// Seconds from the instant at which the sample at the end was due to its reading; absent for a sample that was not
    /// scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_s: Option<f64>,
    /// Samples that were due in the interval and were not taken.
    #[serde(default)]
    pub missed: u64,
    /// Rates, shares and gauges by name, as in `host.cpu.user_share`. A figure whose counters are missing, restarted or were
    /// not read in this interval is absent.
    pub figures: IndexMap<String, f64>,
    /// Waits of the server's threads, the longest first, in an interval in which they were read (performance schema).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitFigures>,
    /// Statements by digest, those that took the most time first, in an interval in which that was read (performance schema).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementFigures>,
    /// Irregularities of the interval.
    #[serde(default)]
    pub events: Vec<WatchEvent>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for WatchInterval {
    const NAME: &'static str = "mydyno.watch-interval";
    const MAJOR: u32 = 1;
}

/// Waits of one kind in the time between two readings. A wait that lies inside another is part of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitFigures {
    /// The server's name of the event without its first word: `io/file/innodb/innodb_log_file`.
    pub event: String,
    /// Mean number of threads in such a wait; threads of the server itself count too.
    pub threads: f64,
    /// Waits that ended, a second.
    pub waits_per_s: f64,
    /// Mean length of a wait in microseconds; absent without one that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_us: Option<f64>,
}

/// Statements of one digest in the time between two readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementFigures {
    /// The server's digest, its first 16 digits.
    pub digest: String,
    /// The default database of the sessions, if they had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The statement without its literals, shortened; absent when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Mean number of sessions that executed such a statement.
    pub threads: f64,
    /// Statements that ended, a second.
    pub statements_per_s: f64,
    /// Mean time of a statement in microseconds; absent without one that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement_us: Option<f64>,
    /// Mean number of sessions that waited for a lock in such a statement, as far as the server counts that: table locks, and row
    /// locks in MySQL 9 (not in 8.0.12, nor in MariaDB 11.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_threads: Option<f64>,
    /// Rows that a statement examined, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_examined: Option<f64>,
    /// Rows that a statement returned or changed, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_used: Option<f64>,
    /// Temporary tables on disk a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tmp_disk_tables_per_s: Option<f64>,
    /// Statements that ended in an error, a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors_per_s: Option<f64>,
}

/// An irregularity between two samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEvent {
    /// The kind.
    pub kind: WatchEventKind,
    /// A sentence.
    pub text: String,
}

/// Kinds of irregularities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchEventKind {
    /// The server refuses or ended the connection.
    ServerLost,
    /// The server answers again.
    ServerBack,
    /// The server is another process than before, or its uptime fell.
    ServerRestarted,
    /// The server did not answer in time; the interval has no figures of it.
    ServerSlow,
    /// Counters fell to a lower value while their source went on, as by FLUSH STATUS.
    CountersReset,
    /// A counter reached its largest value and went on from zero.
    CounterWrapped,
    /// Counters disappeared, as those of a disk that was removed.
    CountersGone,
    /// Counters appeared.
    CountersNew,
    /// The wall clock was set, or the machine was suspended.
    ClockStep,
    /// Samples were due and not taken.
    SamplesMissed,
}

/// A line of `notes.jsonl`: something that the samples do not show, such as the reason of a lost connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchNote {
    /// Seconds since the watch began.
    pub at_s: f64,
    /// A sentence.
    pub text: String,
}

/// `watch.json`: the manifest of a recorded watch, beside its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchManifest {
    /// Schema, start of the watch, writer.
    #[serde(flatten)]
    pub header: Header,
    /// Seconds between samples.
    pub interval_s: f64,
    /// Address of the server; absent when only the host is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The server's version text, as in `10.11.6-MariaDB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The command line, without secrets.
    pub argv: Vec<String>,
    /// Values that could not be sampled, with the reason and the remedy.
    #[serde(default)]
    pub gaps: Vec<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for WatchManifest {
    const NAME: &'static str = "mydyno.watch";
    const MAJOR: u32 = 1;
}
