//! Tests of experiments with several factors, against the vectors of tests/oracle/factorials.json, and of their edge cases.

use mydyno_stats::Error;
use mydyno_stats::factorial::{Observation, replicated_effects};
use mydyno_stats::power::detectable_contrast;
use mydyno_stats::two_level::TwoLevel;
use serde_json::Value;

use super::oracle::{FACTORIALS, check, close, numbers};

fn rows(case: &Value) -> Vec<Observation> {
    let row = |row: &Value| Observation {
        block: row["block"].as_u64().unwrap() as usize,
        levels: numbers(&row["levels"]).iter().map(|level| *level == 1.0).collect(),
        response: row["response"].as_f64().unwrap(),
    };
    case["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn effects_judged_by_equal_runs_agree_with_statsmodels() {
    for case in FACTORIALS["replicated"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let terms: Vec<Vec<usize>> = case["terms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|term| numbers(term).iter().map(|factor| *factor as usize).collect())
            .collect();
        let ours = replicated_effects(&rows(case), &terms, 0.95, case["delta"].as_f64().unwrap()).unwrap();
        assert_eq!(ours.df as f64, case["df"].as_f64().unwrap(), "{name}");
        close(ours.sd.unwrap(), case["sd"].as_f64().unwrap(), 1e-9, name);
        match (ours.lack_of_fit, case["lack_of_fit"].as_f64()) {
            (Some(ours), Some(theirs)) => close(ours, theirs, 1e-6, name),
            (ours, theirs) => assert_eq!(ours, theirs, "{name}"),
        }
        for ((ours, term), theirs) in ours.effects.iter().zip(&terms).zip(case["effects"].as_array().unwrap())
        {
            let of = |field: &str| theirs[field].as_f64().unwrap();
            assert_eq!(&ours.factors, term, "{name}");
            close(ours.ratio.value, of("ratio"), 1e-10, name);
            close(ours.ratio.low.unwrap(), of("low"), 1e-9, name);
            close(ours.ratio.high.unwrap(), of("high"), 1e-9, name);
            close(ours.p_adjusted.unwrap(), of("p_adjusted"), 1e-7, name);
        }
    }
}

#[test]
fn detectable_contrasts_agree_with_scipy() {
    check(&FACTORIALS, "detectable_contrast", 1e-5, |a| detectable_contrast(a[0] as usize, a[1], a[2]));
}

#[test]
fn designs_without_repeats_spread_or_enough_rows_give_no_interval_or_an_error() {
    let design = TwoLevel::fractional(4, None).unwrap();
    let observations = |blocks: usize, noise: f64| -> Vec<Observation> {
        let row = |(n, (block, run)): (usize, (usize, &Vec<bool>))| Observation {
            block,
            levels: run.clone(),
            response: if run[0] { 110.0 } else { 100.0 } * (1.0 + noise * (n % 3) as f64),
        };
        let rows = (0..blocks).flat_map(|block| design.runs.iter().map(move |run| (block, run)));
        rows.enumerate().map(row).collect()
    };
    let effects = design.effects();
    let once = replicated_effects(&observations(1, 0.01), &effects, 0.95, 0.0).unwrap();
    assert!(once.sd.is_none() && once.effects.iter().all(|effect| effect.p_adjusted.is_none()), "{once:?}");
    assert!(once.effects[0].ratio.method.contains("more blocks"), "{once:?}");
    let equal = replicated_effects(&observations(3, 0.0), &effects, 0.95, 0.0).unwrap();
    close(equal.effects[0].ratio.value, 1.1, 1e-12, "equal blocks");
    assert!(equal.effects[0].ratio.low.is_none(), "{equal:?}");
    assert!(equal.effects[0].ratio.method.contains("no spread"), "{equal:?}");
    // A and BCD are the same column.
    let aliased = replicated_effects(&observations(3, 0.01), &[vec![0], vec![1, 2, 3]], 0.95, 0.0);
    assert!(matches!(aliased, Err(Error::Design(_))), "{aliased:?}");
    let missing = replicated_effects(&observations(3, 0.01), &[vec![7]], 0.95, 0.0);
    assert!(missing.unwrap_err().to_string().contains("no row has the factors"));
}
