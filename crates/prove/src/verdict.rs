//! From slices to the verdict and its sentence: pure, so that a folder of slices gives the same verdict again.

use mydyno_model::experiment::{Asks, Design, Finding, Response, Role, Slice, Threat, Verdict, labels};
use mydyno_model::{Estimate, Header};
use mydyno_stats::compare::LogEffect;
use mydyno_stats::decision::at_look;
use mydyno_stats::power::{Forecast, minimum_detectable_effect};
use mydyno_stats::sequential::Schedule;
use serde_json::Map;
use time::OffsetDateTime;

use crate::analyse::{self, MEASURES, Ratios, Unit, effect_at, noise_floor, units};
use crate::statement::Question;
use crate::threats;

/// Simultaneous coverage of all looks.
const LEVEL: f64 = 0.95;

/// The looks of a design: after the third start and after each further one.
fn schedule(design: &Design) -> Option<Schedule> {
    Schedule::new(Unit::Start.first_look(), 1, design.starts, LEVEL).ok()
}

/// The effect on the first response by the slices so far, with the finding; no finding between looks.
pub fn so_far(design: &Design, slices: &[Slice]) -> Option<(Estimate, Finding)> {
    let schedule = schedule(design)?;
    let ratios = Ratios::of(slices, MEASURES.first()?);
    let effect = effect_at(&units(&ratios.treatment, Unit::Start), &schedule);
    let question = Question { asks: design.asks, delta: design.delta };
    let finding = question.judge(&effect);
    Some((effect, finding))
}

/// The verdict on a design by the slices that were measured. `set_up` describes server and host in short lines.
pub fn conclude(design: &Design, slices: &[Slice], set_up: Vec<String>, now: OffsetDateTime) -> Verdict {
    let question = Question { asks: design.asks, delta: design.delta };
    let schedule = schedule(design);
    let per_measure: Vec<Ratios> = MEASURES.iter().map(|measure| Ratios::of(slices, measure)).collect();
    let responses: Vec<Response> = MEASURES
        .iter()
        .zip(&per_measure)
        .filter(|(_, ratios)| !ratios.treatment.is_empty())
        .map(|(measure, ratios)| response(measure, ratios, schedule.as_ref()))
        .collect();
    let first = per_measure.first().cloned().unwrap_or_default();
    let of_starts = units(&first.treatment, Unit::Start);
    let again_units = units(&first.again, Unit::Start);
    let again = (again_units.len() >= 2).then(|| LogEffect::of(&again_units).ratio_t(LEVEL));
    let threats = threats::of(slices, &first, again.as_ref(), analyse::levels(&first.treatment));
    let effect = responses.first().map(|response| response.effect_ratio.clone());
    let judged = effect.as_ref().map_or(Finding::Undecided, |effect| question.judge(effect));
    let verdict = if threats.iter().any(|threat| threat.decides) { Finding::Undecided } else { judged };
    let log_effect = LogEffect::of(&of_starts);
    let units_needed = schedule
        .as_ref()
        .filter(|_| verdict == Finding::Undecided && of_starts.len() >= 3)
        .and_then(|schedule| needed(&of_starts, &question, schedule));
    let mut verdict = Verdict {
        header: Header::of::<Verdict>(now),
        experiment: design.experiment.clone(),
        claim: None,
        question: design.question.clone(),
        answer: String::new(),
        verdict,
        asks: design.asks,
        delta: design.delta,
        arms: design.arms.clone(),
        responses,
        noise_floor: noise_floor(&again_units),
        again,
        minimum_detectable_effect: log_effect
            .sd
            .and_then(|sd| minimum_detectable_effect(of_starts.len(), sd))
            .map(|beyond| (1.0 + beyond) * (1.0 + design.delta) - 1.0),
        blocks: first.treatment.len(),
        starts: of_starts.len(),
        units: Unit::Start.plural().to_owned(),
        units_needed,
        threats,
        failures: failures(slices),
        scope: format!("this host since its boot, {} starts of private servers, this load", of_starts.len()),
        set_up,
        literature: Vec::new(),
        extra: Map::new(),
    };
    verdict.answer = answer(&verdict);
    verdict
}

fn response(measure: &analyse::Measure, ratios: &Ratios, schedule: Option<&Schedule>) -> Response {
    let units = units(&ratios.treatment, Unit::Start);
    let effect_ratio = match schedule {
        Some(schedule) if schedule.significance(units.len()).is_some() => effect_at(&units, schedule),
        // An experiment that was ended between looks: its interval is that of a single look, and says so.
        _ => {
            let estimate = LogEffect::of(&units).ratio_t(LEVEL);
            match (estimate.low, estimate.high) {
                (Some(low), Some(high)) => {
                    let method = "t over starts, before the first planned look: provisional";
                    Estimate::provisional(estimate.value, low, high, method)
                }
                _ => estimate,
            }
        }
    };
    Response {
        name: measure.name.to_owned(),
        unit: measure.unit.to_owned(),
        baseline: ratios.baseline_mean,
        treatment: ratios.treatment_mean,
        effect_ratio,
    }
}

