//! Findings: what the claims say of one host and server, with the evidence.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claim::{Confidence, Cost, Ledger, Proof, Severity, StepKind};
use crate::document::{Document, Header};

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It does not hold here.
    Violated,
    /// Facts are missing that would decide it.
    Unknown,
    /// It holds.
    Holds,
    /// It makes no sense here: another version, another kind of server.
    NotApplicable,
}

impl State {
    /// Its name, as in `not_applicable`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Violated => "violated",
            Self::Unknown => "unknown",
            Self::Holds => "holds",
            Self::NotApplicable => "not_applicable",
        }
    }
}

/// A fact that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Its id in the facts.
    pub fact: String,
    /// Its value.
    pub value: Value,
    /// The value's unit; empty for text and switches.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub unit: String,
    /// Where it was read.
    pub source: String,
}

/// A fact that would have been needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MissingFact {
    /// Its id, or the calculation that has no result.
    pub fact: String,
    /// `denied`, `absent`, `error`; `not_read` when nobody looked; `undefined` for a calculation without a result; `fault`
    /// when the check makes no sense of the values.
    pub status: String,
    /// Why it could not be had, and what would permit it.
    pub why: String,
}

/// A step of a remedy with its values put in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemedyStep {
    /// What kind of step.
    pub kind: StepKind,
    /// The statement, line, command or words.
    pub text: String,
}

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRemedy {
    /// What it costs to apply.
    pub cost: Cost,
    /// What takes effect at once.
    pub now: Vec<RemedyStep>,
    /// What lasts over a restart.
    pub persistent: Vec<RemedyStep>,
    /// What can go wrong.
    pub risk: String,
}

/// Why a violated claim is not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// The reason that was given.
    pub reason: String,
    /// The last day on which it counts, as in `2027-03-31`.
    pub until: String,
}

/// What came of one claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The claim's id.
    pub claim: String,
    /// The claim's area.
    pub area: String,
    /// What ought to hold, in one line.
    pub title: String,
    /// What came of it.
    pub state: State,
    /// How bad it is here.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// Severity × confidence ÷ cost of the remedy; findings are ordered by it.
    pub rank: f64,
    /// What was found here, in a sentence.
    pub summary: String,
    /// What goes wrong.
    pub why: String,
    /// The facts that it rests on.
    pub evidence: Vec<Evidence>,
    /// The comparisons that decided it, with values and results.
    pub arithmetic: Vec<String>,
    /// What was missing, when the state is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<MissingFact>,
    /// What to do, when it is violated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub remedy: Option<FindingRemedy>,
    /// The way back from the steps that take effect at once.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub undo: Vec<RemedyStep>,
    /// What is at stake beside performance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ledger: Option<Ledger>,
    /// When the check misleads.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub traps: Vec<String>,
    /// Where the claim is known from.
    pub sources: Vec<String>,
    /// How the advice can be proved.
    pub proof: Proof,
    /// Accepted by the user's list.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accepted: Option<Accepted>,
}

/// What could be seen at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scope {
    /// `mysql` or `mariadb`, and its version; empty when no server was asked.
    pub server: String,
    /// `bare`, `vm`, `container` or `not_visible`.
    pub host: String,
    /// Whether the server's process was seen: without it, nothing is known of its limits, memory and storage.
    pub server_process: bool,
    /// What the reader must know about this, one sentence each.
    pub notes: Vec<String>,
}

/// All findings of one look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// What could be seen.
    pub scope: Scope,
    /// Digest of the facts.
    pub facts_digest: String,
    /// When the facts were collected.
    pub facts_created: String,
    /// How many claims came to which state.
    pub counts: IndexMap<String, usize>,
    /// Violated first, highest rank first; then unknown, holding, not applicable.
    pub findings: Vec<Finding>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Findings {
    const NAME: &'static str = "mydyno.findings";
    const MAJOR: u32 = 1;
}
