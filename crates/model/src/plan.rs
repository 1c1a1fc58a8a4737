//! The plan: everything that a run needs, defaults resolved.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// A resolved plan. Two runs of one plan ask a server for the same operations in the same order per connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// What is asked of the server.
    pub workload: WorkloadPlan,
    /// Which server is asked.
    pub target: TargetPlan,
    /// How it is asked, one step after the other.
    pub steps: Vec<StepPlan>,
    /// What is done before measuring.
    pub warmup: Warmup,
    /// Length of the measured window of each step, in seconds.
    pub time_s: f64,
    /// Seed of data, operations and order.
    pub seed: u64,
    /// The database (schema) that holds the workload's tables. mydyno made and marked it.
    pub database: String,
    /// Percentiles that the summary gives, in percent.
    pub percentiles: Vec<f64>,
    /// Whether host and server are sampled during the run.
    pub observe: bool,
    /// What the user permitted by name.
    pub allow: Allow,
    /// Bounds that turn the exit status into 1, as in `p99>10ms`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fail_if: Vec<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for Plan {
    const NAME: &'static str = "mydyno.plan";
    const MAJOR: u32 = 1;
}

/// A workload and its options, all of them, defaults included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadPlan {
    /// Name in `mydyno workloads`.
    pub name: String,
    /// Options by their long names, as in `table-size`.
    pub options: IndexMap<String, Value>,
}

/// The server under load. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetPlan {
    /// Whether mydyno made this server.
    pub kind: TargetKind,
    /// `unix` or `tcp`.
    pub transport: Transport,
    /// Path of the socket, or `host:port`.
    pub address: String,
    /// Account.
    pub user: String,
}

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A private server of mydyno's.
    Sandbox,
    /// Somebody's server: read-only until told otherwise.
    Server,
}

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A unix socket.
    Unix,
    /// TCP.
    Tcp,
}

/// One step of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepPlan {
    /// Connections held open.
    pub connections: usize,
    /// Worker threads that drive them.
    pub workers: usize,
    /// How transactions arrive.
    pub arrivals: Arrivals,
}

/// How transactions arrive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrivals {
    /// Each connection asks again as soon as it is answered.
    Closed,
    /// A schedule asks, whether or not earlier transactions have been answered.
    Open {
        /// Transactions a second over all connections.
        rate_per_s: f64,
        /// Evenly spaced, or with exponential gaps.
        spacing: Spacing,
    },
}

impl Arrivals {
    /// Transactions a second that the schedule asks for; `None` for a closed loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Open { rate_per_s, .. } => Some(*rate_per_s),
        }
    }
}

/// Gaps between arrivals of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Even.
    Constant,
    /// Exponential: what many independent users make.
    Poisson,
}

/// What is done before measuring.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum Warmup {
    /// A fixed time, in seconds.
    Fixed {
        /// Its length.
        time_s: f64,
    },
}

/// What the user permitted by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Allow {
    /// Load on a server that is not a sandbox and is used by others.
    pub load: bool,
}
