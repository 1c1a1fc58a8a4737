//! Controlled experiments: the run table that is written first, what each slice of load measured, and the verdict.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::estimate::Estimate;
use crate::plan::Plan;

pub mod classes;
pub mod definition;
pub mod factorial;
pub mod pooled;
pub mod price;
pub mod proved;

use definition::{Job, LoadDefinition, Mode, Published};
use pooled::{Earlier, Pooled};
use price::Price;

/// The part that an arm plays in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The arm that is compared with.
    Baseline,
    /// The arm in question.
    Treatment,
    /// A second copy of the baseline, with a start and data of its own: it differs from the baseline by noise alone.
    Again,
    /// Another value of the lever of a curve, as are the following.
    Level1,
    /// Another value.
    Level2,
    /// Another value.
    Level3,
    /// Another value.
    Level4,
    /// Another value.
    Level5,
    /// Another value.
    Level6,
    /// Another value.
    Level7,
    /// Another value.
    Level8,
}

impl Role {
    /// The roles of every experiment, in the order of documents.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Treatment, Self::Again];
    /// The roles of further values of a curve's lever.
    pub const LEVELS: [Self; 8] = [
        Self::Level1,
        Self::Level2,
        Self::Level3,
        Self::Level4,
        Self::Level5,
        Self::Level6,
        Self::Level7,
        Self::Level8,
    ];

    /// Its name in documents, as in `baseline`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Treatment => "treatment",
            Self::Again => "again",
            Self::Level1 => "level1",
            Self::Level2 => "level2",
            Self::Level3 => "level3",
            Self::Level4 => "level4",
            Self::Level5 => "level5",
            Self::Level6 => "level6",
            Self::Level7 => "level7",
            Self::Level8 => "level8",
        }
    }

    /// Whether the arm is the baseline or its second copy.
    pub const fn is_baseline(self) -> bool {
        matches!(self, Self::Baseline | Self::Again)
    }
}

/// A lever and the value that an arm sets it to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeverLevel {
    /// As `mydyno host levers` names it, as in `option.innodb_flush_log_at_trx_commit`.
    pub lever: String,
    /// Its value, as typed.
    pub value: String,
}

/// One arm of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    /// Its part.
    pub role: Role,
    /// Its levers; empty: the server as it is.
    pub levers: Vec<LeverLevel>,
    /// The levers' costs beside performance, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<String>,
    /// Jobs beside the load that this arm alone has, as in `a job that copies a file of 256M`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<String>,
}

impl Arm {
    /// The arm for people: its levers and its own jobs, or `the server as it is`.
    pub fn label(&self) -> String {
        if self.levers.is_empty() && self.jobs.is_empty() {
            return "the server as it is".to_owned();
        }
        let levels = self.levers.iter().map(|l| format!("{}={}", l.lever, l.value));
        levels.chain(self.jobs.iter().cloned()).collect::<Vec<String>>().join(" ")
    }
}

/// Labels of arms: baseline and treatment by the levers and jobs that they do not share; an experiment may compare
/// equal arms.
pub fn labels(arms: &[Arm]) -> (String, String) {
    let arm = |role: Role| arms.iter().find(|arm| arm.role == role);
    let (Some(baseline), Some(treatment)) = (arm(Role::Baseline), arm(Role::Treatment)) else {
        return (String::new(), String::new());
    };
    if baseline.levers == treatment.levers && baseline.jobs == treatment.jobs {
        return ("the baseline".to_owned(), "an equal server".to_owned());
    }
    let beside = |arm: &Arm, other: &Arm| {
        let own = arm.levers.iter().filter(|level| !other.levers.contains(level)).cloned().collect();
        Arm { levers: own, ..arm.clone() }.label()
    };
    (beside(baseline, treatment), beside(treatment, baseline))
}

/// The direction of the change in question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// The treatment has more of it.
    Higher,
    /// The treatment has less of it.
    Lower,
    /// The arms differ, whichever way.
    Differs,
}

/// A slice of load: one arm, measured once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Position in the whole experiment, from 0.
    pub order: usize,
    /// Start of the servers that it belongs to, from 0: each start has servers and data of its own.
    pub start: usize,
    /// Block within the start, from 0: slices of one block are compared with each other.
    pub block: usize,
    /// Arm that is measured.
    pub arm: Role,
}

