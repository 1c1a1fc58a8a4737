//! Experiments that were carried out more than once, and what they say together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// Effect of an earlier execution of the same experiment on the response that decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Earlier {
    /// Folder of its design and slices, as it was given.
    pub folder: String,
    /// When its table was written, in UTC, as in `2026-01-31T12:00:00Z`.
    pub created: String,
    /// Logarithm of the treatment's response over the baseline's.
    pub log_ratio: f64,
    /// Standard error of this logarithm, over its starts or blocks.
    pub standard_error: f64,
    /// Starts or blocks that it rests on.
    pub units: usize,
}

/// Several executions of one experiment together: the random-effects mean of their effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pooled {
    /// The earlier executions.
    pub earlier: Vec<Earlier>,
    /// Mean ratio of the treatment's response to the baseline's over all executions, this one included, with the interval of such
    /// means.
    pub effect_ratio: Estimate,
    /// Standard deviation of the effect between executions, as a share, beyond what their own intervals explain.
    pub between: f64,
}
