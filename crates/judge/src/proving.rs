//! Checks that a claim is fit for release: its form, its fixtures, and whether the fixtures detect mutations of its
//! expressions.

use std::sync::Arc;

use indexmap::IndexMap;
use mydyno_model::claim::{Effect, Fixture, Proof, Severity, StepKind, Touches};
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Finding, State};
use mydyno_settings::table;

use crate::claim::Claim;
use crate::expr::{Expr, Mutant, mutants};
use crate::fixture::{Catalogue, facts, not_collected};
use crate::judge::judge;
use crate::ledger::weakens;

/// The result of examining one claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// Mistakes, one sentence each.
    pub problems: Vec<String>,
    /// Number of mutations that were tried.
    pub mutations: usize,
    /// Mutations that no fixture detected.
    pub undetected: Vec<String>,
    /// Number of its violated fixtures that were recorded from live systems.
    pub recorded: usize,
}

/// Examines a claim.
pub fn examine(claim: &Claim, catalogue: Catalogue<'_>) -> Examined {
    let mut examined = Examined::default();
    form(claim, catalogue, &mut examined.problems);
    let cases = fixtures(claim, catalogue, &mut examined);
    if examined.problems.is_empty() {
        mutations(claim, &cases, &mut examined);
    }
    examined
}

fn form(claim: &Claim, catalogue: Catalogue<'_>, problems: &mut Vec<String>) {
    let document = &claim.document;
    let mut need = |fine: bool, text: &str| {
        if !fine {
            problems.push(text.to_owned());
        }
    };
    let name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    need(name(&document.id), "id: lower case, digits and hyphens only");
    need(name(&claim.area), "area: lower case, digits and hyphens only");
    need(!document.sources.is_empty(), "sources: name where this is known from");
    need(document.sources.iter().all(|s| s.len() > 8), "sources: each names a page, a section or an address");
    need(
        !document.title.ends_with('.') && document.title.len() <= 90,
        "title: one line of up to 90 bytes, no full stop",
    );
    need(document.what.len() > 40 && document.why.len() > 20, "what, why: a sentence each at least");
    need(!document.remedy.risk.is_empty(), "remedy.risk: say what can go wrong, or that nothing can");
    need(!claim.now.is_empty() || !claim.persistent.is_empty(), "remedy: no step");
    need(
        claim.now.iter().all(|s| s.undo.is_some() || s.kind == StepKind::Text),
        "remedy.now: each step needs its undo",
    );
    let proof = &document.proof;
    need(
        proof.experiment.is_some() != proof.not_testable.is_some(),
        "proof: either experiment or not_testable",
    );
    need(proof.factor.is_none() || proof.levels.len() > 1, "proof: a factor needs at least two levels");
    need(
        proof.factor.is_some() || proof.levels.is_empty(),
        "proof: levels need their factor, which names a lever",
    );
    if let Some(ledger) = &document.ledger {
        let fits = ledger.effect != Effect::Changes || ledger.touches == Touches::Semantics;
        need(fits, "ledger: a remedy may change semantics, never durability or crash safety");
    }
    for (now, steps) in [(true, &document.remedy.now), (false, &document.remedy.persistent)] {
        for (kind, text) in steps.iter().flat_map(|s| s.forms()) {
            if let Some(why) = weakens(kind, text) {
                problems.push(format!("remedy: {text:?}: {why}"));
            }
            let lasting =
                !matches!(kind, StepKind::Sql | StepKind::Sysctl | StepKind::Shell | StepKind::Text);
            if now && lasting {
                problems.push(format!("remedy.now: {text:?} is a line of a file: it belongs to persistent"));
            }
        }
    }
    factor(&document.proof, problems);
    known(claim, catalogue, problems);
}

/// Checks that the factor is a lever that accepts the levels.
fn factor(proof: &Proof, problems: &mut Vec<String>) {
    let Some(name) = &proof.factor else { return };
    let row = match table().lever(name) {
        Ok(row) => row,
        Err(error) => return problems.push(format!("proof.factor: {error}")),
    };
    for level in &proof.levels {
        let text = level.as_str().map_or_else(|| level.to_string(), str::to_owned);
        if !row.form.accepts(&text) {
            problems.push(format!("proof.levels: {name} does not take {text:?}: it takes {}", row.form));
        }
    }
}

/// Checks that some collector provides every fact that the claim names, also in its texts.
fn known(claim: &Claim, catalogue: Catalogue<'_>, problems: &mut Vec<String>) {
    let mut named = claim.needs();
    for step in claim.steps() {
        let templates = [Some(&step.text), step.undo.as_ref()].into_iter().flatten();
        named.extend(templates.flat_map(|t| t.expressions()).flat_map(Expr::facts));
        named.extend(step.when.iter().flat_map(Expr::facts));
    }
    named.extend(claim.finding.iter().flat_map(|t| t.expressions()).flat_map(Expr::facts));
    named.sort();
    named.dedup();
    for pattern in named {
        if catalogue(&pattern.replace('*', "x")).is_none() {
            problems.push(not_collected(&pattern));
        }
    }
}

/// A fixture with its facts.
struct Case {
    facts: FactSet,
    state: State,
    severity: Severity,
}

