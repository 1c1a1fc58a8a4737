//! Stacks of a process: where its threads run, and where they wait.
//!
//! [`capture`] samples a process for a while by the kernel's performance events: on the CPU by its clock, off the CPU at
//! every n-th context switch, and each switch as an event without a stack, so that the time between is known exactly. User
//! stacks are copied by the kernel, unwound in memory by their `.eh_frame` and never written: they hold rows and passwords. What leaves
//! this crate are the names of functions.

mod block;
mod capture;
mod elf;
mod error;
pub mod folded;
mod functions;
mod kernel;
mod modules;
mod names;
mod records;
mod roots;
mod scheduler;
mod stack_names;
mod switches;
mod symbols;
mod tracepoint;
mod unwind;

pub use block::{BlockLatency, Operation};
pub use capture::{Options, Profiler, capture};
pub use error::ProfileError;
pub use folded::Folded;
pub use switches::ThreadTime;

/// The stack of a thread none of whose waits was sampled.
pub const NOT_SAMPLED: &str = "[not sampled]";

/// Stands in a stack for functions that are not known, because the stack was copied in part: the outermost ones before it are those
/// of other stacks of its thread.
pub const CUT_STACK: &str = "[not copied]";

/// The result of a capture.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Length of the capture in seconds.
    pub window_s: f64,
    /// Stacks of threads on a CPU, in samples.
    pub on_cpu: Folded,
    /// Stacks of threads that wait, in seconds. The sampled waits of a thread share its counted time by their lengths; the time of a
    /// thread without a sampled wait has the stack [`NOT_SAMPLED`].
    pub off_cpu: Folded,
    /// Waiting time as the samples alone estimate it, over the time that the switches count: 1 without an error of sampling; of the threads with
    /// ten samples or more. Absent when there is none.
    pub closure: Option<f64>,
    /// Counted waiting time of those threads, in seconds.
    pub judged_s: f64,
    /// Waits with a stack.
    pub sampled_waits: u64,
    /// Samples on the CPU a second.
    pub frequency_hz: u64,
    /// One of so many switches has a stack.
    pub switch_period: u64,
    /// Times of each thread, from all switches.
    pub threads: Vec<ThreadTime>,
    /// Threads of the process at the end of the capture.
    pub thread_count: usize,
    /// Records that the kernel dropped because the ring was full.
    pub lost: u64,
    /// Stacks that did not reach the start of their thread.
    pub truncated: u64,
    /// Stacks in all.
    pub stacks: u64,
    /// CPU time that this program used for the capture, in seconds; unwinding included.
    pub own_cpu_s: f64,
    /// Latency of the host's block devices, those of most time first; empty where it was not asked for.
    pub block: Vec<BlockLatency>,
    /// Records of requests that were lost.
    pub block_lost: u64,
    /// Why there is no latency of block devices, where it was asked for.
    pub block_missing: Option<String>,
}
