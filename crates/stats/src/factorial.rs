//! Effects of several two-level factors, and their interactions.
//!
//! The model is additive on the log scale, with a mean for each block: an effect is the ratio by which the response changes
//! from the low to the high level, averaged over the levels of the other factors; an interaction is the ratio by which an
//! effect itself changes when another factor goes from low to high, square-rooted by convention (both levels deviate from the
//! mean by half).

use mydyno_model::Estimate;

use crate::Error;
use crate::linear::Fit;

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
    if factors == 0 || factors > 10 || observations.iter().any(|o| o.levels.len() != factors) {
        return Err(Error::Design(
            "every observation needs the levels of the same 1 to 10 factors".to_owned(),
        ));
    }
    if let Some(bad) = observations.iter().find(|o| !(o.response.is_finite() && o.response > 0.0)) {
        return Err(Error::Argument { name: "response", value: bad.response, must_be: "above 0" });
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
            let sign = |term: &Vec<usize>| -> f64 {
                term.iter().map(|f| if o.levels[*f] { 1.0 } else { -1.0 }).product()
            };
            block.chain(terms.iter().map(sign)).collect()
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
                None if fit.df > 0 => {
                    Estimate::without_interval(ratio, "all blocks are equal: no spread to judge by")
                }
                None => Estimate::without_interval(
                    ratio,
                    "no repeated rows to judge the noise by: more blocks are needed",
                ),
            };
            Effect { factors, ratio, p_adjusted: adjusted.as_ref().map(|p| p[i]) }
        })
        .collect();
    Ok(result)
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
