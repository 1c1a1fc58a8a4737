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
