//! Changes that mydyno has made to a host and not yet put back, as `mydyno host status --json` prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// Who answers for a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum LeaseState {
    /// A mydyno command that is at work; it will put the change back itself.
    Held {
        /// Its process id.
        pid: u32,
        /// What it is doing, as in `bench`.
        command: String,
    },
    /// The command died; `mydyno host restore` puts the change back.
    Abandoned {
        /// The process id that it had.
        pid: u32,
        /// What it was doing.
        command: String,
    },
    /// Kept on purpose until the named command takes it away.
    Kept {
        /// As in `mydyno server down NAME`.
        until: String,
    },
}

/// One change that is still in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeInfo {
    /// Number of the journal entry.
    pub id: u64,
    /// What was changed, as in `folder /var/lib/mydyno/servers/demo`.
    pub what: String,
    /// The value before.
    pub was: Value,
    /// The value that mydyno set.
    pub now: Value,
    /// When: RFC 3339.
    pub since: String,
    /// Who answers for it.
    pub lease: LeaseState,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `mydyno host status --json`. `changes` is empty when nothing is changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostStatus {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Changes in force, oldest first.
    pub changes: Vec<ChangeInfo>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for HostStatus {
    const NAME: &'static str = "mydyno.host-status";
    const MAJOR: u32 = 1;
}

/// What `mydyno host restore` did with one change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreOutcome {
    /// The change.
    pub change: ChangeInfo,
    /// `restored`, `left_alone` or `failed`.
    pub outcome: RestoreState,
    /// Why it was left alone or failed; what was done otherwise.
    pub why: String,
}

/// How putting back ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreState {
    /// As it was before.
    Restored,
    /// No longer ours to put back (value, device, process or boot changed), or somebody answers for it.
    LeftAlone,
    /// It is ours and could not be put back; the journal keeps it.
    Failed,
}

/// `mydyno host restore --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Outcomes in the order of work: newest change first.
    pub outcomes: Vec<RestoreOutcome>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for RestoreReport {
    const NAME: &'static str = "mydyno.host-restore";
    const MAJOR: u32 = 1;
}
