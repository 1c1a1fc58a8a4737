//! Headline estimates of one run with intervals: throughput, means, percentiles.
//!
//! Every function gives the point estimate always, and the interval only when the data can carry one; otherwise the
//! estimate says in words why not, and what would help. Between the two stand *provisional* intervals (without a level):
//! made of what was seen where that is too little to promise how often they hold the truth.

use mydyno_model::Estimate;

#[cfg(doc)]
use crate::series::RELIABLE_WINDOWS;
use crate::series::{MIN_WINDOWS, MeanError, mean_error};
use crate::steady;

mod percentile;

pub use self::percentile::{Window, percentile, percentiles};

/// Nominal coverage of all intervals.
pub const LEVEL: f64 = 0.95;

/// Mean rate over windows that follow each other: `counts` events in windows of `widths_s` seconds, as transactions a
/// second. The value is all events divided by all time.
///
/// No interval when there are fewer than [`MIN_WINDOWS`] windows, when the rate was not steady, or when all
/// windows are equal. A provisional one below [`RELIABLE_WINDOWS`], or when the level wanders below the noise.
pub fn throughput(counts: &[u64], widths_s: &[f64]) -> Estimate {
    let n = counts.len().min(widths_s.len());
    let (counts, widths_s) = (&counts[..n], &widths_s[..n]);
    let time_s: f64 = widths_s.iter().sum();
    let events: f64 = counts.iter().map(|c| *c as f64).sum();
    if time_s <= 0.0 {
        return Estimate::without_interval(0.0, "no windows");
    }
    let rate = events / time_s;
    let mean_width_s = time_s / n as f64;
    // Windows differ a little in width; the residual of a ratio keeps a long window from looking like a fast one.
    let residuals: Vec<f64> =
        counts.iter().zip(widths_s).map(|(c, w)| (*c as f64 - rate * w) / mean_width_s).collect();
    let mut estimate = about_mean(rate, &residuals);
    estimate.low = estimate.low.map(|low| low.max(0.0));
    estimate
}

/// Mean of a series of windows, as CPU per query each second.
///
/// No interval in the cases of [`throughput`].
pub fn mean(values: &[f64]) -> Estimate {
    if values.is_empty() {
        return Estimate::without_interval(0.0, "no values");
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let residuals: Vec<f64> = values.iter().map(|v| v - mean).collect();
    about_mean(mean, &residuals)
}

fn about_mean(value: f64, residuals: &[f64]) -> Estimate {
    if let Some(why) = too_few(residuals.len()) {
        return Estimate::without_interval(value, why);
    }
    // Equal windows leave residuals of rounding.
    let equal = residuals.iter().all(|r| r.abs() <= 1e-12 * value.abs());
    let Some(error) = mean_error(residuals, 1).filter(|_| !equal) else {
        return Estimate::without_interval(value, "all windows are equal: no spread to judge by");
    };
    let verdict = steady::assess_residuals(value, residuals, steady::RELEVANT_CHANGE, 1.0);
    if verdict.steady == Some(false) {
        return Estimate::without_interval(value, format!("not steady: {}", verdict.why));
    }
    let error = error.with_slowest_part(residuals);
    let doubt = error.doubt(residuals.len());
    let error = error.with_room_for_the_unseen(residuals.len());
    let (below, above) = error.margins(LEVEL);
    let method = method("mean", residuals.len(), &error);
    relied_on(value, (value - below, value + above), method, doubt)
}

/// An interval at [`LEVEL`], or a provisional one with the reason for doubt.
fn relied_on(value: f64, (low, high): (f64, f64), method: String, doubt: Option<String>) -> Estimate {
    match doubt {
        None => Estimate::with_interval(value, low, high, LEVEL, method),
        Some(why) => Estimate::provisional(value, low, high, format!("{method}; provisional: {why}")),
    }
}

fn too_few(windows: usize) -> Option<String> {
    (windows < MIN_WINDOWS)
        .then(|| format!("too short: {windows} windows, at least {MIN_WINDOWS} are needed for an interval"))
}

fn method(name: &str, windows: usize, error: &MeanError) -> String {
    format!(
        "{name}, autoregressive error of {windows} windows worth {:.0} independent ones",
        error.effective_n.clamp(1.0, windows as f64)
    )
}
