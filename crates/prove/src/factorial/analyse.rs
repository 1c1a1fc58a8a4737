//! From rows to effects and the answer: pure, so that a folder of rows gives the same answer again.

use std::collections::BTreeMap;

use mydyno_model::Estimate;
use mydyno_model::experiment::Finding;
use mydyno_model::experiment::factorial::{
    Factor, Factorial, FactorialEffect, FactorialResponse, FactorialRun,
};
use mydyno_stats::factorial::{Observation, Replicated, replicated_effects};
use mydyno_stats::linear::Fit;

use super::design::LEVEL;
use crate::measure::MEASURES;
use crate::threats::CLIENT_BOUND;

/// Largest corrected p value of an effect that is supported.
const SIGNIFICANCE: f64 = 1.0 - LEVEL;
/// Rows beyond one per run that a slope over time needs.
const FEWEST_FOR_TREND: usize = 6;
/// p value below which the effects do not explain the runs.
const LACK_OF_FIT: f64 = 0.01;

/// The responses that a row has.
pub(crate) const RESPONSES: [&str; 3] = ["transactions_per_s", "response_mean", "response_p95"];

/// A response of a row, above 0.
fn response(run: &FactorialRun, name: &str) -> Option<f64> {
    let value = match name {
        "transactions_per_s" if run.measured_s > 0.0 => Some(run.transactions as f64 / run.measured_s),
        "response_mean" => run.mean_us,
        "response_p95" => run.p95_us,
        _ => None,
    };
    value.filter(|value| value.is_finite() && *value > 0.0)
}

/// The design with its results. Rows that failed are ignored.
pub fn conclude(design: &Factorial, runs: &[FactorialRun]) -> Factorial {
    let mut document = design.clone();
    let good = || runs.iter().filter(|run| run.failed.is_none());
    document.measured_rows = good().count();
    document.failures = failures(design, runs);
    for measure in MEASURES.iter().filter(|measure| RESPONSES.contains(&measure.name)) {
        match of_response(design, good(), measure.name, measure.unit) {
            Ok(response) => document.responses.push(response),
            Err(why) => document.failures.push(format!("{}: no effects: {why}", measure.plain)),
        }
    }
    document.threats = threats(&document, runs);
    document.answer = answer(&document);
    document
}

fn of_response<'a>(
    design: &Factorial,
    runs: impl Iterator<Item = &'a FactorialRun>,
    name: &str,
    unit: &str,
) -> Result<FactorialResponse, mydyno_stats::Error> {
    let observation = |run: &FactorialRun| {
        let levels = design.runs.get(run.row.run)?.bytes().map(|sign| sign == b'+').collect();
        Some(Observation { block: run.row.block, levels, response: response(run, name)? })
    };
    let observations: Vec<Observation> = runs.filter_map(observation).collect();
    let factors = |effect: &str| {
        let of = |letter: char| design.factors.iter().position(|f| f.letter.starts_with(letter));
        effect.chars().filter_map(of).collect::<Vec<usize>>()
    };
    let terms: Vec<Vec<usize>> = design.aliases.iter().map(|row| factors(&row.effect)).collect();
    let found = replicated_effects(&observations, &terms, LEVEL, design.delta)?;
    let logs = observations.iter().map(|o| o.response.ln()).sum::<f64>();
    Ok(FactorialResponse {
        name: name.to_owned(),
        unit: unit.to_owned(),
        mean: (logs / observations.len().max(1) as f64).exp(),
        effects: effects(design, &found),
        sd: found.sd.map(f64::exp_m1),
        df: found.df,
        lack_of_fit: found.lack_of_fit,
    })
}

fn effects(design: &Factorial, found: &Replicated) -> Vec<FactorialEffect> {
    let effect = |(row, effect): (&_, &mydyno_stats::factorial::Effect)| {
        let row: &mydyno_model::experiment::factorial::AliasRow = row;
        FactorialEffect {
            effect: row.effect.clone(),
            finding: judge(&effect.ratio, effect.p_adjusted, design.delta),
            effect_ratio: effect.ratio.clone(),
            p_adjusted: effect.p_adjusted,
        }
    };
    design.aliases.iter().zip(&found.effects).map(effect).collect()
}

