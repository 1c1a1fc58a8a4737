//! The windows of a step: when each ends, and to which phase it belongs.

use std::time::Duration;

use mydyno_model::record::Phase;

/// Lengths of the timed phases of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// Load that is not kept for the headline.
    pub warmup: Duration,
    /// Load that is.
    pub measure: Duration,
}

/// Windows of about a second that tile warm-up and measurement without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// Phase and end (nanoseconds after the step's load began) of each window.
    ends: Vec<(Phase, u64)>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Windows {
    /// The windows of these phases. Each is one second; a rest of a phase makes a shorter one, or, when it is under
    /// half a second, lengthens the one before.
    pub fn tile(phases: Phases) -> Self {
        let mut ends = Vec::new();
        let mut start = 0;
        for (phase, length) in [(Phase::Warmup, phases.warmup), (Phase::Measure, phases.measure)] {
            let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX / 4);
            let whole = length / SECOND_NS;
            let rest = length % SECOND_NS;
            ends.extend((1..=whole).map(|n| (phase, start + n * SECOND_NS)));
            match ends.last_mut() {
                Some((last, end)) if *last == phase && rest < SECOND_NS / 2 => *end += rest,
                _ if rest > 0 => ends.push((phase, start + length)),
                _ => {}
            }
            start += length;
        }
        Self { ends }
    }

    /// Number of windows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Phase and end of a window; `None` after the last.
    pub fn get(&self, index: usize) -> Option<(Phase, u64)> {
        self.ends.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(warmup_ms: u64, measure_ms: u64) -> Vec<(Phase, u64)> {
        let phases =
            Phases { warmup: Duration::from_millis(warmup_ms), measure: Duration::from_millis(measure_ms) };
        Windows::tile(phases).ends.iter().map(|(p, end)| (*p, end / 1_000_000)).collect()
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
