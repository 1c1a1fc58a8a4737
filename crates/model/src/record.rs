//! The run folder: `manifest.json`, `intervals.jsonl`, `events.jsonl`; and the record that they make together.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::facts::FactSet;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::summary::Fingerprint;

/// File names inside a run folder.
pub mod file {
    /// [`super::Manifest`].
    pub const MANIFEST: &str = "manifest.json";
    /// Lines of [`super::Interval`].
    pub const INTERVALS: &str = "intervals.jsonl";
    /// Lines of [`super::Event`].
    pub const EVENTS: &str = "events.jsonl";
    /// Lines of [`crate::sample::Sample`], compressed.
    pub const OBSERVE: &str = "observe.jsonl.zst";
    /// [`crate::facts::FactSet`].
    pub const FACTS: &str = "facts.json";
    /// [`crate::summary::Summary`], derived from the others.
    pub const SUMMARY: &str = "summary.json";
    /// The report.
    pub const REPORT: &str = "report.html";
}

/// What a run was: written when the tables are ready, before the load starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the run: time and workload, as in `20261121-204403-oltp_read_write`.
    pub run: String,
    /// What was done.
    pub plan: Plan,
    /// The command that repeats it, secrets removed.
    pub argv: Vec<String>,
    /// SHA-256 over `facts.json`'s facts.
    pub facts_digest: String,
    /// Clock that all times of the record come from, and what reading it costs.
    pub clock: Clock,
    /// What data and operations are: equal fingerprints mean equal work.
    pub fingerprint: Fingerprint,
    /// Operations in the order in which reports show them; the first is the transaction.
    pub operations: Vec<OperationInfo>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Manifest {
    const NAME: &'static str = "mydyno.manifest";
    const MAJOR: u32 = 1;
}

/// The clock behind the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// As in `CLOCK_MONOTONIC`.
    pub name: String,
    /// The kernel's source for it, as in `tsc`; absent where it cannot be seen.
    pub source: Option<String>,
    /// Cost of one reading in nanoseconds, measured at the start of the run.
    pub read_ns: f64,
}

/// What a histogram of the record is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationInfo {
    /// Key in [`Interval::operations`].
    pub name: String,
    /// Whole transaction or one statement of it.
    pub kind: OperationKind,
    /// The statement, for people; empty for a transaction.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub sql: String,
}

/// Whole transaction or one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// What arrives: begin to commit.
    Transaction,
    /// One statement of a transaction.
    Statement,
}

/// Part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Connections are opened.
    Connect,
    /// Load runs, nothing is kept for the headline.
    Warmup,
    /// The window that the headline is about.
    Measure,
    /// What was in flight at the end is answered.
    Drain,
}

/// One line of `intervals.jsonl`: what completed in a window of about a second. Lines of one step and phase follow
/// each other without gaps, and adding all of them gives the totals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Step of the plan, from 0.
    pub step: usize,
    /// Phase of the step.
    pub phase: Phase,
    /// Start, in seconds since the run began (monotonic).
    pub start_s: f64,
    /// Length in seconds.
    pub width_s: f64,
    /// Transactions that completed without an error.
    pub transactions: u64,
    /// Statements answered without an error, begin and commit included.
    pub queries: u64,
    /// Errors by code, as in `1213`; client-side ones (2000 to 2999) included.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub errors: BTreeMap<String, u64>,
    /// Transactions started again after a deadlock, a lock wait that timed out or a conflict.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub retries: u64,
    /// Connections opened again after they were lost.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub reconnects: u64,
    /// What the load generator used.
    pub client: ClientUse,
    /// From the intended instant to the send, per transaction.
    pub lateness: HistogramData,
    /// Response and service time by operation name.
    pub operations: IndexMap<String, OperationTimes>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What the worker threads used in a window, by the operating system's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClientUse {
    /// User CPU time in microseconds, all workers.
    pub user_us: u64,
    /// System CPU time in microseconds, all workers.
    pub system_us: u64,
    /// Calls that waited for input (one call may bring many answers).
    pub waits: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches: somebody else wanted the CPU.
    pub involuntary_switches: u64,
    /// Resident memory of the process in bytes at the end of the window.
    pub resident_bytes: u64,
    /// Threads of the process.
    pub threads: u64,
}

/// The two times of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationTimes {
    /// From the intended instant to the last byte of the answer. For a statement inside a transaction the intended
    /// instant is the answer before it.
    pub response: HistogramData,
    /// From the send to the last byte of the answer.
    pub service: HistogramData,
}

/// A histogram of nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HistogramData {
    /// Values.
    pub count: u64,
    /// Their exact sum.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub sum_ns: u64,
    /// The smallest, exact.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub min_ns: u64,
    /// The largest, exact.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub max_ns: u64,
    /// HdrHistogram's V2 encoding (not compressed) in base64; empty when there are no values.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub hdr: String,
}

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Seconds since the run began.
    pub at_s: f64,
    /// What happened.
    #[serde(flatten)]
    pub what: EventKind,
}

/// What happened during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// A phase began.
    Phase {
        /// Step of the plan.
        step: usize,
        /// The phase.
        phase: Phase,
    },
    /// The first error of a code in a step, with its text; the counts stand in the intervals.
    Error {
        /// Step of the plan.
        step: usize,
        /// As in `1213`.
        code: String,
        /// SQLSTATE, as in `40001`.
        sqlstate: String,
        /// The server's message.
        message: String,
        /// The operation that it answered.
        operation: String,
    },
    /// A warning as it was given during the run.
    Warning(crate::warning::Warning),
    /// The user asked to stop.
    Interrupted,
    /// The run ended by itself; nothing follows this line.
    End {
        /// `complete`, `interrupted` or why it broke off.
        how: String,
    },
}

/// A whole run as its folder holds it, for whatever derives, shows or compares.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// `manifest.json`.
    pub manifest: Manifest,
    /// `facts.json`; empty when it was lost.
    pub facts: Option<FactSet>,
    /// `intervals.jsonl`, without a last line that was cut off.
    pub intervals: Vec<Interval>,
    /// `events.jsonl`, likewise.
    pub events: Vec<Event>,
    /// `observe.jsonl.zst`, likewise, as full frames.
    pub samples: Vec<Sample>,
}

impl RunRecord {
    /// How the run ended: the text of its last event, or `None` when it was killed.
    pub fn end(&self) -> Option<&str> {
        self.events.iter().rev().find_map(|e| match &e.what {
            EventKind::End { how } => Some(how.as_str()),
            _ => None,
        })
    }
}
