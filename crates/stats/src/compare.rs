//! Two variants measured in paired blocks: the effect as a ratio, with its interval.
//!
//! A block contains one measurement of each variant, close in time and in random order. Slow drift affects both alike and
//! cancels in the ratio; the logarithm makes "10 % more" and "10 % less" equally far from no effect.

use mydyno_model::Estimate;

use crate::Error;
use crate::rng::Rng;
use crate::special::t_quantile;

/// One block: the same response of both variants, above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Response of the reference variant.
    pub baseline: f64,
    /// Response of the compared variant.
    pub treatment: f64,
}

/// Logarithms of treatment over baseline.
///
/// # Errors
/// A response that is not above 0 has no ratio.
pub fn log_ratios(pairs: &[Pair]) -> Result<Vec<f64>, Error> {
    let check = |name, value: f64| match value.is_finite() && value > 0.0 {
        true => Ok(value),
        false => Err(Error::Argument { name, value, must_be: "above 0 to be compared as a ratio" }),
    };
    pairs
        .iter()
        .map(|p| Ok((check("treatment", p.treatment)? / check("baseline", p.baseline)?).ln()))
        .collect()
}

/// Mean and standard deviation of logarithms of ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogEffect {
    /// Blocks.
    pub blocks: usize,
    /// Mean logarithm: ln 1.05 for an effect of +5 %.
    pub mean: f64,
    /// Standard deviation between blocks; `None` for fewer than two.
    pub sd: Option<f64>,
}

