//! Known answers.

use mydyno_model::Estimate;
use mydyno_model::claim::Severity;

use super::*;

fn measured(claim: &str, outcome: Outcome, ratio: f64) -> Advice {
    Advice {
        claim: claim.to_owned(),
        title: String::new(),
        severity: Severity::Low,
        summary: String::new(),
        changes: vec![format!("option.{claim}=1")],
        outcome,
        effect_ratio: Some(Estimate::with_interval(ratio, ratio * 0.98, ratio * 1.02, 0.95, "")),
        answer: None,
        why: None,
        for_safety: false,
        now: vec![],
        persistent: vec![],
        undo: vec![],
        folder: None,
    }
}

fn joint(outcome: Outcome, ratio: f64) -> Joint {
    Joint {
        claims: vec!["a".to_owned(), "b".to_owned()],
        outcome,
        effect_ratio: Some(Estimate::with_interval(ratio, ratio - 0.05, ratio + 0.05, 0.95, "")),
        answer: String::new(),
        folder: String::new(),
    }
}

#[test]
fn gains_come_first_by_size_and_what_is_not_measured_last() {
    let not = Advice { effect_ratio: None, ..measured("not", Outcome::NotMeasured, 1.0) };
    let safety = Advice { for_safety: true, ..measured("safety", Outcome::Loss, 0.8) };
    let advice = vec![
        not,
        measured("none", Outcome::NoEffect, 1.0),
        measured("small", Outcome::Gain, 1.05),
        measured("open", Outcome::Undecided, 1.01),
        measured("worse", Outcome::Loss, 0.7),
        safety,
        measured("large", Outcome::Gain, 1.5),
    ];
    let order: Vec<String> = in_order(advice).into_iter().map(|advice| advice.claim).collect();
    assert_eq!(order, ["large", "small", "safety", "worse", "open", "none", "not"]);
}

#[test]
fn the_least_change_keeps_nine_tenths_of_the_gain() {
    // ln 1.5 + ln 1.2 + ln 1.02: 1.5 × 1.2 × 1.02 − 1 = 0.836; the two largest 0.8, which is 95.7 %; the largest alone 59.8 %.
    let advice = [
        measured("b", Outcome::Gain, 1.2),
        measured("c", Outcome::Gain, 1.02),
        measured("a", Outcome::Gain, 1.5),
        measured("worse", Outcome::Loss, 0.5),
    ];
    let minimal = minimal(&advice).unwrap();
    assert_eq!(minimal.claims, ["a", "b"]);
    assert!((minimal.share_of_gain - 0.956_9).abs() < 0.001, "{}", minimal.share_of_gain);
}

#[test]
fn there_is_no_least_change_where_all_are_needed_or_one_is_all() {
    assert_eq!(minimal(&[measured("a", Outcome::Gain, 1.2), measured("b", Outcome::Gain, 1.2)]), None);
    assert_eq!(minimal(&[measured("a", Outcome::Gain, 1.2)]), None);
    assert_eq!(minimal(&[]), None);
}

#[test]
fn advice_for_safety_is_no_gain_to_be_joined() {
    let safety = Advice { for_safety: true, ..measured("safety", Outcome::Gain, 1.1) };
    assert!(gains(&[safety]).is_empty());
}

#[test]
fn the_answer_says_what_was_measured_and_what_it_brings() {
    let two = [measured("a", Outcome::Gain, 1.2), measured("b", Outcome::Gain, 1.1)];
    let reported = answer(&two, Some(&joint(Outcome::Gain, 1.3)), 7);
    assert_eq!(
        reported,
        "Of 7 findings 2 pieces of advice could be measured here; 2 bring something, together +30.0 % (+25.0 … +35.0 %) transactions per second."
    );
    let reported = answer(&two, Some(&joint(Outcome::NoEffect, 1.0)), 7);
    assert!(reported.contains("apply them one by one"), "{reported}");
    let reported = answer(&two[..1], None, 7);
    assert!(
        reported.contains("1 piece of advice could be measured here; 1 brings something: a, +20.0 %"),
        "{reported}"
    );
    let reported = answer(&[measured("a", Outcome::NoEffect, 1.0)], None, 7);
    assert!(reported.contains("none brings more than the smallest effect that matters"), "{reported}");
    let none = Advice { effect_ratio: None, ..measured("a", Outcome::NotMeasured, 1.0) };
    assert_eq!(answer(&[none], None, 7), "Of 7 findings none could be measured on this host.");
}
