//! The run folder (`manifest.json`, `intervals.jsonl`, `events.jsonl`) and the record that its files form.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::facts::FactSet;
use crate::plan::{Plan, StepPlan};
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
    /// Stacks of threads on a CPU, folded, in samples.
    pub const CPU_STACKS: &str = "cpu.folded";
    /// Stacks of waiting threads, folded, in microseconds.
    pub const WAIT_STACKS: &str = "waits.folded";
    /// [`crate::facts::FactSet`].
    pub const FACTS: &str = "facts.json";
    /// [`crate::summary::Summary`], derived from the others.
    pub const SUMMARY: &str = "summary.json";
    /// [`crate::diagnosis::Diagnosis`] of all measured windows, derived like the summary.
    pub const DIAGNOSIS: &str = "diagnosis.json";
    /// The report.
    pub const REPORT: &str = "report.html";
}

/// Description of a run, written when the tables are ready, before the load starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the run: time and workload, as in `20261121-204403-oltp_read_write`.
    pub run: String,
    /// The plan that was run.
    pub plan: Plan,
    /// The command line that repeats the run, without secrets.
    pub argv: Vec<String>,
    /// SHA-256 of the facts in `facts.json`.
    pub facts_digest: String,
    /// Clock of all times in the record, and the cost of reading it.
    pub clock: Clock,
    /// Fingerprint of data and operations: equal fingerprints mean equal work.
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

/// The clock that the record's times come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// As in `CLOCK_MONOTONIC`.
    pub name: String,
    /// The kernel's clock source, as in `tsc`; absent where it cannot be read.
    pub source: Option<String>,
    /// Cost of one reading in nanoseconds, measured at the start of the run.
    pub read_ns: f64,
}

/// The operation that a histogram of the record describes.
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
    /// A whole transaction, from begin to commit: the unit of arrivals.
    Transaction,
    /// One statement of a transaction.
    Statement,
}

/// Phase of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Connections are being opened.
    Connect,
    /// Load runs, but does not count towards the headline figures.
    Warmup,
    /// The measured window, which the headline figures describe.
    Measure,
    /// The load generator waits for the answers that were outstanding at the end of the window.
    Drain,
}

/// One line of `intervals.jsonl`: the completions in a window of about a second. Lines of one step and phase follow each other
/// without gaps, and their sum gives the totals.
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
    /// Transactions retried after a deadlock, a lock wait timeout or a conflict.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub retries: u64,
    /// Time in attempts that were retried, each from its send to the end of its rollback. It is part of the response time of
    /// the transaction.
    #[serde(skip_serializing_if = "HistogramData::is_empty", default)]
    pub retried: HistogramData,
    /// Connections that were reopened after they were lost.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub reconnects: u64,
    /// Arrival counts of the window: intended, started, failed, dropped, queued and outstanding transactions.
    #[serde(skip_serializing_if = "ArrivalCounts::is_empty", default)]
    pub arrivals: ArrivalCounts,
    /// Time to open a connection, from the first packet to the server's last answer before load, for connections that were
    /// opened while the load ran (churn, and lost ones); no part of any response or service time.
    #[serde(skip_serializing_if = "HistogramData::is_empty", default)]
    pub connect: HistogramData,
    /// Resource use of the load generator.
    pub client: ClientUse,
    /// From the intended instant to the send, per transaction.
    pub lateness: HistogramData,
    /// Response and service time by operation name.
    pub operations: IndexMap<String, OperationTimes>,
    /// The workload's own counts of completed transactions, by name.
    #[serde(skip_serializing_if = "IndexMap::is_empty", default)]
    pub counts: IndexMap<String, u64>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Arrival counts of a window. Across consecutive windows, exactly: `queued + in_flight` at the end of the previous window,
/// plus `intended`, equals `transactions` (of the interval), plus `failed`, plus `dropped`, plus `queued + in_flight` at the
/// end of this window. In a closed loop a transaction is intended when it is sent, so none is queued or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalCounts {
    /// Transactions whose intended instant lies in the window.
    pub intended: u64,
    /// Transactions whose first statement was sent in the window.
    pub started: u64,
    /// Transactions that ended without success and were not, or not again, retried.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub failed: u64,
    /// Transactions that were never sent and never will be: the backlog at the end of the warm-up.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub dropped: u64,
    /// The backlog: transactions that were due and not yet sent when the window ended.
    pub queued: u64,
    /// Outstanding transactions: sent and not yet answered when the window ended.
    pub in_flight: u64,
}

impl ArrivalCounts {
    /// Whether all counts are zero, as in records of versions that did not count.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Transactions that were due and not completed when the window ended.
    pub fn waiting(&self) -> u64 {
        self.queued + self.in_flight
    }
}

/// Resource use of the worker threads in a window, as the operating system accounts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClientUse {
    /// User CPU time in microseconds, all workers.
    pub user_us: u64,
    /// System CPU time in microseconds, all workers.
    pub system_us: u64,
    /// User and system CPU time in microseconds of the separate threads that opened connections while the load ran.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub opening_us: u64,
    /// Calls that waited for input (one call may return many answers).
    pub waits: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches: the kernel preempted a thread.
    pub involuntary_switches: u64,
    /// Resident memory of the process in bytes at the end of the window.
    pub resident_bytes: u64,
    /// Threads of the process.
    pub threads: u64,
}

