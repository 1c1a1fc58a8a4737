//! An experiment as its file `experiments/NAME.toml` states it.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Asks, Role};

/// How the arms of an experiment share the machine and the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The servers of all arms are up together and are loaded in turns, in slices of a second or two.
    #[default]
    Alternate,
    /// One server; levers that take effect while it runs are swapped between slices.
    InPlace,
    /// One server at a time, with fresh data and a start of its own for each row: for levers of the whole host, and for effects
    /// that need longer than a slice.
    Rows,
    /// Two servers are loaded at the same time, each on an equal part of the CPUs, and swap their parts between blocks: the effect
    /// under mutual load, which is another one than that of a server alone.
    Duet,
}

impl Mode {
    /// Its name in documents, as in `in_place`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alternate => "alternate",
            Self::InPlace => "in_place",
            Self::Rows => "rows",
            Self::Duet => "duet",
        }
    }
}

/// The load of an experiment: what `mydyno bench WORKLOAD` takes, or an operation of a probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadDefinition {
    /// Workload, or the TOML file of a mix; `mydyno workloads` lists them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// Instead of a workload: a probe, as in `fsync`, one operation of which is repeated in each slice. There is no server then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Options of the workload by name, as in `table-size = 10000`; a list gives one several times. Of a probe, with one value
    /// each, as in `pattern = "append"`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub options: IndexMap<String, Value>,
    /// Connections that carry load; 16 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Threads of the load generator; as `mydyno bench` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Transactions a second that arrive, whether answered or not (an open loop); a closed loop without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Database that the statements run in, where the workload makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Seed of rows and operations; 1 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl LoadDefinition {
    /// The load for people, as in `oltp_read_write` or `probe fsync`.
    pub fn name(&self) -> String {
        match &self.probe {
            Some(probe) => format!("probe {probe}"),
            None => self.workload.clone(),
        }
    }
}

/// The levers of an arm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmDefinition {
    /// Each as `LEVER=VALUE`; `mydyno host levers` lists them. Empty: the server as it is.
    #[serde(default)]
    pub levers: Vec<String>,
}

/// A curve as the file of an experiment states it. Baseline and treatment set the lever to two of its levels; each other level
/// is one more arm, which is otherwise the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CurveDefinition {
    /// The lever, as in `workload.threads`.
    pub lever: String,
    /// Its values in the order of the curve, those of baseline and treatment included.
    pub levels: Vec<String>,
}

/// A response, with the question about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseDefinition {
    /// `transactions_per_s`, `response_mean` or `response_p95`; `server_resident_bytes`, `server_peak_bytes`, `server_swap_bytes`,
    /// `server_huge_bytes` or `server_cpu_us_per_transaction` of a private server; `survival`, the share of rows that it outlives; of a probe a figure of it, as in `per_s` or `p50_us`.
    /// `response_mean` of classes is the time until all clients are done.
    pub name: String,
    /// The direction of the treatment's change against the baseline in question.
    pub direction: Asks,
    /// δ, the smallest effect that matters, as in `2%`.
    pub delta: String,
}

/// How arms are measured, and why so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// How the arms share machine and time.
    pub mode: Mode,
    /// The reason, in one sentence.
    pub why: String,
}

/// How much is measured. Durations take units, as in `250ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// Time for the whole experiment.
    pub budget: String,
    /// Starts of the servers; as many as the budget allows without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<u32>,
    /// Length of the measured part of a slice or row.
    pub slice: String,
    /// Length of the part that is cut from the beginning of a slice or row.
    pub settle: String,
    /// Load on each server after its start, before the first slice.
    pub warmup: String,
}

/// Requirements on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory that is available, as in `2G`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Free space of the state folder, as in `1G`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Whether it must run as root.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub root: bool,
    /// NUMA nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_nodes: Option<u32>,
}

