//! Latencies with a known distribution whose windows resemble their neighbours.

use crate::noise::Noise;
use mydyno_stats::histogram::{Histogram, SparseHistogram};
use mydyno_stats::rng::Rng;
use mydyno_stats::special::normal_quantile;

/// Log-normal latencies: part of their spread belongs to the window (all of a slow second are slow), part to each.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// Median over the long run in nanoseconds.
    pub median_ns: f64,
    /// Standard deviation of the logarithm that all values of a window share.
    pub shared: f64,
    /// Standard deviation of the logarithm of each value.
    pub own: f64,
    /// Correlation of a window with the one before.
    pub phi: f64,
}

impl Latency {
    /// Histograms of `n` windows that follow each other, with `per_window` values each.
    pub fn windows(&self, n: usize, per_window: u64, rng: &mut Rng) -> Vec<SparseHistogram> {
        let mut level = Noise::Ar1 { phi: self.phi }.source(rng);
        (0..n)
            .map(|_| {
                let mut window = Histogram::new();
                let shared = self.shared * level.next(rng);
                for _ in 0..per_window {
                    window.record((self.median_ns * (shared + self.own * rng.normal()).exp()).round() as u64);
                }
                window.to_sparse()
            })
            .collect()
    }

    /// The true quantile over the long run.
    pub fn quantile_ns(&self, q: f64) -> f64 {
        self.median_ns * (self.shared.hypot(self.own) * normal_quantile(q)).exp()
    }
}
