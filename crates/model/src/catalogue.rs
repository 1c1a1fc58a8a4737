//! The lists that `--json` prints: claims, workloads, experiments, verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claim::Claim;
use crate::document::{Document, Header};
use crate::experiment::definition::Definition;
use crate::experiment::proved::Proved;

/// A claim with values derived from its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedClaim {
    /// Folder of its file, as in `memory`.
    pub area: String,
    /// Facts that its expressions read.
    pub needs: Vec<String>,
    /// The claim; its fixtures and their facts are left out.
    #[serde(flatten)]
    pub claim: Claim,
}

/// `mydyno claims --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Claims by area and name.
    pub claims: Vec<ListedClaim>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for ClaimList {
    const NAME: &'static str = "mydyno.claims";
    const MAJOR: u32 = 1;
}

/// An option of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadOption {
    /// Name without dashes, as in `table-size`.
    pub name: String,
    /// Form of its values, as in `N`, `on|off` or `uniform|pareto`.
    pub form: String,
    /// Value where it is not given; null where there is none.
    pub default: Value,
    /// Its meaning in one sentence.
    pub help: String,
}

/// A workload of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedWorkload {
    /// Name, as in `oltp_read_write`.
    pub name: String,
    /// Its purpose in one sentence.
    pub summary: String,
    /// The statements of one transaction.
    pub transaction: String,
    /// Its options.
    pub options: Vec<WorkloadOption>,
}

/// `mydyno workloads --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Workloads in the order of the catalogue.
    pub workloads: Vec<ListedWorkload>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for WorkloadList {
    const NAME: &'static str = "mydyno.workloads";
    const MAJOR: u32 = 1;
}

/// `mydyno experiments --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Definitions by name.
    pub experiments: Vec<Definition>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for ExperimentList {
    const NAME: &'static str = "mydyno.experiments";
    const MAJOR: u32 = 1;
}

/// `mydyno verdicts --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Verdicts, the latest last.
    pub verdicts: Vec<Proved>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for VerdictList {
    const NAME: &'static str = "mydyno.verdicts";
    const MAJOR: u32 = 1;
}
