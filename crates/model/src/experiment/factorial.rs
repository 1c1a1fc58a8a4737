//! Experiments with several factors of two levels each: `factorial.json` and the lines of `runs.jsonl`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::estimate::Estimate;
use crate::plan::Plan;

use super::definition::{LoadDefinition, Mode};
use super::price::CrashCost;
use super::{Finding, LeverLevel};

/// How the runs of a design are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DesignFamily {
    /// All combinations of levels.
    Full,
    /// A regular fraction of all combinations: 2^(k−p).
    Fractional,
    /// A Plackett–Burman design: main effects of many factors in few runs.
    Screening,
}

/// One factor: a lever with two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Its letter in effects and aliases, as in `A`.
    pub letter: String,
    /// The lever, as `mydyno host levers` names it.
    pub lever: String,
    /// The low level, which an effect goes out from.
    pub low: String,
    /// The high level.
    pub high: String,
    /// Costs of the low level beside performance, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low_prices: Vec<String>,
    /// Costs of the high level beside performance, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high_prices: Vec<String>,
}

impl Factor {
    /// The lever with the value of a level.
    pub fn level(&self, high: bool) -> LeverLevel {
        LeverLevel { lever: self.lever.clone(), value: if high { &self.high } else { &self.low }.clone() }
    }
}

/// Effects that are added to another one with the same weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AliasedWith {
    /// The share of them that is added: 1 or −1 in fractions, less in screening designs.
    pub weight: f64,
    /// The effects, as letters.
    pub effects: Vec<String>,
}

/// One row of the alias table: an effect, and those that the design cannot tell it from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AliasRow {
    /// The effect that is estimated, as letters: `A`, `AB`.
    pub effect: String,
    /// Its aliases of up to three factors in fractions, of two in screening designs; empty: none.
    pub aliased_with: Vec<AliasedWith>,
}

/// A row of the run table: all factors at one combination of levels, in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorialRow {
    /// Position in the whole experiment, from 0.
    pub order: usize,
    /// Block, from 0: each block holds every run of the design once.
    pub block: usize,
    /// Run of the design, from 0.
    pub run: usize,
}

/// One line of `runs.jsonl`: what a row of the table measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorialRun {
    /// The row.
    #[serde(flatten)]
    pub row: FactorialRow,
    /// When it began, in seconds since the experiment began.
    pub at_s: f64,
    /// Length of the measurement in seconds.
    pub measured_s: f64,
    /// Transactions that were answered.
    pub transactions: u64,
    /// Answers that reported an error.
    pub errors: u64,
    /// Mean response time of a transaction in microseconds; absent without transactions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_us: Option<f64>,
    /// 95th percentile of the response time of a transaction in microseconds; absent without transactions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p95_us: Option<f64>,
    /// CPU time of the load generator in microseconds; 0 in rows of earlier releases.
    #[serde(default)]
    pub client_cpu_us: u64,
    /// Worker threads of the load generator; 0 in rows of earlier releases.
    #[serde(default)]
    pub workers: usize,
    /// Why it could not be measured; its figures then count for nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// An effect on a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorialEffect {
    /// As letters: `A` is the main effect of factor A, `AB` the interaction of A and B.
    pub effect: String,
    /// A main effect: the response at the high level over that at the low one, averaged over the other factors. An interaction:
    /// the square root of the ratio by which the first factor's effect changes as the second one goes from low to high. All
    /// intervals of a response hold together with a probability of 95 %.
    pub effect_ratio: Estimate,
    /// p value of the hypothesis that the effect is at most δ in either direction, corrected by Holm for all effects of the
    /// response; absent without repeated blocks.
    pub p_adjusted: Option<f64>,
    /// Supported: beyond δ, with a corrected p value of at most 5 %. Refuted: the interval lies within ±δ.
    pub finding: Finding,
}

/// The effects on one response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorialResponse {
    /// As in `transactions_per_s`.
    pub name: String,
    /// As in `1/s`.
    pub unit: String,
    /// Geometric mean over all rows.
    pub mean: f64,
    /// Main effects in the order of the factors, then interactions.
    pub effects: Vec<FactorialEffect>,
    /// Standard deviation of equal rows in different blocks, as a share; absent without repeated blocks.
    pub sd: Option<f64>,
    /// Degrees of freedom of that standard deviation.
    pub df: usize,
    /// p value of the hypothesis that the effects explain the means of all runs; a small one says that interactions matter that
    /// the table of effects does not hold. Absent where the effects use up all runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lack_of_fit: Option<f64>,
}

/// `factorial.json`: an experiment with several factors: before the first row its design, at the end its effects as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Factorial {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the experiment, as in `compare-oltp_read_write`.
    pub experiment: String,
    /// The question, in one sentence.
    pub question: String,
    /// The answer in one sentence; empty before the end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// The factors.
    pub factors: Vec<Factor>,
    /// Levers of all runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub both: Vec<LeverLevel>,
    /// How the runs are chosen.
    pub family: DesignFamily,
    /// Resolution: at 3 main effects are aliased with interactions of two factors, at 4 these with each other, from 5 on neither.
    /// Absent for a full factorial.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resolution: Option<usize>,
    /// Generators of a fraction, as in `D=ABC`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<String>,
    /// Defining relation of a fraction: the products of factors that are constant, as in `ABCD`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defining_relation: Vec<String>,
    /// The runs of a block in standard order: `+` and `-` for the level of each factor.
    pub runs: Vec<String>,
    /// The alias table.
    pub aliases: Vec<AliasRow>,
    /// `in_place`: one server, levers swapped between rows. `rows`: a server start for each row.
    pub mode: Mode,
    /// The load: its plan for one row. It names no server.
    pub load: Plan,
    /// The load as it was asked for, before its defaults were filled in.
    pub request: LoadDefinition,
    /// δ: the smallest relevant effect, as a share (0.02: 2 %).
    pub delta: f64,
    /// Seed of the order of rows.
    pub seed: u64,
    /// Length of the measured part of a row in seconds.
    pub slice_s: f64,
    /// Length of the part that is cut from the beginning of each row, in seconds.
    pub settle_s: f64,
    /// Load on each server after its start, in seconds, before the first row.
    pub warmup_s: f64,
    /// Blocks of the table.
    pub blocks: usize,
    /// The smallest effect, as a share, that the whole table is expected to find with a probability of 80 %, where rows differ
    /// as much as usual.
    pub smallest_effect: f64,
    /// The run table, in order.
    pub rows: Vec<FactorialRow>,
    /// Rows that were measured.
    #[serde(default)]
    pub measured_rows: usize,
    /// Responses; the first one decides. Empty before the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<FactorialResponse>,
    /// Rows that failed, and why effects could not be estimated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Threats to the validity of the effects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threats: Vec<String>,
    /// Which server, host and load, in short lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_up: Vec<String>,
    /// Crashes of a server with the levels that relax durability or crash safety.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashes: Vec<CrashCost>,
    /// The settings that were changed for it and restored, in short lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The command that repeats it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Factorial {
    const NAME: &'static str = "mydyno.factorial";
    const MAJOR: u32 = 1;
}
