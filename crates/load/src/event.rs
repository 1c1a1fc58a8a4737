//! A step's definition, its events and its end.

use std::time::Duration;

use mydyno_model::plan::{Arrivals, ConnectionPlan, StopOnError, WaitPlan};
use mydyno_model::record::{Interval, Phase};

use crate::opening::Connect;
use crate::recorder::FirstError;
use crate::window::Warmup;

/// A step to run.
pub struct StepSpec<'a, W> {
    /// Number in the plan, for the intervals.
    pub number: usize,
    /// The workload.
    pub workload: &'a W,
    /// Connections.
    pub connections: usize,
    /// Worker threads; not more than connections.
    pub workers: usize,
    /// When transactions are sent.
    pub arrivals: &'a Arrivals,
    /// Seed of arrivals and think times.
    pub seed: u64,
    /// Load before the measurement.
    pub warmup: Warmup<'a>,
    /// Length of the measurement.
    pub measure: Duration,
    /// How connections are opened and kept.
    pub keep: &'a ConnectionPlan,
    /// How workers wait for answers.
    pub wait: &'a WaitPlan,
    /// Errors that end the step.
    pub stop_on_error: Option<&'a StopOnError>,
    /// Opens a connection to the right database.
    pub connect: Connect<'a>,
}

/// Something that happened during a step.
#[derive(Debug)]
pub enum StepEvent {
    /// One more connection is open.
    Connected {
        /// Open.
        done: usize,
        /// To be opened.
        of: usize,
    },
    /// A phase began, at this second of the run.
    Phase(Phase, f64),
    /// The first error of a code on a worker, in the window that ended at this second of the run.
    Error(FirstError, f64),
    /// A window is complete.
    Interval(Box<Interval>),
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As planned.
    Complete(Shortfalls),
    /// The user asked to stop.
    Interrupted,
    /// An error that ends the run, by the plan.
    Forbidden {
        /// Its code and message.
        why: String,
    },
    /// Every connection was lost, and none could be opened again.
    AllLost {
        /// Why the last one was.
        why: String,
    },
    /// Transactions failed one after the other and none succeeded.
    Hopeless {
        /// The commonest error.
        why: String,
    },
    /// A worker failed: what was recorded until then is there.
    Failed {
        /// Why.
        why: String,
    },
}

/// Transactions and connections that a step which ended as planned did not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfalls {
    /// Transactions without an answer when draining ended.
    pub unanswered: u64,
    /// Transactions of the schedule that were due and never sent.
    pub queued: u64,
    /// Connections that were lost on the way and not opened again; all of them where the server is gone at the end.
    pub lost: usize,
    /// Worst delay of a worker at the end of a window, in nanoseconds: for so long the load generator did not run.
    pub late_ns: u64,
    /// Answers with a wrong sequence number, which were accepted.
    pub misnumbered: u64,
}
