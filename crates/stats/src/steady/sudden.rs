//! A sudden change that lasts: a step that neighbouring windows show, however slowly the series wanders otherwise.
//!
//! The slowest cosines cannot tell a step in a short, strongly correlated series from its other slow changes; the likelihood
//! can, because correlated noise moves little from one window to the next. Each possible step is tested by the ratio of
//! the maximal likelihoods with and without it, over a family of Gaussian noises (Kay 1998, *Detection Theory*, chapter 6).
//! Levels that come back ([`returning`]) must not explain the series as well. Other designs, with figures: docs/journal/statistics.md.

use super::{LONG, returning};
use crate::slow::means_of_blocks;

/// Largest number of values on which the likelihoods are computed; longer series are averaged in blocks.
const MOST: usize = 120;

/// The first and the last tested step lie this share of the series, one tenth, away from its ends.
const MARGIN: usize = 10;

/// Smallest step, in standard deviations of the windows about the levels before and after it: a rise by a fifth under noise of
/// a twenty-fifth of the rate is 4.2 on average, and a tenth of a run of correlated noise knows its level to about 0.8.
const SMALLEST: f64 = 3.0;

/// Size from which a step need not be compared with levels that are drawn anew.
const CLEAR: f64 = 3.5;

/// Limit of twice the logarithm of the ratio to their likelihood, for smaller steps.
const LEVELS_LIMIT: f64 = 10.0;

/// The same of a step under rare slow seconds to two levels that a series flips between: at 0 more than half of the false alarms remain.
const FLIPS_LIMIT: f64 = 10.0;

/// Limit of twice the logarithm of the ratio of likelihoods. Together with [`SMALLEST`], at most 1 % of series of correlated
/// noise exceed it.
const LIMIT: f64 = 16.0;

/// Correlation with the value before, of the slow part of the noises of the family.
const CORRELATIONS: [f64; 9] = [0.4, 0.6, 0.75, 0.85, 0.9, 0.95, 0.98, 0.995, 0.999];

/// Share of the slow part in the variance; the rest is independent.
const SLOW_SHARES: [f64; 4] = [1.0, 0.7, 0.3, 0.1];

/// The same for pink noise: AR(1) processes an octave apart, with time constants of 1, 2, 4 … 128 values.
const PINK_SHARES: [f64; 2] = [1.0, 0.5];
const PINK_OCTAVES: i32 = 8;

/// Added to the variance, so that nearly singular covariances can be factored.
const RIDGE: f64 = 1e-9;

/// A step that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sudden {
    /// Number of windows before it.
    pub at: usize,
    /// Twice the logarithm of its ratio of likelihoods, relative to the limit.
    pub excess: f64,
}

/// A possible step.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Number of windows before it.
    at: usize,
    /// Size in standard deviations of the windows about both levels.
    size: f64,
}

/// The most likely sudden change of a series, given as its residuals about the mean; `None` when none stands out.
pub(super) fn change(residuals: &[f64]) -> Option<Sudden> {
    let aligned = Aligned::of(residuals);
    let large: Vec<Step> = aligned.steps.iter().filter(|step| step.size > SMALLEST).copied().collect();
    if large.is_empty() {
        return None;
    }
    let (without, with) = aligned.likelihoods(&large);
    let found: Vec<(Step, f64)> =
        large.into_iter().zip(with).filter(|(_, with)| 2.0 * (with - without) > LIMIT).collect();
    let (best, with) = found.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let clear = found.iter().any(|(step, _)| step.size > CLEAR);
    let lasts = clear || 2.0 * (with - returning::levels(&aligned.values)) > LEVELS_LIMIT;
    let flips = || residuals.len() < LONG && flips_explain(residuals, best.at, with);
    (lasts && !flips()).then(|| Sudden { at: best.at, excess: 2.0 * (with - without) / LIMIT })
}

/// Whether a plan that flips explains a short series better than a step after `at` windows does. A longer one shows the flips.
pub(super) fn only_flips(residuals: &[f64], at: usize) -> bool {
    let likeliest = || {
        let aligned = Aligned::of(residuals);
        let (_, with) = aligned.likelihoods(&aligned.steps);
        with.into_iter().fold(f64::NEG_INFINITY, f64::max)
    };
    residuals.len() < LONG && flips_explain(residuals, at, likeliest())
}

