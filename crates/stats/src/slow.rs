//! The error of the mean of one run: Student's t over the slowest cosines of the series, two of them below [`LONG_S`] seconds
//! and four from there, with as many degrees of freedom. The error is 20 % wider for two cosines ([`WIDER_SHORT`]), 10 % for
//! four ([`WIDER`]), and half as wide again where the noise has long memory ([`LONG_MEMORY`]). The method assumes that
//! no change is slower than over a quarter of the run.
//!
//! The mean square of the slowest cosines estimates the spectrum near frequency 0, which is the variance of the mean (Müller
//! 2007; Lazarus, Lewis, Stock and Watson 2018); a few cosines capture only changes that are slow relative to the noise from
//! second to second. Other designs with their coverage: docs/journal/statistics.md.

use crate::special::f_sf;

mod memory;

/// Minimum number of windows for an interval, or for a judgement of steadiness.
pub const MIN_WINDOWS: usize = 16;

/// Shortest measured time, in seconds, for an interval with a promised level.
pub const RELIABLE_S: f64 = 240.0;

/// Measured time, in seconds, from which four cosines are used instead of two.
pub const LONG_S: f64 = 480.0;

/// Factor of the standard error over the estimate from the slowest cosines. The variance of a mean is the spectrum at frequency
/// 0; the cosines lie beside it, where correlated noise has less power.
pub const WIDER: f64 = 1.1;

/// The same for two cosines. The test of lasting levels ([`levels_last`]) takes the promised level from some series whose
/// intervals hold; among those that keep it fewer hold, and the additional 10 % make up for that on pink noise.
pub const WIDER_SHORT: f64 = 1.2;

/// Slope of the log power of the [`SLOPE_OVER`] slowest cosines over log frequency below which noise has long memory: its power
/// at frequency 0, which the cosines cannot show, is larger than theirs. Pink noise (1/f) has a slope of about −0.9,
/// independent noise of 0.
const LONG_MEMORY_SLOPE: f64 = -0.4;

/// Number of cosines of the slope.
const SLOPE_OVER: usize = 24;

/// Additional factor of the standard error of noise with long memory.
pub const LONG_MEMORY: f64 = 1.5;

/// Number of cosines after the two slowest that measure the power of faster changes.
const FASTER: usize = 10;

/// Share of independent series that the test declares wandering (false alarm rate).
const WANDER_ALARM: f64 = 0.01;

/// Limit of the mean square that two lasting changes of level explain, in units of the power that they leave ([`levels_last`]).
/// About 1 % of independent series exceed it.
const LASTING_LEVELS: f64 = 21.0;

/// Number of equal parts of a series between which such changes are searched, and the fewest that a level lasts.
const PARTS: usize = 20;
const SHORTEST_LEVEL: usize = 2;

/// Number of the slowest cosines that measure what the changes of level leave.
const LEFT_OVER: usize = 10;

/// The error of the mean of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowError {
    /// Standard error of the mean, in the unit of the series.
    pub standard_error: f64,
    /// Degrees of freedom: the number of cosines.
    pub df: f64,
    /// Whether the level itself changes too slowly for the assumption, or may do so: the two slowest cosines are much larger than
    /// the ten after them, lasting changes of level stand out of what they leave, or a level that drifts through the whole run
    /// explains the series as well as one that returns.
    pub wanders: bool,
}

impl SlowError {
    /// Reason why no level can be promised for an interval over `time_s` seconds; `None` when it can.
    pub fn doubt(&self, time_s: f64) -> Option<String> {
        if !reliable(time_s) {
            return Some(format!("less than {RELIABLE_S} seconds cannot tell slow changes from noise"));
        }
        self.wanders.then(|| {
            "its level changes more slowly than a quarter of the run, or may do so: it speaks of this stretch of time only"
                .to_owned()
        })
    }
}

/// Whether a run of this many seconds can promise the level of an interval. A window that ends a few milliseconds early is
/// tolerated.
pub fn reliable(time_s: f64) -> bool {
    time_s >= RELIABLE_S - 0.5
}

/// Number of cosines for a run of `time_s` seconds.
pub(crate) fn cosines(time_s: f64) -> usize {
    if time_s >= LONG_S - 0.5 { 4 } else { 2 }
}

