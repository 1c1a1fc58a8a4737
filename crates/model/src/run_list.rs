//! The runs that are kept in a state folder, as `mydyno runs --json` prints them, and the label of one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// The kind of a kept folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// A record of `mydyno bench`.
    Run,
    /// An experiment of `mydyno prove` or `mydyno compare`.
    Experiment,
}

/// The user's label of a run: the file `label.json` in its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLabel {
    /// The user's name for the run; it stands for the folder in every command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tags, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// A kept run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptRun {
    /// 1 is the latest one. Later runs change the numbers.
    pub number: usize,
    /// Name of the folder, as in `20261121-204403-oltp_read_write`.
    pub folder: String,
    /// Path of the folder.
    pub path: String,
    /// A record or an experiment.
    pub kind: RunKind,
    /// Time of its beginning: RFC 3339, UTC.
    pub created: String,
    /// Workload, or the name of the experiment.
    pub subject: String,
    /// Address of the server; empty for experiments.
    pub server: String,
    /// The user's name and tags.
    #[serde(flatten)]
    pub label: RunLabel,
}

/// `mydyno runs --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The runs, the latest first.
    pub runs: Vec<KeptRun>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for RunList {
    const NAME: &'static str = "mydyno.runs";
    const MAJOR: u32 = 1;
}
