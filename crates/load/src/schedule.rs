//! The schedule of an open loop: the instants at which transactions are intended.
//!
//! The n-th transaction is intended when the cumulated rate reaches its count: n + ½ with even spacing, a sum of n + 1
//! exponential numbers for a Poisson process. Any course of the rate is served by inverting the cumulated rate (Çinlar,
//! Introduction to Stochastic Processes, 1975: time transformation), so ramps and steps are exact and not made of small
//! constant pieces.

use mydyno_model::plan::{Arrivals, Shape, Spacing};
use mydyno_stats::rng::Rng;

/// Label of the random streams of arrivals.
const ARRIVALS: u64 = 0x6172_7269_7661_6c73;

/// Which arrivals of a schedule a worker takes: they are dealt to the connections in turn, and connection n belongs to
/// worker n modulo the number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deal {
    /// Number of the worker.
    pub worker: u64,
    /// Of how many.
    pub workers: u64,
    /// Connections of all workers.
    pub connections: u64,
}

impl Deal {
    fn is_mine(&self, arrival: u64) -> bool {
        arrival % self.connections % self.workers == self.worker
    }
}

/// A stretch of time over which the rate changes evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    from_per_s: f64,
    to_per_s: f64,
    /// Infinite for the last one.
    time_s: f64,
}

impl Segment {
    /// Arrivals until its end.
    fn arrivals(&self) -> f64 {
        if self.time_s.is_infinite() {
            return f64::INFINITY;
        }
        (self.from_per_s + self.to_per_s) / 2.0 * self.time_s
    }

    /// When the cumulated rate reaches `count`, in seconds after its start: the root of the quadratic in the form that
    /// does not cancel.
    fn reaches_s(&self, count: f64) -> f64 {
        if count <= 0.0 {
            return 0.0;
        }
        let slope =
            if self.time_s.is_finite() { (self.to_per_s - self.from_per_s) / self.time_s } else { 0.0 };
        let root = (self.from_per_s * self.from_per_s + 2.0 * slope * count).max(0.0).sqrt();
        2.0 * count / (self.from_per_s + root)
    }
}

/// The instants of one worker's arrivals, one after the other, without end.
#[derive(Debug, Clone)]
pub struct Schedule {
    origin_ns: u64,
    spacing: Spacing,
    segments: std::vec::IntoIter<Segment>,
    segment: Segment,
    /// Start of the stretch, in seconds after the origin.
    start_s: f64,
    /// Cumulated rate at its start.
    before: f64,
    /// Cumulated rate at the latest arrival of any worker.
    reached: f64,
    /// Arrivals of all workers so far.
    arrivals: u64,
    deal: Deal,
    random: Rng,
    next_ns: u64,
}

impl Schedule {
    /// The schedule before measuring: the rate with which `shape` begins, from `origin_ns` on.
    pub fn warmup(arrivals: &Arrivals, deal: Deal, seed: u64, origin_ns: u64) -> Option<Self> {
        Self::new(arrivals, deal, seed, origin_ns, 0, |segments| {
            let rate = segments.first().map_or(0.0, |segment| segment.from_per_s);
            vec![Segment { from_per_s: rate, to_per_s: rate, time_s: f64::INFINITY }]
        })
    }

    /// The schedule of the measured window, which begins at `origin_ns`. `None` for a closed loop, which has none.
    pub fn measure(
        arrivals: &Arrivals,
        deal: Deal,
        seed: u64,
        origin_ns: u64,
        window_s: f64,
    ) -> Option<Self> {
        Self::new(arrivals, deal, seed, origin_ns, 1, |mut segments| {
            match segments.as_mut_slice() {
                [one] if one.time_s == 0.0 => one.time_s = window_s,
                _ => {}
            }
            // Beyond its end the window goes on as it ended, if a worker comes late to close it.
            let rate = segments.last().map_or(0.0, |segment| segment.to_per_s);
            segments.push(Segment { from_per_s: rate, to_per_s: rate, time_s: f64::INFINITY });
            segments
        })
    }

