//! A claim: what ought to hold of a host or a server, why, how to tell, and what to do where it does not.
//!
//! One TOML file each, `AREA/ID.toml`. A field that is not known is refused: in a file that people write by hand it is
//! a slip of the pen. Which facts a claim needs is read off its expressions.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How bad it is where a claim is violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs little, or seldom.
    Low,
    /// Costs performance or operations noticeably.
    Medium,
    /// Costs much, or will hurt on a bad day.
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

/// How sure a violated check makes the finding.
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

/// What the remedy costs to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// While the server runs.
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

/// What a setting can cost beside performance.
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

/// In which direction the remedy moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The remedy makes it better.
    Strengthens,
    /// The claim is about it, the remedy leaves it as it is.
    Keeps,
    /// The remedy changes results or behaviour: for semantics only.
    Changes,
}

/// The claim's line in the durability and semantics ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// What is at stake.
    pub touches: Touches,
    /// What the remedy does to it. No remedy weakens durability or crash safety.
    pub effect: Effect,
    /// What exactly is lost, won or changed.
    pub note: String,
}

/// A step of a remedy: exactly one of the forms from `sql` to `text`. `{EXPRESSION}` in it is replaced by a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Only where this expression holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Once for each: `NAME in COLLECTION`, or `NAME in COLLECTION where CONDITION`.
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
    /// A rule for udev.
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
    /// A command of the shell, as root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// What no command can do, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The way back, in the same form as the step. Files that `--fix` writes are undone by removing them, so steps of
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
    /// A rule for udev.
    Udev,
    /// A line of a drop-in of the server's unit.
    Systemd,
    /// A line for systemd-tmpfiles.
    Tmpfiles,
    /// A parameter of the kernel's command line.
    Kernel,
    /// A command of the shell.
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

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// What it costs to apply.
    pub cost: Cost,
    /// What takes effect at once, each with its way back.
    #[serde(default)]
    pub now: Vec<Step>,
    /// What lasts over a restart.
    #[serde(default)]
    pub persistent: Vec<Step>,
    /// What can go wrong.
    pub risk: String,
}

/// A different severity in some cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeverityCase {
    /// Where this expression holds; the first that holds decides.
    pub when: String,
    /// It is this.
    pub severity: Severity,
}

/// How the advice can be proved here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The experiment of the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// The lever that it turns, as in `variable.sync_binlog`; `mydyno host levers` lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<String>,
    /// The factor's levels: values of the lever. For sizes, `75%` is a share of the machine's memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Value>,
    /// Why no experiment can prove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_testable: Option<String>,
}

/// A known answer: facts, and what must come out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// What it shows, where that is not obvious.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `violated`, `holds`, `not_applicable` or `unknown`.
    pub state: String,
    /// The severity, where the claim has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The live system that the facts were recorded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// Facts beside, and before, those that all fixtures share.
    #[serde(default)]
    pub facts: IndexMap<String, Value>,
}

/// One claim as its file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The name of the file without `.toml`: lower case, digits and hyphens.
    pub id: String,
    /// What ought to hold, in one line.
    pub title: String,
    /// What it is about: the mechanism, in a few sentences.
    pub what: String,
    /// What goes wrong where it does not hold.
    pub why: String,
    /// Where this is known from: manuals, source, measurements, each with its address if it has one.
    pub sources: Vec<String>,
    /// The release of mydyno that first had it.
    pub since: String,
    /// Where the claim makes sense at all; everywhere without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applies_when: Option<String>,
    /// Names for expressions, used as `$name`; a later one may use earlier ones.
    #[serde(default, rename = "let", skip_serializing_if = "IndexMap::is_empty")]
    pub bindings: IndexMap<String, String>,
    /// What has to be true for the claim to hold.
    pub check: String,
    /// What to say of a violation here; `{EXPRESSION}` in it is replaced by a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// How bad a violation is.
    pub severity: Severity,
    /// Cases in which it is more or less so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub severity_cases: Vec<SeverityCase>,
    /// How sure the check makes it.
    #[serde(default)]
    pub confidence: Confidence,
    /// What to do.
    pub remedy: Remedy,
    /// What is at stake beside performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// When the check misleads, and what people commonly get wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traps: Vec<String>,
    /// How it can be proved.
    pub proof: Proof,
    /// Facts that all fixtures share.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub facts: IndexMap<String, Value>,
    /// Known answers.
    #[serde(default, rename = "fixture", skip_serializing_if = "Vec::is_empty")]
    pub fixtures: Vec<Fixture>,
}
