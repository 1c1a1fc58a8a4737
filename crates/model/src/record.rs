//! The run folder: `manifest.json`, `intervals.jsonl`, `events.jsonl`; and the record that they make together.

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
    /// Time in attempts that were tried again, each from its send to the end of its rollback. It is part of the
    /// response time of the transaction.
    #[serde(skip_serializing_if = "HistogramData::is_empty", default)]
    pub retried: HistogramData,
    /// Connections opened again after they were lost.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub reconnects: u64,
    /// What became of the transactions that were to be done.
    #[serde(skip_serializing_if = "ArrivalCounts::is_empty", default)]
    pub arrivals: ArrivalCounts,
    /// Time to open a connection, from the first packet to the server's last answer before load, of those that were
    /// opened while the load ran (churn, and lost ones); no part of any response or service time.
    #[serde(skip_serializing_if = "HistogramData::is_empty", default)]
    pub connect: HistogramData,
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

/// What became of the transactions that were to be done. Over windows that follow each other, exactly:
/// `queued + in_flight` at the end of the window before, plus `intended`, is `transactions` (of the interval), plus
/// `failed`, plus `dropped`, plus `queued + in_flight` at the end of this one. In a closed loop a transaction is intended
/// when it is sent, so nothing is queued or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalCounts {
    /// Transactions whose intended instant lies in the window.
    pub intended: u64,
    /// Transactions whose first statement was sent in the window.
    pub started: u64,
    /// Transactions that ended without success and were not, or not again, started anew.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub failed: u64,
    /// Transactions that were never sent and will not be: the backlog at the end of the warm-up.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub dropped: u64,
    /// Transactions that were due and not yet sent when the window ended: the backlog.
    pub queued: u64,
    /// Transactions that were sent and not yet answered when the window ended.
    pub in_flight: u64,
}

impl ArrivalCounts {
    /// Whether nothing was counted, as in records of versions that did not count.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Transactions that were due and not done when the window ended.
    pub fn waiting(&self) -> u64 {
        self.queued + self.in_flight
    }
}

/// What the worker threads used in a window, by the operating system's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClientUse {
    /// User CPU time in microseconds, all workers.
    pub user_us: u64,
    /// System CPU time in microseconds, all workers.
    pub system_us: u64,
    /// CPU time of both that went into opening connections while the load ran, by threads of their own.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub opening_us: u64,
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

impl HistogramData {
    /// Whether it holds no value.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
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
    /// A step was added to those of the plan, at the end of its list.
    Step {
        /// Its number.
        step: usize,
        /// What it asks.
        plan: StepPlan,
    },
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
        how: End,
    },
}

/// How a run ended. In documents it is a text: `complete`, `interrupted`, `killed`, or why the run broke off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum End {
    /// As planned.
    Complete,
    /// The user ended it.
    Interrupted,
    /// Its record ends in mid-run. Stands in summaries only: who is killed writes nothing.
    Killed,
    /// It broke off, and why.
    BrokeOff(String),
}

impl End {
    /// The text of documents.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Killed => "killed",
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
    /// What of these files is missing or cannot be read, in words. Empty for a whole record.
    pub damage: Vec<String>,
}

impl RunRecord {
    /// How the run ended: [`End::Killed`] when its record has no end.
    pub fn end(&self) -> End {
        let last = self.events.iter().rev().find_map(|e| match &e.what {
            EventKind::End { how } => Some(how.clone()),
            _ => None,
        });
        last.unwrap_or(End::Killed)
    }

    /// All steps: those of the plan, and those that were added while the run went on.
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
