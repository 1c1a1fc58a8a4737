//! The transactions that were due in the measured window of a step: done, failed, waiting.

use mydyno_model::record::Interval;
use mydyno_model::summary::DueSummary;

/// Counts over the windows; `None` in records that hold no such counts.
pub fn summarise(warmup: &[&Interval], measured: &[&Interval]) -> Option<DueSummary> {
    if measured.iter().all(|w| w.arrivals.is_empty()) {
        return None;
    }
    let sum = |of: fn(&Interval) -> u64| measured.iter().map(|w| of(w)).sum::<u64>();
    Some(DueSummary {
        carried: warmup.last().map_or(0, |w| w.arrivals.waiting()),
        intended: sum(|w| w.arrivals.intended),
        done: sum(|w| w.transactions),
        failed: sum(|w| w.arrivals.failed + w.arrivals.dropped),
        waiting: measured.last().map_or(0, |w| w.arrivals.waiting()),
        most_queued: measured.iter().map(|w| w.arrivals.queued).max().unwrap_or(0),
        warmup_dropped: warmup.iter().map(|w| w.arrivals.dropped).sum(),
    })
}
