//! Messages from workers to the coordinator.

use mydyno_model::record::{ArrivalCounts, Phase};

use crate::recorder::{FirstError, Recorded};
use crate::usage::ThreadUse;

/// A worker's message to the coordinator while the load runs.
pub enum Message {
    /// A window has ended.
    Handover(Box<Handover>),
    /// The worker has ended, whether or not it closed all its windows.
    Gone {
        /// Number of the worker.
        worker: usize,
    },
}

/// The record of one worker in one window.
pub struct Handover {
    /// Number of the worker.
    pub worker: usize,
    /// Number of the window; the drain comes after the last.
    pub window: usize,
    pub phase: Phase,
    /// When the window ended, on the run's clock.
    pub end_ns: u64,
    /// How much later the worker closed it.
    pub late_ns: u64,
    pub recorder: Recorded,
    pub arrivals: ArrivalCounts,
    /// Use of the worker, and of the threads that opened connections for it.
    pub usage: ThreadUse,
    /// CPU time of it that opening connections took, in microseconds.
    pub opening_us: u64,
    /// Calls that waited for events.
    pub waits: u64,
    pub first_errors: Vec<FirstError>,
    /// Connections lost for good so far.
    pub lost: usize,
    /// Connections that are being opened again.
    pub down: usize,
    /// Why the last one was lost.
    pub last_loss: Option<String>,
}
