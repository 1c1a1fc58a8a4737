//! The clock behind every number of a run: the kernel's, or a simulation's.

use mydyno_model::record;

/// Time since the run began.
pub trait Clock {
    /// Nanoseconds since the start.
    fn now_ns(&self) -> u64;

    /// Seconds since the start.
    fn now_s(&self) -> f64 {
        self.now_ns() as f64 / 1e9
    }
}

/// `CLOCK_MONOTONIC`. The kernel keeps this clock equal on all CPUs and steers its rate, never its value; on ordinary
/// hosts reading it needs no system call (vDSO).
#[derive(Debug, Clone, Copy)]
pub struct MonotonicClock {
    zero_ns: u64,
}

impl Clock for MonotonicClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        monotonic_ns() - self.zero_ns
    }
}

impl MonotonicClock {
    /// A clock that starts at this instant.
    pub fn start() -> Self {
        Self { zero_ns: monotonic_ns() }
    }

    /// The record's entry for this clock. `source` names the kernel's clock source where it is known.
    pub fn describe(&self, source: Option<String>) -> record::Clock {
        record::Clock { name: "CLOCK_MONOTONIC".to_owned(), source, read_ns: read_cost_ns() }
    }
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing; CLOCK_MONOTONIC exists on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds that one reading takes: the minimum over several batches, because other programs only add to it.
fn read_cost_ns() -> f64 {
    const READINGS: u32 = 1_000;
    (0..20)
        .map(|_| {
            let start = monotonic_ns();
            for _ in 0..READINGS {
                std::hint::black_box(monotonic_ns());
            }
            (monotonic_ns() - start) as f64 / f64::from(READINGS)
        })
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_steps_back() {
        let clock = MonotonicClock::start();
        let mut last = 0;
        for _ in 0..10_000 {
            let now = clock.now_ns();
            assert!(now >= last);
            last = now;
        }
    }
}
