use mydyno_model::Document;
use serde_json::json;

use super::*;

/// A half of four factors with one effect; the factors' names hold what a terminal would obey.
fn document() -> Factorial {
    let factor = |letter: &str| json!({"letter": letter, "lever": format!("variable.{letter}\u{1b}[2J"), "low": "1", "high": "2"});
    let factors = ["A", "B", "C", "D"].map(factor);
    let header = |name: &str| json!({"schema": name, "created": "2026-11-23T12:00:00Z", "mydyno": {"version": "0.1.0", "commit": "unknown"}});
    let mut plan = json!({
        "workload": {"name": "oltp_read_write", "options": {}},
        "target": {"kind": "sandbox", "transport": "unix", "address": "", "user": ""},
        "steps": [], "warmup": {"mode": "fixed", "time_s": 1.0}, "time_s": 1.0, "seed": 1, "database": "d", "percentiles": [], "observe": false, "allow": {"load": false},
    });
    plan.as_object_mut().unwrap().extend(header("mydyno.plan/1").as_object().unwrap().clone());
    let mut document = json!({
        "experiment": "compare-oltp_read_write",
        "question": "Which?",
        "answer": "A acts.",
        "factors": factors,
        "family": "fractional",
        "resolution": 4,
        "generators": ["D=ABC"],
        "defining_relation": ["ABCD"],
        "runs": ["----", "+--+"],
        "aliases": [
            {"effect": "A", "aliased_with": [{"weight": 1.0, "effects": ["BCD"]}]},
            {"effect": "AB", "aliased_with": [{"weight": 1.0, "effects": ["CD"]}]},
        ],
        "mode": "in_place",
        "load": plan,
        "request": {"workload": "oltp_read_write"},
        "delta": 0.01, "seed": 1, "slice_s": 1.0, "settle_s": 0.25, "warmup_s": 3.0, "blocks": 3, "smallest_effect": 0.03,
        "rows": [{"order": 0, "block": 0, "run": 0}],
        "measured_rows": 1,
        "responses": [{
            "name": "transactions_per_s", "unit": "1/s", "mean": 1234.5, "sd": 0.04, "df": 14,
            "effects": [
                {"effect": "A", "effect_ratio": {"value": 1.2, "low": 1.1, "high": 1.3, "level": 0.95, "method": "m"},
                 "p_adjusted": 0.001, "finding": "supported"},
                {"effect": "AB", "effect_ratio": {"value": 1.0, "low": 0.995, "high": 1.005, "level": 0.95, "method": "m"},
                 "p_adjusted": 1.0, "finding": "refuted"},
            ],
        }],
        "threats": ["rows are missing"],
    });
    document.as_object_mut().unwrap().extend(header("mydyno.factorial/1").as_object().unwrap().clone());
    Factorial::from_json(&document.to_string()).unwrap()
}

#[test]
fn a_result_has_the_answer_the_alias_table_and_each_effect() {
    let text = terminal(&document(), false);
    for line in [
        "EFFECTS  A acts.",
        "Fractional factorial 2^(4-1) of resolution IV: 2 runs, D=ABC.",
        "  A   + BCD",
        "  AB  + CD",
        "+20.0 % (+10.0 … +30.0 %)  p 0.0010  acts",
        "+0.0 % (-0.5 … +0.5 %)  p 1.0000  no effect beyond delta",
        "Equal rows differ by 4.0 % (14 degrees of freedom).",
        "measured    1 of 1 rows in 3 blocks",
        "  ! rows are missing",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(terminal(&document(), true).starts_with("\u{1b}[1mEFFECTS"));
}

#[test]
fn partial_aliases_have_their_weights_and_long_lists_are_cut() {
    let effects: Vec<String> = (0..9).map(|n| format!("B{n}")).collect();
    let with = vec![
        AliasedWith { weight: 0.333333, effects: effects.clone() },
        AliasedWith { weight: -1.0, effects: effects[..2].to_vec() },
    ];
    let row = AliasRow { effect: "A".to_owned(), aliased_with: with };
    assert_eq!(aliases(&row), "+ 0.33 × (B0, B1, B2, B3, B4, B5 and 3 more) - B0 - B1");
    let none = AliasRow { effect: "A".to_owned(), aliased_with: Vec::new() };
    assert_eq!(aliases(&none), "with none of up to three factors");
    let full = Factorial { family: DesignFamily::Full, ..document() };
    assert!(design(&full).join("\n").contains("no effect is aliased"));
    assert_eq!((roman(Some(3)), roman(Some(9))), ("III", "above VII"));
}