/// `design.json`: everything that is decided before the first measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Design {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the experiment, as in `compare-oltp_read_write`.
    pub experiment: String,
    /// The question, in one sentence.
    pub question: String,
    /// The arms.
    pub arms: Vec<Arm>,
    /// How the arms share the machine and the time.
    #[serde(default)]
    pub mode: Mode,
    /// The load: its plan for one slice. It names no server. Absent where a probe is the load.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load: Option<Plan>,
    /// The load as it was asked for, before its defaults were filled in.
    #[serde(default)]
    pub request: LoadDefinition,
    /// Jobs beside the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
    /// The response that decides; the throughput where it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub response: String,
    /// The kind of statement that the deciding response must support.
    pub asks: Asks,
    /// δ: the smallest relevant effect, as a share (0.02: 2 %).
    pub delta: f64,
    /// Seed of the order of slices.
    pub seed: u64,
    /// Length of the measured part of a slice in seconds.
    pub slice_s: f64,
    /// Length of the part that is cut from the beginning of each slice, in seconds.
    pub settle_s: f64,
    /// Load on each server after its start, in seconds, before the first slice.
    pub warmup_s: f64,
    /// How often the servers are started, at most.
    pub starts: usize,
    /// Blocks in each start.
    pub blocks_per_start: usize,
    /// The run table, in order.
    pub rows: Vec<Row>,
    /// The levels of a curve; absent for two arms.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub curve: Option<CurveDesign>,
    /// The claim that it proves; absent for a comparison of the user's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub claim: Option<String>,
    /// Published figures for the same question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Why this set-up is only a stand-in for the published one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stand_in: Option<String>,
    /// Earlier executions of the same experiment, whose effects are pooled with this one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Earlier>,
    /// Address of the user's own server, where the experiment runs there; absent: private servers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_server: Option<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Design {
    const NAME: &'static str = "mydyno.design";
    const MAJOR: u32 = 1;
}

/// One line of `slices.jsonl`: what a row of the table measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// The row.
    #[serde(flatten)]
    pub row: Row,
    /// When it began, in seconds since the experiment began.
    pub at_s: f64,
    /// Length of the measurement in seconds.
    pub measured_s: f64,
    /// Transactions that were answered.
    pub transactions: u64,
    /// Statements that were answered.
    pub queries: u64,
    /// Answers that reported an error.
    pub errors: u64,
    /// Transactions that were asked again after an error.
    pub retries: u64,
    /// 95th percentile of the response time of a transaction in microseconds; absent without transactions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p95_us: Option<f64>,
    /// Mean response time of a transaction in microseconds; absent without transactions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_us: Option<f64>,
    /// CPU time of the load generator in microseconds.
    pub client_cpu_us: u64,
    /// Worker threads of the load generator.
    pub workers: usize,
    /// Figures beside those of transactions, by name with the unit last, as in `p50_us`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub figures: BTreeMap<String, f64>,
    /// Why it could not be measured; its figures then count for nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Units of a verdict on kept runs of two sides: [`Verdict::units`].
pub const PAIRS_OF_RUNS: &str = "pairs of runs";

/// The outcome of an experiment for its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The whole interval lies beyond δ in the direction asked for.
    Supported,
    /// The whole interval falls short of δ.
    Refuted,
    /// The interval holds δ, or there is none.
    Undecided,
    /// This host cannot show it.
    NotTestableHere,
}

impl Finding {
    /// Its name in documents, as in `supported`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Refuted => "refuted",
            Self::Undecided => "undecided",
            Self::NotTestableHere => "not_testable_here",
        }
    }
}

/// A response of an experiment in both arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// As in `transactions_per_s`.
    pub name: String,
    /// As in `1/s`.
    pub unit: String,
    /// Geometric mean over the slices of the baseline.
    pub baseline: f64,
    /// The same of the treatment.
    pub treatment: f64,
    /// Treatment over baseline.
    pub effect_ratio: Estimate,
}

