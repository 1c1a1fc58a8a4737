//! Claims: statements about a host or a server, with the reason, the check, and the remedy for a violation.
//!
//! Each claim is one TOML file, `AREA/ID.toml`. Unknown fields are refused: in a file that people write by hand they are typing
//! errors. The facts that a claim needs are derived from its expressions.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Severity of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs little, or seldom.
    Low,
    /// Costs performance or operations noticeably.
    Medium,
    /// Costs much, or will cause trouble under adverse conditions.
    High,
    /// Data are at risk, or the server is about to fail.
    Critical,
}

impl Severity {
    /// Its name, as in `high`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// Certainty of a finding from a violated check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The facts decide it.
    Certain,
    /// True on nearly every system of this kind.
    #[default]
    Likely,
    /// A hint: only a measurement on this system can tell.
    Hint,
}

/// Cost of applying the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Applied while the server runs.
    Dynamic,
    /// The server has to be restarted.
    Restart,
    /// The host has to be restarted.
    Reboot,
    /// Data are rewritten or moved: ALTER TABLE, another file system.
    Data,
    /// Programs that use the server, or the way it is run, have to change.
    Application,
    /// Other hardware, another kind of machine or service.
    Hardware,
}

/// Guarantees, beside performance, that a setting can affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Touches {
    /// Whether an acknowledged transaction survives a crash or a loss of power.
    Durability,
    /// Whether the server's files are whole after a crash or a loss of power.
    CrashSafety,
    /// Whether statements give the same results, or clients see the same behaviour.
    Semantics,
}

/// Effect of the remedy on the guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The remedy strengthens the guarantee.
    Strengthens,
    /// The claim concerns the guarantee, and the remedy leaves it unchanged.
    Keeps,
    /// The remedy changes results or behaviour: for semantics only.
    Changes,
}

/// The claim's entry in the durability and semantics ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The affected guarantee.
    pub touches: Touches,
    /// Effect of the remedy on the guarantee. No remedy weakens durability or crash safety.
    pub effect: Effect,
    /// The exact loss, gain or change.
    pub note: String,
}

/// A step of a remedy: exactly one of the forms from `sql` to `text`. Each `{EXPRESSION}` in it is replaced by a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Condition of the step: it applies only where this expression holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Repetition, once for each item: `NAME in COLLECTION`, or `NAME in COLLECTION where CONDITION`.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// A statement for the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// A line of the server's option file, section `[mysqld]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cnf: Option<String>,
    /// `NAME = VALUE` for sysctl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sysctl: Option<String>,
    /// A udev rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udev: Option<String>,
    /// A line of section `[Service]` in a drop-in of the server's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub systemd: Option<String>,
    /// A line for systemd-tmpfiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tmpfiles: Option<String>,
    /// A parameter of the kernel's command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// A shell command, run as root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// An action that no command can perform, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The reversal, in the same form as the step. Removing the files that `--fix` writes reverts them, so steps of
    /// `persistent` need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

/// The forms of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A statement for the server.
    Sql,
    /// A line of the server's option file.
    Cnf,
    /// A kernel setting.
    Sysctl,
    /// A udev rule.
    Udev,
    /// A line of a drop-in of the server's unit.
    Systemd,
    /// A line for systemd-tmpfiles.
    Tmpfiles,
    /// A parameter of the kernel's command line.
    Kernel,
    /// A shell command.
    Shell,
    /// Words.
    Text,
}

impl Step {
    /// All forms that the step has, with their texts; a valid step has one.
    pub fn forms(&self) -> Vec<(StepKind, &str)> {
        [
            (StepKind::Sql, &self.sql),
            (StepKind::Cnf, &self.cnf),
            (StepKind::Sysctl, &self.sysctl),
            (StepKind::Udev, &self.udev),
            (StepKind::Systemd, &self.systemd),
            (StepKind::Tmpfiles, &self.tmpfiles),
            (StepKind::Kernel, &self.kernel),
            (StepKind::Shell, &self.shell),
            (StepKind::Text, &self.text),
        ]
        .into_iter()
        .filter_map(|(kind, text)| Some((kind, text.as_deref()?)))
        .collect()
    }
}

/// The remedy for a violated claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// Cost of applying the remedy.
    pub cost: Cost,
    /// Steps that take effect at once, each with its reversal.
    #[serde(default)]
    pub now: Vec<Step>,
    /// Steps that persist across a restart.
    #[serde(default)]
    pub persistent: Vec<Step>,
    /// Risks of the remedy.
    pub risk: String,
}

/// A condition under which the severity differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeverityCase {
    /// Condition; the first case whose condition holds decides.
    pub when: String,
    /// Severity in this case.
    pub severity: Severity,
}

/// How an experiment can test the advice on this system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Experiment of the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// The lever that the experiment varies, as in `variable.sync_binlog`; `mydyno host levers` lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<String>,
    /// The factor's levels: values of the lever. For sizes, `75%` is a share of the machine's memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Value>,
    /// Reason why no experiment can test the advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_testable: Option<String>,
}

/// A known answer: facts and the expected outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// Purpose of the fixture, where it is not obvious.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `violated`, `holds`, `not_applicable` or `unknown`.
    pub state: String,
    /// Expected severity, where the claim has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The live system that the facts were recorded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// Facts of this fixture; they take precedence over the facts that all fixtures share.
    #[serde(default)]
    pub facts: IndexMap<String, Value>,
}

/// One claim as its file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The name of the file without `.toml`: lower case, digits and hyphens.
    pub id: String,
    /// The condition that should hold, in one line.
    pub title: String,
    /// The mechanism behind the claim, in a few sentences.
    pub what: String,
    /// Consequences of a violation.
    pub why: String,
    /// References: manuals, source, measurements, each with its address if it has one.
    pub sources: Vec<String>,
    /// The release of mydyno that introduced the claim.
    pub since: String,
    /// Condition under which the claim is applicable; without it, everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applies_when: Option<String>,
    /// Names for expressions, used as `$name`; a later binding may use earlier ones.
    #[serde(default, rename = "let", skip_serializing_if = "IndexMap::is_empty")]
    pub bindings: IndexMap<String, String>,
    /// Expression that is true where the claim holds.
    pub check: String,
    /// Message for a violation; each `{EXPRESSION}` in it is replaced by a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// Severity of a violation.
    pub severity: Severity,
    /// Conditions under which the severity differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub severity_cases: Vec<SeverityCase>,
    /// Whether a violation is an outage or loss in progress, which precedes the other findings of its severity, from
    /// `high` on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outage: bool,
    /// Other claims whose violation tells the same cause: where one of them is violated and no less severe, this one is listed
    /// below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_cause_as: Vec<String>,
    /// Certainty of a violation that the check reports.
    #[serde(default)]
    pub confidence: Confidence,
    /// The remedy.
    pub remedy: Remedy,
    /// The guarantee that the setting affects beside performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// Cases in which the check misleads, and common mistakes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traps: Vec<String>,
    /// How an experiment can test the advice.
    pub proof: Proof,
    /// Facts that all fixtures share.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub facts: IndexMap<String, Value>,
    /// Known answers.
    #[serde(default, rename = "fixture", skip_serializing_if = "Vec::is_empty")]
    pub fixtures: Vec<Fixture>,
}
