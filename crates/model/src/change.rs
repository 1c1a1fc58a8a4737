//! Changes that mydyno has made to a host and not yet reverted, as `mydyno host status --json` prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// The owner of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum LeaseState {
    /// A running mydyno command holds the lease and will revert the change itself.
    Held {
        /// Its process id.
        pid: u32,
        /// Name of the command, as in `bench`.
        command: String,
    },
    /// The command died; `mydyno host restore` reverts the change.
    Abandoned {
        /// The process id that it had.
        pid: u32,
        /// Name of the command that died.
        command: String,
    },
    /// The change is kept on purpose until the named command removes it.
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
    /// The object that was changed, as in `folder /var/lib/mydyno/servers/demo`.
    pub what: String,
    /// The value before.
    pub was: Value,
    /// The value that mydyno set.
    pub now: Value,
    /// Time of the change: RFC 3339.
    pub since: String,
    /// The owner of the change.
    pub lease: LeaseState,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Output of `mydyno host status --json`. `changes` is empty when no change is in force.
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

/// The outcome of `mydyno host restore` for one change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreOutcome {
    /// The change.
    pub change: ChangeInfo,
    /// `restored`, `left_alone` or `failed`.
    pub outcome: RestoreState,
    /// The reason for `left_alone` or `failed`; the action that was taken otherwise.
    pub why: String,
}

/// Outcome of reverting a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreState {
    /// The previous value is in force again.
    Restored,
    /// The change is not mydyno's to revert (value, device, process or boot changed), or a live command holds its lease.
    LeftAlone,
    /// The change is mydyno's and reverting it failed; the journal keeps it.
    Failed,
}

/// Output of `mydyno host restore --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Outcomes in processing order: newest change first.
    pub outcomes: Vec<RestoreOutcome>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for RestoreReport {
    const NAME: &'static str = "mydyno.host-restore";
    const MAJOR: u32 = 1;
}
