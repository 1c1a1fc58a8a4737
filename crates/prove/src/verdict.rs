//! From slices to the verdict and its sentence: pure, so that a folder of slices always gives the same verdict.

use std::path::Path;

use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::pooled::{Earlier, Pooled};
use mydyno_model::experiment::price::{CrashCost, Price};
use mydyno_model::experiment::{Asks, Design, Finding, Response, Slice, Threat, Verdict, labels};
use mydyno_model::{Estimate, Header};
use mydyno_stats::compare::{LogEffect, ratio_bootstrap};
use mydyno_stats::decision::at_look;
use mydyno_stats::pooled::{Found, random_effects};
use mydyno_stats::power::{Forecast, detectable_effect};
use mydyno_stats::rng::Rng;
use mydyno_stats::sequential::Schedule;
use serde_json::Map;
use time::OffsetDateTime;

use crate::analyse::{self, Ratios, Unit, effect_at, effect_or_provisional, noise_floor, units};
use crate::curve;
use crate::error::ProveError;
use crate::measure::{Kind, Measure, measure, measures};
use crate::statement::Question;
use crate::survival::{self, Counts};
use crate::{overhead, price, store, threats};

pub mod of_runs;

/// Simultaneous coverage of all looks.
const LEVEL: f64 = 0.95;

/// Most looks of an experiment whose units are blocks.
const LOOKS: usize = 8;

/// The looks of a design.
fn schedule(design: &Design) -> Option<Schedule> {
    schedule_at(design, LEVEL)
}

/// The looks of a design with another simultaneous coverage.
fn schedule_at(design: &Design, level: f64) -> Option<Schedule> {
    let units = match Unit::of(design.mode) {
        Unit::Start => design.starts,
        Unit::Block => design.starts * design.blocks_per_start,
    };
    looks_at(design, units, level)
}

/// The looks of a design that ends after `units` units: with starts as units after the third and each further one, with
/// blocks about eight.
pub(crate) fn looks_up_to(design: &Design, units: usize) -> Option<Schedule> {
    looks_at(design, units, LEVEL)
}

fn looks_at(design: &Design, units: usize, level: f64) -> Option<Schedule> {
    let unit = Unit::of(design.mode);
    let every = match unit {
        Unit::Start => 1,
        Unit::Block => units.div_ceil(LOOKS).max(1),
    };
    Schedule::new(unit.first_look(), every, units, level).ok()
}

/// The effect on the deciding response from the slices so far, with the finding; no finding between looks.
pub fn so_far(design: &Design, slices: &[Slice]) -> Option<(Estimate, Finding)> {
    let schedule = schedule(design)?;
    let question = Question { asks: design.asks, delta: design.delta };
    if survival::decides(design) {
        let effect = Counts::of(slices).effect(Some(&schedule));
        let finding = if effect.is_provisional() { Finding::Undecided } else { question.judge(&effect) };
        return Some((effect, finding));
    }
    let ratios = Ratios::of(slices, measure(&design.response));
    let effect = effect_at(&units(&ratios.treatment, Unit::of(design.mode)), &schedule);
    let finding = question.judge(&effect);
    Some((effect, finding))
}

/// The effect on the deciding response from the slices so far, for progress: a ratio without an interval.
pub fn effect_so_far(design: &Design, slices: &[Slice]) -> Option<f64> {
    let ratios = Ratios::of(slices, measure(&design.response));
    let of_units = units(&ratios.treatment, Unit::of(design.mode));
    (!of_units.is_empty()).then(|| LogEffect::of(&of_units).mean.exp())
}

/// Effect on the deciding response, without folder and date. `None` without an interval.
pub(crate) fn found(design: &Design, slices: &[Slice]) -> Option<Earlier> {
    let unit = Unit::of(design.mode);
    let units = units(&Ratios::of(slices, measure(&design.response)).treatment, unit);
    let effect = LogEffect::of(&units);
    let standard_error =
        effect.standard_error().filter(|error| *error > 0.0 && units.len() >= unit.first_look())?;
    let (folder, created) = (String::new(), String::new());
    Some(Earlier { folder, created, log_ratio: effect.mean, standard_error, units: units.len() })
}

