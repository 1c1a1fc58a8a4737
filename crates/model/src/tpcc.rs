//! The result of a step of the workload `tpcc`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::latency::LatencySummary;

/// New orders a minute and how the step compares with the rules of TPC-C's specification. The work is derived from TPC-C;
/// the result is not comparable with published TPC-C results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TpccSummary {
    /// The permitted name of the figures: `derived from TPC-C`.
    pub label: String,
    /// New orders a minute, those that were rolled back on purpose included.
    pub notpm: Estimate,
    /// New orders that ended with the rollback of an unused item.
    pub rollbacks: u64,
    /// The five kinds of transactions.
    pub transactions: Vec<TpccTransaction>,
    /// Rules of the specification, with what was found.
    pub requirements: Vec<TpccRequirement>,
}

/// One of the five kinds of transactions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TpccTransaction {
    /// Its operation, as in `new_order`.
    pub name: String,
    /// Transactions that completed.
    pub count: u64,
    /// Share of all transactions, 0 to 1.
    pub share: f64,
    /// Response time with the percentiles 90 and 95: from the intended instant.
    pub response_us: LatencySummary,
    /// Service time with the percentiles 90 and 95: from the send.
    pub service_us: LatencySummary,
}

/// A rule of the specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TpccRequirement {
    /// Its clause and subject.
    pub rule: String,
    /// The specification's bound.
    pub required: String,
    /// The measured value.
    pub found: String,
    /// Whether it holds; `null` where nothing was counted, or too little to tell it from chance.
    pub holds: Option<bool>,
}
