//! Effects of several two-level factors, and their interactions: [`effects`] fits all up to an order, [`replicated_effects`] those
//! that a design of [`crate::two_level`] can tell apart.
//!
//! The model is additive on the log scale, with a mean for each block: an effect is the ratio by which the response changes
//! from the low to the high level, averaged over the levels of the other factors; an interaction is the ratio by which an
//! effect itself changes when another factor goes from low to high, square-rooted by convention (both levels deviate from the
//! mean by half).

use std::collections::{BTreeMap, BTreeSet};

use mydyno_model::Estimate;

use crate::Error;
use crate::linear::Fit;
use crate::special::{f_sf, t_quantile, t_sf};

/// Why an estimate has no interval: nothing varies.
const NO_SPREAD: &str = "all blocks are equal: no spread to judge by";
/// Why an estimate has no interval: no row was repeated.
const NO_REPEATS: &str = "no repeated rows to judge the noise by: more blocks are needed";

/// A measured row: its block, its levels (false: low, true: high) and the response, above 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Block, from 0.
    pub block: usize,
    /// One level for each factor.
    pub levels: Vec<bool>,
    /// The response.
    pub response: f64,
}

/// The effect of a set of factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Factors, from 0: one for a main effect, two for an interaction …
    pub factors: Vec<usize>,
    /// The effect as a ratio.
    pub ratio: Estimate,
    /// p value of the null hypothesis of no effect, corrected for the number of requested effects (Holm); `None` when no degree
    /// of freedom is left or nothing varies.
    pub p_adjusted: Option<f64>,
}

