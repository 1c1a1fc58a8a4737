//! Group-sequential analysis: looking at an experiment after each block and stopping early, with a controlled error rate.
//!
//! Group-sequential boundaries by Lan and DeMets (1983): the permitted error of 5 % is spent over the looks, nearly all of it
//! late, as by O'Brien and Fleming, so that a full experiment loses little power. The exact boundaries come from the recursive
//! integral of Armitage, McPherson and Rowe (1969); the variance is unknown, so each boundary is interpreted as a significance
//! level and converted to a Student's t quantile for the blocks at hand. The interval at each look is Jennison and Turnbull's
//! repeated confidence interval: all of them hold simultaneously with probability 95 %.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mydyno_model::Estimate;

use crate::Error;
use crate::compare::{LogEffect, rounding};
use crate::special::{normal_cdf, normal_quantile, t_quantile};

/// A schedule of looks, with the significance level of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    looks: Vec<usize>,
    /// Two-sided significance level of each look.
    levels: Vec<f64>,
    level: f64,
}

impl Schedule {
    /// A schedule of looks after `first` blocks and every `every` blocks from there, the last after `max_blocks`, with
    /// simultaneous coverage `level` (0.95).
    ///
    /// # Errors
    /// Fewer than two blocks before the first look, or a level outside 0 … 1.
    pub fn new(first: usize, every: usize, max_blocks: usize, level: f64) -> Result<Self, Error> {
        if first < 2 || max_blocks < first || every == 0 {
            return Err(Error::Design(format!(
                "looks from {first} to {max_blocks} blocks, every {every}: the first needs at least two blocks, the last may not come before it"
            )));
        }
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::Argument { name: "level", value: level, must_be: "between 0 and 1" });
        }
        // An analysis asks for its schedule again with each slice, and the boundaries take a million exponentials.
        type Known = BTreeMap<(usize, usize, usize, u64), Arc<OnceLock<Schedule>>>;
        static KNOWN: Mutex<Known> = Mutex::new(Known::new());
        let key = (first, every, max_blocks, level.to_bits());
        let known = Arc::clone(KNOWN.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        Ok(known.get_or_init(|| Self::computed(first, every, max_blocks, level)).clone())
    }

    /// The schedule of arguments that were examined.
    fn computed(first: usize, every: usize, max_blocks: usize, level: f64) -> Self {
        let mut looks: Vec<usize> = (first..max_blocks).step_by(every).collect();
        looks.push(max_blocks);
        let alpha = 1.0 - level;
        let times: Vec<f64> = looks.iter().map(|n| *n as f64 / max_blocks as f64).collect();
        let levels = boundaries(&times, alpha).iter().map(|z| 2.0 * normal_cdf(-z)).collect();
        Self { looks, levels, level }
    }

    /// Numbers of blocks after which a look is due.
    pub fn looks(&self) -> &[usize] {
        &self.looks
    }

    /// Number of blocks at the last look.
    pub fn max_blocks(&self) -> usize {
        self.looks.last().copied().unwrap_or(0)
    }

    /// Two-sided significance level of the look after `blocks` blocks; `None` when no look is due then.
    pub fn significance(&self, blocks: usize) -> Option<f64> {
        self.looks.iter().position(|look| *look == blocks).map(|i| self.levels[i])
    }

    /// The repeated confidence interval of the effect as a ratio. `None` when no look is due.
    pub fn interval(&self, effect: &LogEffect) -> Option<Estimate> {
        let significance = self.significance(effect.blocks)?;
        let value = effect.mean.exp();
        let estimate = match effect.standard_error() {
            Some(se) if se > rounding(effect.mean) => {
                let margin = t_quantile(1.0 - 0.5 * significance, effect.df()) * se;
                let method = format!(
                    "t, {} paired blocks, log ratio, look {} of {} (Lan–DeMets)",
                    effect.blocks,
                    self.looks.iter().filter(|look| **look <= effect.blocks).count(),
                    self.looks.len()
                );
                let (low, high) = ((effect.mean - margin).exp(), (effect.mean + margin).exp());
                Estimate::with_interval(value, low, high, self.level, method)
            }
            _ => Estimate::without_interval(value, "all blocks are equal: no spread to judge by"),
        };
        Some(estimate)
    }
}

/// Cumulative error spent up to the share `t` of the experiment: O'Brien and Fleming's spending function, half of it on each
/// side.
fn spent(t: f64, alpha: f64) -> f64 {
    4.0 * normal_cdf(-normal_quantile(1.0 - 0.25 * alpha) / t.sqrt())
}

/// Two-sided boundaries on the z scale for looks at the shares `times` of the experiment.
pub fn boundaries(times: &[f64], alpha: f64) -> Vec<f64> {
    // The density of the score B(t) = Z·√t among experiments that have not stopped, on a grid. It is symmetric, so that half of
    // its points and one of the two tails are computed.
    const POINTS: usize = 801;
    let mut bounds: Vec<f64> = Vec::with_capacity(times.len());
    let mut density: Vec<(f64, f64)> = Vec::new();
    let (mut previous_t, mut previous_spent) = (0.0, 0.0);
    for &t in times {
        let total = spent(t, alpha);
        let step = total - previous_spent;
        let sd = (t - previous_t).sqrt();
        // Probability of crossing ±b at this look without having crossed before.
        let crossing = |b: f64| -> f64 {
            if density.is_empty() {
                return 2.0 * normal_cdf(-b / sd);
            }
            2.0 * density.iter().map(|(x, mass)| mass * normal_cdf((x - b) / sd)).sum::<f64>()
        };
        let bound = crate::special::bisect(0.0, 12.0 * t.sqrt(), |b| crossing(b) > step);
        bounds.push(bound / t.sqrt());
        // Masses of the next density at Simpson's points of (−bound, bound).
        let h = 2.0 * bound / (POINTS - 1) as f64;
        let pdf = |z: f64| (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let mut next = vec![(0.0, 0.0); POINTS];
        for i in 0..=POINTS / 2 {
            let y = -bound + i as f64 * h;
            let weight = if i == 0 {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            };
            let f = if density.is_empty() {
                pdf(y / sd) / sd
            } else {
                density.iter().map(|(x, mass)| mass * pdf((y - x) / sd) / sd).sum()
            };
            next[i] = (y, weight * h / 3.0 * f);
            next[POINTS - 1 - i] = (-y, next[i].1);
        }
        density = next;
        (previous_t, previous_spent) = (t, total);
    }
    bounds
}
