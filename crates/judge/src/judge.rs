//! Judges one claim over facts: its state, evidence, rank and remedy.

use mydyno_model::claim::{Confidence, Cost, Severity, StepKind};
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Evidence, Finding, FindingRemedy, MissingFact, RemedyStep, State};

use crate::claim::{Claim, ReadyStep};
use crate::expr::{Expr, Stop, Value, domain, evaluate};
use crate::fix::Fragment;
use crate::plural::numbered_but;
use crate::template::{Place, Template};

/// The weight of a severity in the rank.
const fn weight(severity: Severity) -> f64 {
    match severity {
        Severity::Info => 1.0,
        Severity::Low => 3.0,
        Severity::Medium => 10.0,
        Severity::High => 40.0,
        Severity::Critical => 100.0,
    }
}

/// Factor by which an outage comes before other findings of its severity.
const OUTAGE: f64 = 1.6;

/// Factor by which the area orders the findings of one severity: data that are lost or that differ on a replica come before data
/// that others can read or change, these before time, and the host's upkeep is last.
fn harm(area: &str) -> f64 {
    match area {
        "durability" | "replication" => 1.12,
        "security" => 1.06,
        "host" => 0.95,
        _ => 1.0,
    }
}

/// The severity's weight, changed by what the finding's area puts at risk, and reduced by low confidence and by a costly remedy.
///
/// Area, confidence, cost and [`OUTAGE`] together change the weight by a factor of less than 2.5, the least distance between two
/// severities: they order the findings of one severity and never place a severe finding below a lesser one.
pub fn rank(severity: Severity, area: &str, confidence: Confidence, cost: Cost) -> f64 {
    let confidence = match confidence {
        Confidence::Certain => 1.0,
        Confidence::Likely => 0.95,
        Confidence::Hint => 0.85,
    };
    let cost = match cost {
        Cost::Dynamic => 1.0,
        Cost::Restart => 1.02,
        Cost::Reboot | Cost::Application => 1.05,
        Cost::Data => 1.08,
        Cost::Hardware => 1.1,
    };
    weight(severity) * harm(area) * confidence / cost
}

/// The result of a condition.
struct Verdict {
    result: Result<bool, Vec<MissingFact>>,
    facts: Vec<String>,
    steps: Vec<String>,
}

/// The missing facts of a condition. A fault counts as missing too, since the claim cannot be decided. The tests of the
/// claims ensure that a fault never comes from a mistake in the claim.
fn missing_of(stop: Stop, expr: &Expr) -> Vec<MissingFact> {
    match stop {
        Stop::Missing(facts) => facts,
        Stop::Fault(why) => {
            vec![MissingFact { fact: expr.to_string(), status: "fault".to_owned(), why }]
        }
    }
}

fn verdict(expr: &Expr, facts: &FactSet) -> Verdict {
    let found = evaluate(expr, facts, &[]);
    let result = match found.result {
        Ok(Value::Bool(is)) => Ok(is),
        Ok(other) => Err(missing_of(Stop::Fault(format!("{} is not yes or no", other.kind())), expr)),
        Err(stop) => Err(missing_of(stop, expr)),
    };
    Verdict { result, facts: found.facts, steps: found.steps }
}

/// The severity under these facts.
fn severity(claim: &Claim, facts: &FactSet) -> Severity {
    let case = claim.cases.iter().find(|(when, _)| matches!(verdict(when, facts).result, Ok(true)));
    case.map_or(claim.document.severity, |(_, severity)| *severity)
}

