//! Headline estimates of one run with intervals: throughput, means, percentiles.
//!
//! Every function gives the point estimate always, and the interval only when the data can carry one; otherwise the
//! estimate says in words why not, and what would help.

use mydyno_model::Estimate;

use crate::histogram::{Distribution, Histogram, SparseHistogram};
use crate::series::{MIN_WINDOWS, MeanError, mean_error};
use crate::steady;

/// Nominal coverage of all intervals.
pub const LEVEL: f64 = 0.95;

/// Values that must lie beyond a percentile before an interval for it is given.
const MIN_TAIL: f64 = 10.0;

/// Mean rate over windows that follow each other: `counts` events in windows of `widths_s` seconds, as transactions a
/// second. The value is all events divided by all time.
///
/// No interval when there are fewer than [`MIN_WINDOWS`] windows, when the rate was not steady, or when all
/// windows are equal.
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
    let Some(error) = mean_error(residuals, 1) else {
        return Estimate::without_interval(value, "all windows are equal: no spread to judge by");
    };
    let verdict = steady::assess_residuals(value, residuals);
    if verdict.steady == Some(false) {
        return Estimate::without_interval(value, format!("not steady: {}", verdict.why));
    }
    let (below, above) = error.margins(LEVEL);
    Estimate::with_interval(
        value,
        value - below,
        value + above,
        LEVEL,
        method("mean", residuals.len(), &error),
    )
}

/// The `q`-quantile (0.99 for the 99th percentile) of all values in windows that follow each other, in the unit of
/// the histograms (nanoseconds), with an interval that respects that windows resemble their neighbours.
///
/// Woodruff's method: the share of values below the estimate is a mean over windows, its error is that of a
/// correlated series, and the shares at its ends are read off the distribution as times.
///
/// No interval when there are fewer than [`MIN_WINDOWS`] windows, fewer than ten values beyond the percentile, or when
/// it was not steady.
pub fn percentile<W: Window>(per_window: &[W], q: f64) -> Estimate {
    percentiles(per_window, &[q]).pop().unwrap_or_else(|| Estimate::without_interval(0.0, "no windows"))
}

/// [`percentile`] for several `q`, merging the windows once.
pub fn percentiles<W: Window>(per_window: &[W], qs: &[f64]) -> Vec<Estimate> {
    let mut whole = Histogram::new();
    per_window.iter().for_each(|window| window.add_to(&mut whole));
    qs.iter().map(|q| percentile_of(&whole, per_window, *q)).collect()
}

/// A histogram of one window, dense or sparse.
pub trait Window: Distribution {
    /// Adds its values to a recorder.
    fn add_to(&self, whole: &mut Histogram);
}

impl Window for Histogram {
    fn add_to(&self, whole: &mut Histogram) {
        whole.merge(self);
    }
}

impl Window for SparseHistogram {
    fn add_to(&self, whole: &mut Histogram) {
        whole.merge_sparse(self);
    }
}

impl<T: Window> Window for &T {
    fn add_to(&self, whole: &mut Histogram) {
        (*self).add_to(whole);
    }
}

fn percentile_of<W: Window>(whole: &Histogram, per_window: &[W], q: f64) -> Estimate {
    let q = q.clamp(0.0, 1.0);
    let Some(value) = whole.quantile_ns(q) else { return Estimate::without_interval(0.0, "no values") };
    let cannot = |why: String| Estimate::without_interval(value, why);
    if let Some(why) = too_few(per_window.len()) {
        return cannot(why);
    }
    let total = whole.count() as f64;
    let tail = total * q.min(1.0 - q);
    if tail < MIN_TAIL {
        return cannot(format!(
            "only {tail:.0} of {total} values lie beyond it; at least {MIN_TAIL} are needed: measure longer"
        ));
    }
    if whole.min_ns() == whole.max_ns() {
        return cannot("all values are equal: no spread to judge by".to_owned());
    }
    let n = per_window.len() as f64;
    // A share of exactly q: the estimate may split the values of one bucket.
    let below: Vec<f64> = per_window.iter().map(|w| w.count_below(value)).collect();
    let share = below.iter().sum::<f64>() / total;
    let per_window_mean = total / n;
    let residuals: Vec<f64> = per_window
        .iter()
        .zip(&below)
        .map(|(w, b)| (b - share * w.count() as f64) / per_window_mean)
        .collect();
    // Values are whole: even windows that look alike leave the error of counting.
    let counting = (q * (1.0 - q) / total).sqrt();
    let error = match mean_error(&residuals, 1) {
        Some(error) if error.standard_error >= counting => error,
        Some(error) => MeanError { standard_error: counting, ..error },
        None => MeanError { standard_error: counting, df: n - 1.0, effective_n: n, skewness: 0.0 },
    };
    let verdict = steady::assess_residuals(q.min(1.0 - q), &residuals);
    if verdict.steady == Some(false) {
        return cannot(format!("not steady: {}", verdict.why.replace("it", "the share of slower values")));
    }
    let (minus, plus) = error.margins(LEVEL);
    // Where the error of the share is so large that it passes 0 or 1, the extremes seen are the ends: to withhold just
    // the wide intervals would leave the ones that are narrow by luck.
    let (low_q, high_q) = ((q - minus).max(0.0), (q + plus).min(1.0));
    let (mut low, mut high) =
        (whole.quantile_ns(low_q).unwrap_or(value), whole.quantile_ns(high_q).unwrap_or(value));
    if let (Some((a, b)), Some((c, _))) = (whole.quantile_bounds_ns(low_q), whole.quantile_bounds_ns(high_q))
        && a == c
    {
        // Inside one bucket the recorder cannot tell; the bucket itself is the answer.
        (low, high) = (a as f64, b as f64);
    }
    Estimate::with_interval(
        value,
        low.min(value),
        high.max(value),
        LEVEL,
        method("Woodruff", per_window.len(), &error),
    )
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
