//! Power analysis: the effect that a number of blocks can detect, and the number of blocks that an effect needs.

use crate::compare::{LogEffect, rounding};
use crate::sequential::Schedule;
use crate::special::{ln_gamma, normal_cdf, normal_quantile, t_quantile};
use crate::verdict::Statement;

/// Power: the probability with which an existing effect should be detected.
pub const POWER: f64 = 0.8;

/// Maximum number of blocks in a forecast.
pub const MAX_FORECAST: usize = 10_000;

/// Number of standard deviations beyond which a normal tail is below the precision of a double.
const NORMAL_TAIL: f64 = 9.0;

/// P(T > x) of the noncentral t distribution with `df` degrees of freedom and noncentrality `nc`, x ≥ 0.
///
/// The integral of the normal tail over the distribution of the standard deviation, by Simpson's rule.
pub fn noncentral_t_sf(x: f64, df: f64, nc: f64) -> f64 {
    // S = sqrt(χ²/df): density ∝ s^(df−1) exp(−df·s²/2), concentrated within a few 1/√(2 df) of 1.
    let ln_norm = 2f64.ln() + 0.5 * df * (0.5 * df).ln() - ln_gamma(0.5 * df);
    let width = 12.0 / (2.0 * df).sqrt();
    let low = (1.0 - width).max(0.0);
    // Where x·S is far beyond the noncentrality, the integrand vanishes; with few degrees of freedom x is so large that steps
    // over all of S would miss the relevant part.
    let high = (1.0 + width).min((nc + NORMAL_TAIL) / x);
    if high <= low {
        return 0.0;
    }
    const STEPS: usize = 400;
    let h = (high - low) / STEPS as f64;
    let sum: f64 = (0..=STEPS)
        .map(|i| {
            let s = low + i as f64 * h;
            let weight = if i == 0 || i == STEPS {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            };
            let ln_s = if df == 1.0 {
                0.0
            } else if s > 0.0 {
                (df - 1.0) * s.ln()
            } else {
                f64::NEG_INFINITY
            };
            let density = (ln_norm + ln_s - 0.5 * df * s * s).exp();
            weight * density * normal_cdf(nc - x * s)
        })
        .sum();
    (sum * h / 3.0).clamp(0.0, 1.0)
}

/// Probability that a two-sided interval at `significance` (0.05) over `blocks` blocks lies wholly beyond a threshold
/// when the true effect lies `beyond` it, both on the log scale, with standard deviation `sd` between blocks.
pub fn power(blocks: usize, beyond: f64, sd: f64, significance: f64) -> f64 {
    if blocks < 2 || beyond <= 0.0 || sd <= 0.0 {
        return if sd <= 0.0 && beyond > 0.0 && blocks >= 2 { 1.0 } else { 0.0 };
    }
    let df = blocks as f64 - 1.0;
    noncentral_t_sf(t_quantile(1.0 - 0.5 * significance, df), df, beyond / sd * (blocks as f64).sqrt())
}

/// Minimum detectable effect: the smallest effect, as a share (0.03: 3 %), that this number of blocks detects with probability
/// [`POWER`] at a level of 0.95 and a single look, given the standard deviation between blocks on the log scale. `None` for
/// fewer than two blocks.
pub fn minimum_detectable_effect(blocks: usize, sd: f64) -> Option<f64> {
    Some(detectable_log(blocks, sd, 0.05)?.exp_m1())
}

/// The smallest effect, as a share, that an experiment detects beyond `delta` with probability [`POWER`] at its last look, given
/// the standard deviation between blocks on the log scale. The significance level of that look is what the earlier looks
/// leave; together with them the experiment detects the effect slightly more often. `None` for fewer than two blocks.
pub fn detectable_effect(schedule: &Schedule, sd: f64, delta: f64) -> Option<f64> {
    let blocks = schedule.max_blocks();
    let beyond = detectable_log(blocks, sd, schedule.significance(blocks)?)?;
    Some((1.0 + delta) * beyond.exp() - 1.0)
}

/// The smallest distance beyond a threshold, on the log scale, that is detected with probability [`POWER`].
fn detectable_log(blocks: usize, sd: f64, significance: f64) -> Option<f64> {
    if blocks < 2 {
        return None;
    }
    Some(detectable_contrast(blocks - 1, sd / (blocks as f64).sqrt(), significance))
}

/// The smallest true value of a contrast that a two-sided t test finds with probability [`POWER`], from the contrast's standard
/// error and its degrees of freedom, at least 1.
pub fn detectable_contrast(df: usize, standard_error: f64, significance: f64) -> f64 {
    let df = df as f64;
    let critical = t_quantile(1.0 - 0.5 * significance, df);
    // In units of the standard error the result depends only on the number of blocks, and lies a little above the critical
    // value.
    let short_of_power = |effect: f64| noncentral_t_sf(critical, df, effect) - POWER;
    root(0.0, 3.0 * critical + 3.0, short_of_power) * standard_error
}

