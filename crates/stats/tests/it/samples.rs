//! Tests, fits and effects against the vectors of tests/oracle/stats.json, and their edge cases.

use mydyno_model::Estimate;
use mydyno_stats::compare::{LogEffect, Pair, log_ratios, noise_floor, ratio_bootstrap, ratio_of_estimates};
use mydyno_stats::factorial::{Observation, effects};
use mydyno_stats::twosample::{kolmogorov_smirnov, mann_whitney, welch};
use mydyno_stats::verdict::{Direction, Statement, Verdict};
use mydyno_stats::{Rng, interval, linear, series, steady, usl};

use super::oracle::{VECTORS, close, numbers};

#[test]
fn two_sample_tests_agree_with_scipy() {
    for case in VECTORS["two_samples"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let of = |test: &str, field: &str| case[test][field].as_f64().unwrap_or(f64::NAN);
        if case.get("welch").is_some() {
            let ours = welch(&a, &b, 0.95).unwrap();
            close(ours.test.statistic, of("welch", "t"), 1e-9, name);
            close(ours.df, of("welch", "df"), 1e-9, name);
            close(ours.test.p_value, of("welch", "p"), 1e-7, name);
            close(ours.low, of("welch", "low"), 1e-8, name);
            close(ours.high, of("welch", "high"), 1e-8, name);
            let ours = mann_whitney(&a, &b).unwrap();
            close(ours.statistic, of("mann_whitney", "u"), 1e-12, name);
            close(ours.p_value, of("mann_whitney", "p"), 1e-7, name);
        } else {
            assert_eq!(welch(&a, &b, 0.95), None, "{name}: nothing varies");
            assert_eq!(mann_whitney(&a, &b), None, "{name}: nothing varies");
        }
        let ours = kolmogorov_smirnov(&a, &b).unwrap();
        close(ours.statistic, of("ks", "d"), 1e-12, name);
        // Two approximations of the limit may differ; exact ones may not.
        let exact = case["ks"]["exact"].as_bool().unwrap();
        if exact {
            let p = of("ks", "p");
            assert!((ours.p_value - p).abs() <= 1e-8 * p + 1e-13, "{name}: {} {p}", ours.p_value);
        } else {
            assert!(
                (ours.p_value - of("ks", "p")).abs() < 0.02,
                "{name}: {} {}",
                ours.p_value,
                of("ks", "p")
            );
        }
    }
}

#[test]
fn two_sample_tests_of_nothing_say_nothing() {
    assert_eq!(welch(&[1.0], &[1.0, 2.0], 0.95), None);
    assert_eq!(mann_whitney(&[], &[1.0]), None);
    assert_eq!(kolmogorov_smirnov(&[1.0], &[]), None);
}

