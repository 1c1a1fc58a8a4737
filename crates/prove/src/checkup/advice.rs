//! The findings whose remedies can be tried on a private server, as levers.

use mydyno_model::checkup::{Advice, Outcome};
use mydyno_model::claim::{Severity, StepKind};
use mydyno_model::experiment::LeverLevel;
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Finding, Findings, RemedyStep, State};
use mydyno_sandbox::parse_set;

/// Prefix of levers that are variables of a server's start.
const OPTION: &str = "option.";

/// Settings that can be changed in a running server, but take longer than a slice to have their full effect.
const SLOW: [&str; 4] =
    ["innodb_buffer_pool_size", "innodb_log_file_size", "innodb_redo_log_capacity", "key_buffer_size"];

/// A piece of advice that can be measured.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The advice, without a result.
    pub advice: Advice,
    /// Its change.
    pub change: Change,
}

/// Settings of a server's start, and how they are changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The settings that the advice asks for, as `option.NAME`.
    pub levels: Vec<LeverLevel>,
    /// The audited server's values of the same settings, where a running server accepts both at once: they are then
    /// swapped in one server, which needs no starts and shows smaller effects.
    pub live: Option<Vec<LeverLevel>>,
}

impl Change {
    /// Several changes combined; it is live if all are.
    pub fn all<'a>(changes: impl Iterator<Item = &'a Change> + Clone) -> Self {
        let levels = changes.clone().flat_map(|change| change.levels.clone()).collect();
        let live: Option<Vec<Vec<LeverLevel>>> = changes.map(|change| change.live.clone()).collect();
        Self { levels, live: live.map(|live| live.concat()) }
    }
}

/// The violated claims of an audit, by how a check-up treats them.
#[derive(Debug, Clone, Default)]
pub struct Sorted {
    /// Advice to be measured, the most urgent first; advice that makes data safer is last, since it is given whatever
    /// its cost.
    pub candidates: Vec<Candidate>,
    /// Advice that is not measured, with the reason.
    pub others: Vec<Advice>,
}

/// Sorts the violated claims that are not accepted.
pub fn sort(findings: &Findings, facts: &FactSet) -> Sorted {
    let mut sorted = Sorted::default();
    let mut safety = Vec::new();
    for finding in findings.findings.iter().filter(|f| f.state == State::Violated && f.accepted.is_none()) {
        let taken = sorted.candidates.iter().chain(&safety).collect::<Vec<_>>();
        match candidate(finding, facts, &taken) {
            Ok(candidate) if candidate.advice.for_safety => safety.push(candidate),
            Ok(candidate) => sorted.candidates.push(candidate),
            Err(Some(why)) => sorted.others.push(Advice { why: Some(why), ..advice_of(finding) }),
            Err(None) => {}
        }
    }
    sorted.candidates.append(&mut safety);
    sorted
}

/// The finding as a candidate for measurement; else the reason why it is not one, or `None` where no measurement is
/// expected.
fn candidate(finding: &Finding, facts: &FactSet, taken: &[&Candidate]) -> Result<Candidate, Option<String>> {
    let proof = &finding.proof;
    let expects_effect = proof.experiment.is_some() || proof.factor.is_some();
    let changes = changes(finding);
    if changes.is_empty() {
        let worth = expects_effect && finding.severity >= Severity::Low;
        return Err(worth.then(|| not_of_a_server(finding)));
    }
    if !expects_effect {
        let worth = finding.severity >= Severity::Medium;
        let why =
            || proof.not_testable.clone().unwrap_or_else(|| "The claim names no experiment.".to_owned());
        return Err(worth.then(why));
    }
    for change in &changes {
        if let Some(other) = taken.iter().find(|t| t.change.levels.iter().any(|c| c.lever == change.lever)) {
            let claim = &other.advice.claim;
            return Err(Some(match other.change.levels.contains(change) {
                true => format!("{claim} asks for the same change."),
                false => format!("{claim} changes the same setting, to another value."),
            }));
        }
        if let Some(price) = price(change).filter(|_| !costs_already(change, facts)) {
            return Err(Some(format!("A check-up proposes nothing that has a price: {price}")));
        }
    }
    let for_safety = changes.iter().any(|change| costs_already(change, facts) && price(change).is_none());
    let text = changes.iter().map(|c| format!("{}={}", c.lever, c.value)).collect();
    let live = live(finding, &changes, facts);
    let change = Change { levels: changes, live };
    Ok(Candidate { advice: Advice { changes: text, for_safety, ..advice_of(finding) }, change })
}

