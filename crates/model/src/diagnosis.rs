//! Diagnoses: named bottlenecks of a server with their evidence, and the time budget where there is one.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::watch::WatchEvent;

/// `mydyno watch --once --json`, and the last line of `mydyno watch --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// Schema, end of the window, writer.
    #[serde(flatten)]
    pub header: Header,
    /// Length of the window in seconds.
    pub over_s: f64,
    /// Intervals in it.
    pub intervals: usize,
    /// Bottlenecks, the largest share first.
    pub bottlenecks: Vec<Bottleneck>,
    /// Bottlenecks that the figures suggest and that another figure contradicts.
    #[serde(default)]
    pub not_said: Vec<NotSaid>,
    /// Means of the figures over the window; a figure that no interval has is absent.
    pub figures: IndexMap<String, f64>,
    /// Irregularities in the window.
    #[serde(default)]
    pub events: Vec<WatchEvent>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Diagnosis {
    const NAME: &'static str = "mydyno.diagnosis";
    const MAJOR: u32 = 1;
}

/// A bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// The class of time and a name, as in `row-lock.waits`.
    pub id: String,
    /// One line.
    pub title: String,
    /// Estimate, from counters, of the share of the running sessions' time that it takes, from 0 to 1.
    pub share: f64,
    /// Share of the intervals in which it would be said on their own.
    pub held: f64,
    /// The figures that it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do next: what proves or removes it.
    pub next: String,
    /// Claims of `mydyno audit` that concern it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// The experiment of `mydyno prove` that shows its price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
}

/// A figure and its mean over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Name of the figure.
    pub figure: String,
    /// Its value; the unit ends the name.
    pub value: f64,
}

/// A bottleneck that is not said, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotSaid {
    /// The bottleneck.
    pub id: String,
    /// The contradiction.
    pub why: String,
}
