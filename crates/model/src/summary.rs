//! The summary of a run: derived from its record, and always able to be derived again.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::estimate::Estimate;
use crate::plan::{Arrivals, TargetPlan};
use crate::record::{End, OperationKind};
use crate::warning::Warning;

/// What data and operations were: equal fingerprints mean equal work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Fingerprint {
    /// Over the tables' definition, size, seed and generator.
    pub data: String,
    /// Over the stream of operations that the seed gives.
    pub operations: String,
}

/// `summary.json`, and what `mydyno bench --json` prints.
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
    /// What `SELECT VERSION()` said; empty when it is not known.
    pub server_version: String,
    /// `complete`, `interrupted`, `killed`, or why the run broke off.
    pub end: End,
    /// One entry a step that was measured, in the order of the plan.
    pub steps: Vec<StepSummary>,
    /// One entry a point of the sweep that was measured more than once: what its repeats say together.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub points: Vec<PointSummary>,
    /// What the search for the highest rate found; absent when there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capacity: Option<CapacitySummary>,
    /// How the bounds of `--fail-if` fared: one entry a bound and step that it applies to.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub bounds: Vec<BoundSummary>,
    /// What makes the numbers worth less than they look; `step` says which.
    pub warnings: Vec<Warning>,
    /// What data and operations were.
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
    /// Transactions a second that were asked for; absent for a closed loop.
    pub rate: Option<f64>,
    /// How transactions arrived.
    pub arrivals: Arrivals,
    /// Which repeat of its point of the sweep this is, from 0.
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
    /// Transactions started again.
    pub retries: u64,
    /// Attempts against what came of them; absent when nothing was tried again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempts: Option<AttemptSummary>,
    /// Connections opened again.
    pub reconnects: u64,
    /// What became of the transactions that were to be done; absent in records of versions that did not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub due: Option<DueSummary>,
    /// Headline throughput.
    pub throughput: Throughput,
    /// Response time of transactions: from the intended instant.
    pub response_us: LatencySummary,
    /// Service time of transactions: from the send.
    pub service_us: LatencySummary,
    /// From the intended instant to the send.
    pub lateness_us: LatencySummary,
    /// Time to open a connection while the load ran; absent when none was opened.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connect_us: Option<LatencySummary>,
    /// Each operation of the workload; the transaction first.
    pub operations: Vec<OperationSummary>,
    /// What the load generator cost.
    pub client: ClientSummary,
    /// What the server cost; `null` fields where it cannot be seen from here.
    pub server: ServerSummary,
    /// Whether throughput had settled in the window; `null` when the window is too short to tell.
    pub steady: Option<bool>,
    /// Warnings about this step (they stand in the run's list too).
    pub warnings: Vec<Warning>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Attempts against what came of them: what the server did in vain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptSummary {
    /// Attempts that ended in the window: transactions that completed or failed, and attempts that were rolled back and
    /// tried again.
    pub attempts: u64,
    /// Share of them that completed a transaction, 0 to 1: goodput.
    pub goodput: f64,
    /// How long the attempts took that were tried again, each with its rollback. They are part of the response time of
    /// their transaction.
    pub retried_us: LatencySummary,
}

/// What became of the transactions that were to be done. Exactly: `carried + intended = done + failed + waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DueSummary {
    /// Sent in the warm-up and not answered when the measured window began.
    pub carried: u64,
    /// Intended in the measured window.
    pub intended: u64,
    /// Completed in the measured window without an error.
    pub done: u64,
    /// Ended in it without success.
    pub failed: u64,
    /// Due and not done when it ended, sent or not.
    pub waiting: u64,
    /// Due and not sent at most, at the end of any second of the window: the backlog.
    pub most_queued: u64,
    /// Due in the warm-up and not sent when it ended; dropped before the window began.
    pub warmup_dropped: u64,
}

/// A point of the sweep over its repeats. Intervals come from the differences between the repeats alone (Student's t),
/// so they hold what one run cannot know of: what changes from run to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointSummary {
    /// Connections.
    pub connections: usize,
    /// Transactions a second that were asked for; absent for a closed loop.
    pub rate: Option<f64>,
    /// Numbers of its steps.
    pub steps: Vec<usize>,
    /// Mean of the repeats' throughput.
    pub throughput: Throughput,
    /// Geometric mean of the repeats' percentiles of response time, by name.
    pub response_us: IndexMap<String, Estimate>,
    /// Errors by code over all repeats.
    pub errors: BTreeMap<String, u64>,
}

/// What a search for the highest rate found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacitySummary {
    /// What had to hold.
    pub holds: Vec<String>,
    /// The highest rate, in transactions a second, that was measured and held, more often than not, below any that
    /// did not; `null` when there is none.
    pub rate_per_s: Option<f64>,
    /// Whether it held more than once.
    pub confirmed: bool,
    /// The lowest rate that was measured and did not hold; `null` when none was found.
    pub broken_at_per_s: Option<f64>,
    /// Why the search ended, in a sentence.
    pub end: String,
    /// Every step of it, in the order in which they ran.
    pub trials: Vec<CapacityTrial>,
}

/// A bound of `--fail-if` in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundSummary {
    /// The bound as it was typed, as in `p99>10ms`.
    pub bound: String,
    /// Number of the step.
    pub step: usize,
    /// Its connections.
    pub connections: usize,
    /// The quantity in the step, in `unit`; absent when it is not known, which breaks the bound.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<f64>,
    /// `us`, `1/s`, `share` or `count`.
    pub unit: String,
    /// The quantity for people.
    pub found: String,
    /// Whether the bound is broken.
    pub broken: bool,
}

/// One step of a search for the highest rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityTrial {
    /// Number of the step.
    pub step: usize,
    /// Transactions a second that were asked for.
    pub rate_per_s: f64,
    /// Transactions a second that were done.
    pub done_per_s: f64,
    /// What did not hold, with its figure; empty when everything did.
    pub broken: Vec<String>,
    /// Whether its rate had been measured before.
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

/// A distribution in microseconds: percentiles by name (`p50`, `p99`, `p999`), mean and exact extremes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Values behind it.
    pub count: u64,
    /// Percentiles by name.
    #[serde(flatten)]
    pub percentiles: IndexMap<String, Estimate>,
    /// Exact mean; `null` without values.
    pub mean: Option<f64>,
    /// Exact minimum; `null` without values.
    pub min: Option<f64>,
    /// Exact maximum; `null` without values.
    pub max: Option<f64>,
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
    /// Completed without an error.
    pub count: u64,
    /// From the intended instant.
    pub response_us: LatencySummary,
    /// From the send.
    pub service_us: LatencySummary,
}

/// What the load generator cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientSummary {
    /// User CPU per statement in microseconds.
    pub cpu_user_us_per_query: f64,
    /// System CPU per statement in microseconds.
    pub cpu_system_us_per_query: f64,
    /// Share of the time in which the worker threads were on a CPU, 0 to 1: near 1 the client is the limit.
    pub cpu_share_of_workers: f64,
    /// Largest resident memory in bytes.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Answers per call that waited for them.
    pub queries_per_wait: f64,
    /// Voluntary context switches per statement.
    pub switches_per_query: f64,
}

/// What the server cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerSummary {
    /// User and system CPU per statement in microseconds; `null` where its process cannot be seen.
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