/// Compares two levels that a series flips between with a step under Gaussian noise, whose log likelihood is `with`, and with
/// one under rare slow seconds: two levels are also a better shape for noise of which a few seconds lie far off.
fn flips_explain(residuals: &[f64], at: usize, with: f64) -> bool {
    let flips = returning::two_plans(residuals);
    if with > flips {
        return false;
    }
    let (before, after) = residuals.split_at(at);
    let without_step: Vec<f64> = [before, after]
        .into_iter()
        .flat_map(|part| {
            let level = part.iter().sum::<f64>() / part.len() as f64;
            part.iter().map(move |value| value - level)
        })
        .collect();
    2.0 * (returning::slow_seconds(&without_step) - flips) <= FLIPS_LIMIT
}

/// A series in blocks.
struct Aligned {
    values: Vec<f64>,
    /// Windows before the first block, and windows in a block.
    offset: usize,
    block: usize,
    /// The tested steps, each between two blocks.
    steps: Vec<Step>,
}

impl Aligned {
    /// Blocks such that the largest step lies between two of them: a block that holds a step halves its suddenness.
    fn of(residuals: &[f64]) -> Self {
        let steps = steps(residuals);
        let largest = steps.iter().max_by(|a, b| a.size.total_cmp(&b.size));
        let block = residuals.len().div_ceil(MOST).max(1);
        let offset = largest.map_or(0, |step| step.at % block);
        let values = means_of_blocks(&residuals[offset..], block);
        let last = offset + block * values.len();
        let steps = steps.into_iter().filter(|step| step.at % block == offset && step.at < last).collect();
        Self { values, offset, block, steps }
    }

    /// Logarithms of the maximal likelihoods without a step, and with each.
    fn likelihoods(&self, steps: &[Step]) -> (f64, Vec<f64>) {
        let positions: Vec<usize> = steps.iter().map(|step| (step.at - self.offset) / self.block).collect();
        maximal(&self.values, &positions)
    }
}

/// Steps after each window from a tenth to nine tenths of the series.
fn steps(residuals: &[f64]) -> Vec<Step> {
    let n = residuals.len();
    let total: f64 = residuals.iter().sum();
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let (first, last) = (n.div_ceil(MARGIN), n * (MARGIN - 1) / MARGIN);
    let mut sum: f64 = residuals[..first].iter().sum();
    let mut steps = Vec::new();
    for (at, residual) in residuals.iter().enumerate().take(last + 1).skip(first) {
        let (before, after) = (at as f64, (n - at) as f64);
        let (from, to) = (sum / before, (total - sum) / after);
        let within = (squares - before * from * from - after * to * to) / (n as f64 - 2.0);
        let size = (to - from).abs() / within.max(f64::MIN_POSITIVE).sqrt();
        steps.push(Step { at, size });
        sum += residual;
    }
    steps
}

/// Logarithms of the maximal likelihoods over the family of noises, without a step and with one at each position.
fn maximal(values: &[f64], positions: &[usize]) -> (f64, Vec<f64>) {
    let mut without = f64::NEG_INFINITY;
    let mut with = vec![f64::NEG_INFINITY; positions.len()];
    let mut consider = |covariance: &dyn Fn(usize) -> f64| {
        let (none, steps) = log_likelihoods(values, positions, covariance);
        without = without.max(none);
        with.iter_mut().zip(steps).for_each(|(best, step)| *best = best.max(step));
    };
    consider(&|lag| slow_and_independent(lag, 0.0, 0.0));
    for phi in CORRELATIONS {
        for share in SLOW_SHARES {
            consider(&|lag| slow_and_independent(lag, share, phi.powi(lag as i32)));
        }
    }
    for share in PINK_SHARES {
        let pink = |lag: usize| {
            let octave = |octave: i32| (-(0.5f64.powi(octave)) * lag as f64).exp();
            (0..PINK_OCTAVES).map(octave).sum::<f64>() / f64::from(PINK_OCTAVES)
        };
        consider(&|lag| slow_and_independent(lag, share, pink(lag)));
    }
    (without, with)
}

fn slow_and_independent(lag: usize, share: f64, correlation: f64) -> f64 {
    if lag == 0 { 1.0 + RIDGE } else { share * correlation }
}

