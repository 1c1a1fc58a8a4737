//! A check-up: the advice of an audit, proved on this host in private servers that are shaped like the audited one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claim::Severity;
use crate::document::{Document, Header};
use crate::estimate::Estimate;
use crate::finding::{RemedyStep, Scope};

/// The conclusion on a piece of advice, from an experiment or the lack of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The change brings more than δ under this load.
    Gain,
    /// The change costs more than δ under this load.
    Loss,
    /// Any effect is smaller than δ.
    NoEffect,
    /// The interval holds δ: the budget did not decide it.
    Undecided,
    /// Nothing was measured; `why` says the reason.
    NotMeasured,
}

impl Outcome {
    /// Its name in documents, as in `no_effect`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::Loss => "loss",
            Self::NoEffect => "no_effect",
            Self::Undecided => "undecided",
            Self::NotMeasured => "not_measured",
        }
    }
}

/// A violated claim and the measurement of its remedy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// The claim's id.
    pub claim: String,
    /// The condition that should hold, in one line.
    pub title: String,
    /// Severity on the audited server.
    pub severity: Severity,
    /// The observation there, in a sentence.
    pub summary: String,
    /// The change that was measured, as `LEVER=VALUE`.
    pub changes: Vec<String>,
    /// The result.
    pub outcome: Outcome,
    /// Transactions per second with the change over those without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_ratio: Option<Estimate>,
    /// The answer of the experiment in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The reason why nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether the remedy makes data safer than they are: it is advised whatever it costs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_safety: bool,
    /// Steps of the remedy that take effect at once, for the audited server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<RemedyStep>,
    /// Steps that persist across a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persistent: Vec<RemedyStep>,
    /// Reversal of the steps that take effect at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<RemedyStep>,
    /// Folder of the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// All changes with a gain together, against the start: pieces of advice interact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Joint {
    /// The claims whose changes are in it.
    pub claims: Vec<String>,
    /// The result.
    pub outcome: Outcome,
    /// Transactions per second with all changes over those without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_ratio: Option<Estimate>,
    /// The answer of the experiment in one sentence.
    pub answer: String,
    /// Folder of the experiment.
    pub folder: String,
}

/// The fewest changes that should keep most of the gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Minimal {
    /// The claims whose changes are in it, the largest gain first.
    pub claims: Vec<String>,
    /// Share of the gain that they keep if their effects multiply, from the experiments on each; it was not measured together.
    pub share_of_gain: f64,
}

/// The private servers that stood for the audited one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Settings that they have in common with it, as `LEVER=VALUE`.
    pub set_up: Vec<String>,
    /// Settings that were left out.
    pub left_out: Vec<String>,
    /// Factor on the sizes of the buffer pool and of the data; 1: as they are.
    pub scale: f64,
    /// Differences that the reader should know, one sentence each.
    pub notes: Vec<String>,
}

/// The document of `mydyno checkup`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkup {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The answer in one sentence.
    pub answer: String,
    /// The audited system.
    pub scope: Scope,
    /// The host of the measurements: kernel and CPUs.
    pub host: Vec<String>,
    /// The load, as in `oltp_read_write, 16 connections, 2 tables of 50,000 rows`.
    pub load: String,
    /// The smallest effect that matters, as a share.
    pub delta: f64,
    /// Time for all experiments in seconds.
    pub budget_s: f64,
    /// Time that they took in seconds.
    pub took_s: f64,
    /// The private servers.
    pub shape: Shape,
    /// Number of violated claims of the audit.
    pub violated: usize,
    /// Advice that was measured, and advice whose change a private server could have taken; the largest gain first.
    pub advice: Vec<Advice>,
    /// All gains together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<Joint>,
    /// The fewest changes that should keep 90 % of the gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimal: Option<Minimal>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Checkup {
    const NAME: &'static str = "mydyno.checkup";
    const MAJOR: u32 = 1;
}
