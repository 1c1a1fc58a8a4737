//! Percentiles of all values of a run, with intervals that respect that windows resemble their neighbours.
//!
//! Woodruff's method (1952): the share of values below the estimate is a mean over windows; its error is that of a
//! correlated series; the shares at its ends are read off the distribution as times.

use mydyno_model::Estimate;

use super::{LEVEL, method, relied_on, too_few};
use crate::histogram::{Distribution, Histogram, SparseHistogram};
use crate::series::{MeanError, error_by_neighbours, mean_error};
use crate::steady;

/// Values that must lie beyond a percentile before an interval for it is given.
const MIN_TAIL: f64 = 10.0;

/// A change of the share of values beyond a percentile that matters, as a part of that share.
const RELEVANT_CHANGE: f64 = 0.1;

/// Correlation of neighbours that unmasking stops at.
const MOST_CORRELATED: f64 = 0.95;

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

/// The `q`-quantile (0.99 for the 99th percentile) of all values in windows that follow each other, in the unit of
/// the histograms (nanoseconds), with its interval.
///
/// No interval when there are fewer than [`crate::series::MIN_WINDOWS`] windows, fewer than ten values beyond the
/// percentile, or when it was not steady.
pub fn percentile<W: Window>(per_window: &[W], q: f64) -> Estimate {
    percentiles(per_window, &[q]).pop().unwrap_or_else(|| Estimate::without_interval(0.0, "no windows"))
}

/// [`percentile`] for several `q`, merging the windows once.
pub fn percentiles<W: Window>(per_window: &[W], qs: &[f64]) -> Vec<Estimate> {
    let mut whole = Histogram::new();
    per_window.iter().for_each(|window| window.add_to(&mut whole));
    let qs: Vec<f64> = qs.iter().map(|q| q.clamp(0.0, 1.0)).collect();
    // The median comes first; it serves all of them.
    let times: Vec<f64> =
        [0.5].iter().chain(&qs).map(|q| whole.quantile_ns(*q).unwrap_or_default()).collect();
    let mut beyond = Beyond::of(&whole, per_window, &times).into_iter();
    // How long windows resemble each other, not how slowly their level wanders: that, each percentile sees for itself.
    let middle = beyond.next().and_then(|middle| Some(middle.unmasked(mean_error(&middle.residuals, 1)?)));
    let each = qs.iter().zip(beyond);
    each.map(|(q, beyond)| percentile_of(&whole, per_window.len(), *q, &beyond, middle.as_ref())).collect()
}

fn percentile_of(
    whole: &Histogram,
    windows: usize,
    q: f64,
    beyond: &Beyond,
    middle: Option<&MeanError>,
) -> Estimate {
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
    let own = beyond.own_error();
    let error = beyond.error_with(&own, middle);
    let hidden = error.standard_error / own.standard_error;
    let verdict = steady::assess_residuals(q.min(1.0 - q), &beyond.residuals, RELEVANT_CHANGE, hidden);
    if verdict.steady == Some(false) {
        let why = verdict.why.replacen("it ", "the share of values beyond it ", 1);
        return cannot(format!("not steady: {why}"));
    }
    // The residuals are of the share *above* the estimate: its upper margin is the lower one of the share below.
    let (minus, plus) = error.margins(LEVEL);
    // Where the error of the share is so large that it passes 0 or 1, the extremes seen are the ends: to withhold just
    // the wide intervals would leave the ones that are narrow by luck.
    let (low_q, high_q) = ((q - plus).max(0.0), (q + minus).min(1.0));
    let (mut low, mut high) =
        (whole.quantile_ns(low_q).unwrap_or(value), whole.quantile_ns(high_q).unwrap_or(value));
    if let (Some((a, b)), Some((c, _))) = (whole.quantile_bounds_ns(low_q), whole.quantile_bounds_ns(high_q))
        && a == c
    {
        // Inside one bucket the recorder cannot tell; the bucket itself is the answer.
        (low, high) = (a as f64, b as f64);
    }
    relied_on(
        value,
        (low.min(value), high.max(value)),
        method("Woodruff", windows, &error),
        error.doubt(windows),
    )
}