/// Logarithm of the likelihood of the values under Gaussian noise of this covariance, up to a constant, maximal over its variance
/// and the level: without a step, and with one after each number of values. The values are whitened by the errors of
/// their prediction from all before them (recursion of Levinson and Durbin).
fn log_likelihoods(
    values: &[f64],
    positions: &[usize],
    covariance: &dyn Fn(usize) -> f64,
) -> (f64, Vec<f64>) {
    let n = values.len();
    let covariances: Vec<f64> = (0..n).map(covariance).collect();
    let mut weights: Vec<f64> = Vec::with_capacity(n);
    // Sums of the weights of the 0, 1, 2 … nearest values.
    let mut sums = vec![0.0];
    let mut variance = covariances[0];
    let mut half_log_determinant = 0.0;
    let (mut of_values, mut of_level, mut shared) = (0.0, 0.0, 0.0);
    let mut steps = vec![(0.0, 0.0, 0.0); positions.len()];
    for t in 0..n {
        if t > 0 {
            variance *= extend(&mut weights, &mut sums, &covariances, variance);
        }
        let scale = variance.max(f64::MIN_POSITIVE).sqrt();
        half_log_determinant += scale.ln();
        let predicted = dot_reversed(&weights, &values[..t]);
        let value = (values[t] - predicted) / scale;
        let level = (1.0 - sums[t]) / scale;
        of_values += value * value;
        of_level += level * level;
        shared += value * level;
        for (position, step) in positions.iter().zip(&mut steps).take_while(|(position, _)| **position <= t) {
            let here = (1.0 - sums[t - position]) / scale;
            *step = (step.0 + here * here, step.1 + here * level, step.2 + here * value);
        }
    }
    let unexplained = of_values - shared * shared / of_level;
    let log_likelihood = |squares: f64| {
        -0.5 * n as f64 * squares.max(f64::EPSILON * of_values).max(f64::MIN_POSITIVE).ln()
            - half_log_determinant
    };
    let with_step = steps.into_iter().map(|(squares, with_level, with_values)| {
        let explains = (with_values - with_level * shared / of_level).powi(2);
        log_likelihood(unexplained - explains / (squares - with_level * with_level / of_level))
    });
    (log_likelihood(unexplained), with_step.collect())
}

/// Extends the weights of the best prediction from the nearest values by one value, and the sums of the 0, 1, 2 … nearest weights.
/// Returns the factor of the error's variance.
fn extend(weights: &mut Vec<f64>, sums: &mut Vec<f64>, covariances: &[f64], variance: f64) -> f64 {
    let lag = weights.len() + 1;
    let known = dot_reversed(weights, &covariances[1..lag]);
    let partial = (covariances[lag] - known) / variance;
    with_reversed(weights, |weight, mirrored| weight - partial * mirrored);
    weights.push(partial);
    // The k nearest weights become less by `partial` times the k farthest, whose sum is that of all less that of the others.
    let all = sums[lag - 1];
    with_reversed(sums, |sum, others| sum - partial * (all - others));
    sums.push(sums[lag - 1] + partial);
    1.0 - partial * partial
}

/// Replaces each value by a function of itself and of the value at the same distance from the other end.
fn with_reversed(values: &mut [f64], new: impl Fn(f64, f64) -> f64) {
    let middle = values.len() / 2;
    let (near, far) = values.split_at_mut(values.len() - middle);
    for (a, b) in near.iter_mut().zip(far.iter_mut().rev()) {
        (*a, *b) = (new(*a, *b), new(*b, *a));
    }
    if near.len() > middle {
        near[middle] = new(near[middle], near[middle]);
    }
}

/// Sum of the products of the first of one with the last of the other, and so on, of two lists of equal length. Four sums do not
/// wait for each other.
fn dot_reversed(forwards: &[f64], backwards: &[f64]) -> f64 {
    let (mut forwards, mut backwards) = (forwards.chunks_exact(4), backwards.rchunks_exact(4));
    let mut sums = [0.0; 4];
    for (f, b) in forwards.by_ref().zip(backwards.by_ref()) {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum += f[i] * b[3 - i];
        }
    }
    let rest = forwards.remainder().iter().zip(backwards.remainder().iter().rev());
    sums.iter().sum::<f64>() + rest.map(|(f, b)| f * b).sum::<f64>()
}