/// Judges one claim.
pub fn judge(claim: &Claim, facts: &FactSet) -> Finding {
    let applies = claim.applies.as_ref().map(|applies| verdict(applies, facts));
    let (state, decided) = match applies.map(|v| (v.result.clone(), v)) {
        Some((Ok(false), v)) => (State::NotApplicable, v),
        Some((Err(_), v)) => (State::Unknown, v),
        _ => {
            let v = verdict(&claim.check, facts);
            let state = match v.result {
                Ok(true) => State::Holds,
                Ok(false) => State::Violated,
                Err(_) => State::Unknown,
            };
            (state, v)
        }
    };
    let document = &claim.document;
    let severity = severity(claim, facts);
    let missing = decided.result.err().unwrap_or_default();
    let mut evidence_ids = decided.facts;
    let summary = match state {
        State::Violated => match &claim.finding {
            Some(template) => {
                let filled = template.fill(facts, &[], Place::Prose);
                let told = Template::known_sentences(&filled);
                let filled_names = filled.bracketed;
                for id in filled.facts {
                    if !evidence_ids.contains(&id) {
                        evidence_ids.push(id);
                    }
                }
                told.map(|told| numbered_but(&told, &filled_names))
                    .unwrap_or_else(|| format!("This does not hold here: {}.", document.title))
            }
            None => format!("This does not hold here: {}.", document.title),
        },
        State::Holds => format!("{}.", document.title),
        State::NotApplicable => match decided.steps.as_slice() {
            [] => "It does not apply here.".to_owned(),
            steps => format!("It does not apply here: {}.", steps.join("; ")),
        },
        State::Unknown => unknown(&missing),
    };
    let violated = state == State::Violated;
    let remedy = violated.then(|| FindingRemedy {
        cost: document.remedy.cost,
        now: once(claim.now.iter().flat_map(|s| fill(s, facts)).map(|s| s.step)),
        persistent: once(claim.persistent.iter().flat_map(|s| fill(s, facts)).map(|s| s.step)),
        risk: document.remedy.risk.clone(),
    });
    // Undo steps run in reverse order.
    let undo = match violated {
        true => once(claim.now.iter().flat_map(|s| fill(s, facts)).rev().filter_map(|s| s.undo)),
        false => vec![],
    };
    Finding {
        claim: document.id.clone(),
        area: claim.area.clone(),
        title: document.title.clone(),
        state,
        severity,
        confidence: document.confidence,
        rank: rank(severity, &claim.area, document.confidence, document.remedy.cost)
            * if document.outage && severity >= Severity::High { OUTAGE } else { 1.0 },
        same_cause_as: None,
        summary,
        why: document.why.clone(),
        evidence: evidence_ids.iter().filter_map(|id| evidence(id, facts)).collect(),
        arithmetic: decided.steps,
        missing,
        remedy,
        undo,
        ledger: document.ledger.clone(),
        traps: document.traps.clone(),
        sources: document.sources.clone(),
        proved: vec![],
        proof: document.proof.clone(),
        accepted: None,
    }
}

/// Removes duplicate steps: several directories of a server may be on one file system.
fn once(steps: impl Iterator<Item = RemedyStep>) -> Vec<RemedyStep> {
    let mut all: Vec<RemedyStep> = Vec::new();
    for step in steps {
        if !all.contains(&step) {
            all.push(step);
        }
    }
    all
}

fn unknown(missing: &[MissingFact]) -> String {
    let reasons: Vec<String> = missing.iter().map(|m| format!("{}: {}", m.fact, m.why)).collect();
    format!("Unknown: {}", reasons.join("; "))
}

fn evidence(id: &str, facts: &FactSet) -> Option<Evidence> {
    let fact = facts.facts.get(id)?;
    Some(Evidence {
        fact: id.to_owned(),
        value: fact.value.clone(),
        unit: fact.unit.clone(),
        source: fact.source.clone(),
    })
}

