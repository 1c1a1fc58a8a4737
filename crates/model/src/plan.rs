//! The plan: everything that a run needs, defaults resolved.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::arrivals::{Arrivals, RateStep, Shape, Spacing, Spread, Think};
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
    /// How it is asked: connections × rates × repeats, in this order of nesting. A search for capacity adds steps
    /// while it runs, by `step` events.
    pub steps: Vec<StepPlan>,
    /// In which order the steps run, by their numbers: shuffled by the seed, so that a drift of server or host does not
    /// look like an effect of the load. Empty: as they are listed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub order: Vec<usize>,
    /// What is done before measuring.
    pub warmup: Warmup,
    /// Length of the measured window of each step, in seconds.
    pub time_s: f64,
    /// How connections are opened and kept, in every step.
    #[serde(default)]
    pub connections: ConnectionPlan,
    /// How answers are waited for, in every step.
    #[serde(default)]
    pub wait: WaitPlan,
    /// Errors that end the run; absent when none does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_on_error: Option<StopOnError>,
    /// What the search for the highest rate goes by; absent when none is searched for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capacity: Option<CapacityPlan>,
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

impl Plan {
    /// Numbers of the steps in the order in which they run.
    pub fn running_order(&self) -> Vec<usize> {
        if self.order.is_empty() { (0..self.steps.len()).collect() } else { self.order.clone() }
    }
}

/// One step of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepPlan {
    /// Connections that carry load; idle ones are not counted.
    pub connections: usize,
    /// Worker threads that drive them.
    pub workers: usize,
    /// How transactions arrive.
    pub arrivals: Arrivals,
    /// Which repeat of its point of the sweep this is, from 0.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub repeat: usize,
}

impl StepPlan {
    /// Whether another step asks the same: a repeat of this one.
    pub fn same_point(&self, other: &Self) -> bool {
        let Self { connections, workers, arrivals, repeat: _ } = self;
        (connections, workers, arrivals) == (&other.connections, &other.workers, &other.arrivals)
    }
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// How connections are opened and kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionPlan {
    /// Connections opened a second at most; absent: as fast as they come.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_per_s: Option<f64>,
    /// Connections that are open and silent beside those that carry load.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub idle: usize,
    /// Transactions after which a connection is closed and a new one opened; absent: it lives as long as the step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reconnect_every: Option<u64>,
    /// Whether a connection that was lost is opened again.
    #[serde(default = "yes")]
    pub reconnect: bool,
}

impl Default for ConnectionPlan {
    fn default() -> Self {
        Self { rate_per_s: None, idle: 0, reconnect_every: None, reconnect: true }
    }
}

fn yes() -> bool {
    true
}

/// How the load generator waits for answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitPlan {
    /// What tells it of them.
    #[serde(default)]
    pub backend: Backend,
    /// Answers gather for at least so many microseconds before they are received; 0: each is received as soon as the
    /// client gets to it. It saves the client CPU and adds to the times that are measured.
    #[serde(skip_serializing_if = "is_none_us", default)]
    pub coalesce_us: u64,
    /// How its threads share CPUs with the server's, where both run on one host.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// The nice value of its session among the sessions of the host, where the kernel shares the CPUs by sessions
    /// (`kernel.sched_autogroup_enabled=1`, sched(7)) and the load generator has a session of its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_nice: Option<u8>,
}

fn is_none_us(us: &u64) -> bool {
    *us == 0
}

/// Interface of the kernel that tells of answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// `epoll`: every kernel has it.
    #[default]
    Epoll,
    /// `io_uring`: Linux 6.1 and newer, where it is permitted.
    IoUring,
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Epoll => "epoll",
            Self::IoUring => "io_uring",
        })
    }
}

/// Scheduling policy of the load generator's threads (sched(7)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// `SCHED_OTHER`: a thread that an answer or a due request wakes may interrupt one of the server's.
    #[default]
    Normal,
    /// `SCHED_BATCH`: it waits until the CPU's thread has to wait itself, or has had its turn.
    Batch,
}

impl std::fmt::Display for Scheduling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Batch => "batch",
        })
    }
}

/// Errors that end the run. What is tried again (deadlocks, lock waits that time out, conflicts) is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopOnError {
    /// Codes that do not end it, as in `1062`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub except: Vec<u16>,
}

/// What a search for the highest rate of an open loop goes by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityPlan {
    /// What must hold at a rate, all of them, as in `p99<10ms`. That the rate is reached is always asked.
    pub holds: Vec<String>,
    /// Rate of the first step, in transactions a second; absent: half of what a closed loop reaches, which the first
    /// step finds out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_per_s: Option<f64>,
    /// The search ends when the lowest rate that did not hold is at most this share above the highest that did, as in
    /// `0.05`.
    pub resolution: f64,
    /// Steps at most.
    pub most_steps: usize,
    /// Gaps between arrivals.
    pub spacing: Spacing,
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
    /// Until throughput has settled.
    Steady {
        /// Longest warm-up, in seconds; a step that has not settled by then is measured all the same and says so.
        limit_s: f64,
    },
}

impl Warmup {
    /// Its longest length in seconds.
    pub fn limit_s(&self) -> f64 {
        match *self {
            Self::Fixed { time_s } => time_s,
            Self::Steady { limit_s } => limit_s,
        }
    }
}

/// What the user permitted by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Allow {
    /// Load on a server that is not a sandbox and is used by others.
    pub load: bool,
    /// Statements of the user's that may write where mydyno did not make the tables.
    #[serde(default)]
    pub write: bool,
}
