//! Tests of the statistics of experiments, against the vectors of tests/oracle/experiments.json, and of their edge cases.

use mydyno_model::Estimate;
use mydyno_stats::Rng;
use mydyno_stats::compare::{LogEffect, Pair, log_ratios, noise_floor, ratio_bootstrap, ratio_of_estimates};
use mydyno_stats::decision::walk;
use mydyno_stats::factorial::{Observation, effects, holm};
use mydyno_stats::pooled::{Found, random_effects};
use mydyno_stats::power::{
    Forecast, blocks_for, blocks_with_looks, default_schedule, detectable_effect, forecast,
    minimum_detectable_effect, power,
};
use mydyno_stats::sequential::{self, Schedule};
use mydyno_stats::verdict::{Direction, Statement, Verdict};
use serde_json::Value;

use super::oracle::{EXPERIMENTS, check, close, numbers};

fn cases(name: &str) -> &'static Vec<Value> {
    EXPERIMENTS[name].as_array().unwrap()
}

/// Asserts that the interval ends match the oracle's: both, or none.
#[track_caller]
fn same_ends(ours: &Estimate, low: &Value, high: &Value, tolerance: f64, what: &str) {
    match ours.low.zip(ours.high) {
        None => assert!(low.is_null() && high.is_null(), "{what}: {ours:?}, the oracle says {low} to {high}"),
        Some(ends) => {
            close(ends.0, low.as_f64().unwrap(), tolerance, what);
            close(ends.1, high.as_f64().unwrap(), tolerance, what);
        }
    }
}

fn statement(direction: &Value, delta: &Value) -> Statement {
    let direction = if direction == "higher" { Direction::Higher } else { Direction::Lower };
    Statement::new(direction, delta.as_f64().unwrap()).unwrap()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Supported => "supported",
        Verdict::Refuted => "refuted",
        Verdict::Undecided => "undecided",
    }
}

#[track_caller]
fn same_forecast(ours: Forecast, theirs: &Value) {
    let (kind, blocks) = match ours {
        Forecast::Blocks(blocks) => ("blocks", Some(blocks)),
        Forecast::AtLeast(blocks) => ("at least", Some(blocks)),
        Forecast::Unknown => ("unknown", None),
    };
    assert_eq!(kind, theirs[0], "{ours:?}, the oracle says {theirs}");
    if let Some(blocks) = blocks {
        let theirs = theirs[1].as_u64().unwrap() as usize;
        // Beyond 200 blocks an approximation is used.
        let apart = if theirs > 200 { 2 } else { 0 };
        assert!(blocks.abs_diff(theirs) <= apart, "{blocks}, the oracle says {theirs}");
    }
}

#[test]
fn blocks_and_detectable_effects_agree_with_scipy() {
    check(&EXPERIMENTS, "blocks_for", 0.0, |a| blocks_for(a[0], a[1]).unwrap() as f64);
    check(&EXPERIMENTS, "minimum_detectable_effect", 1e-6, |a| {
        minimum_detectable_effect(a[0] as usize, a[1]).unwrap()
    });
}

#[test]
fn blocks_with_looks_are_those_of_simulated_experiments() {
    for case in cases("blocks_with_looks") {
        let given = numbers(case);
        let (ours, theirs) = (blocks_with_looks(given[0], 1.0).unwrap() as f64, given[1]);
        assert!((ours - theirs).abs() <= 1f64.max(0.02 * theirs), "{}: {ours}, simulated {theirs}", given[0]);
        // One look would need fewer from about ten blocks on.
        assert!(theirs < 12.0 || theirs > blocks_for(given[0], 1.0).unwrap() as f64 - 1.0, "{given:?}");
    }
}

#[test]
fn detectable_effects_take_looks_and_delta_into_account() {
    for case in cases("detectable_with_looks") {
        let given = numbers(&case["case"]);
        let schedule = Schedule::new(given[0] as usize, given[1] as usize, given[2] as usize, 0.95).unwrap();
        let ours = detectable_effect(&schedule, given[3], given[4]).unwrap();
        close(ours, case["effect"].as_f64().unwrap(), 1e-3, &case["case"].to_string());
        // Simulated experiments with this effect end with it found in four of five cases, or slightly more often.
        let found = case["found"].as_f64().unwrap();
        assert!((0.79..=0.83).contains(&found), "{case}");
    }
}

