//! Levers that can be changed on a host and a private server, as `mydyno host levers --json` prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// The target of a lever, and the time at which it can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeverScope {
    /// The whole host, at any time: needs `--allow-host-change`.
    Host,
    /// A private server, when it is started.
    ServerStart,
    /// A private server, while it runs.
    ServerRunning,
    /// A load on a private server, when it begins.
    Load,
}

/// One value that a lever takes, where it takes a few.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeverValue {
    /// As in `xfs`.
    pub value: String,
    /// The missing requirement on this machine and how to meet it; `None` when the value is available.
    pub lacks: Option<String>,
    /// The price in durability or semantics, if any.
    pub ledger: Option<String>,
}

/// A lever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeverInfo {
    /// The name that experiments use, as in `vm.swappiness` or `disk.file_system`.
    pub id: String,
    /// Description for people.
    pub what: String,
    /// The target, and the time at which the lever can be changed.
    pub scope: LeverScope,
    /// Accepted values, described for people.
    pub takes: String,
    /// Accepted values, listed when there are few and this machine may lack some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<LeverValue>,
    /// The current value, for levers of the host that can be read.
    pub now: Option<String>,
    /// The missing requirement on this machine and how to meet it; `None` when the lever can be used here.
    pub lacks: Option<String>,
    /// The price in durability or semantics, if any.
    pub ledger: Option<String>,
}

/// `mydyno host levers --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeverList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Levers, grouped by family; bundles come last.
    pub levers: Vec<LeverInfo>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for LeverList {
    const NAME: &'static str = "mydyno.levers";
    const MAJOR: u32 = 1;
}
