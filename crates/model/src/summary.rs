//! The summary of a run: derived from its record, from which it can be derived again at any time.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::diagnosis::{Bottleneck, DiagnosedBudget, NotSaid};
use crate::document::{Document, Header};
use crate::estimate::Estimate;
pub use crate::latency::LatencySummary;
use crate::plan::{Arrivals, TargetPlan};
use crate::record::{End, OperationKind};
use crate::tpcc::TpccSummary;
use crate::warning::Warning;
use crate::watch::{StatementFigures, WaitFigures};

/// Fingerprints of data and operations: equal fingerprints mean equal work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Fingerprint {
    /// Digest of the tables' definition, size, seed and generator.
    pub data: String,
    /// Digest of the stream of operations that the seed generates.
    pub operations: String,
}

/// `summary.json`, and the output of `mydyno bench --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the run.
    pub run: String,
    /// Workload.
    pub workload: String,
    /// Server.
    pub target: TargetPlan,
    /// Result of `SELECT VERSION()`; empty when unknown.
    pub server_version: String,
    /// `complete`, `interrupted`, `killed`, or the reason why the run was aborted.
    pub end: End,
    /// One entry for each measured step, in the order of the plan.
    pub steps: Vec<StepSummary>,
    /// One entry for each point of the sweep that was measured more than once: the estimate over its repeats.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub points: Vec<PointSummary>,
    /// Result of the search for the highest rate; absent when there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capacity: Option<CapacitySummary>,
    /// Results of the `--fail-if` bounds: one entry for each bound and each step that it applies to.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub bounds: Vec<BoundSummary>,
    /// Warnings that reduce the trust in the numbers; `step` names the step.
    pub warnings: Vec<Warning>,
    /// Fingerprint of data and operations.
    pub fingerprint: Fingerprint,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Summary {
    const NAME: &'static str = "mydyno.summary";
    const MAJOR: u32 = 1;
}

/// One step, over its measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepSummary {
    /// Number of the step in the plan, from 0.
    pub step: usize,
    /// Connections.
    pub connections: usize,
    /// Worker threads.
    pub workers: usize,
    /// Requested transactions a second; absent for a closed loop.
    pub rate: Option<f64>,
    /// Arrival process of the transactions.
    pub arrivals: Arrivals,
    /// Repeat number of this step within its point of the sweep, from 0.
    #[serde(default)]
    pub repeat: usize,
    /// Length of the warm-up in seconds.
    #[serde(default)]
    pub warmup_s: f64,
    /// Length of the measured window in seconds.
    pub window_s: f64,
    /// Transactions that completed without an error.
    pub transactions: u64,
    /// Statements answered without an error.
    pub queries: u64,
    /// Errors by code.
    pub errors: BTreeMap<String, u64>,
    /// Transactions that were retried.
    pub retries: u64,
    /// Attempts and their outcomes; absent when no transaction was retried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempts: Option<AttemptSummary>,
    /// Connections that were reopened.
    pub reconnects: u64,
    /// Balance of the transactions that were due; absent in records of versions that did not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub due: Option<DueSummary>,
    /// Headline throughput.
    pub throughput: Throughput,
    /// Response time of transactions: measured from the intended instant.
    pub response_us: LatencySummary,
    /// Service time of transactions: measured from the send.
    pub service_us: LatencySummary,
    /// Lateness: from the intended instant to the send.
    pub lateness_us: LatencySummary,
    /// Time to open a connection while the load ran; absent when none was opened.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connect_us: Option<LatencySummary>,
    /// All operations of the workload; the transaction first.
    pub operations: Vec<OperationSummary>,
    /// Result of the workload `tpcc`; absent for others.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tpcc: Option<TpccSummary>,
    /// Resource use of the load generator.
    pub client: ClientSummary,
    /// Resource use of the server; fields are `null` where this host cannot observe it.
    pub server: ServerSummary,
    /// Bottlenecks that the server's counters show in the window; absent where they were not sampled.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diagnosis: Option<StepDiagnosis>,
    /// The server's own statistics in the window; absent where they were not sampled.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<ServerDetails>,
    /// Seconds in which response times rose far above the usual, with what differed in them: at most five, the largest.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub spikes: Vec<Spike>,
    /// Whether throughput was steady in the window; `null` when the window is too short to tell.
    pub steady: Option<bool>,
    /// Warnings about this step (the run's list contains them too).
    pub warnings: Vec<Warning>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Bottlenecks of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepDiagnosis {
    /// Seconds between the first and the last sample in the window.
    pub over_s: f64,
    /// Intervals between samples.
    pub intervals: usize,
    /// Where the time of statements goes, by captured stacks; absent without captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<DiagnosedBudget>,
    /// Bottlenecks, the largest share first.
    pub bottlenecks: Vec<Bottleneck>,
    /// Bottlenecks that the figures suggest and that another figure contradicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_said: Vec<NotSaid>,
}

/// Means over a step's window of what the server tells of InnoDB, its waits and its statements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerDetails {
    /// Figures of InnoDB, of classes of waits and of replication by the names that `mydyno watch` gives them.
    pub figures: BTreeMap<String, f64>,
    /// Waits of the server's threads, the longest first; empty where the performance schema has none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub waits: Vec<WaitFigures>,
    /// Statements by digest, those that took the most time first; empty where the performance schema does not tell.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub statements: Vec<StatementFigures>,
}

/// A second of a step in which response times rose far above those of its other seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spike {
    /// Its start, in seconds since the run began.
    pub at_s: f64,
    /// Its length in seconds.
    pub over_s: f64,
    /// 99th percentile of the response time in it, in microseconds.
    pub p99_us: f64,
    /// Median over the step's seconds of the same.
    pub usual_us: f64,
    /// Figures that were larger in it than in every other second, farthest from the usual first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub differs: Vec<Differs>,
}

