//! The user's defaults, as `mydyno config --json` lists them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// A default that is in force, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfiguredValue {
    /// `state`, or a table of the file and an option of its verbs, as in `target.host`.
    pub name: String,
    /// The value as it would be typed; a variable of the environment that may hold a secret is not shown.
    pub value: String,
    /// `FILE:LINE`, `environment`, the name of a variable, or `default`.
    pub source: String,
}

/// `mydyno config --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The file of defaults: the one that is named, else the one that would be read.
    pub file: Option<String>,
    /// Whether the file is there.
    pub exists: bool,
    /// The defaults.
    pub values: Vec<ConfiguredValue>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Configuration {
    const NAME: &'static str = "mydyno.config";
    const MAJOR: u32 = 1;
}