#[test]
fn boundaries_agree_with_multivariate_normal_probabilities() {
    for case in EXPERIMENTS["boundaries"].as_array().unwrap() {
        let ours = sequential::boundaries(&numbers(&case["times"]), case["alpha"].as_f64().unwrap());
        for (ours, theirs) in ours.iter().zip(numbers(&case["bounds"])) {
            close(*ours, theirs, 5e-4, &format!("boundary at {}", case["times"]));
        }
    }
    // As published with Lan and DeMets' program (Reboussin et al. 2000), five equal looks, 5 % two-sided.
    let published = [4.8769, 3.3569, 2.6803, 2.2898, 2.0310];
    let ours = sequential::boundaries(&[0.2, 0.4, 0.6, 0.8, 1.0], 0.05);
    for (ours, theirs) in ours.iter().zip(published) {
        close(*ours, theirs, 5e-5, "published boundary");
    }
}

#[test]
fn paired_effects_agree_with_scipy() {
    for case in EXPERIMENTS["paired"].as_array().unwrap() {
        let pairs: Vec<Pair> = numbers(&case["baseline"])
            .into_iter()
            .zip(numbers(&case["treatment"]))
            .map(|(baseline, treatment)| Pair { baseline, treatment })
            .collect();
        let ours = LogEffect::of(&log_ratios(&pairs).unwrap()).ratio_t(0.95);
        close(ours.value, case["ratio"].as_f64().unwrap(), 1e-12, "ratio");
        close(ours.low.unwrap(), case["low"].as_f64().unwrap(), 1e-10, "low");
        close(ours.high.unwrap(), case["high"].as_f64().unwrap(), 1e-10, "high");
    }
}

#[test]
fn pooled_experiments_agree_with_statsmodels() {
    for case in EXPERIMENTS["pooled"].as_array().unwrap() {
        let found: Vec<Found> = case["effects"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .map(|f| Found { effect: f[0], standard_error: f[1] })
            .collect();
        let ours = random_effects(&found, 0.95).unwrap();
        for (name, value) in
            [("mean", ours.mean), ("between", ours.between), ("low", ours.low), ("high", ours.high)]
        {
            close(value, case[name].as_f64().unwrap(), 1e-6, &format!("{}: {name}", case["name"]));
        }
    }
}

#[test]
fn the_bootstrap_agrees_with_another_resampling() {
    let case = &EXPERIMENTS["bootstrap_t"];
    let ours = ratio_bootstrap(&numbers(&case["log_ratios"]), 0.95, &mut Rng::from_seed(1));
    close(ours.low.unwrap(), case["low"].as_f64().unwrap(), 0.003, "low");
    close(ours.high.unwrap(), case["high"].as_f64().unwrap(), 0.003, "high");
}

#[test]
fn few_equal_or_impossible_blocks_give_no_interval() {
    let one = LogEffect::of(&[0.05]).ratio_t(0.95);
    assert!(one.low.is_none() && one.method.contains("at least two"), "{one:?}");
    let equal = LogEffect::of(&[0.05; 6]).ratio_t(0.95);
    assert!(equal.low.is_none() && equal.method.contains("equal"), "{equal:?}");
    let few = ratio_bootstrap(&[0.1, 0.2, 0.3], 0.95, &mut Rng::from_seed(1));
    assert!(few.low.is_none() && few.method.contains("at least 8"), "{few:?}");
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(log_ratios(&[Pair { baseline: bad, treatment: 1.0 }]).is_err(), "{bad}");
        assert!(log_ratios(&[Pair { baseline: 1.0, treatment: bad }]).is_err(), "{bad}");
    }
    assert_eq!(noise_floor(&[0.01, -0.01, 0.02]), None);
    // t of 4 degrees of freedom at 97.5 % is 2.776; the root mean square is 0.01.
    close(noise_floor(&[0.01, -0.01, 0.01, -0.01]).unwrap(), 0.027_764_451_f64.exp_m1(), 1e-6, "noise floor");
}

#[test]
fn verdicts_follow_the_interval_and_delta() {
    let estimate = |low: f64, high: f64| Estimate::with_interval((low * high).sqrt(), low, high, 0.95, "");
    let up = Statement::new(Direction::Higher, 0.02).unwrap();
    let down = Statement::new(Direction::Lower, 0.02).unwrap();
    for (low, high, higher, lower) in [
        (1.03, 1.10, Verdict::Supported, Verdict::Refuted),
        (1.01, 1.10, Verdict::Undecided, Verdict::Refuted),
        (0.99, 1.01, Verdict::Refuted, Verdict::Refuted),
        (0.90, 0.95, Verdict::Refuted, Verdict::Supported),
        (0.95, 1.05, Verdict::Undecided, Verdict::Undecided),
        (1.02, 1.10, Verdict::Undecided, Verdict::Refuted),
    ] {
        let effect = estimate(low, high);
        assert_eq!((up.judge(&effect), down.judge(&effect)), (higher, lower), "{low} to {high}");
    }
    assert_eq!(up.judge(&Estimate::without_interval(2.0, "one block")), Verdict::Undecided);
    assert!(Statement::new(Direction::Higher, -0.1).is_err());
}

