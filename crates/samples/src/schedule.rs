//! When samples are due: at multiples of an interval, however long a sample takes.

use std::time::Duration;

use crate::error::SamplesError;

/// Time between two samples, from [`Interval::SHORTEST`] to [`Interval::LONGEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(Duration);

impl Interval {
    /// Shorter intervals would cost more than they show.
    pub const SHORTEST: Duration = Duration::from_millis(100);

    /// Longer intervals would miss most events.
    pub const LONGEST: Duration = Duration::from_secs(600);

    /// One second.
    pub const SECOND: Self = Self(Duration::from_secs(1));

    /// An interval.
    ///
    /// # Errors
    /// It is outside these limits.
    pub fn new(every: Duration) -> Result<Self, SamplesError> {
        match (Self::SHORTEST..=Self::LONGEST).contains(&every) {
            true => Ok(Self(every)),
            false => Err(SamplesError::Interval(every)),
        }
    }

    /// The n-th part of it.
    pub(crate) fn part(self, n: u32) -> Duration {
        self.0 / n.max(1)
    }

    /// Whether `at_ns` is a multiple of it, as all due instants are.
    pub(crate) fn has_multiple_at(self, at_ns: u64) -> bool {
        at_ns.is_multiple_of(self.ns())
    }

    /// Seconds.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }

    fn ns(self) -> u64 {
        // At most 600 s.
        self.0.as_nanos() as u64
    }
}

/// A sample that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// When it was due.
    pub due_ns: u64,
    /// Nanoseconds from the instant at which the sample was due to the one at which it began.
    pub late_ns: u64,
    /// Number of samples before this one that were due but not taken.
    pub missed: u64,
}

/// The due instants of one sampler. They are absolute, so a late sample does not shift the next.
#[derive(Debug)]
pub struct Schedule {
    interval_ns: u64,
    due_ns: u64,
}

impl Schedule {
    /// The first sample is due at the first multiple of the interval after `now_ns`.
    pub fn after(now_ns: u64, interval: Interval) -> Self {
        let interval_ns = interval.ns();
        Self { interval_ns, due_ns: (now_ns / interval_ns + 1) * interval_ns }
    }

    /// When the next sample is due.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Takes the sample that is due at `now_ns`; `None` when none is due. Of several due samples the latest is taken,
    /// and the others count as missed.
    pub fn take(&mut self, now_ns: u64) -> Option<Tick> {
        let behind_ns = now_ns.checked_sub(self.due_ns)?;
        let missed = behind_ns / self.interval_ns;
        let due_ns = self.due_ns + missed * self.interval_ns;
        self.due_ns = due_ns + self.interval_ns;
        Some(Tick { due_ns, late_ns: behind_ns % self.interval_ns, missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn intervals_have_bounds() {
        for (ms, fits) in [(99, false), (100, true), (1000, true), (600_000, true), (600_001, false)] {
            assert_eq!(Interval::new(Duration::from_millis(ms)).is_ok(), fits, "{ms} ms");
        }
        let error = Interval::new(Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("100 ms") && error.contains("10 min"), "{error}");
    }

    #[test]
    fn a_late_sample_does_not_shift_the_next() {
        let mut schedule = Schedule::after(250 * MS, Interval::new(Duration::from_millis(100)).unwrap());
        assert_eq!(schedule.due_ns(), 300 * MS);
        assert_eq!(schedule.take(299 * MS), None);
        assert_eq!(schedule.take(340 * MS), Some(Tick { due_ns: 300 * MS, late_ns: 40 * MS, missed: 0 }));
        assert_eq!(schedule.due_ns(), 400 * MS);
    }

    #[test]
    fn samples_that_were_not_taken_are_counted() {
        let mut schedule = Schedule::after(0, Interval::SECOND);
        assert_eq!(
            schedule.take(4_250 * MS),
            Some(Tick { due_ns: 4_000 * MS, late_ns: 250 * MS, missed: 3 })
        );
        assert_eq!(schedule.due_ns(), 5_000 * MS);
    }
}