/// The executions of a design together, this one included; `None` for the first one, or without an interval.
fn pooled(design: &Design, slices: &[Slice]) -> Option<Pooled> {
    let own = found(design, slices)?;
    let all = design.earlier.iter().chain([&own]);
    let found: Vec<Found> =
        all.map(|one| Found { effect: one.log_ratio, standard_error: one.standard_error }).collect();
    let mean = random_effects(&found, LEVEL)?;
    let method = format!(
        "random effects of {} experiments, t with {} degrees of freedom",
        found.len(),
        found.len() - 1
    );
    let effect_ratio =
        Estimate::with_interval(mean.mean.exp(), mean.low.exp(), mean.high.exp(), LEVEL, method);
    Some(Pooled { earlier: design.earlier.clone(), effect_ratio, between: mean.between.exp_m1() })
}

/// The verdict of an experiment that this host does not support.
pub fn not_testable_here(design: &Design, lacks: &[String], now: OffsetDateTime) -> Verdict {
    let mut verdict = conclude(design, &[], Vec::new(), now);
    verdict.verdict = Finding::NotTestableHere;
    verdict.answer = format!("Not testable here: {}.", lacks.join("; "));
    "this host".clone_into(&mut verdict.scope);
    verdict
}

/// The verdict in the folder of an experiment; of an unfinished one, that of its slices so far.
///
/// # Errors
/// The folder contains no experiment, or a file of it cannot be read or is damaged.
pub fn of_folder(folder: &Path, now: OffsetDateTime) -> Result<Verdict, ProveError> {
    if let Some(verdict) = store::read_verdict(folder)? {
        return Ok(verdict);
    }
    let (design, slices) = store::read(folder)?;
    Ok(conclude(&design, &slices, Vec::new(), now))
}

/// The verdict on a design from its slices. `set_up` describes server and host in short lines.
pub fn conclude(design: &Design, slices: &[Slice], set_up: Vec<String>, now: OffsetDateTime) -> Verdict {
    conclude_at(design, slices, schedule(design), set_up, now)
}

/// The verdict with these looks.
fn conclude_at(
    design: &Design,
    slices: &[Slice],
    schedule: Option<Schedule>,
    set_up: Vec<String>,
    now: OffsetDateTime,
) -> Verdict {
    let question = Question { asks: design.asks, delta: design.delta };
    let unit = Unit::of(design.mode);
    let measures = measures(&design.response);
    let per_measure: Vec<Ratios> = measures.iter().map(|measure| Ratios::of(slices, measure)).collect();
    let responses: Vec<Response> = measures
        .iter()
        .zip(&per_measure)
        // Without the response that decides, no other one takes its place.
        .filter(|(_, ratios)| !per_measure[0].treatment.is_empty() && !ratios.treatment.is_empty())
        .map(|(measure, ratios)| response(measure, ratios, unit, schedule.as_ref()))
        .collect();
    let first = per_measure.first().cloned().unwrap_or_default();
    let of_units = units(&first.treatment, unit);
    let of_starts = units(&first.treatment, Unit::Start);
    let again_units = units(&first.again, unit);
    let again = (again_units.len() >= 2).then(|| LogEffect::of(&again_units).ratio_t(LEVEL));
    let effect = responses.first().map(|response| response.effect_ratio.clone());
    let judged = effect.as_ref().map_or(Finding::Undecided, |effect| question.judge(effect));
    let mut threats = threats::of(
        &design.arms,
        slices,
        measures[0],
        &first,
        again.as_ref(),
        analyse::levels(&first.treatment),
    );
    threats.extend(second_opinion(&of_units, &question, judged, design.seed));
    let verdict = if threats.iter().any(|threat| threat.decides) { Finding::Undecided } else { judged };
    let log_effect = LogEffect::of(&of_units);
    let units_needed = schedule
        .as_ref()
        .filter(|_| verdict == Finding::Undecided && of_units.len() >= unit.first_look())
        .and_then(|schedule| needed(&of_units, &question, schedule));
    let mut verdict = Verdict {
        header: Header::of::<Verdict>(now),
        experiment: design.experiment.clone(),
        claim: design.claim.clone(),
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
            .and_then(|sd| detectable_effect(&looks_up_to(design, of_units.len())?, sd, design.delta)),
        blocks: first.treatment.len(),
        starts: of_starts.len(),
        units: unit.plural().to_owned(),
        units_needed,
        price: Some(price::own(&design.arms))
            .filter(|ledger| !ledger.is_empty())
            .map(|ledger| Price { ledger, crashes: Vec::new() }),
        threats,
        failures: failures(slices, survival::decides(design)),
        scope: scope(design, unit, of_starts.len()),
        set_up,
        literature: literature(design),
        overhead: overhead::share(design, slices),
        curve: curve::of(design, slices, LEVEL, |level| schedule_at(design, level)),
        probe: design.request.probe.clone(),
        under_mutual_load: design.mode == Mode::Duet,
        block_ratios: first.blocks.clone(),
        changed: Vec::new(),
        command: None,
        pooled: pooled(design, slices),
        extra: Map::new(),
    };
    if survival::decides(design) {
        Counts::of(slices).decide(&mut verdict, &question, schedule.as_ref());
    }
    verdict.answer = answer(&verdict);
    verdict
}

