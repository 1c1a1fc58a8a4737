//! The texts of every claim over all its fixtures are well-formed.

use mydyno_judge::{fixture_facts, judge};
use mydyno_model::claim::{Severity, StepKind};
use mydyno_model::finding::{Finding, RemedyStep, State};

use crate::shipped::claims;

/// All findings from the fixtures of the shipped claims.
pub fn findings() -> Vec<Finding> {
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
fn findings_stand_in_the_order_of_their_severities_and_an_outage_before_the_others_of_its_own() {
    let all: Vec<Finding> = findings().into_iter().filter(|f| f.state == State::Violated).collect();
    let claims = claims();
    let outage = |f: &Finding| claims.find(&f.claim).unwrap().document.outage && f.severity >= Severity::High;
    let is_outage: Vec<bool> = all.iter().map(outage).collect();
    for (a, a_is) in all.iter().zip(&is_outage) {
        for (b, b_is) in all.iter().zip(&is_outage) {
            if (a.severity, *a_is) > (b.severity, *b_is) {
                assert!(a.rank > b.rank, "{} {} and {} {}", a.claim, a.rank, b.claim, b.rank);
            }
        }
    }
    assert!(is_outage.iter().any(|is| *is));
}

/// The longest run of digits of a text before and after a decimal point.
fn longest_digits(text: &str) -> (usize, usize) {
    let (mut whole, mut decimals) = (0, 0);
    for number in text.split(|c: char| !c.is_ascii_digit() && c != '.') {
        let mut parts = number.split('.');
        whole = whole.max(parts.next().unwrap_or("").len());
        // A text with two points is a version.
        if number.matches('.').count() == 1 {
            decimals = decimals.max(parts.next().unwrap_or("").len());
        }
    }
    (whole, decimals)
}

/// Whether `word` occurs in a text as a whole word.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

/// Texts that result from a missing value, a wrong name or a command that does not exist.
const FAULTY: [(&str, &str); 8] = [
    ("OFF is OFF", "a value in the place of a name"),
    ("ON is ON", "a value in the place of a name"),
    ("bench connect", "a command that does not exist"),
    ("probe sync", "a command that does not exist"),
    (" 0 ns", "no time at all, in nanoseconds"),
    ("  ", "two blanks"),
    (" ,", "a blank before a comma"),
    ("..", "two full stops"),
];

/// Faults of a text for people.
fn faults(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let (whole, decimals) = longest_digits(text);
    if whole > 9 {
        found.push("a number without a unit for people");
    }
    if decimals > 4 {
        found.push("more than four decimals");
    }
    found.extend(FAULTY.iter().filter(|(part, _)| text.contains(part)).map(|(_, fault)| *fault));
    // "None: it is the default." is a sentence; a missing value occurs inside one.
    let inside = text.strip_prefix("None").unwrap_or(text);
    if ["None", "null", "NaN", "undefined"].iter().any(|word| has_word(inside, word)) {
        found.push("a missing value in a sentence");
    }
    if text.contains(['{', '}']) || text.contains("<server.") || text.contains("<host.") {
        found.push("a placeholder");
    }
    if !text.trim_end().ends_with(['.', '!', '?', ':', ')', ']', '\'', '"', '`', ';']) && text.contains(". ")
    {
        found.push("no end of the last sentence");
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
fn faults_of_texts_are_recognised() {
    for text in ["a 12345678901 b", "0.98039 of it", "x is None.", "{x}", "it  is", "'fsync'(empty)."] {
        assert!(!faults(text).is_empty(), "{text}");
    }
    for text in
        ["The pool has 2 GiB.", "10.11.19 is old; 0.25 % is not.", "sync_binlog = 1", "(empty) is it."]
    {
        assert_eq!(faults(text), Vec::<&str>::new(), "{text}");
    }
}

#[test]
fn every_claim_in_every_state_has_complete_texts() {
    let mut wrong = Vec::new();
    for finding in findings() {
        let steps = |f: &Finding| -> Vec<RemedyStep> {
            let remedy = f.remedy.iter().flat_map(|r| r.now.iter().chain(&r.persistent));
            remedy.chain(&f.undo).cloned().collect()
        };
        let words = steps(&finding).into_iter().filter(|s| s.kind == StepKind::Text).map(|s| s.text);
        let risk = finding.remedy.iter().filter_map(|r| Some(r.risk.clone()).filter(|t| !t.is_empty()));
        let proof = finding.proof.not_testable.clone();
        let texts = [finding.title.clone(), finding.why.clone()].into_iter().chain(finding.traps.clone());
        // A missing fact is named by its id, and its reason is the server's own text.
        let told = matches!(finding.state, State::Violated | State::Holds);
        let summary = told.then(|| finding.summary.clone());
        for text in texts.chain(words).chain(risk).chain(proof).chain(summary) {
            wrong.extend(faults(&text).into_iter().map(|f| format!("{}: {f}: {text}", finding.claim)));
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether a text lacks a value: a missing value is shown as its expression in angle brackets.
fn has_hole(text: &str) -> bool {
    text.contains("(not known)")
        || text.split('<').skip(1).any(|rest| {
            rest.split_once('>').is_some_and(|(inside, _)| {
                ["server.", "host.", "schema.", "storage.", "block.", "client.", "@@", "$"]
                    .iter()
                    .any(|start| inside.starts_with(start))
            })
        })
}

#[test]
fn every_violation_has_evidence_and_a_remedy_without_holes_and_a_way_back() {
    let mut wrong = Vec::new();
    let claims = claims();
    for claim in claims.iter() {
        for fixture in &claim.document.fixtures {
            let unit = &mydyno_facts::catalogue::unit_of;
            let facts = fixture_facts(&claim.document.facts, &fixture.facts, unit).unwrap();
            if judge(claim, &facts).state == State::Violated && !claim.is_told_in_full(&facts) {
                wrong.push(format!("{}: a hole in its summary", claim.document.id));
            }
        }
    }
    for finding in findings().iter().filter(|f| f.state == State::Violated) {
        let remedy = finding.remedy.as_ref().unwrap();
        let steps: Vec<&RemedyStep> = remedy.now.iter().chain(&remedy.persistent).collect();
        let mut note = |fault: &str| wrong.push(format!("{}: {fault}", finding.claim));
        if steps.is_empty() {
            note("no step of a remedy");
        }
        if finding.evidence.is_empty() {
            note("no evidence");
        }
        if has_hole(&finding.summary) {
            note(&format!("a hole in {}", finding.summary));
        }
        for step in &steps {
            if has_hole(&step.text) {
                note(&format!("a hole in {}", step.text));
            }
        }
        // Statements change the server at once; those that only end a session or rebuild statistics have no inverse.
        for step in &remedy.now {
            let name = step.text.strip_prefix("SET GLOBAL ").and_then(|rest| rest.split([' ', '=']).next());
            let undone = |name: &str| finding.undo.iter().any(|u| u.text.contains(name));
            if step.kind == StepKind::Sql && name.is_some_and(|name| !undone(name)) {
                note(&format!("no way back from {}", step.text));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}