/// Starts that are needed in all for a verdict, by the noise that was seen.
fn needed(units: &[f64], question: &Question, schedule: &Schedule) -> Option<usize> {
    let statement = question.nearest(LogEffect::of(units).mean)?;
    let decision = at_look(units, &statement, schedule)?;
    match decision.forecast? {
        Forecast::Blocks(n) | Forecast::AtLeast(n) => Some(n),
        Forecast::Unknown => None,
    }
}

/// Why slices failed, each reason once with how often it came.
fn failures(slices: &[Slice]) -> Vec<String> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for slice in slices {
        let Some(why) = &slice.failed else { continue };
        let text = format!("{}: {why}", slice.row.arm.name());
        match counted.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counted.push((text, 1)),
        }
    }
    counted.into_iter().map(|(text, count)| format!("{count} slices of the {text}")).collect()
}

/// The answer in one sentence, with the price of an arm that has one.
fn answer(verdict: &Verdict) -> String {
    let (baseline, treatment) = labels(&verdict.arms);
    if let Some(threat) = verdict.threats.iter().find(|threat| threat.decides) {
        return format!("No verdict on the server ({}): {}.", threat.id, threat.text);
    }
    let Some(response) = verdict.responses.first() else {
        let why = verdict.failures.first().map_or("nothing was measured", String::as_str);
        return format!("{treatment} could not be compared with {baseline}: {why}.");
    };
    let effect = &response.effect_ratio;
    let word = if effect.value >= 1.0 { "more" } else { "fewer" };
    let interval = match (effect.low, effect.high) {
        (Some(low), Some(high)) => format!(" ({})", range(low, high)),
        _ => String::new(),
    };
    let delta = verdict.delta * 100.0;
    let text = match verdict.verdict {
        Finding::Supported => {
            let percent = percent(effect.value);
            format!(
                "With {treatment}, this load makes {percent} {word} transactions a second than with {baseline}{interval}"
            )
        }
        Finding::Refuted if verdict.asks == Asks::Differs => {
            let bound =
                bound(effect).map_or_else(String::new, |bound| format!(": any effect is below {bound:.1} %"));
            format!(
                "{treatment} and {baseline} do not differ by {delta:.1} % or more under this load{interval}{bound}"
            )
        }
        Finding::Refuted => {
            format!(
                "{treatment} does not change the throughput of this load as asked, by {delta:.1} % or more{interval}"
            )
        }
        Finding::Undecided | Finding::NotTestableHere => {
            let bound =
                bound(effect).map_or_else(String::new, |bound| format!("; any effect is below {bound:.1} %"));
            let needed = verdict
                .units_needed
                .map_or_else(String::new, |n| format!("; about {n} starts would decide it"));
            format!(
                "Undecided whether {treatment} differs from {baseline} by {delta:.1} % or more{interval}{bound}{needed}"
            )
        }
    };
    let prices: Vec<&str> = verdict
        .arms
        .iter()
        .filter(|arm| arm.role == Role::Treatment)
        .flat_map(|arm| arm.prices.iter().map(String::as_str))
        .collect();
    if prices.is_empty() { format!("{text}.") } else { format!("{text}. The price: {}.", prices.join("; ")) }
}

/// The larger distance of an interval's ends from no effect, in percent.
fn bound(effect: &Estimate) -> Option<f64> {
    let (low, high) = (effect.low?, effect.high?);
    Some(((1.0 / low).max(high) - 1.0) * 100.0).filter(|bound| bound.is_finite() && *bound >= 0.0)
}

/// The size of a change, as in `12.3 %`.
fn percent(ratio: f64) -> String {
    format!("{:.1} %", (ratio - 1.0).abs() * 100.0)
}

/// An interval of a ratio as changes, as in `+1.2 … +3.4 %`.
pub fn range(low: f64, high: f64) -> String {
    format!("{:+.1} … {:+.1} %", (low - 1.0) * 100.0, (high - 1.0) * 100.0)
}

/// Threats in the order in which they are shown: those that decide first.
pub fn ordered(threats: &[Threat]) -> Vec<&Threat> {
    let mut ordered: Vec<&Threat> = threats.iter().collect();
    ordered.sort_by_key(|threat| !threat.decides);
    ordered
}

#[cfg(test)]
mod tests;