#[test]
fn two_runs_compare_as_their_intervals_allow() {
    let a = Estimate::with_interval(100.0, 95.0, 105.0, 0.95, "");
    let b = Estimate::with_interval(110.0, 105.0, 115.0, 0.95, "");
    let ratio = ratio_of_estimates(&a, &b);
    close(ratio.value, 1.1, 1e-12, "ratio");
    // By hand: ln 1.1 ∓ hypot of ln(110/105) and ln(105/100), and of ln(115/110) and ln(100/95).
    close(ratio.low.unwrap(), 1.1 * (-0.067_396_f64).exp(), 1e-4, "low");
    close(ratio.high.unwrap(), 1.1 * 0.067_933_f64.exp(), 1e-4, "high");
    assert!(ratio_of_estimates(&a, &Estimate::without_interval(1.0, "short")).low.is_none());
    assert!(ratio_of_estimates(&Estimate::without_interval(0.0, ""), &b).low.is_none());
}

#[test]
fn factorial_effects_agree_with_statsmodels() {
    let edges = EXPERIMENTS["factorial_edges"].as_array().unwrap();
    for case in EXPERIMENTS["factorial"].as_array().unwrap().iter().chain(edges) {
        let rows: Vec<Observation> = case["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| Observation {
                block: row["block"].as_u64().unwrap() as usize,
                levels: numbers(&row["levels"]).iter().map(|l| *l == 1.0).collect(),
                response: row["response"].as_f64().unwrap(),
            })
            .collect();
        let ours = effects(&rows, case["order"].as_u64().unwrap() as usize, 0.95).unwrap();
        let theirs = case["effects"].as_array().unwrap();
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            let factors: Vec<f64> = ours.factors.iter().map(|f| *f as f64).collect();
            assert_eq!(factors, numbers(&theirs["factors"]));
            let of = |field: &str| theirs[field].as_f64().unwrap();
            close(ours.ratio.value, of("ratio"), 1e-10, "ratio");
            close(ours.ratio.low.unwrap(), of("low"), 1e-9, "low");
            close(ours.ratio.high.unwrap(), of("high"), 1e-9, "high");
            close(ours.p_adjusted.unwrap(), of("p_adjusted"), 1e-8, "adjusted p value");
        }
    }
}

#[test]
fn a_factorial_without_repeats_gives_effects_without_intervals() {
    let rows: Vec<Observation> =
        [(false, false, 100.0), (true, false, 110.0), (false, true, 100.0), (true, true, 110.0)]
            .into_iter()
            .map(|(a, b, response)| Observation { block: 0, levels: vec![a, b], response })
            .collect();
    let effects = effects(&rows, 2, 0.95).unwrap();
    close(effects[0].ratio.value, 1.1, 1e-12, "effect of the first factor");
    assert!(effects[0].ratio.low.is_none() && effects[0].p_adjusted.is_none());
    assert!(effects[0].ratio.method.contains("more blocks"), "{:?}", effects[0].ratio);
}

#[test]
fn effects_of_one_block_of_equal_and_of_far_off_ones_agree_with_scipy() {
    for case in cases("log_effects") {
        let name = case["name"].as_str().unwrap();
        let ours = LogEffect::of(&numbers(&case["log_ratios"])).ratio_t(0.95);
        close(ours.value, case["ratio"].as_f64().unwrap(), 1e-12, name);
        same_ends(&ours, &case["low"], &case["high"], 1e-9, name);
        assert_eq!(ours.level.is_some(), ours.low.is_some(), "{name}: {ours:?}");
    }
}

#[test]
fn the_noise_floor_agrees_with_scipy() {
    for case in cases("noise_floor") {
        let ours = noise_floor(&numbers(&case["log_ratios"]));
        match case["floor"].as_f64() {
            None => assert_eq!(ours, None, "{case}"),
            Some(theirs) => close(ours.unwrap(), theirs, 1e-9, "noise floor"),
        }
    }
}

#[test]
fn the_bootstrap_finds_the_quantiles_of_all_resamples() {
    for case in cases("bootstrap_exact") {
        let ours = ratio_bootstrap(&numbers(&case["log_ratios"]), 0.95, &mut Rng::from_seed(1));
        for (end, theirs) in
            [(ours.low.unwrap(), numbers(&case["low"])), (ours.high.unwrap(), numbers(&case["high"]))]
        {
            let inside = theirs[0] - 1e-9 <= end && end <= theirs[1] + 1e-9;
            assert!(inside, "{}: {end}, the oracle says {theirs:?}", case["name"]);
        }
    }
}