/// The error of the mean of a series, from its residuals about the mean, measured over `time_s` seconds. `None` for fewer than
/// [`MIN_WINDOWS`] values, or when all are equal.
pub fn mean_error(residuals: &[f64], time_s: f64) -> Option<SlowError> {
    let n = residuals.len() as f64;
    if residuals.len() < MIN_WINDOWS || residuals.iter().all(|r| *r == 0.0) {
        return None;
    }
    let all = SLOPE_OVER.min(residuals.len() - 1);
    let squares: Vec<f64> = coefficients(residuals, all).iter().map(|c| c * c).collect();
    let mean = |squares: &[f64]| squares.iter().sum::<f64>() / squares.len() as f64;
    let used = cosines(time_s);
    let drift = memory::drift(&slow_powers(residuals));
    let long_memory =
        log_log_slope(&squares) < LONG_MEMORY_SLOPE || drift.is_some_and(memory::Drift::is_near);
    let wider = if used == 2 { WIDER_SHORT } else { WIDER };
    let factor = if long_memory { wider * LONG_MEMORY } else { wider };
    let standard_error = factor * (mean(&squares[..used]) / n).sqrt();
    if !standard_error.is_finite() || standard_error <= 0.0 {
        return None;
    }
    let larger = mean(&squares[..2]) / mean(&squares[2..2 + FASTER]);
    let slow = larger.is_finite() && f_sf(larger, 2.0, FASTER as f64) < WANDER_ALARM;
    let wanders = slow || levels_last(residuals) || drift.is_some_and(|drift| drift.may_be(used > 2));
    Some(SlowError { standard_error, df: used as f64, wanders })
}

/// Powers of the slowest cosines that the memory of a series is judged by.
fn slow_powers(residuals: &[f64]) -> Vec<f64> {
    let (values, _) = blocks(residuals, memory::MOST);
    let count = memory::COSINES.min(values.len() / 2);
    coefficients(&values, count).iter().map(|c| c * c).collect()
}

/// Means of blocks of equal size, at most `most` of them, and that size.
pub(crate) fn blocks(series: &[f64], most: usize) -> (Vec<f64>, usize) {
    let size = series.len().div_ceil(most).max(1);
    (means_of_blocks(series, size), size)
}

/// Means of blocks of this size; values at the end that fill no block are left out.
pub(crate) fn means_of_blocks(series: &[f64], size: usize) -> Vec<f64> {
    series.chunks_exact(size).map(|block| block.iter().sum::<f64>() / size as f64).collect()
}

/// Whether the series consists of levels that last, under faster noise: of all pairs of changes at 10 %, 15 % … 90 % of the series,
/// at least 10 % apart, the pair that explains most of the squares explains [`LASTING_LEVELS`] times the mean power of the slowest
/// cosines of what it leaves. Correlated noise leaves slow changes whatever the pair.
fn levels_last(residuals: &[f64]) -> bool {
    let n = residuals.len();
    let mut sums = vec![0.0; n + 1];
    for (k, residual) in residuals.iter().enumerate() {
        sums[k + 1] = sums[k] + residual;
    }
    let explained = |from: usize, to: usize| (sums[to] - sums[from]).powi(2) / (to - from) as f64;
    let place = |part: usize| (n * part + PARTS / 2) / PARTS;
    let last = PARTS - SHORTEST_LEVEL;
    let mut best = (0.0, 0, 0);
    for first in SHORTEST_LEVEL..=last {
        for second in first + SHORTEST_LEVEL..=last {
            let (a, b) = (place(first), place(second));
            let squares = explained(0, a) + explained(a, b) + explained(b, n);
            if squares > best.0 {
                best = (squares, a, b);
            }
        }
    }
    let (squares, a, b) = best;
    let mut left = residuals.to_vec();
    for (from, to) in [(0, a), (a, b), (b, n)] {
        let level = (sums[to] - sums[from]) / (to - from).max(1) as f64;
        left[from..to].iter_mut().for_each(|value| *value -= level);
    }
    let power = coefficients(&left, LEFT_OVER).iter().map(|c| c * c).sum::<f64>() / LEFT_OVER as f64;
    squares / 2.0 > LASTING_LEVELS * power
}