fn judge(ratio: &Estimate, p_adjusted: Option<f64>, delta: f64) -> Finding {
    let within = |low: f64, high: f64| low > 1.0 / (1.0 + delta) && high < 1.0 + delta;
    match (p_adjusted, ratio.low.zip(ratio.high)) {
        (Some(p), _) if p <= SIGNIFICANCE => Finding::Supported,
        (Some(_), Some((low, high))) if within(low, high) => Finding::Refuted,
        _ => Finding::Undecided,
    }
}

/// Failed rows by their runs, with the first reason of each.
fn failures(design: &Factorial, runs: &[FactorialRun]) -> Vec<String> {
    let mut failed: BTreeMap<usize, (usize, &str)> = BTreeMap::new();
    for run in runs {
        if let Some(why) = &run.failed {
            failed.entry(run.row.run).or_insert((0, why)).0 += 1;
        }
    }
    let text = |(run, (count, why)): (usize, (usize, &str))| {
        let signs = design.runs.get(run).map_or("", String::as_str);
        format!("{count} of {} rows of run {signs}: {why}", design.blocks)
    };
    failed.into_iter().map(text).collect()
}

fn threats(document: &Factorial, runs: &[FactorialRun]) -> Vec<String> {
    let mut threats = Vec::new();
    let errors = runs.iter().filter(|run| run.failed.is_none() && run.errors > 0).count();
    if errors > 0 {
        threats.push(format!("{errors} of {} rows had answers that reported an error", runs.len()));
    }
    threats.extend(client_bound(document, runs));
    threats.extend(trend(document, runs));
    let p = document.responses.first().and_then(|response| response.lack_of_fit);
    if let Some(p) = p.filter(|p| *p < LACK_OF_FIT) {
        threats.push(format!(
            "the effects do not explain all runs (lack of fit, p = {p:.4}): factors act together beyond the interactions that are estimated; measure the factors that act in a full factorial"
        ));
    }
    if document.resolution == Some(3) && document.responses.iter().take(1).any(any_supported) {
        threats.push(
            "main effects cannot be separated from interactions of two factors (resolution III): measure the factors that act in a full factorial"
                .to_owned(),
        );
    }
    if document.measured_rows < document.rows.len() {
        threats.push(format!("{} of {} rows were measured", document.measured_rows, document.rows.len()));
    }
    threats
}

/// The run in which the load generator's threads had the least idle time, if that is too little.
fn client_bound(document: &Factorial, runs: &[FactorialRun]) -> Option<String> {
    let mut of_runs: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.failed.is_none()) {
        let (used, had) = of_runs.entry(run.row.run).or_default();
        *used += run.client_cpu_us as f64;
        *had += run.measured_s * 1e6 * run.workers as f64;
    }
    let shares = of_runs.into_iter().filter(|(_, (_, had))| *had > 0.0);
    let shares = shares.map(|(run, (used, had))| (run, used / had));
    let (run, share) =
        shares.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share >= CLIENT_BOUND)?;
    let signs = document.runs.get(run).map_or("", String::as_str);
    Some(format!(
        "client-bound: the load generator's threads were busy for {:.0} % of the time in run {signs}, so its figures are their own, not the server's: give it more threads (--workers) or fewer connections",
        share * 100.0
    ))
}

