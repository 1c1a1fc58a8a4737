//! Diagnoses: named bottlenecks of a server with their evidence, and the time budget where there is one.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::profile::TimeClass;
use crate::watch::{StatementFigures, WatchEvent};

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
    /// Where the time of statements goes, by captured stacks; absent without captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<DiagnosedBudget>,
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

/// Where the time of statements goes in a window, from stacks that were captured in parts of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosedBudget {
    /// The classes that have time, the largest first; their shares sum to 1.
    pub classes: Vec<DiagnosedShare>,
    /// Mean number of connections that work on a statement.
    pub busy_threads: f64,
    /// Mean number of connections that wait for their client's next statement, of those that sent one in a capture.
    pub idle_threads: f64,
    /// Share of the classes that no rule knows.
    pub unexplained: f64,
    /// Waiting time as the sampled waits alone estimate it over the counted one: far from 1, the shares of waiting are rough. Absent
    /// where no thread waited often enough to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closure: Option<f64>,
    /// Intervals with a capture.
    pub captures: usize,
    /// Classes of which the counters say something else than the stacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disagreements: Vec<Disagreement>,
}

/// A class of time whose stacks and counters differ by one thread or more, and by a factor of two or more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disagreement {
    /// The class.
    pub class: TimeClass,
    /// Mean number of threads in it by stacks.
    pub stacks_threads: f64,
    /// The figure of the counters.
    pub figure: String,
    /// Its mean over the window, in threads.
    pub counted_threads: f64,
}

/// A class with its share of the time of statements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosedShare {
    /// The class.
    pub class: TimeClass,
    /// Its share, from 0 to 1.
    pub share: f64,
    /// Lower end of the 95 % interval (ratio estimate over captures, Student's t); absent with fewer than three captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Where it comes from.
    pub source: ShareSource,
}

/// Where a share comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShareSource {
    /// Stacks, with lengths from the scheduler's switches.
    Stacks,
    /// The scheduler's switches alone.
    Switches,
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
    /// Share of the intervals that would name it on their own.
    pub held: f64,
    /// The figures that it rests on.
    pub evidence: Vec<Evidence>,
    /// The statements that took most of the time, by digest, where the server counts them: for bottlenecks that statements cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementFigures>,
    /// The next step: it proves or removes the bottleneck.
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

/// A bottleneck that is not reported, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotSaid {
    /// The bottleneck.
    pub id: String,
    /// The contradiction.
    pub why: String,
}
