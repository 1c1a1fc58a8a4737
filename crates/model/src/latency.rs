//! A distribution of times in documents.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// A distribution in microseconds: percentiles by name (`p50`, `p99`, `p999`), mean and exact extremes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Number of values.
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