fn not_of_a_server(finding: &Finding) -> String {
    match (&finding.proof.experiment, &finding.proof.factor) {
        (Some(experiment), _) => format!(
            "Its remedy sets no value at a server's start: `mydyno prove {experiment}` measures the advice by itself."
        ),
        (None, Some(factor)) => format!(
            "Its remedy sets no value at a server's start: `mydyno compare` takes {factor} under a load of yours."
        ),
        (None, None) => "Its remedy sets no value at a server's start.".to_owned(),
    }
}

fn price(change: &LeverLevel) -> Option<String> {
    mydyno_settings::prices(&change.lever, &change.value).into_iter().next()
}

/// Whether the audited server's value of the same setting has a price.
fn costs_already(change: &LeverLevel, facts: &FactSet) -> bool {
    let name = change.lever.strip_prefix(OPTION).unwrap_or(&change.lever);
    let value = facts.value(&format!("server.variable.{name}")).map(text_of);
    value.is_some_and(|value| !mydyno_settings::prices(&change.lever, &value).is_empty())
}

/// The audited server's values of the settings, where a statement changes each of them immediately.
fn live(finding: &Finding, changes: &[LeverLevel], facts: &FactSet) -> Option<Vec<LeverLevel>> {
    let now: Vec<String> = finding
        .remedy
        .iter()
        .flat_map(|remedy| &remedy.now)
        .filter(|step| step.kind == StepKind::Sql)
        .filter_map(assignment)
        .map(|(name, _)| name)
        .collect();
    let value_now = |change: &LeverLevel| {
        let name = change.lever.strip_prefix(OPTION)?;
        let at_once = now.iter().any(|n| n == name) && !SLOW.contains(&name);
        let value = facts.value(&format!("server.variable.{name}")).filter(|_| at_once)?;
        Some(LeverLevel { lever: change.lever.clone(), value: text_of(value) })
    };
    changes.iter().map(value_now).collect()
}

/// A fact as an option's value.
pub(crate) fn text_of(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The settings of a server's start in the remedy, the persistent ones first.
fn changes(finding: &Finding) -> Vec<LeverLevel> {
    let Some(remedy) = &finding.remedy else { return vec![] };
    let mut changes: Vec<LeverLevel> = Vec::new();
    for step in remedy.persistent.iter().chain(&remedy.now) {
        let Some((name, value)) = assignment(step) else { continue };
        let level = LeverLevel { lever: format!("{OPTION}{name}"), value };
        if !changes.iter().any(|change| change.lever == level.lever) {
            changes.push(level);
        }
    }
    // A remedy that a private server can apply only in part would be another remedy.
    let all = changes.iter().all(|c| parse_set(&format!("{}={}", &c.lever[OPTION.len()..], c.value)).is_ok());
    if all { changes } else { vec![] }
}

/// `name = value` of an option file's line or of a `SET GLOBAL` statement.
fn assignment(step: &RemedyStep) -> Option<(String, String)> {
    let text = match step.kind {
        StepKind::Cnf => step.text.as_str(),
        StepKind::Sql => step.text.strip_prefix("SET GLOBAL ")?.trim_end_matches(';'),
        _ => return None,
    };
    let (name, value) = text.split_once('=')?;
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    let value = value.trim().trim_matches(['\'', '"']).to_owned();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && !value.is_empty()).then_some((name, value))
}

fn advice_of(finding: &Finding) -> Advice {
    let steps = |choose: fn(&mydyno_model::finding::FindingRemedy) -> &Vec<RemedyStep>| {
        finding.remedy.as_ref().map(choose).cloned().unwrap_or_default()
    };
    Advice {
        claim: finding.claim.clone(),
        title: finding.title.clone(),
        severity: finding.severity,
        summary: finding.summary.clone(),
        changes: Vec::new(),
        outcome: Outcome::NotMeasured,
        effect_ratio: None,
        answer: None,
        why: None,
        for_safety: false,
        now: steps(|remedy| &remedy.now),
        persistent: steps(|remedy| &remedy.persistent),
        undo: finding.undo.clone(),
        folder: None,
    }
}

#[cfg(test)]
mod tests;
