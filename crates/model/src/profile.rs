//! A profile of a server: what its threads run, and where the time of its transactions goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// A class of time in a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeClass {
    /// On a CPU, in the server's code and its libraries.
    CpuUser,
    /// On a CPU, in the kernel.
    CpuKernel,
    /// On a CPU, waiting actively for a latch or mutex.
    Spin,
    /// Ready to run, without a CPU.
    CpuWait,
    /// Pages and files of data are read.
    DataRead,
    /// Pages and files of data are written or flushed.
    DataWrite,
    /// The redo log is written or flushed, or a commit waits for that.
    RedoSync,
    /// The binary log is written or flushed, or a commit waits for its group.
    BinlogSync,
    /// Locks of rows.
    RowLock,
    /// Locks of metadata.
    MetadataLock,
    /// Latches of InnoDB: of pages and of its own structures.
    PageLatch,
    /// Mutexes and conditions of the server.
    Mutex,
    /// The client or the network takes a result slowly.
    Network,
    /// The kernel holds a writer back: dirty pages, limits of a control group.
    Throttled,
    /// Memory is swapped in.
    Swap,
    /// No rule knows the stack.
    Unexplained,
    /// The server waits for the client's next statement. Not part of the budget.
    ClientIdle,
}

impl TimeClass {
    /// All classes, those on a CPU first.
    pub const ALL: [Self; 17] = [
        Self::CpuUser,
        Self::CpuKernel,
        Self::Spin,
        Self::CpuWait,
        Self::DataRead,
        Self::DataWrite,
        Self::RedoSync,
        Self::BinlogSync,
        Self::RowLock,
        Self::MetadataLock,
        Self::PageLatch,
        Self::Mutex,
        Self::Network,
        Self::Throttled,
        Self::Swap,
        Self::Unexplained,
        Self::ClientIdle,
    ];

    /// Its name inside names of figures, as in `budget.row_lock_threads`.
    pub fn key(self) -> &'static str {
        match self {
            Self::CpuUser => "cpu_user",
            Self::CpuKernel => "cpu_kernel",
            Self::Spin => "spin",
            Self::CpuWait => "cpu_wait",
            Self::DataRead => "data_read",
            Self::DataWrite => "data_write",
            Self::RedoSync => "redo_sync",
            Self::BinlogSync => "binlog_sync",
            Self::RowLock => "row_lock",
            Self::MetadataLock => "metadata_lock",
            Self::PageLatch => "page_latch",
            Self::Mutex => "mutex",
            Self::Network => "network",
            Self::Throttled => "throttled",
            Self::Swap => "swap",
            Self::Unexplained => "unexplained",
            Self::ClientIdle => "client_idle",
        }
    }

    /// The activity of the class's threads, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::CpuUser => "on a CPU, in the server",
            Self::CpuKernel => "on a CPU, in the kernel",
            Self::Spin => "on a CPU, spinning",
            Self::CpuWait => "waiting for a CPU",
            Self::DataRead => "reading data files",
            Self::DataWrite => "writing data files",
            Self::RedoSync => "redo log write and sync",
            Self::BinlogSync => "binary log write and sync",
            Self::RowLock => "row locks",
            Self::MetadataLock => "metadata locks",
            Self::PageLatch => "InnoDB's latches",
            Self::Mutex => "mutexes of the server",
            Self::Network => "sending to the client",
            Self::Throttled => "throttled by the kernel",
            Self::Swap => "swapping",
            Self::Unexplained => "unexplained",
            Self::ClientIdle => "idle for the client",
        }
    }
}

/// A class with its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetShare {
    /// The class.
    pub class: TimeClass,
    /// Share of the time of statements; all classes of a budget sum to 1.
    pub share: f64,
    /// Thread-seconds in the window.
    pub seconds: f64,
}

/// Where the time of the threads that serve connections goes while they work on statements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeBudget {
    /// The classes that have time, the largest first; their shares sum to 1. Empty when no connection did anything.
    pub classes: Vec<BudgetShare>,
    /// Thread-seconds of statements, as the scheduler's switches count them: what the shares are of.
    pub busy_s: f64,
    /// Thread-seconds for which these threads waited for the next statement.
    pub idle_s: f64,
    /// Threads that served connections in the window.
    pub threads: usize,
    /// Thread-seconds on a CPU of all other threads: purge, page cleaners, background I/O.
    pub background_cpu_s: f64,
    /// The heaviest stacks that no rule knows, innermost functions last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unexplained: Vec<UnexplainedStack>,
}

/// A stack that no rule knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnexplainedStack {
    /// Folded: outermost function first, `;` between functions.
    pub stack: String,
    /// Thread-seconds.
    pub seconds: f64,
}

/// A function on the CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotFunction {
    /// Its name; a file's name in brackets stands for functions that the file does not name.
    pub name: String,
    /// Share of the samples in which it ran itself.
    pub own: f64,
    /// Share of the samples in which it or what it called ran.
    pub total: f64,
}

/// Requests of one kind to a block device of the host, from the kernel's tracepoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockRequests {
    /// Name of the device.
    pub device: String,
    /// `read`, `write`, `flush` or `discard`.
    pub operation: String,
    /// Requests that began and ended in the window.
    pub count: u64,
    /// Mean time from issue to completion in microseconds.
    pub mean_us: f64,
    /// The time that half of them stayed within, in microseconds.
    pub p50_us: f64,
    /// The time that 99 of 100 stayed within, in microseconds.
    pub p99_us: f64,
    /// The longest time, in microseconds.
    pub max_us: f64,
}

/// `mydyno watch --profile --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The process.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// Length of the capture in seconds.
    pub window_s: f64,
    /// Samples on each CPU a second.
    pub frequency_hz: u64,
    /// Samples on a CPU.
    pub cpu_samples: u64,
    /// One of so many switches has a stack.
    pub switch_period: u64,
    /// Waits with a stack.
    pub sampled_waits: u64,
    /// Waiting time as the samples alone estimate it, over the counted time, of threads with ten samples or more; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closure: Option<f64>,
    /// Share of the stacks that did not reach the start of their thread.
    pub truncated: f64,
    /// Records that were dropped because the ring was full.
    pub lost: u64,
    /// CPU time that the capture cost this program, as a share of one CPU.
    pub own_cpu: f64,
    /// The functions with most samples of their own: at most ten.
    pub functions: Vec<HotFunction>,
    /// The budget.
    pub budget: TimeBudget,
    /// Requests to the host's block devices by device and operation, those of most time first; empty where they could not be traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<BlockRequests>,
    /// Reasons to trust the figures less, each with a next step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for ProfileReport {
    const NAME: &'static str = "mydyno.profile";
    const MAJOR: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_figures_are_those_of_the_document() {
        for class in TimeClass::ALL {
            let name = serde_json::to_value(class).ok();
            assert_eq!(name, Some(Value::from(class.key().replace('_', "-"))));
        }
    }
}