/// The ratios of one block to its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockRatio {
    /// Start of the servers that it belongs to, from 0.
    pub start: usize,
    /// Block within the start, from 0.
    pub block: usize,
    /// Treatment over baseline; absent where one of them failed.
    pub treatment: Option<f64>,
    /// Second copy of the baseline over the baseline; absent where one of them failed.
    pub again: Option<f64>,
}

/// Something that makes a verdict worth less, with its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Threat {
    /// Short name, as in `client-bound`.
    pub id: String,
    /// The observation, with its size.
    pub text: String,
    /// Whether it forbids the verdict that the figures would give.
    pub decides: bool,
    /// The next step for the user.
    pub next_step: String,
}

/// One value of the lever, and the arm that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CurveLevel {
    /// The value.
    pub value: String,
    /// The arm.
    pub arm: Role,
}

/// The levels of a design.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CurveDesign {
    /// The lever.
    pub lever: String,
    /// Its values in the order of the curve.
    pub levels: Vec<CurveLevel>,
}

/// The measurements at one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// The value.
    pub value: String,
    /// The arm.
    pub arm: Role,
    /// Geometric mean of the response over the slices; absent where none was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Ratio to the baseline of the same blocks; absent for the baseline itself, and where nothing was measured. The intervals of
    /// all values hold together with a probability of 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_ratio: Option<Estimate>,
}

/// The curve of a verdict, for the response that decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// The lever.
    pub lever: String,
    /// The response, as in `transactions_per_s`.
    pub response: String,
    /// Its unit, as in `1/s`.
    pub unit: String,
    /// The values in the order of the curve.
    pub points: Vec<CurvePoint>,
}

/// `verdict.json`: what an experiment says, and how well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the experiment.
    pub experiment: String,
    /// The claim that it proves; absent for a comparison of the user's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub claim: Option<String>,
    /// The question.
    pub question: String,
    /// The answer in one sentence.
    pub answer: String,
    /// The answer in one word.
    pub verdict: Finding,
    /// The kind of statement that was tested on the first response.
    pub asks: Asks,
    /// δ, as a share.
    pub delta: f64,
    /// The arms.
    pub arms: Vec<Arm>,
    /// Responses; the first one decides.
    pub responses: Vec<Response>,
    /// Noise floor from the baseline and its own second copy: the effect, as a share, that chance alone stays below with a
    /// probability of 95 % in as many units as there were. Absent for fewer than two units.
    pub noise_floor: Option<f64>,
    /// The second copy of the baseline over the baseline, with its interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub again: Option<Estimate>,
    /// The smallest effect beyond δ, as a share, that as many units find with a probability of 80 %.
    pub minimum_detectable_effect: Option<f64>,
    /// Blocks that were measured in both arms.
    pub blocks: usize,
    /// Starts of the servers that have such blocks.
    pub starts: usize,
    /// Units that the interval rests on: `starts` or `blocks`.
    pub units: String,
    /// Total number of units needed, where the verdict is undecided and this can be estimated.
    pub units_needed: Option<usize>,
    /// Costs of the treatment beside performance, where they exceed the baseline's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub price: Option<Price>,
    /// Threats to the verdict's validity.
    pub threats: Vec<Threat>,
    /// Slices that failed, as texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The scope of the verdict: which start, boot and host it covers.
    pub scope: String,
    /// Which server, host and load, in short lines.
    pub set_up: Vec<String>,
    /// Published figures for the same question.
    pub literature: Vec<String>,
    /// Share of the time up to the end of the last slice that neither warmed up a server nor measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub overhead: Option<f64>,
    /// The response that decides at all values of a lever; absent for two arms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// The probe that was the load; absent where servers were loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Whether both arms were loaded at the same time: the effect is one under mutual load, and not comparable with that of arms
    /// which were loaded in turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub under_mutual_load: bool,
    /// The first response block by block, in the order measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block_ratios: Vec<BlockRatio>,
    /// The settings that were changed for it and restored, in short lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The command that repeats it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<String>,
    /// This execution together with earlier ones of the same experiment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pooled: Option<Pooled>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Verdict {
    const NAME: &'static str = "mydyno.verdict";
    const MAJOR: u32 = 1;
}
