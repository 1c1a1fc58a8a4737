//! Keying and think times of the specification's terminals (clauses 5.2.5.2 and 5.2.5.4).

use mydyno_stats::rng::Rng;

use super::inputs::Kind;

/// Keying time before a transaction, in seconds: constant, and at least this long (clause 5.2.5.2).
pub fn keying_s(kind: Kind) -> f64 {
    match kind {
        Kind::NewOrder => 18.0,
        Kind::Payment => 3.0,
        Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => 2.0,
    }
}

/// Mean of the think time after a transaction, in seconds, at least (clause 5.2.5.7).
pub fn mean_think_s(kind: Kind) -> f64 {
    match kind {
        Kind::NewOrder | Kind::Payment => 12.0,
        Kind::OrderStatus => 10.0,
        Kind::Delivery | Kind::StockLevel => 5.0,
    }
}

/// Where the distribution of think times is cut, in means (clause 5.2.5.4).
const LONGEST_MEANS: f64 = 10.0;

/// A think time in seconds: negative exponential, cut at ten times its mean.
pub fn think_s(rng: &mut Rng, kind: Kind) -> f64 {
    mean_think_s(kind) * rng.exponential().min(LONGEST_MEANS)
}

/// Waits of a terminal: think times are drawn from a stream of their own, so that they change no input.
#[derive(Debug)]
pub struct Waits {
    rng: Rng,
    /// The kind of the last transaction; `None` before the first.
    last: Option<Kind>,
    /// The think time that was drawn last, in microseconds.
    pub think_us: u64,
}

impl Waits {
    /// Of a terminal that has done nothing.
    pub fn new(rng: Rng) -> Self {
        Self { rng, last: None, think_us: 0 }
    }

    /// The kind of the transaction whose think time has been drawn last.
    pub fn thought_about(&self) -> Option<Kind> {
        self.last
    }

    /// Nanoseconds from the end of a transaction of kind `last` to the send of one of kind `next`: thinking, then keying. Before the
    /// first one, terminals are spread over a cycle, so that they do not all send at once.
    pub fn pause_ns(&mut self, last: Option<Kind>, next: Kind) -> u64 {
        self.last = last;
        let pause_s = match last {
            Some(last) => {
                let think_s = think_s(&mut self.rng, last);
                self.think_us = (think_s * 1e6) as u64;
                think_s + keying_s(next)
            }
            None => self.rng.f64() * (mean_think_s(next) + keying_s(next)),
        };
        (pause_s * 1e9) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

    /// Kolmogorov's and Smirnov's distance to the exponential distribution below its cut; 1.95 ÷ √n is the critical value at
    /// the level of 0.001.
    #[test]
    fn think_times_are_exponential_with_the_specified_means_and_cut_at_ten() {
        const N: usize = 20_000;
        for kind in KINDS {
            let mut rng = Rng::from_seed(kind as u64 + 1);
            let mut shares: Vec<f64> = (0..N).map(|_| think_s(&mut rng, kind) / mean_think_s(kind)).collect();
            shares.sort_by(f64::total_cmp);
            let distance = shares.iter().enumerate().fold(0.0f64, |worst, (i, x)| {
                let expected = 1.0 - (-x).exp();
                let (below, above) = (i as f64 / N as f64, (i + 1) as f64 / N as f64);
                worst.max((expected - below).abs()).max((above - expected).abs())
            });
            assert!(distance < 1.95 / (N as f64).sqrt(), "{kind:?}: {distance}");
            assert!(shares.iter().all(|x| *x <= 10.0));
        }
    }

    #[test]
    fn a_pause_is_a_think_time_and_the_keying_time_of_what_follows() {
        let mut waits = Waits::new(Rng::from_seed(7));
        for last in KINDS {
            for next in KINDS {
                let pause_ns = waits.pause_ns(Some(last), next);
                let keying_s = (pause_ns as f64 - waits.think_us as f64 * 1e3) / 1e9;
                assert!((keying_s - keying_s_of(next)).abs() < 1e-5, "{last:?} {next:?}: {keying_s}");
            }
        }
        let first: Vec<f64> = (0..1_000)
            .map(|n| Waits::new(Rng::from_seed(n)).pause_ns(None, Kind::Payment) as f64 / 1e9)
            .collect();
        assert!(first.iter().all(|s| (0.0..15.0).contains(s)));
        assert!((first.iter().sum::<f64>() / 1_000.0 - 7.5).abs() < 0.7);
    }

    /// The table of clause 5.2.5.7, typed a second time.
    fn keying_s_of(kind: Kind) -> f64 {
        [18.0, 3.0, 2.0, 2.0, 2.0][KINDS.iter().position(|other| *other == kind).unwrap()]
    }
}