#[test]
fn two_runs_side_by_side_agree_with_donner_and_zou() {
    let estimate = |value: &Value| {
        let of = |i: usize| value[i].as_f64();
        Estimate { value: of(0).unwrap(), low: of(1), high: of(2), level: of(3), method: String::new() }
    };
    for case in cases("ratio_of_estimates") {
        let what = case.to_string();
        let ours = ratio_of_estimates(&estimate(&case["a"]), &estimate(&case["b"]));
        if let Some(ratio) = case["ratio"].as_f64() {
            close(ours.value, ratio, 1e-12, &what);
        }
        same_ends(&ours, &case["low"], &case["high"], 1e-9, &what);
        assert_eq!(ours.level, case["level"].as_f64(), "{what}");
        assert!(!ours.method.is_empty(), "{what}");
    }
}

#[test]
fn verdicts_are_those_of_their_definition() {
    for row in cases("verdicts") {
        let effect = Estimate {
            value: 1.0,
            low: row[2].as_f64(),
            high: row[3].as_f64(),
            level: Some(0.95),
            method: String::new(),
        };
        assert_eq!(word(statement(&row[0], &row[1]).judge(&effect)), row[4], "{row}");
    }
}

#[test]
fn power_agrees_with_scipy_and_is_none_without_blocks_or_effect() {
    check(&EXPERIMENTS, "power", 1e-6, |a| power(a[0] as usize, a[1], a[2], a[3]));
}

#[test]
fn forecasts_agree_with_blocks_found_by_halving() {
    for case in cases("forecasts") {
        let effect = LogEffect {
            blocks: case["blocks"].as_u64().unwrap() as usize,
            mean: case["mean"].as_f64().unwrap(),
            sd: case["sd"].as_f64(),
        };
        same_forecast(forecast(&effect, &statement(&case["direction"], &case["delta"])), &case["forecast"]);
    }
}

#[test]
fn schedules_agree_with_another_integration() {
    for case in cases("schedules") {
        let of = |field: &str| case[field].as_u64().unwrap() as usize;
        let schedule =
            Schedule::new(of("first"), of("every"), of("max_blocks"), case["level"].as_f64().unwrap())
                .unwrap();
        let looks: Vec<f64> = schedule.looks().iter().map(|look| *look as f64).collect();
        assert_eq!(looks, numbers(&case["looks"]));
        for (look, theirs) in schedule.looks().iter().zip(numbers(&case["significances"])) {
            close(schedule.significance(*look).unwrap(), theirs, 1e-5, &format!("look {look} of {case}"));
        }
    }
}

#[test]
fn experiments_stop_where_and_with_what_scipy_says() {
    let schedule = default_schedule(12).unwrap();
    for case in cases("decisions") {
        let name = format!("{}, {} {}", case["name"], case["direction"], case["delta"]);
        let statement = statement(&case["direction"], &case["delta"]);
        let ours = walk(&numbers(&case["log_ratios"]), &statement, &schedule);
        let theirs = &case["stop"];
        let Some(ours) = ours else {
            assert!(theirs.is_null(), "{name}: goes on, the oracle says {theirs}");
            continue;
        };
        assert_eq!(
            (ours.blocks as u64, word(ours.verdict)),
            (theirs["blocks"].as_u64().unwrap(), theirs["verdict"].as_str().unwrap()),
            "{name}"
        );
        close(ours.effect_ratio.value, theirs["ratio"].as_f64().unwrap(), 1e-12, &name);
        same_ends(&ours.effect_ratio, &theirs["low"], &theirs["high"], 1e-6, &name);
        match theirs["minimum_detectable_effect"].as_f64() {
            None => assert_eq!(ours.minimum_detectable_effect, None, "{name}"),
            Some(theirs) => close(ours.minimum_detectable_effect.unwrap(), theirs, 1e-6, &name),
        }
        match ours.forecast {
            None => assert!(theirs["forecast"].is_null(), "{name}"),
            Some(forecast) => same_forecast(forecast, &theirs["forecast"]),
        }
    }
}

#[test]
fn holms_correction_agrees_with_statsmodels() {
    for row in cases("holm") {
        let ours = holm(&numbers(&row[0]));
        let theirs = numbers(&row[1]);
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            close(*ours, theirs, 1e-12, &row.to_string());
        }
    }
}

#[test]
fn a_factorial_whose_rows_are_all_alike_has_no_interval_and_no_p_value() {
    let rows: Vec<Observation> = (0..12)
        .map(|i| Observation { block: i / 4, levels: vec![i % 2 == 1, i / 2 % 2 == 1], response: 123.4 })
        .collect();
    for effect in effects(&rows, 2, 0.95).unwrap() {
        assert!(effect.ratio.low.is_none() && effect.p_adjusted.is_none(), "{effect:?}");
        assert!(effect.ratio.method.contains("no spread to judge by"), "{effect:?}");
    }
}
