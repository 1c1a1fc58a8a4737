//! Steadiness of a series, and the end of its warm-up.
//!
//! Two different questions: [`assess`] *tests* a measured window (steady unless the data contradict it, with a known false
//! alarm rate); [`warm_up_end`] *chooses* the start of the window (MSER-5).

use crate::slow::{MIN_WINDOWS, coefficients, coefficients_of_step};

mod likelihood;
mod returning;
mod sudden;

/// Smallest relevant change, as a share of the mean: a smaller one does not make a series unsteady, however significant it is.
pub const RELEVANT_CHANGE: f64 = 0.01;

/// Number of windows from which six cosines estimate the noise; in shorter series four do, where more of them would mistake
/// correlated noise for changes.
const LONG: usize = 120;

/// Positions of a step, as twentieths of the series: 10 %, 15 % … 90 %.
const STEPS: std::ops::RangeInclusive<usize> = 2..=18;

/// Limits of the square of a change in units of its variance: for a step at the worst position and for a trend, in short and in
/// [`LONG`] series (docs/journal/statistics.md).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    short: (f64, f64),
    long: (f64, f64),
}

/// False alarm rates of about 1 % for steps and for trends on independent noise, and of at most 7 % for both on noise that
/// remembers a tenth of the series.
pub(crate) const ONE_SERIES: Limits = Limits { short: (88.0, 39.0), long: (50.0, 17.0) };

/// Lower rates, because several percentiles of one run are tested.
pub(crate) const SEVERAL_SERIES: Limits = Limits { short: (92.0, 56.0), long: (41.0, 21.0) };

/// Result of the steadiness test.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// Whether the series is steady; `None`: too short to tell.
    pub steady: Option<bool>,
    /// The most significant change over the series, as a share of the earlier level: −0.5 when it fell to a half. 0 when there
    /// is none.
    pub change: f64,
    /// Explanation in words.
    pub why: String,
}

/// Tests whether the windows of a series vary about one mean: no step at any of 10 %, 15 % … 90 % of the series and no trend
/// from start to end that is large relative to the series's other slow changes, and no sudden change that lasts ([`sudden`]). The
/// noise is the power of the slowest cosines without the step or trend, so that a slowly wandering but stationary series
/// seldom raises an alarm, and reversing time does not change the result.
pub fn assess(values: &[f64]) -> Steadiness {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    let residuals: Vec<f64> = values.iter().map(|v| v - mean).collect();
    assess_about(mean, &residuals, RELEVANT_CHANGE, ONE_SERIES)
}

/// A tested change.
struct Change {
    /// Position of the step as a share of the series; `None` for the trend.
    at: Option<f64>,
    /// Levels before and after it, relative to the mean.
    from: f64,
    to: f64,
    /// Ratio of its square over its variance to the limit.
    excess: f64,
}

/// [`assess`] for a series given as its mean and its residuals, with the smallest relevant change as a share of the mean.
pub(crate) fn assess_about(mean: f64, residuals: &[f64], relevant: f64, limits: Limits) -> Steadiness {
    let n = residuals.len();
    if n < MIN_WINDOWS {
        let why = format!("too short to tell: {n} windows, at least {MIN_WINDOWS} are needed");
        return Steadiness { steady: None, change: 0.0, why };
    }
    let relevant = relevant * mean.abs();
    let matters = |change: &Change| change.excess > 1.0 && (change.to - change.from).abs() > relevant;
    // A sudden change tells its instant, so that it goes before steps at twentieths of the series.
    let sudden = sudden::change(residuals).map(|found| sudden_change(residuals, found)).filter(matters);
    let slow = || {
        let mut changes: Vec<Change> =
            tested_changes(residuals, limits).into_iter().filter(matters).collect();
        let steps = changes.iter().filter_map(|change| change.at.map(|at| (at, change.excess)));
        // In a short series a plan that flips looks like a step, too.
        if let Some((at, _)) = steps.max_by(|a, b| a.1.total_cmp(&b.1))
            && sudden::only_flips(residuals, (at * n as f64).round() as usize)
        {
            changes.retain(|change| change.at.is_none());
        }
        changes.into_iter().max_by(|a, b| a.excess.total_cmp(&b.excess))
    };
    let Some(worst) = sudden.or_else(slow) else {
        let why = "no change stands out of the noise".to_owned();
        return Steadiness { steady: Some(true), change: 0.0, why };
    };
    let change = share_of_earlier(mean, &worst);
    let direction = if worst.to > worst.from { "rose" } else { "fell" };
    let when = match worst.at {
        Some(share) => format!("after {:.0} % of the run", 100.0 * share),
        None => "from start to end".to_owned(),
    };
    let why = format!("it {direction} by {:.1} % {when}", 100.0 * change.abs());
    Steadiness { steady: Some(false), change, why }
}

