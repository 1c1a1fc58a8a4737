use mydyno_model::experiment::LeverLevel;

use super::*;

fn arm(role: Role, prices: &[&str]) -> Arm {
    let levers: Vec<LeverLevel> = vec![];
    Arm { role, levers, prices: prices.iter().map(|price| (*price).to_owned()).collect(), jobs: vec![] }
}

#[test]
fn what_both_arms_pay_is_no_price_and_semantics_are_not_lost_in_a_crash() {
    let arms = [
        arm(Role::Baseline, &["durability: a."]),
        arm(Role::Treatment, &["durability: a.", "semantics: b."]),
    ];
    assert_eq!(own(&arms), ["semantics: b."]);
    assert!(!is_of_crashes(&own(&arms)));
    assert!(is_of_crashes(&["crash safety: c.".to_owned()]));
}