    fn new(
        arrivals: &Arrivals,
        deal: Deal,
        seed: u64,
        origin_ns: u64,
        phase: u64,
        course: impl FnOnce(Vec<Segment>) -> Vec<Segment>,
    ) -> Option<Self> {
        let Arrivals::Open { rate_per_s, spacing, shape } = arrivals else { return None };
        let mut segments = course(segments(*rate_per_s, shape)).into_iter();
        let segment = segments.next()?;
        let mut schedule = Self {
            origin_ns,
            spacing: *spacing,
            segments,
            segment,
            start_s: 0.0,
            before: 0.0,
            reached: 0.0,
            arrivals: 0,
            deal,
            random: Rng::stream(seed, &[ARRIVALS, phase]),
            next_ns: 0,
        };
        schedule.advance();
        Some(schedule)
    }

    /// When this worker's next transaction is intended; `u64::MAX` when never.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Goes on to the arrival after it.
    pub fn advance(&mut self) {
        loop {
            let number = self.arrivals;
            self.arrivals += 1;
            self.reached = match self.spacing {
                Spacing::Constant => number as f64 + 0.5,
                Spacing::Poisson => self.reached + self.random.exponential(),
            };
            if self.deal.is_mine(number) {
                break;
            }
        }
        while self.reached - self.before > self.segment.arrivals() {
            self.before += self.segment.arrivals();
            self.start_s += self.segment.time_s;
            match self.segments.next() {
                Some(segment) => self.segment = segment,
                None => break,
            }
        }
        let at_ns = (self.start_s + self.segment.reaches_s(self.reached - self.before)) * 1e9;
        // A rate of nothing never reaches the count: the conversion saturates.
        self.next_ns = self.origin_ns.saturating_add(at_ns as u64);
    }
}

