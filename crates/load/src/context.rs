//! Context that all workers of a step share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mydyno_model::plan::{Arrivals, ConnectionPlan, StopOnError, WaitPlan};
use mydyno_workload::Workload;

use crate::event::StepSpec;
use crate::recorder::FirstError;
use crate::schedule::Deal;
use crate::shared_columns::SharedColumns;
use crate::window::Windows;

/// Answers outstanding at the end of the last window are awaited this long, in nanoseconds; after a cancellation,
/// [`DRAIN_CANCELLED_NS`]. With the time until the workers notice it and the end of the record, a load on a server that
/// answers nothing then ends within a second of a signal.
const DRAIN_NS: u64 = 10_000_000_000;
const DRAIN_CANCELLED_NS: u64 = 300_000_000;

/// Context that all workers of a step share.
pub struct StepContext<'a, W> {
    pub workload: &'a W,
    pub windows: Windows,
    pub arrivals: &'a Arrivals,
    /// Seed of arrivals and think times.
    pub seed: u64,
    pub connections: usize,
    pub workers: usize,
    pub keep: &'a ConnectionPlan,
    pub wait: &'a WaitPlan,
    pub stop_on_error: Option<&'a StopOnError>,
    /// The error that cancelled the load.
    pub forbidden: Mutex<Option<String>>,
    /// The load is cancelled: by the user, or by a worker that found it hopeless or failed.
    pub cancelled: AtomicBool,
    /// A worker found that no transaction can succeed.
    pub hopeless: AtomicBool,
    /// A transaction has succeeded on some connection.
    pub succeeded: AtomicBool,
    /// Definitions of the columns of prepared statements.
    pub columns: Arc<SharedColumns>,
    /// Connections whose tasks have not ended.
    live: AtomicUsize,
}

impl<'a, W: Workload> StepContext<'a, W> {
    /// The context of a step that has not started.
    pub fn new(spec: &StepSpec<'a, W>) -> Self {
        Self {
            workload: spec.workload,
            windows: Windows::tile(spec.warmup.longest(), spec.measure),
            arrivals: spec.arrivals,
            seed: spec.seed,
            connections: spec.connections,
            workers: spec.workers,
            keep: spec.keep,
            wait: spec.wait,
            stop_on_error: spec.stop_on_error,
            forbidden: Mutex::new(None),
            cancelled: AtomicBool::new(false),
            hopeless: AtomicBool::new(false),
            succeeded: AtomicBool::new(false),
            columns: Arc::default(),
            live: AtomicUsize::new(spec.connections),
        }
    }

    /// Cancels the load when the plan says that such an error ends it.
    pub fn forbid(&self, error: &FirstError) {
        if self.stop_on_error.is_some_and(|stop| !stop.except.contains(&error.code)) {
            let operation = self.workload.operations().get(error.operation).map_or("", |o| o.name.as_str());
            let FirstError { code, sqlstate, message, .. } = error;
            let mut forbidden = self.forbidden.lock().unwrap_or_else(PoisonError::into_inner);
            forbidden.get_or_insert_with(|| format!("{code} ({sqlstate}) in {operation}: {message}"));
            self.cancel();
        }
    }

    /// Cancels the load. Returns whether it was cancelled before.
    pub fn cancel(&self) -> bool {
        self.cancelled.swap(true, Ordering::Relaxed)
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Notes that a connection's task has ended.
    pub fn task_ended(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the load goes on: it is not cancelled, and some worker has a connection.
    pub fn goes_on(&self) -> bool {
        !self.is_cancelled() && self.live.load(Ordering::Relaxed) > 0
    }

    /// How long answers are awaited after the last window, in nanoseconds.
    pub fn drain_limit_ns(&self) -> u64 {
        if self.is_cancelled() { DRAIN_CANCELLED_NS } else { DRAIN_NS }
    }

    /// The arrivals that a worker takes.
    pub fn deal(&self, worker: usize) -> Deal {
        Deal { worker: worker as u64, workers: self.workers as u64, connections: self.connections as u64 }
    }

    /// The connections of a worker, by their numbers: connection n belongs to worker n modulo the number of workers.
    pub fn numbers(&self, worker: usize) -> impl Iterator<Item = usize> + use<W> {
        (worker..self.connections).step_by(self.workers)
    }
}