/// The work of a job beside the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Sends one statement to the server that is loaded.
    Statement(String),
    /// Copies a file of this size on the file system of the server's data, over and over.
    FileCopy(String),
    /// Takes this much memory in a process of its own, in the control group of a private server.
    MemoryHog(String),
    /// Keeps this many threads of this command busy.
    CpuHog(u32),
    /// Opens and closes this many connections a second to the loaded server.
    ConnectionChurn(u32),
}

impl Work {
    /// The work for people, as in `a job that copies a file of 256M`.
    pub fn label(&self) -> String {
        match self {
            Self::Statement(sql) => format!("a job that sends {sql}"),
            Self::FileCopy(size) => format!("a job that copies a file of {size}"),
            Self::MemoryHog(size) => format!("a job that takes {size} of memory"),
            Self::CpuHog(1) => "a job that keeps one CPU busy".to_owned(),
            Self::CpuHog(threads) => format!("a job that keeps {threads} CPUs busy"),
            Self::ConnectionChurn(rate) => format!("a job that opens {rate} connections a second"),
        }
    }
}

/// A job beside the load, in every slice or row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The job's work.
    pub work: Work,
    /// When it begins, from the beginning of the measured part, as in `2s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Its duration; to the end of the slice or row without it. A statement is sent once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The only arm that has it; without it all arms have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Role>,
}

/// Classes of statements that are timed one by one on two servers, each class with rising numbers of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// Each as `CLASS/ENGINE`, values of the workload's options `class` and `storage-engine`.
    pub names: Vec<String>,
    /// The extent of `--quick`.
    pub quick: ClassesExtent,
    /// The extent of `--full`.
    pub full: ClassesExtent,
}

/// How much of the classes is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassesExtent {
    /// Numbers of clients.
    pub connections: Vec<u32>,
    /// Rounds in each start of the servers, at most: as many as the budget has time for.
    pub rounds: u32,
    /// The workload's option `scale`.
    pub scale: u64,
}

/// A published figure for the same question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The figure, as in `1.9`.
    pub figure: String,
    /// Its unit, as in `times the time of the statement`.
    pub unit: String,
    /// Where it stands.
    pub source: String,
    /// Server, hardware and load that it holds for.
    pub conditions: String,
}

/// An experiment as its file states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The name of the file without `.toml`: lower case, digits and hyphens.
    pub name: String,
    /// The question, in one sentence.
    pub question: String,
    /// The mechanism behind it, in a few sentences.
    pub why: String,
    /// The release of mydyno that first had it.
    pub since: String,
    /// Claims that it proves, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// The answer, where it follows from the construction of the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expects: Option<String>,
    /// Levers that all arms have, each as `LEVER=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_up: Vec<String>,
    /// The arm that is compared with.
    #[serde(default)]
    pub baseline: ArmDefinition,
    /// The arm in question.
    #[serde(default)]
    pub treatment: ArmDefinition,
    /// Factors with two levels each, as `LEVER=LOW,HIGH`, in place of the two arms: the effect of each and of their interactions
    /// is estimated by a full, fractional or screening design.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<String>,
    /// Classes of statements in place of a load in slices; the arms are named on the command line. A class that takes less than
    /// the extent's `slice` is executed several times, `settle` passes before each measurement, and `warmup` is for each class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Classes>,
    /// More values of a lever that both arms set: a curve, on which baseline and treatment are the named comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<CurveDefinition>,
    /// The load.
    pub load: LoadDefinition,
    /// Jobs beside the load.
    #[serde(default, rename = "job", skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
    /// Responses; the first one decides.
    #[serde(rename = "response")]
    pub responses: Vec<ResponseDefinition>,
    /// How arms are measured.
    pub execution: Execution,
    /// The extent of `--quick`.
    pub quick: Extent,
    /// The extent of `--full`.
    pub full: Extent,
    /// Requirements on the host.
    #[serde(default)]
    pub needs: Needs,
    /// Published figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Why this set-up is only a stand-in for the published one; absent where it is of the same kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
}