/// The course of the rate; a single stretch of no length lasts as long as the window.
fn segments(rate_per_s: f64, shape: &Shape) -> Vec<Segment> {
    let even = |rate, time_s| Segment { from_per_s: rate, to_per_s: rate, time_s };
    match shape {
        Shape::Flat => vec![even(rate_per_s, 0.0)],
        Shape::Ramp { from_per_s, to_per_s } => {
            vec![Segment { from_per_s: *from_per_s, to_per_s: *to_per_s, time_s: 0.0 }]
        }
        Shape::Steps { steps } => steps.iter().map(|step| even(step.rate_per_s, step.time_s)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_model::plan::RateStep;
    use proptest::prelude::*;

    const ALONE: Deal = Deal { worker: 0, workers: 1, connections: 1 };

    fn instants(mut schedule: Schedule, until_ns: u64) -> Vec<u64> {
        let mut instants = Vec::new();
        while schedule.next_ns() <= until_ns {
            instants.push(schedule.next_ns());
            schedule.advance();
        }
        instants
    }

    fn shaped(rate_per_s: f64, spacing: Spacing, shape: Shape) -> Arrivals {
        Arrivals::Open { rate_per_s, spacing, shape }
    }

    #[test]
    fn even_spacing_is_even_and_takes_fractions() {
        let arrivals = Arrivals::open(2.5, Spacing::Constant);
        let schedule = Schedule::measure(&arrivals, ALONE, 1, 1_000, 2.0).unwrap();
        let ms: Vec<u64> =
            instants(schedule, 2_000_000_000).iter().map(|ns| (ns - 1_000) / 1_000_000).collect();
        assert_eq!(ms, [200, 600, 1000, 1400, 1800]);
    }

    #[test]
    fn a_ramp_reaches_its_cumulated_rate_at_the_known_instants() {
        // From 0 to 10 a second over 4 s: t²·1.25 arrivals after t seconds, so arrival n + ½ comes at √((n + ½)/1.25).
        let arrivals = shaped(5.0, Spacing::Constant, Shape::Ramp { from_per_s: 0.0, to_per_s: 10.0 });
        let found = instants(Schedule::measure(&arrivals, ALONE, 1, 0, 4.0).unwrap(), 4_000_000_000);
        assert_eq!(found.len(), 20);
        for (n, at_ns) in found.iter().enumerate() {
            let expected_s = ((n as f64 + 0.5) / 1.25).sqrt();
            assert!((*at_ns as f64 / 1e9 - expected_s).abs() < 1e-8, "{n}: {at_ns}");
        }
        // And downwards, the mirror image.
        let down = shaped(5.0, Spacing::Constant, Shape::Ramp { from_per_s: 10.0, to_per_s: 0.0 });
        let mirrored = instants(Schedule::measure(&down, ALONE, 1, 0, 4.0).unwrap(), 4_000_000_000);
        let sums: Vec<u64> = found.iter().rev().zip(&mirrored).map(|(a, b)| (a + b) / 1000).collect();
        assert!(sums.iter().all(|us| us.abs_diff(4_000_000) <= 1), "{sums:?}");
    }

    #[test]
    fn steps_hold_their_rates_and_a_rate_of_nothing_is_silent() {
        let steps = [(4.0, 1.0), (0.0, 1.0), (2.0, 1.0)];
        let steps = steps.map(|(rate_per_s, time_s)| RateStep { rate_per_s, time_s }).to_vec();
        let arrivals = shaped(2.0, Spacing::Constant, Shape::Steps { steps });
        let found = instants(Schedule::measure(&arrivals, ALONE, 1, 0, 3.0).unwrap(), 3_000_000_000);
        let ms: Vec<u64> = found.iter().map(|ns| ns / 1_000_000).collect();
        assert_eq!(ms, [125, 375, 625, 875, 2250, 2750]);
    }

    #[test]
    fn the_warmup_runs_at_the_rate_with_which_the_window_begins() {
        let arrivals = shaped(5.0, Spacing::Constant, Shape::Ramp { from_per_s: 10.0, to_per_s: 0.0 });
        let found = instants(Schedule::warmup(&arrivals, ALONE, 1, 0).unwrap(), 10_000_000_000);
        assert_eq!(found.len(), 100);
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert!(Schedule::warmup(&Arrivals::CLOSED, ALONE, 1, 0).is_none());
    }

    #[test]
    fn gaps_of_a_poisson_process_are_exponential() {
        let arrivals = Arrivals::open(1_000.0, Spacing::Poisson);
        let found = instants(Schedule::measure(&arrivals, ALONE, 7, 0, 100.0).unwrap(), 100_000_000_000);
        let gaps: Vec<f64> = found.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        // Kolmogorov and Smirnov's distance to 1 − exp(−x), critical value at the level of 0.001.
        let mut sorted = gaps.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let distance = sorted
            .iter()
            .enumerate()
            .map(|(i, gap)| {
                let expected = 1.0 - (-gap).exp();
                (expected - i as f64 / n).abs().max(((i + 1) as f64 / n - expected).abs())
            })
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{distance}");
        // 100,000 arrivals are expected; six standard deviations.
        assert!((n - 100_000.0).abs() < 6.0 * 316.0, "{n}");
    }

    proptest! {
        #[test]
        fn workers_together_have_the_arrivals_of_one(
            workers in 1u64..6, more in 0u64..20, rate in 1.0f64..500.0, poisson in any::<bool>(), seed in any::<u64>()
        ) {
            let connections = workers + more;
            let spacing = if poisson { Spacing::Poisson } else { Spacing::Constant };
            let arrivals = shaped(rate, spacing, Shape::Ramp { from_per_s: rate / 2.0, to_per_s: rate * 1.5 });
            let of = |worker, workers| {
                let deal = Deal { worker, workers, connections };
                instants(Schedule::measure(&arrivals, deal, seed, 5, 2.0).unwrap(), 2_000_000_000)
            };
            let mut together: Vec<u64> = (0..workers).flat_map(|worker| of(worker, workers)).collect();
            together.sort_unstable();
            prop_assert_eq!(together, of(0, 1));
        }
    }
}
