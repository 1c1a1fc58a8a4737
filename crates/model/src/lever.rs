//! Levers: what can be turned on a host and a private server, as `mydyno host levers --json` prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// What a lever changes, and when it can be turned.
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
    /// What this machine lacks for it, and how to get it; none: it can be had.
    pub lacks: Option<String>,
    /// The price in durability or semantics, if it has one.
    pub ledger: Option<String>,
}

/// A lever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeverInfo {
    /// The name that experiments use, as in `vm.swappiness` or `disk.file_system`.
    pub id: String,
    /// What it is.
    pub what: String,
    /// What it changes, and when.
    pub scope: LeverScope,
    /// What it takes, for people.
    pub takes: String,
    /// The values that it takes, where they are few and this machine may lack some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<LeverValue>,
    /// The value in force, for levers of the host that can be read.
    pub now: Option<String>,
    /// What this machine lacks to turn it, and how to get it; none: it can be turned here.
    pub lacks: Option<String>,
    /// The price in durability or semantics, if it has one.
    pub ledger: Option<String>,
}

/// `mydyno host levers --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeverList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Levers in the order of their rooms.
    pub levers: Vec<LeverInfo>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for LeverList {
    const NAME: &'static str = "mydyno.levers";
    const MAJOR: u32 = 1;
}
