//! Counts and times of the threads of a test, and the figures of a report.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A counter of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Other,
    Read,
    Write,
    Event,
    Error,
    Reconnect,
}

/// Numbers of a thread or of all threads, by [`Count`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals(pub(crate) [u64; 6]);

impl Totals {
    pub(crate) fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, part) in self.0.iter_mut().zip(other.0) {
            *sum += part;
        }
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut difference = *self;
        for (count, less) in difference.0.iter_mut().zip(earlier.0) {
            *count = count.saturating_sub(less);
        }
        difference
    }
}

/// Durations of the events of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Durations {
    pub(crate) events: u64,
    pub(crate) sum: Duration,
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

impl Durations {
    fn record(&mut self, duration: Duration) {
        self.min = if self.events == 0 { duration } else { self.min.min(duration) };
        self.max = self.max.max(duration);
        self.events += 1;
        self.sum += duration;
    }
}

/// The statistics of a thread; the thread writes, reports read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadStats {
    counts: [AtomicU64; 6],
    durations: Mutex<Durations>,
    /// An event has begun and not ended.
    at_work: AtomicBool,
}

impl ThreadStats {
    pub(crate) fn count(&self, count: Count) {
        self.counts[count as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn set_at_work(&self, at_work: bool) {
        self.at_work.store(at_work, Relaxed);
    }

    pub(crate) fn is_at_work(&self) -> bool {
        self.at_work.load(Relaxed)
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals(std::array::from_fn(|i| self.counts[i].load(Relaxed)))
    }

    pub(crate) fn record(&self, duration: Duration) {
        self.durations.lock().unwrap_or_else(PoisonError::into_inner).record(duration);
    }

    /// The durations, which start again from none.
    pub(crate) fn take_durations(&self) -> Durations {
        std::mem::take(&mut self.durations.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The figures of an intermediate or cumulative report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stat {
    pub(crate) threads_running: u64,
    /// Seconds since the previous report of this kind.
    pub(crate) time_interval: f64,
    /// Seconds since the start.
    pub(crate) time_total: f64,
    /// Seconds.
    pub(crate) latency_pct: f64,
    /// Further percentiles: percent and seconds.
    pub(crate) percentiles: Vec<(f64, f64)>,
    /// Ignored errors by number, where they are wanted.
    pub(crate) errors: BTreeMap<u16, u64>,
    pub(crate) totals: Totals,
    /// Events that wait and events at work, with `--rate`.
    pub(crate) queue_length: u64,
    pub(crate) concurrency: u64,
    /// Durations by thread; empty in intermediate reports.
    pub(crate) threads: Vec<Durations>,
    /// Events that were at work at a forced end.
    pub(crate) unfinished: Option<u64>,
}

impl Stat {
    /// Minimum, mean, maximum and sum of the durations of all threads, in seconds.
    pub(crate) fn latency(&self) -> (f64, f64, f64, f64) {
        let used = || self.threads.iter().filter(|thread| thread.events > 0);
        let events: u64 = used().map(|thread| thread.events).sum();
        let sum = used().map(|thread| thread.sum).sum::<Duration>().as_secs_f64();
        let min = used().map(|thread| thread.min).min().unwrap_or_default().as_secs_f64();
        let max = used().map(|thread| thread.max).max().unwrap_or_default().as_secs_f64();
        (min, if events == 0 { 0.0 } else { sum / events as f64 }, max, sum)
    }
}

/// Mean and standard deviation of a population.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_extremes_and_a_sum() {
        let stats = ThreadStats::default();
        for ms in [5, 2, 9] {
            stats.record(Duration::from_millis(ms));
        }
        let durations = stats.take_durations();
        assert_eq!((durations.min.as_millis(), durations.max.as_millis()), (2, 9));
        assert_eq!((durations.events, durations.sum.as_millis()), (3, 16));
        assert_eq!(stats.take_durations(), Durations::default());
    }

    #[test]
    fn the_deviation_is_that_of_a_population() {
        assert_eq!(mean_and_deviation(&[10.0, 0.0]), (5.0, 5.0));
    }
}