/// Replaces a remedy's line in an option file where another source overrides option files: SET PERSIST (mysqld-auto.cnf
/// is read after all option files), the command line, or a later line.
fn overridden(line: &str, facts: &FactSet) -> Option<String> {
    let name = line.split('=').next().unwrap_or_default().trim().to_ascii_lowercase().replace('-', "_");
    let name = name.strip_prefix("loose_").unwrap_or(&name);
    let origin = facts.value(&format!("server.origin.{name}")).and_then(|o| o.get("source")?.as_str());
    let is_in = |id: &str| {
        let list = facts.value(id).and_then(|list| list.as_array());
        let is_it = |o: &serde_json::Value| o.get("name").unwrap_or(o).as_str() == Some(name);
        list.is_some_and(|list| list.iter().any(is_it))
    };
    // The server reports persisted variables even where its host is not visible.
    let persisted = ["server.options.persisted", "server.persisted_variables"];
    if origin == Some("persisted") || persisted.into_iter().any(is_in) {
        return Some(format!(
            "{line} (not in an option file: {name} is set by SET PERSIST, which overrides these. Persist the new value likewise, or RESET PERSIST {name} first)"
        ));
    }
    if origin == Some("command_line") || is_in("server.options.command_line") {
        return Some(format!(
            "{line} (not in an option file: {name} stands on the server's command line, which overrides these. Change it where the server is started, as in its systemd unit)"
        ));
    }
    Fragment::of(facts).beaten_by(name, facts).map(|place| {
        format!(
            "{line} (not in a file of its own: {place} is read later, sets {name} and wins. Change that line)"
        )
    })
}

struct FilledStep {
    step: RemedyStep,
    undo: Option<RemedyStep>,
}

/// Fills in a step, once for each item of its collection; empty where its condition does not hold.
fn fill(step: &ReadyStep, facts: &FactSet) -> Vec<FilledStep> {
    if let Some(when) = &step.when
        && !matches!(verdict(when, facts).result, Ok(true))
    {
        return vec![];
    }
    let Some((name, over, condition)) = &step.each else { return vec![filled(step, facts, &[])] };
    // Without the collection the step has no items; the finding depends on the same facts, so they are available.
    let items = domain(over, facts).unwrap_or_default();
    let scopes = items.into_iter().map(|item| vec![(name.clone(), item)]);
    let wanted = scopes.filter(|scope| match condition {
        None => true,
        Some(condition) => evaluate(condition, facts, scope).result == Ok(Value::Bool(true)),
    });
    wanted.map(|scope| filled(step, facts, &scope)).collect()
}

fn filled(step: &ReadyStep, facts: &FactSet, scope: &[(String, Value)]) -> FilledStep {
    let written = |template: &Template| {
        let filled = template.fill(facts, scope, step.kind.into());
        // A statement with a missing value must not be run as it is.
        let kind = if filled.whole { step.kind } else { StepKind::Text };
        match (kind == StepKind::Cnf).then(|| overridden(&filled.text, facts)).flatten() {
            Some(text) => RemedyStep { kind: StepKind::Text, text },
            None => RemedyStep { kind, text: filled.text },
        }
    };
    FilledStep { step: written(&step.text), undo: step.undo.as_ref().map(written) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mildest_finding_of_a_severity_stands_above_the_worst_of_the_next_lower_one() {
        let severities =
            [Severity::Info, Severity::Low, Severity::Medium, Severity::High, Severity::Critical];
        let of = |severity| {
            let areas = ["durability", "replication", "security", "innodb", "host"];
            let confidences = [Confidence::Certain, Confidence::Likely, Confidence::Hint];
            let costs = [Cost::Dynamic, Cost::Restart, Cost::Reboot, Cost::Data, Cost::Hardware];
            let all = areas.into_iter().flat_map(move |area| {
                confidences.into_iter().flat_map(move |confidence| {
                    costs.into_iter().map(move |cost| rank(severity, area, confidence, cost))
                })
            });
            all.collect::<Vec<f64>>()
        };
        for pair in severities.windows(2) {
            let worst = of(pair[0]).into_iter().fold(0.0, f64::max) * OUTAGE;
            let mildest = of(pair[1]).into_iter().fold(f64::INFINITY, f64::min);
            assert!(worst < mildest, "{pair:?}: {worst} and {mildest}");
        }
    }
}
