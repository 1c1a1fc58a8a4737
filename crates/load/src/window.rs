//! The windows of a step: when each ends, and to which phase it belongs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mydyno_model::record::{Interval, Phase};

/// Load before the measurement, which is not kept for the headline.
#[derive(Clone, Copy)]
pub enum Warmup<'a> {
    /// Of this length.
    Fixed(Duration),
    /// Until the windows so far are called steady, or the limit is reached.
    Steady {
        /// At most so long.
        limit: Duration,
        /// Whether what was seen so far has settled.
        is_steady: &'a (dyn Fn(&[Interval]) -> bool + Sync),
    },
}

impl Warmup<'_> {
    /// Its longest length.
    pub fn longest(&self) -> Duration {
        match self {
            Self::Fixed(length) | Self::Steady { limit: length, .. } => *length,
        }
    }
}

/// Windows of about a second that tile warm-up and measurement without gaps.
#[derive(Debug)]
pub struct Windows {
    /// Windows of the warm-up, whose ends are in nanoseconds after the step's load began.
    warmup: Tiles,
    /// Those of the measurement, after it began.
    measure: Tiles,
    /// Number of windows that the warm-up took; less than planned where it ended early.
    warmed_up_after: AtomicUsize,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Windows {
    /// The windows of a warm-up of at most this length, and of the measurement after it. Each is one second; a rest of
    /// a phase makes a shorter one, or, when it is under half a second, lengthens the one before.
    pub fn tile(warmup: Duration, measure: Duration) -> Self {
        let warmup = tile(warmup);
        Self { warmed_up_after: AtomicUsize::new(warmup.count), warmup, measure: tile(measure) }
    }

    /// Ends the warm-up after so many windows. All workers must still be in earlier ones.
    pub fn end_warmup_after(&self, windows: usize) {
        self.warmed_up_after.fetch_min(windows, Ordering::Release);
    }

    fn warmup_windows(&self) -> usize {
        self.warmed_up_after.load(Ordering::Acquire)
    }

    /// Number of windows.
    pub fn count(&self) -> usize {
        self.warmup_windows() + self.measure.count
    }

    /// Length of the measurement in seconds.
    pub fn measure_s(&self) -> f64 {
        self.measure.length_ns as f64 / 1e9
    }

    /// Phase and end of a window; `None` after the last.
    pub fn get(&self, index: usize) -> Option<(Phase, u64)> {
        let warmup = self.warmup_windows();
        if index < warmup {
            return self.warmup.end_ns(index).map(|end| (Phase::Warmup, end));
        }
        let began = warmup.checked_sub(1).and_then(|last| self.warmup.end_ns(last)).unwrap_or(0);
        self.measure.end_ns(index - warmup).map(|end| (Phase::Measure, began + end))
    }
}

/// The windows of a phase, by number and length: a load without end has too many for a list.
#[derive(Debug)]
struct Tiles {
    count: usize,
    length_ns: u64,
}

impl Tiles {
    /// End of a window; `None` after the last.
    fn end_ns(&self, index: usize) -> Option<u64> {
        match index + 1 {
            number if number < self.count => Some(number as u64 * SECOND_NS),
            number => (number == self.count).then_some(self.length_ns),
        }
    }
}

fn tile(length: Duration) -> Tiles {
    let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX / 4);
    let (whole, rest) = (length_ns / SECOND_NS, length_ns % SECOND_NS);
    let own = rest >= SECOND_NS / 2 || (whole == 0 && rest > 0);
    Tiles { count: whole as usize + usize::from(own), length_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(warmup_ms: u64, measure_ms: u64) -> Vec<(Phase, u64)> {
        all(&Windows::tile(Duration::from_millis(warmup_ms), Duration::from_millis(measure_ms)))
    }

    fn all(windows: &Windows) -> Vec<(Phase, u64)> {
        let all: Vec<_> = (0..).map_while(|n| windows.get(n)).map(|(p, end)| (p, end / 1_000_000)).collect();
        assert_eq!(all.len(), windows.count());
        all
    }

    #[test]
    fn windows_are_a_second_and_a_short_rest_joins_the_last() {
        use Phase::{Measure, Warmup};
        assert_eq!(ends(0, 2000), [(Measure, 1000), (Measure, 2000)]);
        assert_eq!(ends(1000, 2400), [(Warmup, 1000), (Measure, 2000), (Measure, 3400)]);
        assert_eq!(ends(300, 1700), [(Warmup, 300), (Measure, 1300), (Measure, 2000)]);
        assert_eq!(ends(0, 200), [(Measure, 200)]);
        assert_eq!(ends(0, 0), []);
    }

    #[test]
    fn a_warmup_that_ends_early_moves_the_measurement() {
        use Phase::{Measure, Warmup};
        let windows = Windows::tile(Duration::from_secs(60), Duration::from_secs(2));
        windows.end_warmup_after(2);
        windows.end_warmup_after(5);
        let expected = [(Warmup, 1000), (Warmup, 2000), (Measure, 3000), (Measure, 4000)];
        assert_eq!(all(&windows), expected);
    }

    proptest! {
        #[test]
        fn windows_tile_the_phases_exactly(warmup_ms in 0u64..5000, measure_ms in 1u64..5000) {
            let ends = ends(warmup_ms, measure_ms);
            prop_assert!(ends.windows(2).all(|w| w[0].1 < w[1].1));
            prop_assert_eq!(ends.last().map(|(_, end)| *end), Some(warmup_ms + measure_ms));
            let warm = ends.iter().rev().find(|(p, _)| *p == Phase::Warmup).map_or(0, |(_, end)| *end);
            prop_assert_eq!(warm, warmup_ms);
        }
    }
}
