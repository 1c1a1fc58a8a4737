//! Whether a series had settled, and where it begins to.
//!
//! Two different questions: [`assess`] *tests* a window that was measured (steady unless the data speak against it,
//! with a known rate of false alarms); [`warm_up_end`] *chooses* where to begin (MSER-5).

use crate::slow::{MIN_WINDOWS, coefficients};

/// A change smaller than this share of the mean is no reason to call a series unsteady, however sure it is.
pub const RELEVANT_CHANGE: f64 = 0.01;

/// Windows from which six cosines tell the noise; four in shorter series, where more of them mistake correlated noise for changes.
const LONG: usize = 120;

/// Places of a step, as twentieths of the series: 10 %, 15 % … 90 %.
const STEPS: std::ops::RangeInclusive<usize> = 2..=18;

/// How large the square of a change may become, in units of its variance: for a step at the worst place and for a trend, in
/// short and in [`LONG`] series. Quantiles of 20,000 independent series (docs/journal/statistics.md).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    short: (f64, f64),
    long: (f64, f64),
}

/// 3 % of false alarms for steps and 1.5 % for trends.
pub(crate) const ONE_SERIES: Limits = Limits { short: (50.0, 26.0), long: (26.0, 13.0) };

/// A third of that: several percentiles of one run are tested.
pub(crate) const SEVERAL_SERIES: Limits = Limits { short: (92.0, 56.0), long: (41.0, 21.0) };

/// The answer of the test of steadiness.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// `None`: too short to tell.
    pub steady: Option<bool>,
    /// The change over the series that stands out most, as a share of the earlier level: −0.5 when it fell to a half. 0 when
    /// none stands out.
    pub change: f64,
    /// In words.
    pub why: String,
}

/// Whether the windows of a series vary about one mean: no step at any of 10 %, 15 % … 90 % of the series and no trend from start
/// to end that is large beside the series's other slow changes. The noise is the power of the slowest cosines without the
/// step or trend, so that a slowly wandering but stationary series is seldom an alarm, and both directions of time are alike.
pub fn assess(values: &[f64]) -> Steadiness {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    let residuals: Vec<f64> = values.iter().map(|v| v - mean).collect();
    assess_about(mean, &residuals, RELEVANT_CHANGE, ONE_SERIES)
}

/// A change that was tested.
struct Change {
    /// Place of the step as a share of the series; `None` for the trend.
    at: Option<f64>,
    /// Levels before and after it, about the mean.
    from: f64,
    to: f64,
    /// Its square over its variance, as a part of the limit.
    excess: f64,
}

/// [`assess`] for a series given as its mean and its residuals, with the smallest change that matters as a share of the mean.
pub(crate) fn assess_about(mean: f64, residuals: &[f64], relevant: f64, limits: Limits) -> Steadiness {
    let n = residuals.len();
    if n < MIN_WINDOWS {
        let why = format!("too short to tell: {n} windows, at least {MIN_WINDOWS} are needed");
        return Steadiness { steady: None, change: 0.0, why };
    }
    let relevant = relevant * mean.abs();
    let alarms = tested_changes(residuals, limits)
        .into_iter()
        .filter(|change| change.excess > 1.0 && (change.to - change.from).abs() > relevant);
    let Some(worst) = alarms.max_by(|a, b| a.excess.total_cmp(&b.excess)) else {
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
        let level = after / n as f64;
        let shape: Vec<f64> = (0..n).map(|t| if t < k { -level } else { 1.0 - level }).collect();
        let sum: f64 = residuals[..k].iter().sum();
        let size = -sum / before - sum / after;
        let excess = excess(size, &shape, &of_series, &coefficients(&shape, cosines)) / step_limit;
        let at = Some(before / n as f64);
        tests.push(Change { at, from: sum / before, to: -sum / after, excess });
    }
    let trend: Vec<f64> = (0..n).map(|t| (t as f64 + 0.5) / n as f64 - 0.5).collect();
    let squares: f64 = trend.iter().map(|x| x * x).sum();
    let slope = trend.iter().zip(residuals).map(|(x, r)| x * r).sum::<f64>() / squares;
    // The slowest cosine is nearly the trend itself.
    let of_trend = coefficients(&trend, cosines);
    let excess = excess(slope, &trend, &of_series[1..], &of_trend[1..]) / trend_limit;
    tests.push(Change { at: None, from: -0.5 * slope, to: 0.5 * slope, excess });
    tests
}

/// Square of an effect of this size and shape over its variance. The variance is the mean power of the series without the effect in
/// the space of the cosines without it: of coefficients `v` without the effect and `s` of the shape, |v|² + (v·s)² / (|shape|² − |s|²)
/// by Sherman and Morrison's formula.
fn excess(size: f64, shape: &[f64], of_series: &[f64], of_shape: &[f64]) -> f64 {
    let squares: f64 = shape.iter().map(|x| x * x).sum();
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

/// Where a series begins to be steady, by MSER-5 (White, 1997): the cut that makes the standard error of the rest's
/// mean smallest, in batches of five, searched over the first half. `None` when that cut lies at its end (it had not
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
        // Welford's update, from the end, so that each cut costs one step.
        count += 1.0;
        let delta = batches[start] - mean;
        mean += delta / count;
        squares += delta * (batches[start] - mean);
        // A short rest looks calm by chance, so the second half is not searched.
        if start <= n / 2 && squares / (count * count) <= best.0 {
            best = (squares / (count * count), start);
        }
    }
    (best.1 < n / 2).then_some(best.1 * BATCH)
}
