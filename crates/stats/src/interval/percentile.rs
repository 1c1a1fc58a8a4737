//! Percentiles of all values of a run, with intervals that account for the correlation of neighbouring windows.
//!
//! Woodruff's method (1952): the share of values below the estimate is a mean over windows; its error is that of a correlated
//! series; the distribution converts the ends of the share's interval to times.

use mydyno_model::Estimate;

use super::{LEVEL, method, relied_on, too_few};
use crate::histogram::{Distribution, Histogram, SparseHistogram};
use crate::slow::{SlowError, cosines, mean_error};
use crate::special::t_quantile;
use crate::steady;

/// Minimum number of values beyond a percentile for an interval.
const MIN_TAIL: f64 = 10.0;

/// Smallest relevant change of the share of values beyond a percentile, as a part of that share.
const RELEVANT_CHANGE: f64 = 0.1;

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

/// The `q`-quantile (0.99 for the 99th percentile) of all values in windows that follow each other over `time_s` seconds, in the
/// unit of the histograms (nanoseconds), with its interval.
///
/// No interval when there are fewer than [`crate::slow::MIN_WINDOWS`] windows, fewer than ten values beyond the
/// percentile, or when it was not steady.
pub fn percentile<W: Window>(per_window: &[W], q: f64, time_s: f64) -> Estimate {
    percentiles(per_window, &[q], time_s)
        .pop()
        .unwrap_or_else(|| Estimate::without_interval(0.0, "no windows"))
}

/// [`percentile`] for several `q`, merging the windows once.
pub fn percentiles<W: Window>(per_window: &[W], qs: &[f64], time_s: f64) -> Vec<Estimate> {
    let mut whole = Histogram::new();
    per_window.iter().for_each(|window| window.add_to(&mut whole));
    let qs: Vec<f64> = qs.iter().map(|q| q.clamp(0.0, 1.0)).collect();
    let times: Vec<f64> = qs.iter().map(|q| whole.quantile_ns(*q).unwrap_or_default()).collect();
    let beyond = Beyond::of(&whole, per_window, &times);
    let each = qs.iter().zip(&beyond);
    each.map(|(q, beyond)| percentile_of(&whole, per_window.len(), *q, beyond, time_s)).collect()
}

fn percentile_of(whole: &Histogram, windows: usize, q: f64, beyond: &Beyond, time_s: f64) -> Estimate {
    let Some(value) = whole.quantile_ns(q) else { return Estimate::without_interval(0.0, "no values") };
    let cannot = |why: String| Estimate::without_interval(value, why);
    if let Some(why) = too_few(windows) {
        return cannot(why);
    }
    let total = whole.count() as f64;
    let tail = total * q.min(1.0 - q);
    if tail < MIN_TAIL {
        return cannot(format!(
            "only {tail:.0} of {total} values lie beyond it, at least {MIN_TAIL} are needed: measure longer"
        ));
    }
    if whole.min_ns() == whole.max_ns() {
        return cannot("all values are equal: no spread to judge by".to_owned());
    }
    let error = beyond.error(time_s);
    let rare = q.min(1.0 - q);
    // The shares form the tested series: a change is expressed as a share of the earlier share.
    let verdict = steady::assess_about(rare, &beyond.residuals, RELEVANT_CHANGE, steady::SEVERAL_SERIES);
    if verdict.steady == Some(false) {
        let why = verdict.why.replacen("it ", "the share of values beyond it ", 1);
        return cannot(format!("not steady: {why}"));
    }
    let margin = t_quantile(0.5 + 0.5 * LEVEL, error.df) * error.standard_error;
    // Where the error of the share is so large that the interval passes 0 or 1, the observed extremes are its ends: withholding
    // only the wide intervals would leave those that are narrow by chance.
    let (low_q, high_q) = ((q - margin).max(0.0), (q + margin).min(1.0));
    let (mut low, mut high) =
        (whole.quantile_ns(low_q).unwrap_or(value), whole.quantile_ns(high_q).unwrap_or(value));
    if let (Some((a, b)), Some((c, _))) = (whole.quantile_bounds_ns(low_q), whole.quantile_bounds_ns(high_q))
        && a == c
    {
        // The recorder does not resolve values inside one bucket; the bucket itself is the interval.
        (low, high) = (a as f64, b as f64);
    }
    relied_on(value, (low.min(value), high.max(value)), method("Woodruff", &error), error.doubt(time_s))
}

/// The share of values above a time, for each window.
struct Beyond {
    /// Deviation of each window's share from the overall share; their mean is 0.
    residuals: Vec<f64>,
    /// Variance that a residual would have if all windows were alike: that of counting (binomial).
    counting: f64,
}

impl Beyond {
    /// The series for several times, in any order.
    fn of<W: Window>(whole: &Histogram, per_window: &[W], times_ns: &[f64]) -> Vec<Self> {
        let mut order: Vec<usize> = (0..times_ns.len()).collect();
        order.sort_by(|a, b| times_ns[*a].total_cmp(&times_ns[*b]));
        let sorted: Vec<f64> = order.iter().map(|i| times_ns[*i]).collect();
        let mut below = vec![0.0; sorted.len()];
        let mut above = vec![Vec::with_capacity(per_window.len()); sorted.len()];
        for window in per_window {
            window.counts_below(&sorted, &mut below);
            for (i, below) in order.iter().zip(&below) {
                above[*i].push(window.count() as f64 - below);
            }
        }
        above.into_iter().map(|above| Self::of_counts(whole, per_window, &above)).collect()
    }

    fn of_counts<W: Window>(whole: &Histogram, per_window: &[W], above: &[f64]) -> Self {
        let total = whole.count() as f64;
        let share = above.iter().sum::<f64>() / total;
        // Residuals of a ratio: a window with more values has more weight.
        let mean_count = total / per_window.len() as f64;
        let residuals =
            per_window.iter().zip(above).map(|(w, a)| (a - share * w.count() as f64) / mean_count);
        Self { residuals: residuals.collect(), counting: share * (1.0 - share) / mean_count }
    }

    /// The error of the share, from its slowest changes; where the windows do not differ, the known error of counting.
    fn error(&self, time_s: f64) -> SlowError {
        let counting = (self.counting / self.residuals.len() as f64).sqrt();
        let none = SlowError { standard_error: counting, df: cosines(time_s) as f64, wanders: false };
        mean_error(&self.residuals, time_s).unwrap_or(none)
    }
}
