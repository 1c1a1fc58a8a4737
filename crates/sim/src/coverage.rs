//! How often intervals hold the truth, on servers whose truth is known.

use mydyno_model::Estimate;

use crate::latency::Latency;
use crate::markdown::{percent, row, rule};
use crate::noise::Noise;
use mydyno_stats::histogram::SparseHistogram;
use mydyno_stats::interval;
use mydyno_stats::rng::Rng;
use mydyno_stats::steady;

/// What became of the estimates of a cell: one noise, one length, many seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Estimates.
    pub seeds: u64,
    /// With an interval that promises its level.
    pub promised: u64,
    /// Of these, with the truth inside.
    pub held: u64,
    /// With a provisional interval.
    pub provisional: u64,
    /// Of these, with the truth inside.
    pub provisional_held: u64,
    /// Without an interval.
    pub without: u64,
    /// Called unsteady by [`steady::assess`] (means only).
    pub unsteady: u64,
    /// Sum of the half widths of the promised intervals.
    half_widths: f64,
}

impl Tally {
    /// Counts an estimate of what is truly `truth`.
    pub fn add(&mut self, estimate: &Estimate, truth: f64) {
        self.seeds += 1;
        let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
            self.without += 1;
            return;
        };
        let held = u64::from(low <= truth && truth <= high);
        if estimate.is_provisional() {
            self.provisional += 1;
            self.provisional_held += held;
            return;
        }
        self.promised += 1;
        self.held += held;
        self.half_widths += (high - low) / 2.0;
    }

    /// Share of the promised intervals that hold the truth; `None` without any.
    pub fn coverage(&self) -> Option<f64> {
        (self.promised > 0).then(|| self.held as f64 / self.promised as f64)
    }

    /// Share of the estimates that promise their level.
    pub fn promised_share(&self) -> f64 {
        self.promised as f64 / self.seeds.max(1) as f64
    }

    /// Share of the series that were called unsteady.
    pub fn unsteady_share(&self) -> f64 {
        self.unsteady as f64 / self.seeds.max(1) as f64
    }

    /// Mean half width of the promised intervals; `None` without any.
    pub fn half_width(&self) -> Option<f64> {
        (self.promised > 0).then(|| self.half_widths / self.promised as f64)
    }
}

/// Means of `n` windows about 100 with a noise of 4; the truth is the level over the window.
pub fn means(noise: Noise, n: usize, seeds: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let (series, level) = noise.series(n, &mut Rng::stream(seed, &[n as u64]));
        let series: Vec<f64> = series.iter().map(|x| 100.0 + 4.0 * x).collect();
        tally.unsteady += u64::from(steady::assess(&series).steady == Some(false));
        tally.add(&interval::mean(&series), 100.0 + 4.0 * level);
    }
    tally
}

/// Percentiles of `n` windows of `per_window` values whose level is correlated by `phi`; a tally for each of `qs`, half
/// widths as shares of the truth.
pub fn percentiles(phi: f64, n: usize, per_window: u64, qs: &[f64], seeds: u64) -> Vec<Tally> {
    let latency = Latency { median_ns: 200e3, shared: 0.15, own: 0.5, phi };
    let mut tallies = vec![Tally::default(); qs.len()];
    for seed in 0..seeds {
        let mut rng = Rng::stream(seed, &[n as u64, per_window]);
        let windows: Vec<SparseHistogram> = latency.windows(n, per_window, &mut rng);
        for ((q, tally), estimate) in qs.iter().zip(&mut tallies).zip(interval::percentiles(&windows, qs)) {
            let truth = latency.quantile_ns(*q);
            let share = |ns: f64| ns / truth;
            let estimate =
                Estimate { low: estimate.low.map(share), high: estimate.high.map(share), ..estimate };
            tally.add(&estimate, 1.0);
        }
    }
    tallies
}

/// Numbers of windows that the tables of means have.
pub const LENGTHS: [usize; 8] = [16, 60, 120, 180, 240, 300, 600, 1200];

/// Percentiles that the tables have.
pub const PERCENTILES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];

/// Windows, values in each, and what the number of seeds is divided by (long cells cost more).
pub const PERCENTILE_CELLS: [(usize, u64, u64); 8] = [
    (60, 100, 1),
    (240, 100, 1),
    (240, 1000, 1),
    (240, 5000, 2),
    (300, 100, 1),
    (300, 1000, 1),
    (600, 100, 1),
    (600, 1000, 2),
];

/// Correlations of windows that the tables of percentiles have.
pub const CORRELATIONS: [f64; 3] = [0.0, 0.5, 0.9];

/// A cell of a table: coverage of the intervals with a level, and the share of series that get one.
pub fn cell(tally: &Tally) -> String {
    let held = tally.coverage().map(|c| format!("{} of {}", percent(c), percent(tally.promised_share())));
    held.unwrap_or_else(|| "–".to_owned())
}

/// Coverage of means on every model of noise, as Markdown.
pub fn table_of_means(seeds: u64) -> String {
    by_length(&cell, seeds)
}

/// Shares that are called unsteady, as Markdown.
pub fn table_of_alarms(seeds: u64) -> String {
    by_length(&|tally| percent(tally.unsteady_share()), seeds)
}

fn by_length(show: &dyn Fn(&Tally) -> String, seeds: u64) -> String {
    let heads = std::iter::once("noise \\ windows".to_owned()).chain(LENGTHS.map(|n| n.to_string()));
    let mut table = row(heads) + &rule(1 + LENGTHS.len());
    for (name, noise) in Noise::ALL {
        let cells = LENGTHS.map(|n| show(&means(noise, n, seeds)));
        table += &row(std::iter::once(name.to_owned()).chain(cells));
    }
    table
}

/// Coverage of percentiles, as Markdown.
pub fn table_of_percentiles(seeds: u64) -> String {
    let names = PERCENTILES.map(|q| format!("p{}", 100.0 * q));
    let mut table =
        row(["φ", "windows", "values in each", "seeds"].map(str::to_owned).into_iter().chain(names))
            + &rule(4 + PERCENTILES.len());
    for phi in CORRELATIONS {
        for (n, per_window, part) in PERCENTILE_CELLS {
            let seeds = seeds.div_ceil(part);
            let tallies = percentiles(phi, n, per_window, &PERCENTILES, seeds);
            let of = [phi.to_string(), n.to_string(), per_window.to_string(), seeds.to_string()];
            table += &row(of.into_iter().chain(tallies.iter().map(cell)));
        }
    }
    table
}