/// Slope of the regression of the logarithms of the powers of cosines 1, 2 … on the logarithms of their frequencies (Geweke
/// and Porter-Hudak 1983). A power of 0 counts as very small.
fn log_log_slope(powers: &[f64]) -> f64 {
    let n = powers.len() as f64;
    let largest = powers.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let logs: Vec<(f64, f64)> = powers
        .iter()
        .enumerate()
        .map(|(k, power)| (((k + 1) as f64).ln(), (power / largest).max(1e-12).ln()))
        .collect();
    let (mean_x, mean_y) = logs.iter().fold((0.0, 0.0), |(x, y), log| (x + log.0 / n, y + log.1 / n));
    let covariance: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    covariance / logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}

/// Coefficients of the first `count` orthonormal cosines (DCT-II without its constant): 1, 2 … half periods in the series.
pub(crate) fn coefficients(series: &[f64], count: usize) -> Vec<f64> {
    /// Cosines that are summed in one pass: their recurrences do not wait for each other.
    const TOGETHER: usize = 4;
    let n = series.len() as f64;
    let mut coefficients = Vec::with_capacity(count + TOGETHER);
    while coefficients.len() < count {
        let step = |cosine: usize| std::f64::consts::PI * (coefficients.len() + cosine + 1) as f64 / n;
        // Each cosine is computed from the two before it: a record of an hour needs millions.
        let mut here: [f64; TOGETHER] = std::array::from_fn(|cosine| (0.5 * step(cosine)).cos());
        let double: [f64; TOGETHER] = std::array::from_fn(|cosine| 2.0 * step(cosine).cos());
        let (mut before, mut sums) = (here, [0.0; TOGETHER]);
        for value in series {
            for cosine in 0..TOGETHER {
                sums[cosine] += value * here[cosine];
                let next = double[cosine] * here[cosine] - before[cosine];
                (before[cosine], here[cosine]) = (here[cosine], next);
            }
        }
        coefficients.extend(sums.map(|sum| sum * (2.0 / n).sqrt()));
    }
    coefficients.truncate(count);
    coefficients
}

/// [`coefficients`] of a step of 1 after the first `k` of `n` values, about its mean, in closed form: the sum of the first k
/// values of a cosine is sin(k s) ÷ (2 sin(s/2)) for s = π half periods ÷ n, and that of all is 0.
pub(crate) fn coefficients_of_step(n: usize, k: usize, count: usize) -> Vec<f64> {
    let of = |half_periods: usize| {
        let step = std::f64::consts::PI * half_periods as f64 / n as f64;
        -(k as f64 * step).sin() / (2.0 * (0.5 * step).sin()) * (2.0 / n as f64).sqrt()
    };
    (1..=count).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_coefficients_of_its_series() {
        for (n, k) in [(16, 2), (60, 31), (61, 30), (240, 36), (600, 599)] {
            let level = (n - k) as f64 / n as f64;
            let series: Vec<f64> = (0..n).map(|t| if t < k { -level } else { 1.0 - level }).collect();
            for (summed, closed) in coefficients(&series, 10).iter().zip(coefficients_of_step(n, k, 10)) {
                assert!((summed - closed).abs() < 1e-9, "{n} values, step at {k}: {summed} and {closed}");
            }
        }
    }

    #[test]
    fn coefficients_are_those_of_the_definition_whatever_their_number() {
        let series: Vec<f64> = (0..30).map(|t| f64::from(t * t % 7)).collect();
        for count in [1, 3, 4, 5, 10] {
            let found = coefficients(&series, count);
            assert_eq!(found.len(), count);
            for (half_periods, found) in (1..).zip(found) {
                let cosine = |t: usize| {
                    (std::f64::consts::PI * f64::from(half_periods) * (t as f64 + 0.5) / 30.0).cos()
                };
                let sum: f64 = series.iter().enumerate().map(|(t, x)| x * cosine(t)).sum();
                assert!(
                    (found - sum * (2.0 / 30.0f64).sqrt()).abs() < 1e-9,
                    "cosine {half_periods} of {count}"
                );
            }
        }
    }
}