/// A slope of the rows' residuals over time: of each row against the mean of its run.
fn trend(document: &Factorial, runs: &[FactorialRun]) -> Option<String> {
    let good = runs.iter().filter(|run| run.failed.is_none());
    let values: Vec<(&FactorialRun, f64)> =
        good.filter_map(|run| Some((run, response(run, "transactions_per_s")?.ln()))).collect();
    let mut of_runs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (run, value) in &values {
        of_runs.entry(run.row.run).or_default().push(*value);
    }
    if document.rows.len() < 2 || values.len() < of_runs.len() + FEWEST_FOR_TREND {
        return None;
    }
    let mean = |run: usize| of_runs.get(&run).map_or(0.0, |v| v.iter().sum::<f64>() / v.len() as f64);
    let last = (document.rows.len() - 1) as f64;
    let x: Vec<Vec<f64>> = values.iter().map(|(run, _)| vec![1.0, run.row.order as f64 / last]).collect();
    let y: Vec<f64> = values.iter().map(|(run, value)| value - mean(run.row.run)).collect();
    let fit = Fit::of(&x, &y).ok()?;
    let (low, high) = fit.interval(1, 0.99)?;
    (low > 0.0 || high < 0.0).then(|| {
        format!(
            "trend: the throughput changed by {:+.1} % from the first row to the last; blocks in random order keep that out of the effects, and their intervals are wider for it",
            fit.coefficients[1].exp_m1() * 100.0
        )
    })
}

fn any_supported(response: &FactorialResponse) -> bool {
    response.effects.iter().any(|effect| effect.finding == Finding::Supported)
}

/// The answer for the first response.
pub(crate) fn answer(document: &Factorial) -> String {
    let Some(response) = document.responses.first() else {
        return "The effects could not be estimated.".to_owned();
    };
    let of = |finding: Finding| response.effects.iter().filter(move |effect| effect.finding == finding);
    let names = |effects: Vec<&FactorialEffect>| {
        let names: Vec<String> = effects.iter().map(|effect| name(document, &effect.effect)).collect();
        names.join(", ")
    };
    let mut parts: Vec<String> = of(Finding::Supported).map(|effect| supported(document, effect)).collect();
    let is_main = |effect: &&FactorialEffect| effect.effect.len() == 1;
    let refuted: Vec<&FactorialEffect> = of(Finding::Refuted).filter(is_main).collect();
    if !refuted.is_empty() {
        parts.push(format!("no effect beyond {:.1} %: {}", document.delta * 100.0, names(refuted)));
    }
    let undecided: Vec<&FactorialEffect> = of(Finding::Undecided).filter(is_main).collect();
    if !undecided.is_empty() {
        parts.push(format!("undecided: {}", names(undecided)));
    }
    let mut answer = format!("On the transactions a second: {}.", parts.join("; "));
    // A recommended lever is named with its price.
    let acts = |factor: &&Factor| of(Finding::Supported).any(|effect| effect.effect.contains(&factor.letter));
    for (price, level) in document.factors.iter().filter(acts).flat_map(prices) {
        answer.push_str(&format!(" The price of {level}: {}.", price.trim_end_matches('.')));
    }
    for crash in &document.crashes {
        answer.push_str(&format!(" A crash with the levels that have a price: {}.", crash.text()));
    }
    answer
}

fn supported(document: &Factorial, effect: &FactorialEffect) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let ratio = &effect.effect_ratio;
    let interval = ratio
        .low
        .zip(ratio.high)
        .map_or_else(String::new, |(low, high)| format!(" ({} … {})", percent(low), percent(high)));
    format!("{} {}{interval}", name(document, &effect.effect), percent(ratio.value))
}

/// An effect for people: for a factor the lever with its levels, for an interaction the levers.
pub fn name(document: &Factorial, effect: &str) -> String {
    let factor = |letter: char| document.factors.iter().find(|factor| factor.letter.starts_with(letter));
    let factors: Vec<&Factor> = effect.chars().filter_map(factor).collect();
    match factors.as_slice() {
        [one] => format!("{} {} → {}", one.lever, one.low, one.high),
        several => several.iter().map(|factor| factor.lever.as_str()).collect::<Vec<_>>().join(" × "),
    }
}

/// The prices of both levels of a factor, with the level.
pub fn prices(factor: &Factor) -> Vec<(String, String)> {
    let of = |prices: &[String], value: &str| {
        let level = format!("{}={value}", factor.lever);
        prices.iter().map(|price| (price.clone(), level.clone())).collect::<Vec<_>>()
    };
    [of(&factor.low_prices, &factor.low), of(&factor.high_prices, &factor.high)].concat()
}

#[cfg(test)]
mod tests;
