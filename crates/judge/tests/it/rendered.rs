//! The texts of every claim over the facts of all its fixtures are fit to be passed on.

use mydyno_judge::{fixture_facts, judge};
use mydyno_model::claim::Severity;
use mydyno_model::finding::{Finding, State};

use crate::shipped::claims;

/// All findings that the fixtures of the shipped claims lead to.
fn findings() -> Vec<Finding> {
    let mut all = Vec::new();
    for claim in claims().iter() {
        for fixture in &claim.document.fixtures {
            let unit = &mydyno_facts::catalogue::unit_of;
            let facts = fixture_facts(&claim.document.facts, &fixture.facts, unit).unwrap();
            all.push(judge(claim, &facts));
        }
    }
    all
}

/// Digits in a row from each position on, after a decimal point or not.
fn longest_digits(text: &str) -> (usize, usize) {
    let (mut whole, mut decimals) = (0, 0);
    for part in text.split(|c: char| !c.is_ascii_digit() && c != '.') {
        let mut parts = part.split('.');
        whole = whole.max(parts.next().unwrap_or("").len());
        if part.matches('.').count() == 1 {
            decimals = decimals.max(parts.next().unwrap_or("").len());
        }
    }
    (whole, decimals)
}

/// Faults of a text that people read.
fn faults(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let (whole, decimals) = longest_digits(text);
    if whole > 9 {
        found.push("a number without a unit for people");
    }
    if decimals > 4 {
        found.push("more than four decimals");
    }
    for (part, fault) in [
        ("OFF is OFF", "a value in the place of a name"),
        ("ON is ON", "a value in the place of a name"),
        ("bench connect", "a command that does not exist"),
        ("probe sync", "a command that does not exist"),
        (" 0 ns", "no time at all, in nanoseconds"),
        ("  ", "two blanks"),
        (" .", "a blank before a full stop"),
    ] {
        if text.contains(part) {
            found.push(fault);
        }
    }
    let empty = text.match_indices("(empty)").any(|(at, word)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        before.ends_with(char::is_alphanumeric)
            || before.ends_with('\'')
            || after.starts_with(char::is_alphanumeric)
    });
    if empty {
        found.push("(empty) between words");
    }
    found
}

#[test]
fn summaries_risks_and_proofs_show_no_faults_of_text() {
    let mut wrong = Vec::new();
    for finding in findings() {
        let proof = finding.proof.not_testable.clone().unwrap_or_default();
        let words = finding.remedy.iter().flat_map(|r| r.now.iter().chain(&r.persistent));
        let words = words.filter(|s| s.kind == mydyno_model::claim::StepKind::Text).map(|s| s.text.clone());
        let texts = [finding.why.clone(), proof].into_iter().chain(finding.traps.clone()).chain(words);
        // What a claim lacks is told with the name of the fact, which is no prose.
        let summary = (finding.state != State::Unknown).then(|| finding.summary.clone());
        for text in summary.into_iter().chain(texts) {
            wrong.extend(faults(&text).into_iter().map(|f| format!("{}: {f}: {text}", finding.claim)));
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_step_stands_once_in_a_remedy() {
    for finding in findings() {
        let Some(remedy) = &finding.remedy else { continue };
        for steps in [&remedy.now, &remedy.persistent, &finding.undo] {
            for (n, step) in steps.iter().enumerate() {
                assert!(!steps[..n].contains(step), "{}: {}", finding.claim, step.text);
            }
        }
    }
}

#[test]
fn an_outage_stands_before_every_setting_and_a_costly_remedy_buries_no_severity() {
    let all: Vec<Finding> = findings().into_iter().filter(|f| f.state == State::Violated).collect();
    let claims = claims();
    let outage = |f: &Finding| claims.find(&f.claim).unwrap().document.outage && f.severity >= Severity::High;
    let is_outage: Vec<bool> = all.iter().map(outage).collect();
    for (a, a_is) in all.iter().zip(&is_outage) {
        for (b, b_is) in all.iter().zip(&is_outage) {
            if (*a_is, a.severity) > (*b_is, b.severity) {
                assert!(a.rank > b.rank, "{} {} and {} {}", a.claim, a.rank, b.claim, b.rank);
            }
        }
    }
    assert!(is_outage.iter().any(|is| *is));
}
