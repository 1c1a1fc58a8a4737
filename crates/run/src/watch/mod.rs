//! Watching a server and its host without load: samplers on one clock, intervals with figures and events.

mod black_box;
mod live;
mod openmetrics;
mod profile;
mod recent;
mod record;
mod replay;

use std::path::PathBuf;

use mydyno_model::diagnosis::Diagnosis;
use mydyno_model::watch::{WatchInterval, WatchManifest};
use mydyno_profile::Folded;
use mydyno_samples::Interval;
use mydyno_wire::ConnectOptions;

pub use black_box::{BlackBoxPlan, mark};
pub use live::watch;
pub use profile::{ProfilePlan, Profiled, profile};
pub use replay::replay;

/// The plan of a watch.
#[derive(Debug, Clone)]
pub struct WatchPlan {
    /// The server; without one, the host only.
    pub server: Option<Box<ConnectOptions>>,
    /// Time between samples.
    pub interval: Interval,
    /// Number of intervals after which the watch ends; without one, the user ends it.
    pub intervals: Option<u64>,
    /// Whether the server's stacks are captured for a moment every few seconds.
    pub stacks: bool,
    /// A folder that is made for the record.
    pub record: Option<PathBuf>,
    /// A ring of the latest minutes on disk.
    pub black_box: Option<BlackBoxPlan>,
    /// A file that holds the latest sample as OpenMetrics text.
    pub openmetrics: Option<PathBuf>,
    /// The command line, without secrets.
    pub argv: Vec<String>,
}

/// Events of a watch, delivered on the caller's thread.
#[derive(Debug)]
pub enum Seen<'a> {
    /// The watch begins.
    Begins(&'a WatchManifest),
    /// An interval is over.
    Interval(&'a WatchInterval),
    /// A capture is over: all stacks on the CPU so far, in samples.
    Stacks(&'a Folded),
    /// A sentence about something that is not in the figures.
    Note(String),
    /// The end, with the diagnosis of the latest intervals.
    Ends(&'a Diagnosis),
}

/// The end of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchEnd {
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// Intervals that were seen.
    pub intervals: u64,
}
