//! Small controlled probes of storage, memory and scheduler.
//!
//! A probe is a set of [`course::Cell`]s that are measured in rounds, in a shuffled order each; windows of all rounds
//! make the intervals. It gives a [`mydyno_model::probe::ProbeReport`]: figures, what they mean for a server, what others published.
//! Whatever it writes lies in a folder that goes through the journal ([`scratch`]), and nothing begins without room for it.

pub mod bandwidth;
pub mod clock;
pub mod course;
pub mod error;
mod few;
pub mod fsync;
mod group;
pub mod ladder;
mod literature;
mod machine;
pub mod malloc;
pub mod own_disk;
pub mod random;
mod report;
pub mod scratch;
pub mod slot;
pub mod spin;
pub mod storage;
mod sys;
pub mod threads;
pub mod unlink;

use std::sync::atomic::AtomicBool;

pub use course::Timing;
pub use error::ProbeError;

/// A probe that can be asked for.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// As in `fsync`.
    pub name: &'static str,
    /// Its subject.
    pub what: &'static str,
}

/// All probes.
pub const PROBES: [Probe; 9] = [
    Probe {
        name: "fsync",
        what: "how often a file can be written and synced, and whether syncs reach the disk",
    },
    Probe {
        name: "random",
        what: "random reads and writes past the page cache, alone and beside a writer that syncs",
    },
    Probe { name: "latency", what: "the ladder from cache over memory, page cache and disk to a sync" },
    Probe { name: "memory", what: "memory bandwidth" },
    Probe { name: "clock", what: "what reading the clock costs" },
    Probe { name: "spin", what: "what a spin loop's pause and its atomic operations cost" },
    Probe { name: "threads", what: "threads, mutexes and context switches" },
    Probe {
        name: "malloc",
        what: "allocating memory by size, threads, allocator and huge pages, with faults counted",
    },
    Probe { name: "unlink", what: "removing large files" },
];

/// The run of a probe.
pub struct Run<'a> {
    /// Durations and repetitions.
    pub timing: Timing,
    /// The only measure to take, by its id, as in `overwrite.fdatasync`; `None` for all.
    pub only: Option<&'a str>,
    /// Set when the user interrupts; the measurements so far are kept.
    pub stop: &'a AtomicBool,
    /// Called with one line of progress at a time.
    pub progress: &'a mut dyn FnMut(&str),
}