/// The verdict with measured losses: the crash tests of the treatment's server.
pub fn with_crashes(mut verdict: Verdict, crashes: Vec<CrashCost>) -> Verdict {
    if let Some(price) = &mut verdict.price {
        price.crashes = crashes;
    }
    verdict.answer = answer(&verdict);
    verdict
}

/// Range of validity of the verdict.
fn scope(design: &Design, unit: Unit, starts: usize) -> String {
    if let Some(address) = &design.on_server {
        return format!("this start of the server at {address}, this load");
    }
    if let Some(probe) = &design.request.probe {
        return format!("this boot of this host, the probe {probe}");
    }
    match unit {
        Unit::Start => format!("this host since its boot, {starts} starts of private servers, this load"),
        Unit::Block => "this start of one private server, this boot of this host, this load".to_owned(),
    }
}

/// Label of the random stream of the bootstrap.
const BOOTSTRAP: u64 = u64::from_be_bytes(*b"bootstra");

/// A threat where the bootstrap-t interval of the same units does not support a finding: it does not assume normal
/// noise.
fn second_opinion(units: &[f64], question: &Question, judged: Finding, seed: u64) -> Option<Threat> {
    let other = ratio_bootstrap(units, LEVEL, &mut Rng::stream(seed, &[BOOTSTRAP]));
    let (low, high) = (other.low?, other.high?);
    let says = question.judge(&other);
    (judged != Finding::Undecided && says != judged).then(|| Threat {
        id: "second-opinion".to_owned(),
        text: format!(
            "a bootstrap of the same units gives {}, with which the answer would be *{}*",
            range(low, high),
            says.name()
        ),
        decides: false,
        next_step: "carry it out once more and pool both: mydyno prove --again DIR".to_owned(),
    })
}

/// Published figures as lines, with the label of their set-up.
fn literature(design: &Design) -> Vec<String> {
    let label = match &design.stand_in {
        Some(why) => format!("stand-in: {why}"),
        None => "same kind of set-up".to_owned(),
    };
    let line = |p: &mydyno_model::experiment::definition::Published| {
        format!("{} {} ({}; {}; {label})", p.figure, p.unit, p.source, p.conditions)
    };
    design.published.iter().map(line).collect()
}

fn response(measure: &Measure, ratios: &Ratios, unit: Unit, schedule: Option<&Schedule>) -> Response {
    let units = units(&ratios.treatment, unit);
    let effect_ratio = effect_or_provisional(&units, unit, schedule, LEVEL);
    Response {
        name: measure.name.to_owned(),
        unit: measure.unit.to_owned(),
        baseline: ratios.baseline_mean,
        treatment: ratios.treatment_mean,
        effect_ratio,
    }
}

/// Total number of starts needed for a verdict, from the observed noise.
fn needed(units: &[f64], question: &Question, schedule: &Schedule) -> Option<usize> {
    let statement = question.nearest(LogEffect::of(units).mean)?;
    let decision = at_look(units, &statement, schedule)?;
    match decision.forecast? {
        Forecast::Blocks(n) | Forecast::AtLeast(n) => Some(n),
        Forecast::Unknown => None,
    }
}

