//! Tests and fits against the vectors of tests/oracle/stats.json, and their edge cases.

use mydyno_stats::twosample::{kolmogorov_smirnov, mann_whitney, welch};
use mydyno_stats::{Rng, linear, usl};

use serde_json::Value;

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
        // Two approximations of the limit may differ; exact results may not.
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
fn fits_at_the_edges_agree_with_numpy_and_statsmodels() {
    for case in VECTORS["least_squares_edges"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let x: Vec<Vec<f64>> = case["x"].as_array().unwrap().iter().map(numbers).collect();
        let fit = linear::Fit::of(&x, &numbers(&case["y"])).unwrap();
        for (ours, theirs) in fit.coefficients.iter().zip(numbers(&case["coefficients"])) {
            close(*ours, theirs, 1e-8, name);
        }
        if case["standard_errors"].is_null() {
            assert!(fit.df == 0 && fit.standard_errors.is_none(), "{name}: {fit:?}");
            assert_eq!((fit.interval(0, 0.95), fit.p_value(0)), (None, None), "{name}");
            continue;
        }
        for (i, error) in fit.standard_errors.as_ref().unwrap().iter().enumerate() {
            close(*error, numbers(&case["standard_errors"])[i], 1e-8, name);
            close(fit.p_value(i).unwrap(), numbers(&case["p_values"])[i], 1e-7, name);
            let (low, high) = fit.interval(i, 0.95).unwrap();
            let theirs = numbers(&case["intervals"][i]);
            // An end may be near 0, where only a tolerance relative to the width makes sense.
            let near = 1e-8 * (theirs[1] - theirs[0]);
            assert!(
                (low - theirs[0]).abs() <= near && (high - theirs[1]).abs() <= near,
                "{name}: {low} {high}"
            );
        }
    }
}

fn points(case: &Value) -> Vec<usl::Point> {
    numbers(&case["n"]).into_iter().zip(numbers(&case["x"])).map(|(n, x)| usl::Point { n, x }).collect()
}

/// Asserts that a sweep's law and its intervals are the oracle's.
fn same_law(case: &Value, fit: &usl::Fit, name: &str) {
    let theirs = numbers(&case["law"]);
    close(fit.law.lambda, theirs[0], 1e-5, name);
    for (ours, theirs) in [(fit.law.sigma, theirs[1]), (fit.law.kappa, theirs[2])] {
        assert!((ours - theirs).abs() <= 1e-3 * theirs + 1e-7, "{name}: {ours} {theirs}");
    }
    for (ours, theirs) in
        [&fit.lambda, &fit.sigma, &fit.kappa].into_iter().zip(case["intervals"].as_array().unwrap())
    {
        let theirs = numbers(theirs);
        if theirs[0] > 0.0 {
            close(ours.low.unwrap(), theirs[0], 5e-3, name);
        } else {
            assert_eq!(ours.low.unwrap(), 0.0, "{name}");
        }
        close(ours.high.unwrap(), theirs[1], 5e-3, name);
    }
}

#[test]
fn the_scalability_law_agrees_with_scipy() {
    for case in VECTORS["usl"].as_array().unwrap() {
        let fit = usl::fit(&points(case), 0.95).unwrap();
        same_law(case, &fit, "usl");
    }
}

#[test]
fn the_peak_of_the_scalability_law_agrees_with_scipy() {
    for case in VECTORS["usl_peaks"].as_array().unwrap() {
        let fit = usl::fit(&points(case), 0.95).unwrap();
        let peaks = [fit.peak_n.unwrap(), fit.peak_x.unwrap()];
        for (ours, theirs) in peaks.iter().zip(case["peaks"].as_array().unwrap()) {
            let theirs = numbers(theirs);
            close(ours.value, theirs[0], 1e-4, "peak");
            close(ours.low.unwrap(), theirs[1], 1e-3, "low");
            close(ours.high.unwrap(), theirs[2], 1e-3, "high");
        }
    }
}

#[test]
fn few_points_repeats_outliers_ties_and_bounds_are_fitted_as_scipy_does() {
    for case in VECTORS["usl_edges"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let fit = usl::fit(&points(case), 0.95).unwrap();
        same_law(case, &fit, name);
        // Where a law without a peak fits equally well, the fit has no peak.
        let kappa_low = numbers(&case["intervals"][2])[0];
        assert_eq!(fit.peak_n.is_err(), kappa_low <= 0.0, "{name}: {:?}", fit.peak_n);
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
