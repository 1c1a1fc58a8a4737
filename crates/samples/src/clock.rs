//! The clock of the sample bus, and the flag that stops it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clocks that the bus reads and sleeps on; tests provide a virtual one.
pub trait Clock: Sync {
    /// Nanoseconds since the run began, on a monotonic clock. All times of a record are on this clock.
    fn now_ns(&self) -> u64;

    /// Nanoseconds of the wall clock since 1970. It is only compared with itself.
    fn wall_ns(&self) -> i64;

    /// Sleeps until `at_ns` of [`Clock::now_ns`], or until `stop` is set.
    fn sleep_until(&self, at_ns: u64, stop: &Stop);
}

/// The clock of this machine. `now_ns` is the run's clock, so that load and samples have the same zero.
pub struct MachineClock<F>(pub F);

impl<F: Fn() -> u64 + Sync> Clock for MachineClock<F> {
    fn now_ns(&self) -> u64 {
        (self.0)()
    }

    fn wall_ns(&self) -> i64 {
        // Before 1970 and after 2262 the wall clock is meaningless.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_nanos()).unwrap_or_default()
    }

    fn sleep_until(&self, at_ns: u64, stop: &Stop) {
        stop.wait_for(Duration::from_nanos(at_ns.saturating_sub(self.now_ns())));
    }
}

/// A cancellation flag that wakes its waiters.
#[derive(Debug, Default)]
pub struct Stop {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// A cleared flag.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag and wakes all waiters.
    pub fn set(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the flag is set, at most for `limit`.
    pub fn wait_for(&self, limit: Duration) {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock guards one bool, so it is valid even when the lock is poisoned; the caller reads it again.
        let _ = self.changed.wait_timeout_while(set, limit, |set| !*set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_stop_ends_a_long_sleep_at_once() {
        let start = Instant::now();
        let clock = MachineClock(move || start.elapsed().as_nanos() as u64);
        let stop = Stop::new();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| clock.sleep_until(3_600_000_000_000, &stop));
            stop.set();
            sleeper.join().unwrap();
        });
        assert!(stop.is_set() && start.elapsed() < Duration::from_secs(600));
    }

    #[test]
    fn the_wall_clock_is_after_the_year_2020() {
        assert!(MachineClock(|| 0).wall_ns() > 1_577_836_800_000_000_000);
    }
}