fn fixtures(claim: &Claim, catalogue: Catalogue<'_>, examined: &mut Examined) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, fixture) in claim.document.fixtures.iter().enumerate() {
        let name = match &fixture.name {
            Some(name) => format!("fixture {} ({name})", number + 1),
            None => format!("fixture {} ({})", number + 1, fixture.state),
        };
        let mut wrong = |text: String| examined.problems.push(format!("{name}: {text}"));
        let Some(state) = state(&fixture.state) else {
            wrong("state is violated, holds, not_applicable or unknown".to_owned());
            continue;
        };
        let facts = match facts(&claim.document.facts, &fixture.facts, catalogue) {
            Ok(facts) => facts,
            Err(problems) => {
                problems.into_iter().for_each(wrong);
                continue;
            }
        };
        let found = judge(claim, &facts);
        outcome(fixture, state, &found, &mut wrong);
        if state == State::Violated && fixture.recorded.is_some() {
            examined.recorded += 1;
        }
        cases.push(Case { facts, state, severity: found.severity });
    }
    let mut seen: IndexMap<&str, usize> = IndexMap::new();
    for case in &cases {
        *seen.entry(case.state.name()).or_default() += 1;
    }
    let applicable = claim.applies.is_some().then_some(State::NotApplicable);
    for state in [State::Violated, State::Holds, State::Unknown].into_iter().chain(applicable) {
        if !seen.contains_key(state.name()) {
            examined.problems.push(format!("no fixture is {}", state.name()));
        }
    }
    cases
}

fn state(name: &str) -> Option<State> {
    [State::Violated, State::Holds, State::Unknown, State::NotApplicable]
        .into_iter()
        .find(|s| s.name() == name)
}

fn outcome(fixture: &Fixture, state: State, found: &Finding, wrong: &mut impl FnMut(String)) {
    if found.state != state {
        let why = match found.state {
            State::Unknown => found.summary.clone(),
            _ => found.arithmetic.join("; "),
        };
        wrong(format!("came out {}, not {} ({why})", found.state.name(), fixture.state));
    }
    if let Some(severity) = fixture.severity
        && found.severity != severity
    {
        wrong(format!("severity came out {}, not {}", found.severity.name(), severity.name()));
    }
    if let Some(fault) = found.missing.iter().find(|m| m.status == "fault") {
        wrong(format!("the check makes no sense of these facts: {}", fault.why));
    }
    if found.state != State::Violated {
        return;
    }
    if found.summary.contains('<') && found.summary.contains('>') {
        wrong(format!("the finding has a hole: {}", found.summary));
    }
    if found.evidence.is_empty() {
        wrong("no fact is its evidence".to_owned());
    }
    let Some(remedy) = &found.remedy else { return };
    if remedy.now.is_empty() && remedy.persistent.is_empty() {
        wrong("no step of the remedy makes sense here".to_owned());
    }
    for step in &remedy.now {
        if found.undo.contains(step) {
            wrong(format!("remedy.now sets what is set already: {}", step.text));
        }
    }
    for step in remedy.now.iter().chain(&remedy.persistent) {
        if step.text.contains("server.") && step.text.contains('<') {
            wrong(format!("a step of the remedy has a hole: {}", step.text));
        }
        if let Some(why) = weakens(step.kind, &step.text) {
            wrong(format!("remedy {:?}: {why}", step.text));
        }
    }
}

/// Tries every mutation of the deciding expressions, and records those that change no fixture's outcome.
fn mutations(claim: &Claim, cases: &[Case], examined: &mut Examined) {
    let mut try_one = |what: &str, Mutant { what: mutation, .. }: &Mutant, mutated: Claim| {
        examined.mutations += 1;
        let noticed = cases.iter().any(|case| {
            let found = judge(&mutated, &case.facts);
            (found.state, found.severity) != (case.state, case.severity)
        });
        if !noticed {
            examined.undetected.push(format!("{what}: {mutation}"));
        }
    };
    for mutant in mutants(&claim.check) {
        let mutated = Claim { check: mutant.expr.clone(), ..claim.clone() };
        try_one("check", &mutant, mutated);
    }
    for mutant in claim.applies.iter().flat_map(mutants) {
        let mutated = Claim { applies: Some(mutant.expr.clone()), ..claim.clone() };
        try_one("applies_when", &mutant, mutated);
    }
    for (place, (when, _)) in claim.cases.iter().enumerate() {
        for mutant in mutants(when) {
            let mut mutated = claim.clone();
            mutated.cases[place].0 = mutant.expr.clone();
            try_one("severity_cases", &mutant, mutated);
        }
    }
}

/// Names in `[let]` that no expression uses.
pub fn unused_bindings(claim: &Claim) -> Vec<String> {
    fn used<'e>(expr: &'e Expr, names: &mut Vec<&'e str>) {
        if let Expr::Named(name, inner) = expr {
            names.push(name);
            used(Arc::as_ref(inner), names);
        }
        expr.children().into_iter().for_each(|child| used(child, names));
    }
    let mut names = Vec::new();
    let templates = claim
        .finding
        .iter()
        .chain(claim.steps().map(|s| &s.text))
        .chain(claim.steps().filter_map(|s| s.undo.as_ref()));
    let conditions = claim.applies.iter().chain([&claim.check]).chain(claim.cases.iter().map(|(w, _)| w));
    let conditions = conditions.chain(claim.steps().filter_map(|s| s.when.as_ref()));
    for expr in templates.flat_map(|t| t.expressions()).chain(conditions) {
        used(expr, &mut names);
    }
    claim.document.bindings.keys().filter(|k| !names.contains(&k.as_str())).cloned().collect()
}