#[test]
fn paired_effects_agree_with_scipy() {
    for case in VECTORS["paired"].as_array().unwrap() {
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
fn the_bootstrap_agrees_with_another_resampling() {
    let case = &VECTORS["bootstrap_t"];
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
fn autoregressions_agree_with_statsmodels() {
    // The order is chosen here; whichever it is, its coefficients must be those of Burg's method at that order.
    for case in VECTORS["burg"].as_array().unwrap() {
        let x = numbers(&case["x"]);
        for max_order in 1..=4 {
            let coefficients = series::burg(&x, max_order);
            let theirs = numbers(&case["fits"][coefficients.len() - 1]);
            for (ours, theirs) in coefficients.iter().zip(theirs) {
                close(*ours, theirs, 1e-8, "coefficient");
            }
        }
        close(series::skewness(&x), case["skewness"].as_f64().unwrap(), 1e-9, "skewness");
    }
}

#[test]
fn least_squares_agree_with_statsmodels() {
    let case = &VECTORS["least_squares"];
    let x: Vec<Vec<f64>> = case["x"].as_array().unwrap().iter().map(numbers).collect();
    let y = numbers(&case["y"]);
    let fit = linear::Fit::of(&x, &y).unwrap();
    for i in 0..3 {
        close(fit.coefficients[i], numbers(&case["coefficients"])[i], 1e-10, "coefficient");
        let errors = fit.standard_errors.as_ref().unwrap();
        close(errors[i], numbers(&case["standard_errors"])[i], 1e-10, "standard error");
        close(fit.p_value(i).unwrap(), numbers(&case["p_values"])[i], 1e-9, "p value");
    }
    let two: Vec<Vec<f64>> = x.iter().map(|row| row[..2].to_vec()).collect();
    let smaller = linear::Fit::of(&two, &y).unwrap();
    close(fit.against(&smaller).unwrap(), case["against_two_columns"].as_f64().unwrap(), 1e-9, "F test");
    let same: Vec<Vec<f64>> = x.iter().map(|row| vec![row[0], 2.0 * row[0]]).collect();
    assert!(linear::Fit::of(&same, &y).unwrap_err().to_string().contains("column 1"));
}

#[test]
fn factorial_effects_agree_with_statsmodels() {
    for case in VECTORS["factorial"].as_array().unwrap() {
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
fn the_scalability_law_agrees_with_scipy() {
    for case in VECTORS["usl"].as_array().unwrap() {
        let points: Vec<usl::Point> = numbers(&case["n"])
            .into_iter()
            .zip(numbers(&case["x"]))
            .map(|(n, x)| usl::Point { n, x })
            .collect();
        let fit = usl::fit(&points, 0.95).unwrap();
        let theirs = numbers(&case["law"]);
        close(fit.law.lambda, theirs[0], 1e-5, "λ");
        for (ours, theirs) in [(fit.law.sigma, theirs[1]), (fit.law.kappa, theirs[2])] {
            assert!((ours - theirs).abs() <= 1e-3 * theirs + 1e-7, "{ours} {theirs}");
        }
        for (ours, theirs) in
            [&fit.lambda, &fit.sigma, &fit.kappa].into_iter().zip(case["intervals"].as_array().unwrap())
        {
            let theirs = numbers(theirs);
            if theirs[0] > 0.0 {
                close(ours.low.unwrap(), theirs[0], 5e-3, "low");
            } else {
                assert_eq!(ours.low.unwrap(), 0.0);
            }
            close(ours.high.unwrap(), theirs[1], 5e-3, "high");
        }
        let (n, x) = fit.law.peak().unwrap();
        let peak = fit.peak_n.unwrap();
        assert!(peak.low.unwrap() < n && n < peak.high.unwrap(), "{peak:?}");
        let peak = fit.peak_x.unwrap();
        assert!(peak.low.unwrap() < x && x < peak.high.unwrap(), "{peak:?}");
    }
}

#[test]
fn the_scalability_law_is_found_again_where_it_holds_exactly() {
    let mut rng = Rng::from_seed(8);
    for _ in 0..20 {
        let law = usl::Law {
            lambda: 100.0 + 1e4 * rng.f64(),
            sigma: 0.5 * rng.f64(),
            kappa: 0.01 * rng.f64().powi(3),
        };
        let points: Vec<usl::Point> =
            (0..9).map(|i| f64::from(1 << i)).map(|n| usl::Point { n, x: law.at(n) }).collect();
        let found = usl::fit(&points, 0.95).unwrap().law;
        close(found.lambda, law.lambda, 1e-4, &format!("λ of {law:?}"));
        assert!((found.sigma - law.sigma).abs() < 1e-3 * law.sigma + 1e-5, "{law:?} {found:?}");
        assert!((found.kappa - law.kappa).abs() < 1e-3 * law.kappa + 1e-8, "{law:?} {found:?}");
    }
}

#[test]
fn a_sweep_that_does_not_bend_has_no_peak_and_says_so() {
    let sweep = |law: usl::Law, most: u32, seed: u64| -> Vec<usl::Point> {
        let mut rng = Rng::from_seed(seed);
        (0..=most)
            .map(|i| f64::from(1 << i))
            .map(|n| usl::Point { n, x: law.at(n) * (0.03 * rng.normal()).exp() })
            .collect()
    };
    let rising = usl::fit(&sweep(usl::Law { lambda: 500.0, sigma: 0.02, kappa: 0.0 }, 5, 3), 0.95).unwrap();
    let why = rising.peak_n.unwrap_err();
    assert!(why.contains("no peak") || why.contains("cannot say"), "{why}");
    let error = usl::fit(&sweep(usl::Law { lambda: 1.0, sigma: 0.1, kappa: 0.1 }, 2, 1), 0.95).unwrap_err();
    assert!(error.to_string().contains("at least 4"), "{error}");
    assert!(usl::fit(&[usl::Point { n: 1.0, x: 0.0 }; 5], 0.95).is_err());
}

#[test]
fn series_that_cannot_say_give_no_interval_and_the_reason() {
    let short = interval::throughput(&[100; 5], &[1.0; 5]);
    assert!(short.low.is_none() && short.method.contains("too short: 5 windows"), "{short:?}");
    assert_eq!(short.value, 100.0);
    let constant = interval::throughput(&[100; 60], &[1.0; 60]);
    assert!(constant.low.is_none() && constant.method.contains("equal"), "{constant:?}");
    let rising: Vec<u64> = (0..60).map(|i| 1000 + 10 * i + (i * 7919) % 13).collect();
    let unsteady = interval::throughput(&rising, &[1.0; 60]);
    assert!(unsteady.low.is_none() && unsteady.method.contains("not steady: it rose"), "{unsteady:?}");
    assert!(interval::throughput(&[], &[]).low.is_none());
    assert!(interval::mean(&[]).low.is_none());
    assert_eq!(steady::assess(&[1.0; 10]).steady, None);
    assert_eq!(steady::assess(&[1.0; 60]).steady, Some(true));
}

#[test]
fn windows_of_different_width_weigh_by_their_width() {
    let mut rng = Rng::from_seed(4);
    let widths: Vec<f64> = (0..60).map(|i| if i % 2 == 0 { 0.5 } else { 1.5 }).collect();
    let counts: Vec<u64> = widths.iter().map(|w| ((1000.0 + 10.0 * rng.normal()) * w) as u64).collect();
    let estimate = interval::throughput(&counts, &widths);
    let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
    assert!(low < 1000.0 && 1000.0 < high && high - low < 20.0, "{estimate:?}");
}

#[test]
fn the_warm_up_ends_where_the_series_settles() {
    let mut rng = Rng::from_seed(5);
    let series: Vec<f64> =
        (0..200).map(|i| 1000.0 - 600.0 * (-f64::from(i) / 10.0).exp() + 5.0 * rng.normal()).collect();
    let end = steady::warm_up_end(&series).unwrap();
    assert!((20..=80).contains(&end), "{end}");
    let verdict = steady::assess(&series);
    assert!(verdict.steady == Some(false) && verdict.change > 0.05, "{verdict:?}");
    assert_eq!(steady::assess(&series[end..]).steady, Some(true));
    let never: Vec<f64> = (0..100).map(f64::from).collect();
    assert_eq!(steady::warm_up_end(&never), None);
}
