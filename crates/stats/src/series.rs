//! How far the mean of a correlated series may lie from the truth.
//!
//! Windows of one run follow each other: a slow second is followed by slow ones. Treating them as independent gives
//! intervals that are several times too narrow. Here the series is modelled as an autoregression, whose spectrum at
//! frequency 0 gives the variance of the mean, and the uncertainty *of that variance* gives the degrees of freedom of
//! the t quantile: a short and strongly correlated series gets a wide interval, not a wrong one.
//!
//! - Order by corrected AIC, at least 1 (an order of 0 chosen by chance is what breaks short series), coefficients by
//!   Burg's method.
//! - The sum of the coefficients is estimated too low by about (1 + 3φ)/n (Kendall 1954; Marriott and Pope 1954);
//!   it is corrected, short series more, long ones less (0.7 + 18/n times that up to 60 windows, then falling to 0.4 + 18/n).
//! - Degrees of freedom by the delta method: Var ln s² ≈ 4p(1+φ)/((1−φ)n) + 2/n = 2/ν.
//! - Skew (rare stalls) moves the ends by Willink's cubic transformation (2005), as in Tafazzoli, Steiger and Wilson's
//!   *N-Skart* (2011).
//!
//! - Noise may hide a slow wander from any autoregression; the slowest cosines of the series show it. Where they say that the
//!   error is larger, it is theirs, with a degree of freedom for each (Müller 2007; Lazarus, Lewis, Stock and Watson 2018).
//!
//! Designs that were tried, with their coverage: docs/journal/statistics.md.

use crate::special::t_quantile;

/// Fewest windows that an interval can be made of.
pub const MIN_WINDOWS: usize = 16;

/// Fewest windows that can promise the level of an interval. Fewer do not see a server flip between two ways of working, or
/// stall for tens of windows, often enough to know how often it does, and cannot tell a drift from noise that is merely
/// correlated (docs/journal/statistics.md).
pub const RELIABLE_WINDOWS: usize = 240;

/// Wander (see [`MeanError::wander`]) from which a series is taken to drift below its noise. Of [`RELIABLE_WINDOWS`]
/// independent windows or those of an AR(1) up to 0.7 under 1 % reach it (docs/journal/statistics.md).
pub const WANDERS: f64 = 1.73;

/// Fewest cosines that tell how much the slowest part of a series varies: fewer see slower changes, and make every interval wider.
const FEWEST_COSINES: usize = 5;

/// Windows for each further cosine: what takes longer than twice as many is slow, however long the series is.
const WINDOWS_A_COSINE: usize = 120;

/// Room for windows that are too rare to have been seen, as independent windows' worth of variance: Var += this/n · s²/n.
const UNSEEN: f64 = 12.0;

/// Greatest order of the autoregression.
const MAX_ORDER: usize = 8;

/// What a correlated series says about its mean.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanError {
    /// Standard error of the mean, in the unit of the series.
    pub standard_error: f64,
    /// Degrees of freedom of that standard error: how well it is known itself.
    pub df: f64,
    /// Independent values that would tell as much about the mean as the series does.
    pub effective_n: f64,
    /// Skewness of the mean's distribution.
    pub skewness: f64,
    /// How many times larger the error is than what neighbours have in common would make it (an AR(1) by the correlation of
    /// neighbours): noise upon a level that wanders hides it from neighbours, not from the error.
    pub wander: f64,
}

impl MeanError {
    /// How far the truth may lie below and above the mean at a level like 0.95: both ≥ 0 but for extreme skew.
    pub fn margins(&self, level: f64) -> (f64, f64) {
        let t = t_quantile(0.5 + 0.5 * level, self.df);
        // The mean minus `upper quantile` is the low end: a sample skewed to the left needs more room to its left.
        (willink(t, self.skewness) * self.standard_error, -willink(-t, self.skewness) * self.standard_error)
    }

    /// The same, at least what the slowest part of the series says.
    #[must_use]
    pub(crate) fn with_slowest_part(self, residuals: &[f64]) -> Self {
        let cosines = (residuals.len() / WINDOWS_A_COSINE).max(FEWEST_COSINES);
        let standard_error = error_by_cosines(residuals, cosines);
        if standard_error <= self.standard_error {
            return self;
        }
        let larger = standard_error / self.standard_error;
        let (effective_n, wander) = (self.effective_n / larger.powi(2), self.wander * larger);
        Self { standard_error, df: cosines as f64, effective_n, wander, ..self }
    }

    /// The same with room for rare slow windows of which `windows` happened to hold too few: an interval cannot know what it
    /// did not see, and without that room it is too short for series with stalls (docs/journal/statistics.md).
    #[must_use]
    pub(crate) fn with_room_for_the_unseen(self, windows: usize) -> Self {
        let n = windows as f64;
        let independent = self.effective_n * self.standard_error.powi(2) / n;
        let variance = self.standard_error.powi(2) + UNSEEN / n * independent;
        let effective_n = self.effective_n * self.standard_error.powi(2) / variance;
        Self { standard_error: variance.sqrt(), effective_n, ..self }
    }