/// A figure of a spike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Differs {
    /// Its name.
    pub figure: String,
    /// Its value in the spike.
    pub value: f64,
    /// Its median in the other seconds.
    pub usual: f64,
}

/// Attempts and their outcomes: a measure of the work that the server did in vain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptSummary {
    /// Attempts that ended in the window: transactions that completed or failed, and attempts that were rolled back and
    /// retried.
    pub attempts: u64,
    /// Goodput: share of the attempts that completed a transaction, 0 to 1.
    pub goodput: f64,
    /// Duration of the attempts that were retried, each with its rollback. It is part of the response time of their
    /// transaction.
    pub retried_us: LatencySummary,
}

/// Balance of the transactions that were due. Exactly: `carried + intended = done + failed + waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DueSummary {
    /// Transactions that were sent in the warm-up and not answered when the measured window began.
    pub carried: u64,
    /// Transactions with an intended instant in the measured window.
    pub intended: u64,
    /// Transactions that completed in the measured window without an error.
    pub done: u64,
    /// Transactions that ended in the measured window without success.
    pub failed: u64,
    /// Transactions that were due and not completed when the window ended, sent or not.
    pub waiting: u64,
    /// Largest backlog (transactions due and not sent) at the end of any second of the window.
    pub most_queued: u64,
    /// Transactions that were due in the warm-up and not sent when it ended; they were dropped before the window began.
    pub warmup_dropped: u64,
}

/// A point of the sweep, estimated over its repeats. Intervals come from the differences between the repeats alone (Student's
/// t), so they include the variation from run to run, which a single run cannot show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointSummary {
    /// Connections.
    pub connections: usize,
    /// Requested transactions a second; absent for a closed loop.
    pub rate: Option<f64>,
    /// Numbers of the steps of this point.
    pub steps: Vec<usize>,
    /// Mean throughput of the repeats.
    pub throughput: Throughput,
    /// Geometric mean of the repeats' response time percentiles, by name.
    pub response_us: IndexMap<String, Estimate>,
    /// Errors by code over all repeats.
    pub errors: BTreeMap<String, u64>,
}

/// Result of a search for the highest rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacitySummary {
    /// Conditions of the search.
    pub holds: Vec<String>,
    /// The highest rate, in transactions a second, that was measured and met the conditions in more trials than not, below any
    /// rate that failed them; `null` when there is none.
    pub rate_per_s: Option<f64>,
    /// Whether the rate met the conditions more than once.
    pub confirmed: bool,
    /// The lowest measured rate that failed the conditions; `null` when none did.
    pub broken_at_per_s: Option<f64>,
    /// Reason why the search ended, in a sentence.
    pub end: String,
    /// All steps of the search, in the order in which they ran.
    pub trials: Vec<CapacityTrial>,
}

/// A bound of `--fail-if` in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundSummary {
    /// The bound as it was typed, as in `p99>10ms`.
    pub bound: String,
    /// Number of the step.
    pub step: usize,
    /// Connections of the step.
    pub connections: usize,
    /// The quantity in the step, in `unit`; absent when it is unknown, which breaks the bound.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<f64>,
    /// `us`, `1/s`, `share` or `count`.
    pub unit: String,
    /// The quantity, formatted for people.
    pub found: String,
    /// Whether the bound is broken.
    pub broken: bool,
}

/// One step of a search for the highest rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityTrial {
    /// Number of the step.
    pub step: usize,
    /// Requested transactions a second.
    pub rate_per_s: f64,
    /// Completed transactions a second.
    pub done_per_s: f64,
    /// Conditions that failed, with their figures; empty when all were met.
    pub broken: Vec<String>,
    /// Whether the rate had been measured before.
    pub again: bool,
}

/// Throughput of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// Completed transactions a second.
    pub transactions_per_s: Estimate,
    /// Answered statements a second.
    pub queries_per_s: Estimate,
}

/// Name of a percentile in documents: `p50`, `p95`, `p999` for 99.9.
pub fn percentile_name(percent: f64) -> String {
    let digits: String = format!("{percent}").chars().filter(char::is_ascii_digit).collect();
    format!("p{digits}")
}

/// One operation over the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationSummary {
    /// Its name.
    pub name: String,
    /// Transaction or statement.
    pub kind: OperationKind,
    /// Number of operations that completed without an error.
    pub count: u64,
    /// Response time: from the intended instant.
    pub response_us: LatencySummary,
    /// Service time: from the send.
    pub service_us: LatencySummary,
}

/// Resource use of the load generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientSummary {
    /// User CPU per statement in microseconds.
    pub cpu_user_us_per_query: f64,
    /// System CPU per statement in microseconds.
    pub cpu_system_us_per_query: f64,
    /// Share of the time that the worker threads spent on a CPU, 0 to 1: near 1 the client is the bottleneck.
    pub cpu_share_of_workers: f64,
    /// Largest resident memory in bytes.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Answers per waiting call.
    pub queries_per_wait: f64,
    /// Voluntary context switches per statement.
    pub switches_per_query: f64,
}

/// Resource use of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerSummary {
    /// User and system CPU per statement in microseconds; `null` where the server's process cannot be observed.
    pub cpu_us_per_query: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::percentile_name;

    #[test]
    fn percentiles_are_named_as_in_the_documents() {
        for (percent, name) in [(50.0, "p50"), (95.0, "p95"), (99.9, "p999"), (99.99, "p9999"), (5.0, "p5")] {
            assert_eq!(percentile_name(percent), name);
        }
    }
}