/// Main effects and interactions of up to `max_factors` factors, with intervals at a level like 0.95.
///
/// # Errors
/// Responses that are not above 0, observations with different numbers of factors, or a design in which the effects are
/// confounded.
pub fn effects(observations: &[Observation], max_factors: usize, level: f64) -> Result<Vec<Effect>, Error> {
    let factors = observations.first().map_or(0, |o| o.levels.len());
    check_rows(observations)?;
    if factors > 10 {
        return Err(Error::Design(format!(
            "{factors} factors: at most 10 can be fitted with all interactions"
        )));
    }
    let mut terms: Vec<Vec<usize>> = (1u32..1 << factors)
        .map(|set| (0..factors).filter(|f| set >> f & 1 == 1).collect::<Vec<_>>())
        .filter(|term| term.len() <= max_factors)
        .collect();
    terms.sort_by_key(|term| (term.len(), term.clone()));
    let mut blocks: Vec<usize> = observations.iter().map(|o| o.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let x: Vec<Vec<f64>> = observations
        .iter()
        .map(|o| {
            let block = blocks.iter().map(|b| f64::from(u8::from(*b == o.block)));
            block.chain(terms.iter().map(|term| sign(o, term))).collect()
        })
        .collect();
    let y: Vec<f64> = observations.iter().map(|o| o.response.ln()).collect();
    let fit = Fit::of(&x, &y)?;
    // Identical rows leave residuals of rounding.
    let interval = |column| fit.interval(column, level).filter(|(low, high)| high - low > 1e-12);
    let p_value = |column| interval(column).and_then(|_| fit.p_value(column));
    let p_values: Option<Vec<f64>> = (0..terms.len()).map(|i| p_value(blocks.len() + i)).collect();
    let adjusted = p_values.as_deref().map(holm);
    let result = terms
        .into_iter()
        .enumerate()
        .map(|(i, factors)| {
            let column = blocks.len() + i;
            // Levels are coded −1 and +1, so that the step from low to high is twice the coefficient.
            let ratio = (2.0 * fit.coefficients[column]).exp();
            let ratio = match interval(column) {
                Some((low, high)) => Estimate::with_interval(
                    ratio,
                    (2.0 * low).exp(),
                    (2.0 * high).exp(),
                    level,
                    format!("least squares on the log scale, {} rows in {} blocks", y.len(), blocks.len()),
                ),
                None if fit.df > 0 => Estimate::without_interval(ratio, NO_SPREAD),
                None => Estimate::without_interval(ratio, NO_REPEATS),
            };
            Effect { factors, ratio, p_adjusted: adjusted.as_ref().map(|p| p[i]) }
        })
        .collect();
    Ok(result)
}

/// Effects that were estimated together.
#[derive(Debug, Clone, PartialEq)]
pub struct Replicated {
    /// In the order of the terms.
    pub effects: Vec<Effect>,
    /// Standard deviation of a row's log response beside blocks and levels; `None` without repeated rows.
    pub sd: Option<f64>,
    /// Degrees of freedom of that standard deviation.
    pub df: usize,
    /// p value of the hypothesis that the terms explain the means of all runs (F test for lack of fit); `None` where they do by
    /// their number, or without repeated rows.
    pub lack_of_fit: Option<f64>,
}

/// Effects of the given terms (sets of factors), judged by what equal runs of different blocks differ by. Terms that are left
/// out count neither as noise nor, in a balanced design, change the others.
///
/// All intervals hold together with probability `level` (Bonferroni). The p values are of the hypothesis that an effect is at
/// most `delta` (0.02: 2 %) in either direction, corrected by Holm; they reject at least what the intervals exclude.
///
/// # Errors
/// Responses that are not above 0, observations with different numbers of factors, or rows that cannot tell the terms apart.
pub fn replicated_effects(
    observations: &[Observation],
    terms: &[Vec<usize>],
    level: f64,
    delta: f64,
) -> Result<Replicated, Error> {
    check_rows(observations)?;
    let beyond_all = |term: &&Vec<usize>| term.iter().any(|f| *f >= observations[0].levels.len());
    if let Some(term) = terms.iter().find(beyond_all) {
        return Err(Error::Design(format!("no row has the factors {term:?}")));
    }
    let of_terms = |o: &Observation| terms.iter().map(|term| sign(o, term)).collect::<Vec<f64>>();
    let mut runs: Vec<&[bool]> = observations.iter().map(|o| o.levels.as_slice()).collect();
    runs.sort_unstable();
    runs.dedup();
    let of_runs = |o: &Observation| {
        let mean = 1.0 / runs.len() as f64;
        runs[1..].iter().map(|run| f64::from(u8::from(*run == o.levels)) - mean).collect::<Vec<f64>>()
    };
    let y: Vec<f64> = within_blocks(observations, |o| vec![o.response.ln()]).into_iter().flatten().collect();
    // Means of blocks are taken out of both sides, which gives the coefficients of a fit with a column for each block (Frisch,
    // Waugh and Lovell); they cost degrees of freedom all the same.
    let fit = Fit::of(&within_blocks(observations, of_terms), &y)?;
    let blocks = observations.iter().map(|o| o.block).collect::<BTreeSet<usize>>().len();
    let saturated = Fit::of(&within_blocks(observations, of_runs), &y).ok();
    let noise = saturated.and_then(|all| Some((all.residual_squares, all.df.checked_sub(blocks)?)));
    let noise = noise.filter(|(_, df)| *df > 0);
    let scale = noise
        .filter(|(squares, df)| squares / *df as f64 > 1e-24)
        .map(|(squares, df)| (squares / df as f64 / (fit.residual_squares / fit.df as f64)).sqrt());
    let df = noise.map_or(0, |(_, df)| df);
    let confidence = 1.0 - (1.0 - level) / terms.len().max(1) as f64;
    let error = |i: usize| Some(2.0 * fit.standard_errors.as_ref()?.get(i)? * scale?);
    let p_value = |i: usize| {
        let beyond = (2.0 * fit.coefficients[i].abs() - (1.0 + delta).ln()).max(0.0);
        error(i).map(|error| 2.0 * t_sf(beyond / error, df as f64))
    };
    let p_values: Option<Vec<f64>> = (0..terms.len()).map(p_value).collect();
    let adjusted = p_values.as_deref().map(holm);
    let margin = |i: usize| Some(t_quantile(0.5 + 0.5 * confidence, df as f64) * error(i)?);
    let effect = |(i, factors): (usize, &Vec<usize>)| {
        let log = 2.0 * fit.coefficients[i];
        let method = format!(
            "least squares on the log scale, {} rows in {blocks} blocks, {} intervals that hold together",
            y.len(),
            terms.len()
        );
        let ratio = match margin(i) {
            Some(margin) => {
                Estimate::with_interval(log.exp(), (log - margin).exp(), (log + margin).exp(), level, method)
            }
            None if noise.is_some() => Estimate::without_interval(log.exp(), NO_SPREAD),
            None => Estimate::without_interval(log.exp(), NO_REPEATS),
        };
        Effect { factors: factors.clone(), ratio, p_adjusted: adjusted.as_ref().map(|p| p[i]) }
    };
    Ok(Replicated {
        effects: terms.iter().enumerate().map(effect).collect(),
        sd: noise.map(|(squares, df)| (squares / df as f64).sqrt()),
        df,
        lack_of_fit: noise.filter(|_| scale.is_some()).and_then(|(squares, df)| {
            let unexplained = (runs.len() - 1).checked_sub(terms.len()).filter(|n| *n > 0)? as f64;
            let between = (fit.residual_squares - squares).max(0.0) / unexplained;
            Some(f_sf(between / (squares / df as f64), unexplained, df as f64))
        }),
    })
}

/// Values of each row less the means of its block.
fn within_blocks(observations: &[Observation], of: impl Fn(&Observation) -> Vec<f64>) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = observations.iter().map(of).collect();
    let mut blocks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (row, observation) in observations.iter().enumerate() {
        blocks.entry(observation.block).or_default().push(row);
    }
    for block in blocks.values() {
        for column in 0..rows[block[0]].len() {
            let mean = block.iter().map(|row| rows[*row][column]).sum::<f64>() / block.len() as f64;
            block.iter().for_each(|row| rows[*row][column] -= mean);
        }
    }
    rows
}

/// −1 or +1: the product of the signs of a term's factors.
fn sign(observation: &Observation, term: &[usize]) -> f64 {
    term.iter().map(|f| if observation.levels[*f] { 1.0 } else { -1.0 }).product()
}

/// Refuses rows without factors, of different length, and responses that have no logarithm.
fn check_rows(observations: &[Observation]) -> Result<(), Error> {
    let factors = observations.first().map_or(0, |o| o.levels.len());
    if factors == 0 || observations.iter().any(|o| o.levels.len() != factors) {
        return Err(Error::Design("every observation needs the levels of the same factors".to_owned()));
    }
    match observations.iter().find(|o| !(o.response.is_finite() && o.response > 0.0)) {
        Some(bad) => Err(Error::Argument { name: "response", value: bad.response, must_be: "above 0" }),
        None => Ok(()),
    }
}

/// Holm's correction (1979) of p values for multiple testing.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let m = p_values.len();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; m];
    let mut running = 0.0f64;
    for (rank, &i) in order.iter().enumerate() {
        running = running.max(((m - rank) as f64 * p_values[i]).min(1.0));
        adjusted[i] = running;
    }
    adjusted
}