fn tested_changes(residuals: &[f64], limits: Limits) -> Vec<Change> {
    let n = residuals.len();
    let (cosines, (step_limit, trend_limit)) = if n < LONG { (4, limits.short) } else { (6, limits.long) };
    let of_series = coefficients(residuals, cosines);
    let mut tests = Vec::new();
    for twentieths in STEPS {
        let k = (n as f64 * twentieths as f64 / 20.0).round() as usize;
        let (before, after) = (k as f64, (n - k) as f64);
        let sum: f64 = residuals[..k].iter().sum();
        let size = -sum / before - sum / after;
        // The squares of a step of 1 about its mean.
        let squares = before * after / n as f64;
        let excess = excess(size, squares, &of_series, &coefficients_of_step(n, k, cosines)) / step_limit;
        let at = Some(before / n as f64);
        tests.push(Change { at, from: sum / before, to: -sum / after, excess });
    }
    let trend: Vec<f64> = (0..n).map(|t| (t as f64 + 0.5) / n as f64 - 0.5).collect();
    let squares: f64 = trend.iter().map(|x| x * x).sum();
    let slope = trend.iter().zip(residuals).map(|(x, r)| x * r).sum::<f64>() / squares;
    // The slowest cosine nearly equals the trend.
    let of_trend = coefficients(&trend, cosines);
    let excess = excess(slope, squares, &of_series[1..], &of_trend[1..]) / trend_limit;
    tests.push(Change { at: None, from: -0.5 * slope, to: 0.5 * slope, excess });
    tests
}

fn sudden_change(residuals: &[f64], found: sudden::Sudden) -> Change {
    let n = residuals.len();
    let (before, after) = residuals.split_at(found.at);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    Change { at: Some(found.at as f64 / n as f64), from: mean(before), to: mean(after), excess: found.excess }
}

/// Square of an effect of this size over its variance; `squares` are those of its shape. The variance is the mean power of the
/// series without the effect, in the space of the cosines without it: for coefficients `v` without the effect and `s` of the shape,
/// |v|² + (v·s)² / (squares − |s|²) by the Sherman–Morrison formula.
fn excess(size: f64, squares: f64, of_series: &[f64], of_shape: &[f64]) -> f64 {
    let without: Vec<f64> = of_series.iter().zip(of_shape).map(|(a, s)| a - size * s).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let unexplained = (squares - dot(of_shape, of_shape)).max(f64::EPSILON * squares);
    let power = dot(&without, &without) + dot(&without, of_shape).powi(2) / unexplained;
    size * size * squares / (power / of_series.len() as f64).max(f64::MIN_POSITIVE)
}

/// A change as a share of the level before it; of the mean where that level is not above 0. No rate falls by more than 100 %.
fn share_of_earlier(mean: f64, change: &Change) -> f64 {
    let (from, to) = (mean + change.from, mean + change.to);
    if from > 0.0 {
        (to.max(0.0) - from) / from
    } else if mean == 0.0 {
        0.0
    } else {
        (change.to - change.from) / mean.abs()
    }
}

/// Start of the steady part of a series, by MSER-5 (White, 1997): the cut that minimises the standard error of the rest's mean,
/// in batches of five, searched over the first half. `None` when that cut lies at the end of the search (the series had not
/// settled yet), or for fewer than 20 values.
pub fn warm_up_end(values: &[f64]) -> Option<usize> {
    const BATCH: usize = 5;
    let batches: Vec<f64> =
        values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let n = batches.len();
    if n < 4 {
        return None;
    }
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for start in (0..n).rev() {
        // Welford's update, from the end of the series, so that each cut costs one step.
        count += 1.0;
        let delta = batches[start] - mean;
        mean += delta / count;
        squares += delta * (batches[start] - mean);
        // A short remainder looks calm by chance, so the second half is not searched.
        if start <= n / 2 && squares / (count * count) <= best.0 {
            best = (squares / (count * count), start);
        }
    }
    (best.1 < n / 2).then_some(best.1 * BATCH)
}
