//! A sudden change that lasts: a step that neighbouring windows show, however slowly the series wanders otherwise.
//!
//! The slowest cosines cannot tell a step in a short, strongly correlated series from its other slow changes; the likelihood
//! can, because correlated noise moves little from one window to the next. Each possible step is tested by the ratio of
//! the maximal likelihoods with and without it, over a family of Gaussian noises (Kay 1998, *Detection Theory*, chapter 6).
//! Levels that come back ([`returning`]) must not explain the series as well. Other designs, with figures: docs/journal/statistics.md.

use super::{LONG, likelihood, returning};
use crate::slow::means_of_blocks;

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
        let block = residuals.len().div_ceil(likelihood::MOST).max(1);
        let offset = largest.map_or(0, |step| step.at % block);
        let values = means_of_blocks(&residuals[offset..], block);
        let last = offset + block * values.len();
        let steps = steps.into_iter().filter(|step| step.at % block == offset && step.at < last).collect();
        Self { values, offset, block, steps }
    }

    /// Logarithms of the maximal likelihoods without a step, and with each.
    fn likelihoods(&self, steps: &[Step]) -> (f64, Vec<f64>) {
        let positions: Vec<usize> = steps.iter().map(|step| (step.at - self.offset) / self.block).collect();
        likelihood::maximal(&self.values, &positions)
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
