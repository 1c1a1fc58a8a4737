//! Arrivals of `--rate`: a thread draws exponential pauses, workers take arrivals in order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mydyno_stats::rng::Rng;

/// Longest wait before a thread looks again whether the test has ended.
const PATIENCE: Duration = Duration::from_millis(50);

/// Events that have arrived and wait for a thread. The backlog has no bound.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    arrivals: Mutex<VecDeque<Instant>>,
    arrived: Condvar,
}

impl Queue {
    /// Puts arrivals into the queue until `ended` says so.
    pub(crate) fn generate(&self, start: Instant, rate: f64, mut rng: Rng, ended: impl Fn() -> bool) {
        let mut next = start;
        while !ended() {
            next += Duration::from_secs_f64(-(1.0 - rng.f64()).ln() / rate);
            while let Some(wait) = next.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
            {
                std::thread::sleep(wait.min(PATIENCE));
                if ended() {
                    return;
                }
            }
            self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push_back(next);
            self.arrived.notify_one();
        }
    }

    /// The instant of the next arrival; `None` once `ended` says so.
    pub(crate) fn take(&self, ended: impl Fn() -> bool) -> Option<Instant> {
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if ended() {
                return None;
            }
            if let Some(arrival) = arrivals.pop_front() {
                return Some(arrival);
            }
            (arrivals, _) =
                self.arrived.wait_timeout(arrivals, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}