/// The share of values above a time, window by window.
struct Beyond {
    /// What the windows differ by from the share of the whole; their mean is 0.
    residuals: Vec<f64>,
    /// Variance of a residual that would be there if all windows were alike: that of counting.
    counting: f64,
}

impl Beyond {
    /// For each of some times, in any order.
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
        // A ratio's residuals: a window with more values counts for more.
        let mean_count = total / per_window.len() as f64;
        let residuals =
            per_window.iter().zip(above).map(|(w, a)| (a - share * w.count() as f64) / mean_count);
        Self { residuals: residuals.collect(), counting: share * (1.0 - share) / mean_count }
    }

    fn error(&self) -> Option<MeanError> {
        mean_error(&self.residuals, 1).map(|error| error.with_slowest_part(&self.residuals))
    }

    /// The error of the share by its own windows, at least that of counting.
    fn own_error(&self) -> MeanError {
        let n = self.residuals.len() as f64;
        let floor = (self.counting / n).sqrt();
        let none =
            MeanError { standard_error: floor, df: n - 1.0, effective_n: n, skewness: 0.0, wander: 1.0 };
        let own = self.error().unwrap_or(none);
        let standard_error = own.standard_error.max(floor);
        let wander = standard_error / error_by_neighbours(&self.residuals, self.counting).max(floor);
        MeanError { standard_error, wander, ..own }
    }

    /// An error of this share with the persistence that counting masks given back: noise that is known to be independent pulls
    /// the correlation of neighbours down by its share of the variance.
    fn unmasked(&self, own: MeanError) -> MeanError {
        let n = self.residuals.len() as f64;
        let variance = self.variance();
        let shared = (variance - self.counting).max(0.0);
        let seen = n * own.standard_error.powi(2) / variance;
        let correlation = ((seen - 1.0) / (seen + 1.0)).max(0.0);
        let unmasked = (correlation * variance / shared.max(f64::MIN_POSITIVE)).min(MOST_CORRELATED);
        if unmasked <= correlation {
            return own;
        }
        let joint = ((shared * (1.0 + unmasked) / (1.0 - unmasked) + self.counting) / n).sqrt();
        // Halfway on the log scale, and less in longer series, whose coarser looks see below the noise themselves.
        let w = 0.5 * (60.0 / n).min(1.0);
        let standard_error = own.standard_error * (joint / own.standard_error).max(1.0).powf(w);
        MeanError { standard_error, effective_n: variance / standard_error.powi(2), ..own }
    }

    /// Variance of a residual.
    fn variance(&self) -> f64 {
        self.residuals.iter().map(|r| r * r).sum::<f64>() / (self.residuals.len() as f64 - 1.0)
    }

    /// The error of the share. Far out in the tail the error of counting hides how much windows resemble their
    /// neighbours, so what the windows differ by beyond counting is taken to persist as long as it does in the
    /// `middle` of the distribution, where it is seen best; where that says that the error is larger, the answer lies between.
    fn error_with(&self, own: &MeanError, middle: Option<&MeanError>) -> MeanError {
        let n = self.residuals.len() as f64;
        let Some(middle) = middle else { return own.clone() };
        let variance = self.variance();
        let shared = (variance - self.counting).max(0.0);
        let standard_error = (shared / middle.effective_n.clamp(1.0, n) + self.counting / n).sqrt();
        if standard_error <= own.standard_error {
            return own.clone();
        }
        // Counting is well known; how well the rest is known, the middle says (Welch and Satterthwaite).
        let (a, b) = (shared / middle.effective_n.clamp(1.0, n), self.counting / n);
        let df = ((a + b).powi(2) / (a * a / middle.df + b * b / (n - 1.0))).min(own.df.max(middle.df));
        // Between the two on the log scale, because the larger one alone would be too wide when it is larger by chance: the
        // nearer to it the more of what is seen here is counting. Where hardly any is, nothing is hidden.
        let w = (self.counting / variance).powf(0.75).min(1.0);
        let standard_error = standard_error.powf(w) * own.standard_error.powf(1.0 - w);
        let df = df.powf(w) * own.df.powf(1.0 - w);
        MeanError {
            standard_error,
            df,
            effective_n: variance / standard_error.powi(2),
            skewness: own.skewness,
            wander: own.wander,
        }
    }
}