    /// Why no level can be promised for an interval from this many windows; `None` when it can.
    pub(crate) fn doubt(&self, windows: usize) -> Option<String> {
        if windows < RELIABLE_WINDOWS {
            return Some(format!(
                "fewer than {RELIABLE_WINDOWS} windows cannot tell slow changes from noise"
            ));
        }
        (self.wander >= WANDERS).then(|| {
            "its level wanders more slowly than its noise: it speaks of this stretch of time only".to_owned()
        })
    }
}

/// Willink's transformation of a t quantile for a mean of this skewness.
fn willink(t: f64, skewness: f64) -> f64 {
    let b = skewness / 6.0;
    if b.abs() < 1e-6 {
        return t;
    }
    ((1.0 + 6.0 * b * (t - b)).cbrt() - 1.0) / (2.0 * b)
}

/// The error of the mean of a series whose mean (and `regressors` − 1 other effects) were already taken out.
/// `None` for fewer than [`MIN_WINDOWS`] values or none that differ.
///
/// Looked at window by window, noise hides a slow wander below it; means of three and of nine windows show it. Where they
/// say that the error is larger, the answer lies halfway (on the log scale): the larger one alone would be too wide
/// when it is larger by chance.
pub fn mean_error(residuals: &[f64], regressors: usize) -> Option<MeanError> {
    // What matters in a long series is slow; a thousand batches of it say all.
    let base = residuals.len() / MOST_VALUES + 1;
    let single = mean_error_at_scale(&batch_means(residuals, base), regressors)?;
    let mut answer = single.clone();
    for batch in BATCHES {
        let Some(batched) = mean_error_at_scale(&batch_means(residuals, base * batch), regressors) else {
            break;
        };
        let standard_error = (single.standard_error * batched.standard_error).sqrt();
        if standard_error > answer.standard_error {
            answer.standard_error = standard_error;
            answer.df = (single.df * batched.df).sqrt();
        }
    }
    let spread = residuals.iter().map(|r| r * r).sum::<f64>() / residuals.len() as f64;
    answer.effective_n = spread / answer.standard_error.powi(2);
    answer.wander = answer.standard_error / error_by_neighbours(residuals, 0.0);
    Some(answer)
}

/// The standard error that an AR(1) has whose neighbours correlate as those of the residuals do, of whose variance `counting` is
/// known to be independent.
pub(crate) fn error_by_neighbours(residuals: &[f64], counting: f64) -> f64 {
    let base = residuals.len() / MOST_VALUES + 1;
    let windows = batch_means(residuals, base);
    let n = windows.len() as f64;
    let (all, counting) = (variance(&windows), counting / base as f64);
    let shared = all - counting;
    if shared <= 0.0 {
        return (counting / n).sqrt();
    }
    let products: f64 = windows.windows(2).map(|two| two[0] * two[1]).sum();
    let seen = products / (shared * n);
    // What a fitted mean takes from it (Kendall 1954).
    let correlation = (seen + (1.0 + 3.0 * seen) / n).clamp(-0.5, MOST_CORRELATED);
    ((shared * (1.0 + correlation) / (1.0 - correlation) + counting) / n).sqrt()
}

/// The standard error of the mean that the first `count` cosines have, of half a period in all the series and up: their mean
/// square is the spectrum about frequency 0, and they know nothing of the mean itself.
fn error_by_cosines(residuals: &[f64], count: usize) -> f64 {
    let n = residuals.len() as f64;
    let square = |half_periods: usize| {
        let step = std::f64::consts::PI * half_periods as f64 / n;
        // Each cosine from the two before it: a record of an hour asks for millions.
        let (mut before, mut here, double) = ((0.5 * step).cos(), (0.5 * step).cos(), 2.0 * step.cos());
        let mut sum = 0.0;
        for residual in residuals {
            sum += residual * here;
            (before, here) = (here, double * here - before);
        }
        sum * sum * 2.0 / n
    };
    ((1..=count).map(square).sum::<f64>() / count as f64 / n).sqrt()
}

/// Correlation of neighbours that an AR(1) is given at most.
const MOST_CORRELATED: f64 = 0.99;

/// Mean square of a series with mean 0.
fn variance(series: &[f64]) -> f64 {
    series.iter().map(|x| x * x).sum::<f64>() / series.len() as f64
}

/// Windows in a batch of the coarser looks.
const BATCHES: [usize; 2] = [3, 9];

/// Most values that an autoregression is fitted to.
const MOST_VALUES: usize = 1000;

/// Means of batches, about their own mean; what does not fill a batch is left out at the start.
fn batch_means(residuals: &[f64], batch: usize) -> Vec<f64> {
    if batch == 1 {
        return residuals.to_vec();
    }
    let whole = &residuals[residuals.len() % batch..];
    let mut means: Vec<f64> =
        whole.chunks_exact(batch).map(|windows| windows.iter().sum::<f64>() / batch as f64).collect();
    let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
    means.iter_mut().for_each(|m| *m -= mean);
    means
}

