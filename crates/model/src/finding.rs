//! Findings: the results of the claims for one host and server, with the evidence.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claim::{Confidence, Cost, Ledger, Proof, Severity, StepKind};
use crate::document::{Document, Header};
use crate::experiment::proved::ProvedHere;

/// Result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The claim does not hold here.
    Violated,
    /// Facts that would decide the claim are missing.
    Unknown,
    /// The claim holds.
    Holds,
    /// The claim is not applicable here: another version, another kind of server.
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

/// A fact that a finding is based on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The fact's id.
    pub fact: String,
    /// The fact's value.
    pub value: Value,
    /// The value's unit; empty for text and switches.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub unit: String,
    /// Source of the fact.
    pub source: String,
}

/// A fact that the check needed and did not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MissingFact {
    /// The fact's id, or the calculation without a result.
    pub fact: String,
    /// `denied`, `absent`, `error`; `not_read` when no collector read it; `undefined` for a calculation without a result;
    /// `fault` when the check cannot interpret the values.
    pub status: String,
    /// Reason why the fact is missing, and the permission that would make it available.
    pub why: String,
}

/// A step of a remedy with its values filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemedyStep {
    /// Form of the step.
    pub kind: StepKind,
    /// The statement, line, command or words.
    pub text: String,
}

/// The remedy for a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRemedy {
    /// Cost of applying the remedy.
    pub cost: Cost,
    /// Steps that take effect at once.
    pub now: Vec<RemedyStep>,
    /// Steps that persist across a restart.
    pub persistent: Vec<RemedyStep>,
    /// Risks of the remedy.
    pub risk: String,
}

/// The acceptance by which a violated claim is not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// The user's reason.
    pub reason: String,
    /// The last day of the acceptance, as in `2027-03-31`.
    pub until: String,
}

/// Result of one claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The claim's id.
    pub claim: String,
    /// The claim's area.
    pub area: String,
    /// The condition that should hold, in one line.
    pub title: String,
    /// Result of the claim.
    pub state: State,
    /// Severity on this system.
    pub severity: Severity,
    /// Certainty of the finding.
    pub confidence: Confidence,
    /// Severity, then whether it is an outage, then the area, the confidence and the cost of the remedy. Determines the order of
    /// findings, but for those that follow another one of the same cause.
    pub rank: f64,
    /// The claim, violated too, that tells the same cause; this finding follows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub same_cause_as: Option<String>,
    /// The observation on this system, in a sentence.
    pub summary: String,
    /// Consequences of a violation.
    pub why: String,
    /// Facts that the finding is based on.
    pub evidence: Vec<Evidence>,
    /// The comparisons that decided it, with values and results.
    pub arithmetic: Vec<String>,
    /// Missing facts, when the state is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<MissingFact>,
    /// The remedy, when the claim is violated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub remedy: Option<FindingRemedy>,
    /// Reversal of the steps that take effect at once.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub undo: Vec<RemedyStep>,
    /// The guarantee that the setting affects beside performance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ledger: Option<Ledger>,
    /// Cases in which the check misleads.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub traps: Vec<String>,
    /// References of the claim.
    pub sources: Vec<String>,
    /// How an experiment can test the advice.
    pub proof: Proof,
    /// Verdicts of experiments on this host, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub proved: Vec<ProvedHere>,
    /// Acceptance by the user's list.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accepted: Option<Accepted>,
}

/// The visible part of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scope {
    /// `mysql` or `mariadb`, and its version; empty when no server was queried.
    pub server: String,
    /// `bare`, `vm`, `container` or `not_visible`.
    pub host: String,
    /// Whether the server's process was visible: without it, the server's limits, memory and storage are unknown.
    pub server_process: bool,
    /// Consequences for the reader, one sentence each.
    pub notes: Vec<String>,
    /// The server's name of its host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_name: Option<String>,
    /// TCP port that the server listens on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub port: Option<u64>,
    /// Path of the server's Unix socket.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub socket: Option<String>,
    /// Path of the data directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub data_directory: Option<String>,
    /// Time since the server's start, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uptime_s: Option<u64>,
}

/// All findings of one audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The visible part of the system.
    pub scope: Scope,
    /// Digest of the facts.
    pub facts_digest: String,
    /// Time of the collection of the facts.
    pub facts_created: String,
    /// Number of claims in each state.
    pub counts: IndexMap<String, usize>,
    /// Findings: violated first, by descending rank; then unknown, holding, not applicable.
    pub findings: Vec<Finding>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Findings {
    const NAME: &'static str = "mydyno.findings";
    const MAJOR: u32 = 1;
}
