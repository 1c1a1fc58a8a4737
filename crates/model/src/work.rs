//! The answers of single steps that make, check or remove something: tables of a workload, disks, links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// The result of `mydyno bench WORKLOAD prepare`, `check` or `cleanup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TablesReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The schema that holds the tables.
    pub database: String,
    /// `prepare`: whether the tables were made; `false`: they were there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<bool>,
    /// `check`: always `true`; tables that are not consistent end with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistent: Option<bool>,
    /// `check`: whether runs have changed rows since `prepare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<bool>,
    /// `cleanup`: whether the schema was dropped; `false`: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<bool>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl TablesReport {
    /// A report on a schema without a result.
    pub fn on(header: Header, database: &str) -> Self {
        let database = database.to_owned();
        Self { header, database, made: None, consistent: None, used: None, dropped: None, extra: Map::new() }
    }
}

impl Document for TablesReport {
    const NAME: &'static str = "mydyno.tables";
    const MAJOR: u32 = 1;
}

/// The result of `mydyno host disk up`, `cut`, `on` or `state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The user's name for the disk.
    pub name: String,
    /// `emulated disk`.
    pub kind: String,
    /// `up` and `on`: the block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// `up` and `on`: the mount point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// `cut` and `state`: model, power, bytes that a cut would lose, and counters, as the disk's process reports them.
    #[serde(flatten)]
    pub state: Map<String, Value>,
}

impl Document for DiskReport {
    const NAME: &'static str = "mydyno.disk";
    const MAJOR: u32 = 1;
}

/// The result of `mydyno compat install`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinksReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Whether the links were removed.
    pub removed: bool,
    /// Paths of the links.
    pub links: Vec<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for LinksReport {
    const NAME: &'static str = "mydyno.links";
    const MAJOR: u32 = 1;
}
