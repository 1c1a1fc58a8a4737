//! The comparison of runs: headline figures side by side, and what differs between plans and facts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::summary::Summary;
use crate::{Document, Estimate, Header, Warning};

/// Runs and the comparison of each with the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparisons {
    /// Header of every document.
    #[serde(flatten)]
    pub header: Header,
    /// Summaries of the runs; the first is the baseline.
    pub runs: Vec<Summary>,
    /// Comparison of the second and each further run with the first.
    pub comparisons: Vec<RunComparison>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Comparisons {
    const NAME: &'static str = "mydyno.comparisons";
    const MAJOR: u32 = 1;
}

/// Comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// Name of the baseline run.
    pub baseline: String,
    /// Name of the other run.
    pub treatment: String,
    /// Comparisons at each load that both runs measured.
    pub loads: Vec<LoadComparison>,
    /// Reasons why some intervals promise no coverage, with the next step; absent when all do.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub doubts: Option<String>,
    /// The command that measures the same difference with both variants in turns; absent when no command can.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prove: Option<String>,
    /// Differences in plan and facts, without those that change with every start.
    pub differs: Vec<EnvironmentDifference>,
    /// Warnings about the comparison itself, such as `unequal-work`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<Warning>,
    /// Restriction that applies to every difference of the document.
    pub caveat: String,
}

/// Comparison at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadComparison {
    /// The load in words, as in `16 connections`.
    pub load: String,
    /// Headline figures.
    pub figures: Vec<FigureDifference>,
}

/// A headline figure of two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureDifference {
    /// Name, as in `transactions` or `response p99`.
    pub name: String,
    /// Unit of both values: `1/s` or `us`.
    pub unit: String,
    /// Whether higher values are better.
    pub more_is_better: bool,
    /// Value of the baseline.
    pub baseline: Estimate,
    /// Value of the other run.
    pub treatment: Estimate,
    /// Change from the baseline as a share (0.05: 5 % more); absent when a value is not above 0.
    pub change: Option<Estimate>,
    /// `better`, `worse`, `not resolved`, each with `~` before it when the interval is provisional, or `no interval`.
    pub verdict: String,
    /// A provisional change of throughput as a sentence, as in `~faster in these two runs, +43 % … +65 %`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub in_words: Option<String>,
}

/// A difference in plan or facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentDifference {
    /// Part of the plan, as in `--table-size`, or id of a fact.
    pub name: String,
    /// Value in the baseline.
    pub baseline: String,
    /// Value in the other run.
    pub treatment: String,
}
