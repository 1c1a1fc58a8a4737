//! Conclusions on a driver's work from its tables, as `mydyno tpcc-lint --json` prints it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// How a finding compares with TPC-C's specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LintState {
    /// As the specification requires, within the error of the sample.
    AsSpecified,
    /// Not as the specification requires.
    Differs,
    /// The tables do not show it.
    Unknown,
}

/// One property of the driver's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintRow {
    /// A name for scripts, as in `remote-lines`.
    pub id: String,
    /// The property, for people.
    pub about: String,
    /// The finding, for people.
    pub found: String,
    /// The rule with its clause.
    pub specification: String,
    /// How the two compare.
    pub state: LintState,
}

/// `mydyno tpcc-lint --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TpccLint {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The database of the tables.
    pub database: String,
    /// The server's version.
    pub server: String,
    /// The nine tables by their names in the specification, lower case.
    pub tables: BTreeMap<String, String>,
    /// Rows of the warehouse table.
    pub warehouses: u64,
    /// New orders since the load: those with a number above 3,000.
    pub orders_since_load: u64,
    /// The properties.
    pub rows: Vec<LintRow>,
    /// Values of `--as` whose work contradicts no finding; empty when no work was done since the load.
    pub like: Vec<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for TpccLint {
    const NAME: &'static str = "mydyno.tpcc-lint";
    const MAJOR: u32 = 1;
}