/// The reasons of failed slices, each once with its count. Where survival is the response, a killed server is a result.
fn failures(slices: &[Slice], survival: bool) -> Vec<String> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    let is_result = |slice: &&Slice| survival && slice.figures.contains_key(survival::NAME);
    for slice in slices.iter().filter(|slice| !is_result(slice)) {
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
    if let Some(text) = survival::answer(verdict) {
        return priced(text, verdict);
    }
    let Some(response) = verdict.responses.first() else {
        let why = verdict.failures.first().map_or("nothing was measured", String::as_str);
        return format!("{treatment} could not be compared with {baseline}: {why}.");
    };
    let effect = &response.effect_ratio;
    let of = measure(&response.name).plain;
    let interval = match (effect.low, effect.high) {
        (Some(low), Some(high)) => format!(" ({})", range(low, high)),
        _ => String::new(),
    };
    let delta = verdict.delta * 100.0;
    let below = || bound(effect).map(|bound| format!("any effect is below {bound:.1} %"));
    let text = match verdict.verdict {
        Finding::Supported => format!("{}{interval}", changed(response, &baseline, &treatment)),
        Finding::Refuted if verdict.asks == Asks::Differs => {
            let below = below().map_or_else(String::new, |below| format!(": {below}"));
            format!(
                "{treatment} and {baseline} do not differ by {delta:.1} % or more in {of} under this load{interval}{below}"
            )
        }
        Finding::Refuted => {
            let word = if verdict.asks == Asks::Higher { "raise" } else { "lower" };
            format!("{treatment} does not {word} {of} under this load by {delta:.1} % or more{interval}")
        }
        Finding::Undecided | Finding::NotTestableHere => {
            let below = below().map_or_else(String::new, |below| format!("; {below}"));
            let needed = verdict
                .units_needed
                .map_or_else(String::new, |n| format!("; about {n} {} would decide it", verdict.units));
            format!(
                "Undecided whether {treatment} differs from {baseline} by {delta:.1} % or more in {of}{interval}{below}{needed}"
            )
        }
    };
    let text = if verdict.under_mutual_load { format!("Under mutual load: {text}") } else { text };
    priced(text, verdict)
}

/// An answer with the price of an arm that has one.
fn priced(text: String, verdict: &Verdict) -> String {
    let Some(price) = &verdict.price else { return format!("{text}.") };
    let ledger = price.ledger.iter().map(|price| price.trim_end_matches('.').to_owned());
    let prices: Vec<String> = ledger.chain(price.crashes.iter().map(CrashCost::text)).collect();
    format!("{text}. The price: {}.", prices.join("; "))
}

/// The effect as a sentence. Beyond a factor of two it is a factor: large percentages are hard to read.
fn changed(response: &Response, baseline: &str, treatment: &str) -> String {
    let ratio = response.effect_ratio.value;
    let factor = if ratio >= 1.0 { ratio } else { 1.0 / ratio };
    let size = if factor >= 2.0 { format!("{factor:.1} times") } else { percent(ratio) };
    let Measure { plain: of, kind, .. } = measure(&response.name);
    let word = match (kind, ratio >= 1.0) {
        (Kind::Rate, true) => "more",
        (Kind::Rate, false) => "fewer",
        (Kind::Time, true) => "longer",
        (Kind::Time, false) => "shorter",
        (Kind::Amount, true) => "larger",
        (Kind::Amount, false) => "smaller",
    };
    if *kind == Kind::Rate {
        let size = match (factor >= 2.0, ratio >= 1.0) {
            (false, _) => format!("{size} {word} {of} than"),
            (true, true) => format!("{size} as many {of} as"),
            (true, false) => format!("{size} fewer {of} than"),
        };
        return format!("With {treatment}, this load makes {size} with {baseline}");
    }
    let under = if *kind == Kind::Amount { "under" } else { "of" };
    format!("With {treatment}, {of} {under} this load is {size} {word} than with {baseline}")
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

/// Threats in the order of presentation: the decisive ones first.
pub fn ordered(threats: &[Threat]) -> Vec<&Threat> {
    let mut ordered: Vec<&Threat> = threats.iter().collect();
    ordered.sort_by_key(|threat| !threat.decides);
    ordered
}

#[cfg(test)]
mod tests;
