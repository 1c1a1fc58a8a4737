//! The forms of a check-up say the same, and what comes from elsewhere is inert.

use mydyno_model::Header;
use mydyno_model::checkup::{Joint, Minimal, Shape};
use mydyno_model::claim::{Severity, StepKind};
use mydyno_model::finding::Scope;
use serde_json::Map;
use time::OffsetDateTime;

use super::*;

fn advice(claim: &str, outcome: Outcome, ratio: Option<f64>) -> Advice {
    let step = |text: &str| RemedyStep { kind: StepKind::Sql, text: text.to_owned() };
    Advice {
        claim: claim.to_owned(),
        title: format!("title of {claim}"),
        severity: Severity::Low,
        summary: "seen".to_owned(),
        changes: vec!["option.sort_buffer_size=262144".to_owned()],
        outcome,
        effect_ratio: ratio.map(|r| Estimate::with_interval(r, r - 0.02, r + 0.02, 0.95, "")),
        answer: None,
        why: ratio.is_none().then(|| "no lever".to_owned()),
        for_safety: claim == "safety",
        now: vec![step("SET GLOBAL sort_buffer_size = 262144")],
        persistent: vec![],
        undo: vec![step("SET GLOBAL sort_buffer_size = 67108864")],
        folder: None,
    }
}

fn checkup() -> Checkup {
    Checkup {
        header: Header::of::<Checkup>(OffsetDateTime::UNIX_EPOCH),
        answer: "It is <b>so</b>.".to_owned(),
        scope: Scope { server: "mariadb 10.11".to_owned(), port: Some(3306), ..Scope::default() },
        host: vec!["Linux, 2 CPUs".to_owned()],
        load: "oltp_read_write".to_owned(),
        delta: 0.02,
        budget_s: 900.0,
        took_s: 600.0,
        shape: Shape { scale: 1.0, notes: vec!["a note".to_owned()], ..Shape::default() },
        violated: 9,
        advice: vec![
            advice("first", Outcome::Gain, Some(1.3)),
            advice("second", Outcome::Gain, Some(1.1)),
            advice("safety", Outcome::Loss, Some(0.8)),
            advice("worse", Outcome::Loss, Some(0.9)),
            advice("none", Outcome::NoEffect, Some(1.0)),
            advice("not", Outcome::NotMeasured, None),
        ],
        joint: Some(Joint {
            claims: vec!["first".to_owned(), "second".to_owned()],
            outcome: Outcome::Gain,
            effect_ratio: Some(Estimate::with_interval(1.4, 1.35, 1.45, 0.95, "")),
            answer: String::new(),
            folder: String::new(),
        }),
        minimal: Some(Minimal { claims: vec!["first".to_owned()], share_of_gain: 0.91 }),
        extra: Map::new(),
    }
}

#[test]
fn each_form_has_the_answer_the_order_the_figures_and_the_way_back() {
    let checkup = checkup();
    for text in [terminal(&checkup, false), markdown(&checkup), html(&checkup)] {
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(place("1. ") < place("2. "), "{text}");
        for figure in ["+30.0 %", "+10.0 %", "-20.0 %", "+40.0 %", "67108864", "no lever", "91 %", "a note"] {
            place(figure);
        }
        assert!(place("What to do") < place("For the safety"), "{text}");
        assert!(place("For the safety") < place("Slower here"), "{text}");
        assert!(place("Slower here") < place("No effect above 2.0 %"), "{text}");
    }
}

#[test]
fn text_from_elsewhere_stays_text() {
    assert!(!html(&checkup()).contains("<b>so</b>"));
    let hostile = Checkup { answer: "\x1b[31mred\u{202e}".to_owned(), ..checkup() };
    let shown = terminal(&hostile, false);
    assert!(!shown.contains('\x1b') && !shown.contains('\u{202e}'), "{shown:?}");
}

#[test]
fn a_check_up_without_results_has_no_empty_headings() {
    let empty = Checkup { advice: vec![], joint: None, minimal: None, ..checkup() };
    let shown = terminal(&empty, false);
    assert!(!shown.contains("What to do") && !shown.contains("together"), "{shown}");
}