fn mean_error_at_scale(residuals: &[f64], regressors: usize) -> Option<MeanError> {
    let n = residuals.len();
    let spread = residuals.iter().map(|r| r * r).sum::<f64>() / n as f64;
    let scale = residuals.iter().fold(0.0f64, |m, r| m.max(r.abs()));
    if n < MIN_WINDOWS || !spread.is_finite() || spread <= 0.0 || scale <= 0.0 {
        return None;
    }
    let model = Autoregression::fit(residuals, max_order(n));
    let (nf, p) = (n as f64, model.coefficients.len() as f64);
    let raw_sum: f64 = model.coefficients.iter().sum();
    // One more for each effect that was fitted beside the mean (Kendall's argument for a trend).
    let k = regressors as f64;
    let bias = (k + (k + 2.0) * raw_sum) / nf * (0.4 + 0.3 * (60.0 / nf).min(1.0) + 18.0 / nf);
    let sum = (raw_sum + bias).min(0.995);
    let innovation = model.variance * nf / (nf - p - k).max(1.0);
    let long_run = innovation / (1.0 - sum).powi(2);
    let phi = sum.max(-0.9);
    let var_ln = 4.0 * p * (1.0 + phi).max(0.5) / ((1.0 - phi) * nf) + 2.0 / nf;
    let standard_error = (long_run / nf).sqrt();
    Some(MeanError {
        standard_error,
        df: (2.0 / var_ln).max(1.0),
        effective_n: spread / (standard_error * standard_error),
        skewness: skewness(&model.innovations(residuals)) / nf.sqrt(),
        wander: 1.0,
    })
}

fn max_order(n: usize) -> usize {
    (n / 15).clamp(1, MAX_ORDER)
}

/// Sample skewness with Fisher's correction; 0 for fewer than three values or none that differ.
pub fn skewness(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 3.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let moment = |k: i32| values.iter().map(|v| (v - mean).powi(k)).sum::<f64>() / n;
    let m2 = moment(2);
    if m2 <= 0.0 { 0.0 } else { moment(3) / m2.powf(1.5) * (n * (n - 1.0)).sqrt() / (n - 2.0) }
}

/// Weights of the last value, the one before … in the best autoregression of order 1 to `max_order` of a series with
/// mean 0, by corrected AIC and Burg's method.
pub fn burg(series: &[f64], max_order: usize) -> Vec<f64> {
    Autoregression::fit(series, max_order).coefficients
}

/// An autoregression of a series with mean 0.
#[derive(Debug, Clone)]
pub(crate) struct Autoregression {
    /// Weights of the last value, the one before …
    pub(crate) coefficients: Vec<f64>,
    /// Mean square of what it does not explain.
    pub(crate) variance: f64,
}

impl Autoregression {
    /// The best autoregression of order 1 to `max_order` by corrected AIC, fitted by Burg's method.
    pub(crate) fn fit(series: &[f64], max_order: usize) -> Self {
        let n = series.len();
        let mut forward = series.to_vec();
        let mut backward = series.to_vec();
        let mut coefficients: Vec<f64> = Vec::new();
        let mut variance = series.iter().map(|x| x * x).sum::<f64>() / n as f64;
        let mut best = (f64::INFINITY, Self { coefficients: vec![0.0], variance });
        for order in 1..=max_order.min(n.saturating_sub(4)) {
            let (mut cross, mut energy) = (0.0, 0.0);
            for t in order..n {
                cross += forward[t] * backward[t - 1];
                energy += forward[t] * forward[t] + backward[t - 1] * backward[t - 1];
            }
            if energy <= 0.0 {
                break;
            }
            let reflection = 2.0 * cross / energy;
            let reversed: Vec<f64> = coefficients.iter().rev().copied().collect();
            for (c, r) in coefficients.iter_mut().zip(reversed) {
                *c -= reflection * r;
            }
            coefficients.push(reflection);
            variance *= 1.0 - reflection * reflection;
            for t in (order..n).rev() {
                let (f, b) = (forward[t], backward[t - 1]);
                forward[t] = f - reflection * b;
                backward[t] = b - reflection * f;
            }
            let (nf, k) = (n as f64, order as f64 + 1.0);
            let aicc = nf * variance.max(f64::MIN_POSITIVE).ln() + 2.0 * k * nf / (nf - k - 2.0).max(1.0);
            if aicc < best.0 {
                best = (aicc, Self { coefficients: coefficients.clone(), variance });
            }
        }
        best.1
    }

    /// What the autoregression does not foresee, from the first value that it can.
    pub(crate) fn innovations(&self, series: &[f64]) -> Vec<f64> {
        let p = self.coefficients.len();
        (p..series.len())
            .map(|t| {
                series[t]
                    - self.coefficients.iter().enumerate().map(|(i, c)| c * series[t - 1 - i]).sum::<f64>()
            })
            .collect()
    }
}