/// Response and service time of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationTimes {
    /// Response time: from the intended instant to the last byte of the answer. For a statement inside a transaction the
    /// intended instant is the end of the previous answer.
    pub response: HistogramData,
    /// Service time: from the send to the last byte of the answer.
    pub service: HistogramData,
}

/// A histogram of nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HistogramData {
    /// Number of values.
    pub count: u64,
    /// Exact sum.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub sum_ns: u64,
    /// Exact minimum.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub min_ns: u64,
    /// Exact maximum.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub max_ns: u64,
    /// HdrHistogram's V2 encoding (not compressed) in base64; empty when there are no values.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub hdr: String,
}

impl HistogramData {
    /// Whether the histogram contains no value.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Seconds since the run began.
    pub at_s: f64,
    /// The event.
    #[serde(flatten)]
    pub what: EventKind,
}

/// Events of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// A step was appended to the plan's list of steps.
    Step {
        /// Number of the step.
        step: usize,
        /// Plan of the step.
        plan: StepPlan,
    },
    /// A phase began.
    Phase {
        /// Step of the plan.
        step: usize,
        /// The phase.
        phase: Phase,
    },
    /// The first error with a given code in a step, with its text; the intervals hold the counts.
    Error {
        /// Step of the plan.
        step: usize,
        /// As in `1213`.
        code: String,
        /// SQLSTATE, as in `40001`.
        sqlstate: String,
        /// The server's message.
        message: String,
        /// The operation that failed.
        operation: String,
    },
    /// A warning that was issued during the run.
    Warning(crate::warning::Warning),
    /// The user asked mydyno to stop.
    Interrupted,
    /// The run ended by itself; nothing follows this line.
    End {
        /// `complete`, `interrupted` or why it broke off.
        how: End,
    },
}

/// End of a run. In documents it is a text: `complete`, `interrupted`, `killed`, `recording`, or the reason why the run was aborted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum End {
    /// The run ended as planned.
    Complete,
    /// The user stopped the run.
    Interrupted,
    /// The record ends in mid-run. Only summaries contain this state, since a killed process writes no end.
    Killed,
    /// The record has no end yet, because a process writes it. Only summaries contain this state.
    Recording,
    /// The run was aborted, with the reason.
    BrokeOff(String),
}

impl End {
    /// The text of documents.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Killed => "killed",
            Self::Recording => "recording",
            Self::BrokeOff(why) => why,
        }
    }
}

impl From<String> for End {
    fn from(text: String) -> Self {
        match text.as_str() {
            "complete" => Self::Complete,
            "interrupted" => Self::Interrupted,
            "killed" => Self::Killed,
            "recording" => Self::Recording,
            _ => Self::BrokeOff(text),
        }
    }
}

impl From<End> for String {
    fn from(end: End) -> Self {
        match end {
            End::BrokeOff(why) => why,
            other => other.as_str().to_owned(),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A complete run as its folder holds it: the input of derivation, reports and comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// `manifest.json`.
    pub manifest: Manifest,
    /// `facts.json`; `None` when it was lost.
    pub facts: Option<FactSet>,
    /// `intervals.jsonl`, without a truncated last line.
    pub intervals: Vec<Interval>,
    /// `events.jsonl`, without a truncated last line.
    pub events: Vec<Event>,
    /// `observe.jsonl.zst`, without a truncated last line, expanded to full frames.
    pub samples: Vec<Sample>,
    /// Parts of these files that are missing or cannot be read, in words. Empty for a whole record.
    pub damage: Vec<String>,
    /// A process is writing these files.
    pub recording: bool,
}

impl RunRecord {
    /// End of the run: [`End::Killed`] when the record has no end and nobody writes it.
    pub fn end(&self) -> End {
        let last = self.events.iter().rev().find_map(|e| match &e.what {
            EventKind::End { how } => Some(how.clone()),
            _ => None,
        });
        last.unwrap_or(if self.recording { End::Recording } else { End::Killed })
    }

    /// All steps: those of the plan, and those that were added during the run.
    pub fn steps(&self) -> Vec<StepPlan> {
        let mut steps = self.manifest.plan.steps.clone();
        for event in &self.events {
            match &event.what {
                EventKind::Step { step, plan } if *step == steps.len() => steps.push(plan.clone()),
                _ => {}
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_texts_in_documents() {
        for (end, text) in [
            (End::Complete, r#""complete""#),
            (End::Interrupted, r#""interrupted""#),
            (End::Killed, r#""killed""#),
            (End::Recording, r#""recording""#),
            (End::BrokeOff("the disk is full".to_owned()), r#""the disk is full""#),
        ] {
            assert_eq!(serde_json::to_string(&end).unwrap(), text);
            assert_eq!(serde_json::from_str::<End>(text).unwrap(), end);
        }
    }

    #[test]
    fn intervals_without_counts_of_arrivals_can_be_read() {
        let line = r#"{"step":0,"phase":"measure","start_s":0.0,"width_s":1.0,"transactions":5,"queries":5,"client":
            {"user_us":0,"system_us":0,"waits":0,"voluntary_switches":0,"involuntary_switches":0,"resident_bytes":0,
            "threads":1},"lateness":{"count":0},"operations":{}}"#;
        let interval: Interval = serde_json::from_str(line).unwrap();
        assert!(interval.arrivals.is_empty() && interval.connect.is_empty());
        let written = serde_json::to_string(&interval).unwrap();
        assert!(!written.contains("arrivals") && !written.contains("connect"), "{written}");
    }
}
