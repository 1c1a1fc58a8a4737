//! Headline estimates of one run with intervals: throughput, means, percentiles.
//!
//! Every function returns the point estimate, and the interval only when the data support one; otherwise the estimate gives the
//! reason in words. *Provisional* intervals (without a level) are in between: the run was too short, or its level wandered, so
//! that their coverage cannot be promised.

use mydyno_model::Estimate;

#[cfg(doc)]
use crate::slow::RELIABLE_S;
use crate::slow::{LONG_MEMORY, MIN_WINDOWS, SlowError, WIDER, WIDER_SHORT, mean_error};
use crate::special::t_quantile;
use crate::steady::{self, Steadiness};

mod percentile;

pub use self::percentile::{Window, percentile, percentiles};

/// Nominal coverage of all intervals.
pub const LEVEL: f64 = 0.95;

/// Windows shorter than this share of the mean width are excluded from the interval and from the steadiness test: they were cut
/// short, and their rate is unreliable.
const SHORT: f64 = 0.5;

/// Rates of the windows that were not cut short, and their total time.
fn rates(counts: &[u64], widths_s: &[f64]) -> (Vec<f64>, f64) {
    let n = counts.len().min(widths_s.len());
    let short_s = SHORT * widths_s[..n].iter().sum::<f64>() / n.max(1) as f64;
    let whole = counts.iter().zip(widths_s).filter(|(_, width_s)| **width_s > 0.0 && **width_s >= short_s);
    let time_s = whole.clone().map(|(_, width_s)| width_s).sum();
    (whole.map(|(count, width_s)| *count as f64 / width_s).collect(), time_s)
}

/// Whether a rate was steady, by the test that [`throughput`] uses.
pub fn steadiness(counts: &[u64], widths_s: &[f64]) -> Steadiness {
    steady::assess(&rates(counts, widths_s).0)
}

/// Mean rate over windows that follow each other: `counts` events in windows of `widths_s` seconds, as transactions a
/// second. The value is all events divided by all time.
///
/// No interval when there are fewer than [`MIN_WINDOWS`] windows, when the rate was not steady, when all windows are
/// equal, or when the interval would be wider than the value. A provisional one below [`RELIABLE_S`] seconds, or when
/// the level wanders. The ends stay within the slowest and the fastest window.
pub fn throughput(counts: &[u64], widths_s: &[f64]) -> Estimate {
    let n = counts.len().min(widths_s.len());
    let time_s: f64 = widths_s[..n].iter().sum();
    let events: f64 = counts[..n].iter().map(|c| *c as f64).sum();
    if time_s <= 0.0 {
        return Estimate::without_interval(0.0, "no windows");
    }
    let value = events / time_s;
    let (rates, whole_s) = rates(counts, widths_s);
    if let Some(why) = too_few(rates.len()) {
        return Estimate::without_interval(value, why);
    }
    // Windows differ a little in width; the residual of a ratio keeps a long window from looking like a fast one.
    let mean_width_s = whole_s / rates.len() as f64;
    let short_s = SHORT * time_s / n as f64;
    let whole = counts.iter().zip(widths_s).filter(|(_, w)| **w > 0.0 && **w >= short_s);
    let residuals: Vec<f64> = whole.map(|(c, w)| (*c as f64 - value * w) / mean_width_s).collect();
    let centre = residuals.iter().sum::<f64>() / residuals.len() as f64;
    let residuals: Vec<f64> = residuals.iter().map(|r| r - centre).collect();
    let fewest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let estimate = about_mean(value, &rates, &residuals, whole_s);
    match (estimate.low, estimate.high) {
        (Some(low), Some(_)) if low <= 0.0 => Estimate::without_interval(
            value,
            "no usable interval: the rate changes too slowly and too much for a run of this length",
        ),
        (Some(low), Some(high)) => {
            // The mean lies between the slowest and the fastest window.
            let ends = (low.max(fewest).min(value), high.min(most).max(value));
            Estimate { low: Some(ends.0), high: Some(ends.1), ..estimate }
        }
        _ => estimate,
    }
}

/// Mean of a series of windows measured over `time_s` seconds, as CPU per query each second.
///
/// No interval in the cases of [`throughput`].
pub fn mean(values: &[f64], time_s: f64) -> Estimate {
    if values.is_empty() {
        return Estimate::without_interval(0.0, "no values");
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let residuals: Vec<f64> = values.iter().map(|v| v - mean).collect();
    about_mean(mean, values, &residuals, time_s)
}

fn about_mean(value: f64, values: &[f64], residuals: &[f64], time_s: f64) -> Estimate {
    if let Some(why) = too_few(residuals.len()) {
        return Estimate::without_interval(value, why);
    }
    // Equal windows leave residuals of rounding.
    let equal = residuals.iter().all(|r| r.abs() <= 1e-12 * value.abs());
    let Some(error) = mean_error(residuals, time_s).filter(|_| !equal) else {
        return Estimate::without_interval(value, "all windows are equal: no spread to judge by");
    };
    let verdict = steady::assess(values);
    if verdict.steady == Some(false) {
        return Estimate::without_interval(value, format!("not steady: {}", verdict.why));
    }
    let margin = t_quantile(0.5 + 0.5 * LEVEL, error.df) * error.standard_error;
    relied_on(value, (value - margin, value + margin), method("mean", &error), error.doubt(time_s))
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

fn method(name: &str, error: &SlowError) -> String {
    let wider = if error.df > 2.0 { WIDER } else { WIDER_SHORT };
    format!(
        "{name}, t of the {} slowest cosines and {:.0} % more ({:.0} % where slow changes outweigh fast ones), if nothing changes more slowly than a quarter of the run",
        error.df,
        100.0 * (wider - 1.0),
        100.0 * (wider * LONG_MEMORY - 1.0),
    )
}
