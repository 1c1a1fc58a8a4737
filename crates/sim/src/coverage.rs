//! How often intervals hold the truth, on servers whose truth is known.

use mydyno_model::Estimate;

use crate::latency::Latency;
use crate::markdown::{percent, row, rule};
use crate::noise::Noise;
use mydyno_stats::histogram::SparseHistogram;
use mydyno_stats::interval;
use mydyno_stats::rng::Rng;
use mydyno_stats::steady;

/// Outcomes of the estimates of a cell: one noise, one length, many seeds.
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
    /// Of these, because the series is not steady.
    pub unsteady: u64,
    /// Sum of the half widths of the promised intervals.
    half_widths: f64,
}

impl Tally {
    /// Counts an estimate whose true value is `truth`.
    pub fn add(&mut self, estimate: &Estimate, truth: f64) {
        self.seeds += 1;
        let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
            self.without += 1;
            self.unsteady += u64::from(estimate.method.starts_with("not steady"));
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

    /// Share of the provisional intervals that hold the truth; `None` without any.
    pub fn provisional_coverage(&self) -> Option<f64> {
        (self.provisional > 0).then(|| self.provisional_held as f64 / self.provisional as f64)
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
        tally.add(&interval::mean(&series, n as f64), 100.0 + 4.0 * level);
    }
    tally
}

/// A Poisson count with this mean, at most 700: the number of exponential gaps that fit into it. Their sum is compared by its
/// exponential, a product of uniform numbers, so that no gap takes a logarithm (Knuth, *Seminumerical Algorithms*, 3.4.1).
fn poisson(mean: f64, rng: &mut Rng) -> u64 {
    // The exponential of less than −745 is 0, which no product falls below in time.
    debug_assert!(mean <= 700.0, "{mean}");
    let all = (-mean).exp();
    // 1 − u lies in (0, 1].
    let (mut product, mut count) = (1.0 - rng.f64(), 0);
    while product > all {
        product *= 1.0 - rng.f64();
        count += 1;
    }
    count
}

/// Throughputs of `n` seconds of Poisson counts about 100, whose mean varies by a tenth with the noise.
pub fn counts(noise: Noise, n: usize, seeds: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let mut rng = Rng::stream(seed, &[n as u64, 2]);
        let (series, level) = noise.series(n, &mut rng);
        let counts: Vec<u64> = series.iter().map(|x| poisson(100.0 + 10.0 * x, &mut rng)).collect();
        let widths_s = vec![1.0; n];
        tally.add(&interval::throughput(&counts, &widths_s), 100.0 + 10.0 * level);
    }
    tally
}

/// Share of series of `n` seconds that are called unsteady when the rate changes by `share` for good after the share `at` of the run.
pub fn found(noise: Noise, n: usize, at: f64, share: f64, seeds: u64) -> f64 {
    let found = (0..seeds).filter(|seed| {
        let (series, _) = noise.series(n, &mut Rng::stream(*seed, &[n as u64, 3]));
        let change = (at * n as f64).round() as usize;
        let level = |t: usize| if t < change { 100.0 } else { 100.0 * (1.0 + share) };
        let series: Vec<f64> = series.iter().enumerate().map(|(t, x)| level(t) + 4.0 * x).collect();
        steady::assess(&series).steady == Some(false)
    });
    found.count() as f64 / seeds as f64
}

