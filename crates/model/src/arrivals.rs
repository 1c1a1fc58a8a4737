//! Arrival processes of transactions: a closed loop with or without think time, or an open loop that follows a schedule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arrival process of transactions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrivals {
    /// Closed loop: each connection sends its next transaction when the previous one is answered, at once or after its think
    /// time. The intended instant of a transaction is the end of the previous one plus the think time.
    Closed {
        /// Pause between an answer and the next transaction; absent for none.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        think: Option<Think>,
    },
    /// Open loop: a schedule issues transactions whether or not earlier ones have been answered. The intended instant of a
    /// transaction is its instant in the schedule.
    Open {
        /// Transactions a second over all connections; the mean over the measured window where the rate changes.
        rate_per_s: f64,
        /// Distribution of the gaps between arrivals: constant or exponential.
        spacing: Spacing,
        /// Change of the rate over the measured window.
        #[serde(skip_serializing_if = "Shape::is_flat", default)]
        shape: Shape,
    },
}

impl Arrivals {
    /// A closed loop without think time.
    pub const CLOSED: Self = Self::Closed { think: None };

    /// An open loop at one rate.
    pub fn open(rate_per_s: f64, spacing: Spacing) -> Self {
        Self::Open { rate_per_s, spacing, shape: Shape::Flat }
    }

    /// Scheduled transactions a second, as a mean over the measured window; `None` for a closed loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { rate_per_s, .. } => Some(*rate_per_s),
        }
    }
}

/// Think time of a closed loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Think {
    /// Mean, in seconds.
    pub mean_s: f64,
    /// Distribution of single pauses around the mean.
    pub spread: Spread,
}

/// Distribution of random times around their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All times are equal to the mean.
    Constant,
    /// Exponential distribution.
    Exponential,
}

/// Gaps between arrivals of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Constant gaps.
    Constant,
    /// Exponential gaps, as many independent users produce (a Poisson process).
    Poisson,
}

/// Change of an open loop's rate over the measured window. The warm-up runs at the rate at which the window begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Shape {
    /// Constant rate.
    #[default]
    Flat,
    /// Linear change from one rate to another.
    Ramp {
        /// Transactions a second at the start of the window.
        from_per_s: f64,
        /// Transactions a second at its end.
        to_per_s: f64,
    },
    /// One rate after another; together they last as long as the window.
    Steps {
        /// The steps, at least one.
        steps: Vec<RateStep>,
    },
}

impl Shape {
    /// Whether the rate stays the same.
    pub fn is_flat(&self) -> bool {
        *self == Self::Flat
    }
}

/// A rate and its duration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateStep {
    /// Transactions a second.
    pub rate_per_s: f64,
    /// Length in seconds.
    pub time_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_read_as_they_were_first_written() {
        for (text, expected) in [
            (r#"{"kind":"closed"}"#, Arrivals::CLOSED),
            (
                r#"{"kind":"open","rate_per_s":0.5,"spacing":"poisson"}"#,
                Arrivals::open(0.5, Spacing::Poisson),
            ),
        ] {
            let read: Arrivals = serde_json::from_str(text).unwrap();
            assert_eq!(read, expected);
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }

    #[test]
    fn think_time_and_shapes_survive_a_round_trip() {
        let steps =
            vec![RateStep { rate_per_s: 10.0, time_s: 2.0 }, RateStep { rate_per_s: 20.0, time_s: 2.0 }];
        let shaped = |shape| Arrivals::Open { rate_per_s: 15.0, spacing: Spacing::Constant, shape };
        for arrivals in [
            Arrivals::Closed { think: Some(Think { mean_s: 0.02, spread: Spread::Exponential }) },
            shaped(Shape::Ramp { from_per_s: 10.0, to_per_s: 20.0 }),
            shaped(Shape::Steps { steps }),
        ] {
            let text = serde_json::to_string(&arrivals).unwrap();
            assert_eq!(serde_json::from_str::<Arrivals>(&text).unwrap(), arrivals, "{text}");
        }
    }
}
