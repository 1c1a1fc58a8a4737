//! Connections that fill tables in parallel.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{PrepareError, Progress};

/// State that the filling connections share.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    stop: &'a AtomicBool,
    failed: AtomicBool,
    /// Number of inserted rows; rows of a retried transaction count twice.
    pub done: AtomicU64,
    /// Number of rows that existed before.
    found: AtomicU64,
    of: u64,
    /// Number of rows that were sent, for the rate limit.
    sent: AtomicU64,
    rows_per_s: Option<f64>,
    started: Instant,
}

impl<'a> Shared<'a> {
    /// State for this number of rows and maximum rate; `stop` interrupts it.
    pub fn new(of: u64, rows_per_s: Option<f64>, stop: &'a AtomicBool) -> Self {
        Self {
            stop,
            failed: AtomicBool::new(false),
            done: AtomicU64::new(0),
            found: AtomicU64::new(0),
            of,
            sent: AtomicU64::new(0),
            rows_per_s,
            started: Instant::now(),
        }
    }

    /// Whether the user has asked to stop, or another connection has failed.
    pub fn is_off(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Counts rows from an earlier prepare.
    pub fn count_found(&self, rows: u64) {
        self.found.fetch_add(rows, Ordering::Relaxed);
        self.done.fetch_add(rows, Ordering::Relaxed);
    }

    /// The current progress.
    fn progress(&self) -> Progress {
        let count = |rows: &AtomicU64| rows.load(Ordering::Relaxed).min(self.of);
        Progress { rows: count(&self.done), of: self.of, found: count(&self.found) }
    }

    /// Waits until the rate limit permits this many more rows.
    pub fn wait_for_turn(&self, rows: u64) -> Result<(), PrepareError> {
        let before = self.sent.fetch_add(rows, Ordering::Relaxed);
        let at_s = self.rows_per_s.map_or(0.0, |rate| before as f64 / rate);
        let at = self.started + Duration::try_from_secs_f64(at_s).unwrap_or(Duration::MAX / 4);
        loop {
            if self.is_off() {
                return Err(PrepareError::Interrupted);
            }
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    /// Runs `work` on this number of threads until all have ended, and reports progress.
    ///
    /// # Errors
    /// The original failure, not those that it caused in other threads.
    pub fn run(
        &self,
        fillers: usize,
        work: &(dyn Fn() -> Result<(), PrepareError> + Sync),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), PrepareError> {
        let at_work = AtomicUsize::new(fillers);
        let failures: Vec<PrepareError> = std::thread::scope(|scope| {
            let filler = || {
                let _leaving = Leaving(&at_work);
                let result = work();
                if result.is_err() {
                    self.failed.store(true, Ordering::Relaxed);
                }
                result
            };
            let threads: Vec<_> = (0..fillers).map(|_| scope.spawn(filler)).collect();
            while at_work.load(Ordering::Acquire) > 0 {
                progress(self.progress());
                std::thread::park_timeout(Duration::from_millis(20));
            }
            let ended = threads.into_iter().map(|t| t.join().unwrap_or(Err(PrepareError::Interrupted)));
            ended.filter_map(Result::err).collect()
        });
        let (interrupted, real): (Vec<_>, Vec<_>) =
            failures.into_iter().partition(|e| matches!(e, PrepareError::Interrupted));
        if let Some(error) = real.into_iter().chain(interrupted).next() {
            return Err(error);
        }
        progress(Progress { rows: self.of, ..self.progress() });
        Ok(())
    }
}

/// Decrements the count of running fillers when one ends, also by a panic.
struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