/// Percentiles of `n` windows of `per_window` values whose level is correlated by `phi`; a tally for each of `qs`, half
/// widths as shares of the truth.
pub fn percentiles(phi: f64, n: usize, per_window: u64, qs: &[f64], seeds: u64) -> Vec<Tally> {
    let latency = Latency { median_ns: 200e3, shared: 0.15, own: 0.5, phi };
    let mut tallies = vec![Tally::default(); qs.len()];
    for seed in 0..seeds {
        let mut rng = Rng::stream(seed, &[n as u64, per_window]);
        let windows: Vec<SparseHistogram> = latency.windows(n, per_window, &mut rng);
        for ((q, tally), estimate) in
            qs.iter().zip(&mut tallies).zip(interval::percentiles(&windows, qs, n as f64))
        {
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
pub const LENGTHS: [usize; 6] = [16, 30, 60, 240, 300, 600];

/// Percentiles that the tables have.
pub const PERCENTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// Windows and values in each that the table of percentiles has.
pub const PERCENTILE_CELLS: [(usize, u64); 4] = [(60, 100), (240, 100), (300, 100), (600, 100)];

/// Correlations of windows that the tables of percentiles have.
pub const CORRELATIONS: [f64; 3] = [0.0, 0.5, 0.9];

/// A cell of a table: coverage of the intervals with a level, and the share of series that get one; where none do, coverage of the
/// provisional ones, marked with `~`.
pub fn cell(tally: &Tally) -> String {
    match (tally.coverage(), tally.provisional_coverage()) {
        (Some(held), _) => format!("{} of {:.0} %", percent(held), 100.0 * tally.promised_share()),
        (None, Some(held)) => format!("~ {}", percent(held)),
        (None, None) => "–".to_owned(),
    }
}

/// Coverage of means on every model of noise, as Markdown.
pub fn table_of_means(seeds: u64) -> String {
    by_length(&means, &cell, seeds)
}

/// Coverage of throughputs of Poisson counts on every model of noise, as Markdown.
pub fn table_of_counts(seeds: u64) -> String {
    by_length(&counts, &cell, seeds)
}

/// Places of a change of 20 % that the table of found changes has.
pub const PLACES: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9];

/// Most seeds of a cell of the table of found changes, whose likelihoods take longest.
pub const FOUND_SEEDS: u64 = 200;

/// Noises that the table of found changes has.
pub const CORRELATED: [(&str, Noise); 5] = [
    ("independent", Noise::Ar1 { phi: 0.0 }),
    ("AR(1) 0.7", Noise::Ar1 { phi: 0.7 }),
    ("AR(1) 0.9", Noise::Ar1 { phi: 0.9 }),
    ("AR(1) 0.95", Noise::Ar1 { phi: 0.95 }),
    ("pink", Noise::Pink),
];

/// Shares of lasting falls by 20 % that are found, as Markdown.
pub fn table_of_found(seeds: u64) -> String {
    let heads = ["noise", "windows"].map(str::to_owned).into_iter().chain(PLACES.map(percent));
    let mut table = row(heads) + &rule(2 + PLACES.len());
    for (name, noise) in CORRELATED {
        for n in [60, 120, 240, 600] {
            let cells = PLACES.map(|at| percent(found(noise, n, at, -0.2, seeds.min(FOUND_SEEDS))));
            table += &row([name.to_owned(), n.to_string()].into_iter().chain(cells));
        }
    }
    table
}

/// Shares that are called unsteady, as Markdown.
pub fn table_of_alarms(seeds: u64) -> String {
    by_length(&means, &|tally| percent(tally.unsteady_share()), seeds)
}

fn by_length(of: &dyn Fn(Noise, usize, u64) -> Tally, show: &dyn Fn(&Tally) -> String, seeds: u64) -> String {
    let heads = std::iter::once("noise \\ windows".to_owned()).chain(LENGTHS.map(|n| n.to_string()));
    let mut table = row(heads) + &rule(1 + LENGTHS.len());
    for (name, noise) in Noise::ALL.into_iter().chain(Noise::FURTHER) {
        let cells = LENGTHS.map(|n| show(&of(noise, n, seeds)));
        table += &row(std::iter::once(name.to_owned()).chain(cells));
    }
    table
}

/// Coverage of percentiles, as Markdown.
pub fn table_of_percentiles(seeds: u64) -> String {
    let names = PERCENTILES.map(|q| format!("p{}", 100.0 * q));
    let mut table = row(["φ", "windows", "values in each"].map(str::to_owned).into_iter().chain(names))
        + &rule(3 + PERCENTILES.len());
    for phi in CORRELATIONS {
        for (n, per_window) in PERCENTILE_CELLS {
            let tallies = percentiles(phi, n, per_window, &PERCENTILES, seeds);
            let of = [phi.to_string(), n.to_string(), per_window.to_string()];
            table += &row(of.into_iter().chain(tallies.iter().map(cell)));
        }
    }
    table
}
