//! Whether a series had settled, and where it begins to.
//!
//! Two different questions: [`assess`] *tests* a window that was measured (steady unless the data speak against it,
//! with a known rate of false alarms); [`warm_up_end`] *chooses* where to begin (MSER-5).

use crate::series::{MIN_WINDOWS, mean_error};
use crate::special::t_sf;

/// Share of truly steady series that [`assess`] may call unsteady. Measured: 1 to 7 %; up to 11 % on short series that flip
/// between levels or are hit by rare spikes (docs/journal/statistics.md).
pub const FALSE_ALARM: f64 = 0.05;

/// A change smaller than this share of the mean is no reason to call a series unsteady, however sure it is.
pub const RELEVANT_CHANGE: f64 = 0.01;

/// What a series says about its own steadiness.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// `None`: too short to tell.
    pub steady: Option<bool>,
    /// The change over the series that stands out most, as a share of the mean: +0.08 when it ended 8 % higher.
    pub change: f64,
    /// In words.
    pub why: String,
}

/// Whether the windows of a series vary about one mean: no trend from start to end, and a first quarter and a first
/// tenth (ten windows at least) like the second half. Each is judged against noise as correlated as it is where the change is not, so that a slowly
/// wandering but stationary series is not an alarm.
pub fn assess(values: &[f64]) -> Steadiness {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    let residuals: Vec<f64> = values.iter().map(|v| v - mean).collect();
    assess_residuals(mean, &residuals, RELEVANT_CHANGE, 1.0)
}

/// [`assess`] for a series given as its mean and what is left without it, with the smallest change that matters and
/// how many times larger its noise is known to be than it looks.
pub(crate) fn assess_residuals(mean: f64, residuals: &[f64], relevant: f64, hidden: f64) -> Steadiness {
    let n = residuals.len();
    if n < MIN_WINDOWS {
        let why = format!("too short to tell: {n} windows, at least {MIN_WINDOWS} are needed");
        return Steadiness { steady: None, change: 0.0, why };
    }
    let trend: Vec<f64> = (0..n).map(|t| (t as f64 + 0.5) / n as f64 - 0.5).collect();
    let mut tests = vec![("from start to end", contrast(residuals, &trend, hidden))];
    if n >= 2 * MIN_WINDOWS {
        // Fewer than ten windows say more about one spike than about a warm-up.
        for (when, windows) in
            [("after its first quarter", n.div_ceil(4)), ("after its start", (n / 10).max(10))]
        {
            tests.push((when, start_against_second_half(residuals, windows, hidden)));
        }
    } else {
        let quarter = n.div_ceil(4);
        let step: Vec<f64> = (0..n).map(|t| if t < quarter { -1.0 } else { 0.0 }).collect();
        tests.push(("after its first quarter", contrast(residuals, &step, hidden)));
    }
    // Several questions are asked; each gets its part of the allowance.
    let allowance = FALSE_ALARM / tests.len() as f64;
    let mut worst =
        Steadiness { steady: Some(true), change: 0.0, why: "no trend stands out of the noise".to_owned() };
    for (when, (change, p)) in tests {
        let change = if mean == 0.0 { 0.0 } else { change / mean };
        if p < allowance && change.abs() > relevant.max(worst.change.abs()) {
            let direction = if change > 0.0 { "rose" } else { "fell" };
            let why = format!("it {direction} by {:.1} % {when}", 100.0 * change.abs());
            worst = Steadiness { steady: Some(false), change, why };
        }
    }
    worst
}

/// How much higher the second half is than the first `k` windows, and its two-sided p value. The noise is taken from the
/// second half alone: a warm-up would hide behind its own size otherwise.
fn start_against_second_half(residuals: &[f64], k: usize, hidden: f64) -> (f64, f64) {
    let half = &residuals[residuals.len() / 2..];
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (start_mean, half_mean) = (mean(&residuals[..k]), mean(half));
    let change = half_mean - start_mean;
    let noise: Vec<f64> = half.iter().map(|r| r - half_mean).collect();
    match mean_error(&noise, 1) {
        Some(error) => {
            let standard_error = hidden * error.standard_error * (1.0 + half.len() as f64 / k as f64).sqrt();
            (change, 2.0 * t_sf((change / standard_error).abs(), error.df))
        }
        None => (change, certain(change, residuals.len())),
    }
}

/// p value of a change where nothing else varies: it is certain, unless there is none.
fn certain(change: f64, n: usize) -> f64 {
    if change.abs() > f64::EPSILON * n as f64 { 0.0 } else { 1.0 }
}

/// Size of an effect of shape `x` in a series with correlated noise, and its two-sided p value.
fn contrast(residuals: &[f64], x: &[f64], hidden: f64) -> (f64, f64) {
    let n = x.len() as f64;
    let mean_x = x.iter().sum::<f64>() / n;
    let sxx: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let mean_y = residuals.iter().sum::<f64>() / n;
    let slope = x.iter().zip(residuals).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / sxx;
    let left: Vec<f64> = x.iter().zip(residuals).map(|(x, y)| y - mean_y - slope * (x - mean_x)).collect();
    match mean_error(&left, 2) {
        Some(error) => {
            // The long-run variance is n·SE²; the slope's variance is that over Σ(x − x̄)².
            let standard_error = hidden * error.standard_error * (n / sxx).sqrt();
            (slope, 2.0 * t_sf((slope / standard_error).abs(), error.df))
        }
        None => (slope, certain(slope, x.len())),
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