/// The root of an increasing function that is negative at `low` and not at `high`: regula falsi in the Illinois variant, until the
/// bracket is narrower than 10⁻¹¹ of its first width.
fn root(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let narrow = 1e-11 * (high - low);
    let (mut at_low, mut at_high) = (of(low), of(high));
    let mut below = None;
    for _ in 0..100 {
        let middle = if at_high > at_low {
            low - at_low * (high - low) / (at_high - at_low)
        } else {
            0.5 * (low + high)
        };
        // A step beyond the root, so that both ends come close to it.
        let nudge = 0.5 * narrow;
        let middle = (if below == Some(true) { middle + nudge } else { middle - nudge }).clamp(low, high);
        let value = of(middle);
        // An end that stays for a second time counts for half, so that the next guess lies on its side.
        if value < 0.0 {
            if below == Some(true) {
                at_high *= 0.5;
            }
            (low, at_low, below) = (middle, value, Some(true));
        } else {
            if below == Some(false) {
                at_low *= 0.5;
            }
            (high, at_high, below) = (middle, value, Some(false));
        }
        if high - low <= narrow {
            break;
        }
    }
    high
}

/// The smallest number of blocks that detects an effect with probability [`POWER`] at a level of 0.95; `None` beyond
/// [`MAX_FORECAST`].
pub fn blocks_for(beyond: f64, sd: f64) -> Option<usize> {
    if beyond <= 0.0 || sd < 0.0 {
        return None;
    }
    // With a known variance n = ((z₀.₉₇₅ + z₀.₈) sd/effect)²; Student's t costs about z²/2 = 1.92 blocks more.
    let z = normal_quantile(0.975);
    let guess = ((z + normal_quantile(POWER)) * sd / beyond).powi(2) + z * z / 2.0;
    if guess > MAX_FORECAST as f64 {
        return None;
    }
    let mut blocks = (guess.round() as usize).max(2);
    if blocks > EXACT_UP_TO {
        return Some(blocks);
    }
    let enough = |n: usize| power(n, beyond, sd, 0.05) >= POWER;
    while !enough(blocks) {
        blocks += 1;
    }
    while blocks > 2 && enough(blocks - 1) {
        blocks -= 1;
    }
    Some(blocks)
}

/// The smallest number of blocks that a plan with the looks of [`default_schedule`] needs to detect an effect with probability
/// [`POWER`] at any of them; `None` beyond [`MAX_FORECAST`].
///
/// The looks before the last one use up some of the 5 %. The blocks that make up for it are a rule from simulated experiments, which
/// it meets within one block or 2 % (tests/oracle/experiments.py).
pub fn blocks_with_looks(beyond: f64, sd: f64) -> Option<usize> {
    let one_look = blocks_for(beyond, sd)?;
    let added = LOOKS_COST * one_look.saturating_sub(LOOKS_FREE) as f64;
    Some(one_look + added.round() as usize).filter(|blocks| *blocks <= MAX_FORECAST)
}

/// Additional blocks that looks after each block from the fifth need, as a share of the blocks beyond [`LOOKS_FREE`].
const LOOKS_COST: f64 = 0.055;

/// Number of blocks up to which looks need no additional ones.
const LOOKS_FREE: usize = 6;

/// Number of blocks beyond which the approximation of [`blocks_for`] is accurate to a block or two.
const EXACT_UP_TO: usize = 200;

/// Forecast for the continuation of an undecided experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forecast {
    /// Total number of blocks that decides the experiment, looks included, with probability [`POWER`], if effect and noise equal their current
    /// estimates.
    Blocks(usize),
    /// The estimated effect is so close to δ that at least this many blocks are needed.
    AtLeast(usize),
    /// Fewer than three blocks, or no spread: no forecast is possible.
    Unknown,
}

/// Total number of blocks that an experiment needs for a verdict in either direction, forecast from the blocks measured so far.
///
/// Undecided experiments are more often those whose blocks happened to fall short; adding half a squared standard error to the
/// squared distance from δ compensates for this selection. The correction was chosen by simulation
/// (docs/journal/statistics.md): the median forecast is accurate within 30 % where the truth is 2.5 to 8 times the blocks at
/// hand.
pub fn forecast(effect: &LogEffect, statement: &Statement) -> Forecast {
    let Some((sd, se)) = effect
        .sd
        .zip(effect.standard_error())
        .filter(|(sd, _)| effect.blocks >= 3 && *sd > rounding(effect.mean))
    else {
        return Forecast::Unknown;
    };
    let beyond = statement.beyond(effect.mean);
    let Some(blocks) = blocks_with_looks(beyond.hypot(se * 0.5f64.sqrt()), sd) else {
        return Forecast::AtLeast(MAX_FORECAST);
    };
    let blocks = blocks.max(effect.blocks + 1);
    if beyond.abs() < 0.5 * se { Forecast::AtLeast(blocks) } else { Forecast::Blocks(blocks) }
}

/// The schedule of looks for a plan of `blocks` blocks: after the fifth block and after each further one.
///
/// # Errors
/// Fewer than five blocks.
pub fn default_schedule(blocks: usize) -> Result<Schedule, crate::Error> {
    Schedule::new(5, 1, blocks, 0.95)
}