impl LogEffect {
    /// The effect from log ratios as [`log_ratios`] returns them.
    pub fn of(log_ratios: &[f64]) -> Self {
        let n = log_ratios.len() as f64;
        let mean = if log_ratios.is_empty() { 0.0 } else { log_ratios.iter().sum::<f64>() / n };
        let sd = (log_ratios.len() > 1)
            .then(|| (log_ratios.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt());
        Self { blocks: log_ratios.len(), mean, sd }
    }

    /// Standard error of the mean.
    pub fn standard_error(&self) -> Option<f64> {
        self.sd.map(|sd| sd / (self.blocks as f64).sqrt())
    }

    /// Degrees of freedom of the standard deviation.
    pub fn df(&self) -> f64 {
        self.blocks as f64 - 1.0
    }

    /// The effect as a ratio (1.05 for +5 %) with Student's interval at a level like 0.95.
    pub fn ratio_t(&self, level: f64) -> Estimate {
        let value = self.mean.exp();
        match self.standard_error() {
            None => Estimate::without_interval(value, "too short: at least two blocks are needed"),
            Some(se) if se <= rounding(self.mean) => {
                Estimate::without_interval(value, "all blocks are equal: no spread to judge by")
            }
            Some(se) => {
                let margin = t_quantile(0.5 + 0.5 * level, self.df()) * se;
                let (low, high) = ((self.mean - margin).exp(), (self.mean + margin).exp());
                Estimate::with_interval(
                    value,
                    low,
                    high,
                    level,
                    format!("t, {} paired blocks, log ratio", self.blocks),
                )
            }
        }
    }
}

/// Bound below which a spread is due to rounding.
pub(crate) fn rounding(mean: f64) -> f64 {
    1e-12 * (1.0 + mean.abs())
}

/// Minimum number of blocks for a bootstrap: fewer give too few distinct samples.
pub const MIN_BOOTSTRAP_BLOCKS: usize = 8;

/// The effect as a ratio with a bootstrap-t interval (Efron 1981; Hall 1988): resampled t statistics replace Student's table,
/// so that the interval keeps its coverage for skewed and heavy-tailed blocks.
///
/// No interval below [`MIN_BOOTSTRAP_BLOCKS`] blocks or when they are equal.
pub fn ratio_bootstrap(log_ratios: &[f64], level: f64, rng: &mut Rng) -> Estimate {
    const SAMPLES: usize = 4_999;
    let effect = LogEffect::of(log_ratios);
    let value = effect.mean.exp();
    let n = log_ratios.len();
    if n < MIN_BOOTSTRAP_BLOCKS {
        let why =
            format!("too short: {n} blocks, at least {MIN_BOOTSTRAP_BLOCKS} are needed for a bootstrap");
        return Estimate::without_interval(value, why);
    }
    let Some(se) = effect.standard_error().filter(|se| *se > rounding(effect.mean)) else {
        return Estimate::without_interval(value, "all blocks are equal: no spread to judge by");
    };
    let mut ts: Vec<f64> = Vec::with_capacity(SAMPLES);
    let mut sample = vec![0.0; n];
    while ts.len() < SAMPLES {
        sample.iter_mut().for_each(|s| *s = log_ratios[rng.below(n as u64) as usize]);
        let resampled = LogEffect::of(&sample);
        // A resample of one repeated value has no spread and yields no t statistic.
        if let Some(se) = resampled.standard_error().filter(|se| *se > rounding(effect.mean)) {
            ts.push((resampled.mean - effect.mean) / se);
        }
    }
    ts.sort_by(f64::total_cmp);
    let at = |q: f64| ts[((q * (SAMPLES as f64 + 1.0)).round() as usize).clamp(1, SAMPLES) - 1];
    let (low_t, high_t) = (at(0.5 - 0.5 * level), at(0.5 + 0.5 * level));
    Estimate::with_interval(
        value,
        (effect.mean - high_t * se).exp(),
        (effect.mean - low_t * se).exp(),
        level,
        format!("bootstrap-t, {n} paired blocks, log ratio"),
    )
}

/// The ratio of the means of two autocorrelated series that were measured one after the other, as in two run folders, with its
/// interval. Unlike paired blocks it cannot separate the effect from other changes between the two runs; the caller must tell
/// its readers so. Provisional when either of the two is.
pub fn ratio_of_estimates(baseline: &Estimate, treatment: &Estimate) -> Estimate {
    let value = treatment.value / baseline.value;
    if !(baseline.value > 0.0 && treatment.value > 0.0) {
        return Estimate::without_interval(value, "a value is not above 0: no ratio");
    }
    let (Some(bl), Some(bh), Some(tl), Some(th)) =
        (baseline.low, baseline.high, treatment.low, treatment.high)
    else {
        return Estimate::without_interval(value, "one of the two has no interval");
    };
    if bl <= 0.0 || tl <= 0.0 {
        return Estimate::without_interval(value, "an interval reaches 0: no ratio");
    }
    // Donner and Zou (2012), MOVER: distances from each estimate to its own ends, combined on the log scale.
    let ln = |a: f64, b: f64| (a / b).ln();
    let low = ln(treatment.value, baseline.value) - ln(treatment.value, tl).hypot(ln(bh, baseline.value));
    let high = ln(treatment.value, baseline.value) + ln(th, treatment.value).hypot(ln(baseline.value, bl));
    let method = "two runs, one after the other (MOVER)";
    match (baseline.level, treatment.level) {
        (Some(a), Some(b)) => Estimate::with_interval(value, low.exp(), high.exp(), a.min(b), method),
        _ => {
            let method = format!("{method}; provisional: one of the two is");
            Estimate::provisional(value, low.exp(), high.exp(), method)
        }
    }
}

/// Noise floor: the effect that two blocks of one pair show by chance with a probability of 5 %, as a share (0.06: ±6 %), from
/// blocks of one variant compared with itself (A/A pairs). `None` for fewer than four A/A pairs, or when none of them differ:
/// absence of observed noise does not mean 0.
pub fn noise_floor(aa_log_ratios: &[f64]) -> Option<f64> {
    if aa_log_ratios.len() < 4 {
        return None;
    }
    // The true mean is known to be 0, so it is not fitted and costs no degree of freedom.
    let n = aa_log_ratios.len() as f64;
    let sd = (aa_log_ratios.iter().map(|l| l * l).sum::<f64>() / n).sqrt();
    (sd > rounding(0.0)).then(|| (t_quantile(0.975, n) * sd).exp_m1())
}
