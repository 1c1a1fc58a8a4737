//! The plan: all parameters of a run, with defaults resolved.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::arrivals::{Arrivals, RateStep, Shape, Spacing, Spread, Think};
use crate::document::{Document, Header};

/// A resolved plan. Two runs of one plan send a server the same operations in the same order per connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The workload.
    pub workload: WorkloadPlan,
    /// The server under load.
    pub target: TargetPlan,
    /// The load steps: connections × rates × repeats, in this order of nesting. A search for capacity adds steps while it runs,
    /// as `step` events.
    pub steps: Vec<StepPlan>,
    /// Order in which the steps run, by their numbers: shuffled by the seed, so that a drift of server or host does not look
    /// like an effect of the load. Empty: in list order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub order: Vec<usize>,
    /// The warm-up before measuring.
    pub warmup: Warmup,
    /// Length of the measured window of each step, in seconds.
    pub time_s: f64,
    /// How connections are opened and kept, in all steps.
    #[serde(default)]
    pub connections: ConnectionPlan,
    /// How the load generator waits for answers, in all steps.
    #[serde(default)]
    pub wait: WaitPlan,
    /// Errors that end the run; absent when no error does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_on_error: Option<StopOnError>,
    /// Parameters of the search for the highest rate; absent when there is no search.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capacity: Option<CapacityPlan>,
    /// Seed of data, operations and order.
    pub seed: u64,
    /// The database (schema) that holds the workload's tables. mydyno created and marked it.
    pub database: String,
    /// Percentiles in the summary, in percent.
    pub percentiles: Vec<f64>,
    /// Whether host and server are sampled during the run.
    pub observe: bool,
    /// Whether the server's stacks are captured for a moment every few seconds of it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub profile: bool,
    /// Explicit permissions of the user.
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

/// A workload with all its options, defaults included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadPlan {
    /// Name in `mydyno workloads`.
    pub name: String,
    /// Options by their long names, as in `table-size`.
    pub options: IndexMap<String, Value>,
    /// Its work in words, by aspect, where an option implies more than its value says.
    #[serde(skip_serializing_if = "IndexMap::is_empty", default)]
    pub work: IndexMap<String, String>,
}

/// The server under load. The document contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetPlan {
    /// Whether mydyno created this server.
    pub kind: TargetKind,
    /// `unix` or `tcp`.
    pub transport: Transport,
    /// Path of the socket, or `host:port`.
    pub address: String,
    /// Account.
    pub user: String,
}

/// Owner of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A private server of mydyno.
    Sandbox,
    /// A server that mydyno does not own: read-only unless the user permits more.
    Server,
}

/// Transport to the server.
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
    /// Arrival process of the transactions.
    pub arrivals: Arrivals,
    /// Repeat number of this step within its point of the sweep, from 0.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub repeat: usize,
}

impl StepPlan {
    /// Whether another step has the same load, which makes it a repeat of this one.
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
    /// Maximum number of connections opened a second; absent: unlimited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_per_s: Option<f64>,
    /// Idle connections that are open in addition to those that carry load.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub idle: usize,
    /// Number of transactions after which a connection is closed and a new one opened; absent: it lives as long as the step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reconnect_every: Option<u64>,
    /// Whether a lost connection is reopened.
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
    /// Kernel interface that reports answers.
    #[serde(default)]
    pub backend: Backend,
    /// Minimum time in microseconds during which answers accumulate before the client receives them; 0: the client receives
    /// each answer as soon as it gets to it. Coalescing saves client CPU and adds to the measured times.
    #[serde(skip_serializing_if = "is_none_us", default)]
    pub coalesce_us: u64,
    /// Scheduling of the load generator's threads relative to the server's, where both run on one host.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Nice value of the load generator's session among the sessions of the host, where the kernel distributes CPU time by
    /// session (`kernel.sched_autogroup_enabled=1`, sched(7)) and the load generator has its own session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_nice: Option<u8>,
}

fn is_none_us(us: &u64) -> bool {
    *us == 0
}

/// Kernel interface that reports answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// `epoll`: available on every kernel.
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
    /// `SCHED_OTHER`: a thread woken by an answer or a due request may preempt a thread of the server.
    #[default]
    Normal,
    /// `SCHED_BATCH`: a woken thread waits until the running thread blocks or has used its time slice.
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

/// Errors that end the run. Retried errors (deadlocks, lock wait timeouts, conflicts) do not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopOnError {
    /// Codes that do not end the run, as in `1062`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub except: Vec<u16>,
}

/// Parameters of a search for the highest rate of an open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityPlan {
    /// Conditions that a rate must meet, all of them, as in `p99<10ms`. Reaching the rate is always a condition.
    pub holds: Vec<String>,
    /// Rate of the first step, in transactions a second; absent: half the rate that a closed loop reaches, which the first step
    /// measures.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_per_s: Option<f64>,
    /// Resolution at which the search ends: the lowest rate that failed is at most this share above the highest that held, as
    /// in `0.05`.
    pub resolution: f64,
    /// Maximum number of steps.
    pub most_steps: usize,
    /// Distribution of the gaps between arrivals.
    pub spacing: Spacing,
}

/// The warm-up before measuring.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum Warmup {
    /// Fixed duration.
    Fixed {
        /// Duration in seconds.
        time_s: f64,
    },
    /// Until throughput is steady.
    Steady {
        /// Longest warm-up, in seconds; a step that is not steady by then is measured anyway, with a warning.
        limit_s: f64,
    },
}

impl Warmup {
    /// Longest duration of the warm-up in seconds.
    pub fn limit_s(&self) -> f64 {
        match *self {
            Self::Fixed { time_s } => time_s,
            Self::Steady { limit_s } => limit_s,
        }
    }
}

/// Explicit permissions of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Allow {
    /// Permits load on a server that is not a sandbox and that others use.
    pub load: bool,
    /// Permits the user's statements to write to tables that mydyno did not create.
    #[serde(default)]
    pub write: bool,
}
