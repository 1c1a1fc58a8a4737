//! A number with its uncertainty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An estimate with its interval. Where the data cannot give an interval, `low` and `high` are absent and `method` gives the
/// reason; a narrow wrong interval is never given instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The point estimate, in the unit of the field that holds it.
    pub value: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Nominal coverage of the interval, as in `0.95`. Absent beside an interval: the interval is *provisional*, that is, the
    /// observations behind it are too few or too unsteady to promise how often such intervals contain the true value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub level: Option<f64>,
    /// Method of computing the interval, or the reason why there is none.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub method: String,
}

impl Estimate {
    /// An estimate with an interval.
    pub fn with_interval(value: f64, low: f64, high: f64, level: f64, method: impl Into<String>) -> Self {
        Self { value, low: Some(low), high: Some(high), level: Some(level), method: method.into() }
    }

    /// An estimate with a provisional interval, which cannot be relied on: `method` ends with the reason.
    pub fn provisional(value: f64, low: f64, high: f64, method: impl Into<String>) -> Self {
        Self { value, low: Some(low), high: Some(high), level: None, method: method.into() }
    }

    /// Whether there is an interval without a promised coverage.
    pub fn is_provisional(&self) -> bool {
        self.low.is_some() && self.high.is_some() && self.level.is_none()
    }

    /// An estimate without an interval, and the reason.
    pub fn without_interval(value: f64, why: impl Into<String>) -> Self {
        Self { value, low: None, high: None, level: None, method: why.into() }
    }
}
