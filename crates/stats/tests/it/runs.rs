//! Tests of the statistics of one run's windows, against the vectors of tests/oracle/series.json, and of their edge cases.

use mydyno_model::Estimate;
use mydyno_stats::{Histogram, Rng, interval, slow, steady};
use serde_json::Value;

use super::oracle::{SERIES, close, numbers};

fn cases(name: &str) -> &'static Vec<Value> {
    SERIES[name].as_array().unwrap()
}

/// Asserts that an estimate matches the oracle's: its value, its ends, and its promised coverage.
#[track_caller]
fn same(ours: &Estimate, theirs: &Value, tolerance: f64, what: &str) {
    close(ours.value, theirs["value"].as_f64().unwrap(), 1e-12, what);
    let kind = match (ours.low.zip(ours.high), ours.level) {
        (None, _) => "none",
        (Some(_), None) => "provisional",
        (Some(_), Some(_)) => "interval",
    };
    assert_eq!(kind, theirs["kind"], "{what}: {ours:?}, the oracle says {theirs}");
    assert!(!ours.method.is_empty(), "{what}");
    if let Some((low, high)) = ours.low.zip(ours.high) {
        // An end may be near 0, where only a tolerance relative to the width makes sense.
        let [their_low, their_high] = ["low", "high"].map(|end| theirs[end].as_f64().unwrap());
        let near = tolerance * (their_high - their_low).max(f64::EPSILON * ours.value.abs());
        let apart = (low - their_low).abs().max((high - their_high).abs());
        assert!(apart <= near, "{what}: {low} to {high}, the oracle says {their_low} to {their_high}");
    }
}

#[test]
fn intervals_of_means_and_steadiness_agree_with_a_second_implementation() {
    for case in cases("means") {
        let name = case["name"].as_str().unwrap();
        let values = numbers(&case["values"]);
        same(&interval::mean(&values, values.len() as f64), &case["mean"], 1e-6, name);
        let ours = steady::assess(&values);
        assert_eq!(ours.steady, case["steady"].as_bool(), "{name}: {ours:?}");
        close(ours.change, case["change"].as_f64().unwrap(), 1e-6, name);
    }
}

#[test]
fn errors_of_means_agree_with_a_second_implementation() {
    let values = |name: &Value| {
        let case = cases("means").iter().find(|case| case["name"] == *name).unwrap();
        numbers(&case["values"])
    };
    for case in cases("mean_errors") {
        let seconds = case["seconds"].as_f64().unwrap();
        let what = format!("{}, {seconds} s", case["name"]);
        let values = values(&case["name"]);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let residuals: Vec<f64> = values.iter().map(|v| v - mean).collect();
        let ours = slow::mean_error(&residuals, seconds).unwrap();
        close(ours.standard_error, case["se"].as_f64().unwrap(), 1e-9, &what);
        assert_eq!(Some(ours.df), case["df"].as_f64(), "{what}");
        assert_eq!(Some(ours.wanders), case["wanders"].as_bool(), "{what}");
        assert_eq!(ours.doubt(seconds).is_none(), slow::reliable(seconds) && !ours.wanders, "{what}");
    }
}

#[test]
fn intervals_of_throughput_agree_with_a_second_implementation() {
    for case in cases("throughputs") {
        let counts: Vec<u64> =
            case["counts"].as_array().unwrap().iter().map(|c| c.as_u64().unwrap()).collect();
        let widths_s = numbers(&case["widths_s"]);
        let steady = interval::steadiness(&counts, &widths_s).steady;
        assert_eq!(steady, case["steady"].as_bool(), "{}", case["name"]);
        let ours = interval::throughput(&counts, &widths_s);
        same(&ours, &case["estimate"], 1e-6, case["name"].as_str().unwrap());
    }
}

#[test]
fn intervals_of_percentiles_agree_with_a_second_implementation() {
    for case in cases("percentiles") {
        let name = case["name"].as_str().unwrap();
        let windows: Vec<Histogram> = case["windows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|window| {
                let mut histogram = Histogram::new();
                window.as_array().unwrap().iter().for_each(|ns| histogram.record(ns.as_u64().unwrap()));
                histogram
            })
            .collect();
        let estimates = case["estimates"].as_array().unwrap();
        let qs: Vec<f64> = estimates.iter().map(|row| row[0].as_f64().unwrap()).collect();
        for (row, ours) in estimates.iter().zip(interval::percentiles(&windows, &qs, windows.len() as f64)) {
            same(&ours, &row[1], 1e-6, &format!("{name}, {}", row[0]));
            let one = interval::percentile(&windows, row[0].as_f64().unwrap(), windows.len() as f64);
            assert_eq!(one, ours, "{name}");
        }
    }
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
    assert!(interval::mean(&[], 0.0).low.is_none());
    let fallen: Vec<u64> = (0..60).map(|i| if i < 54 { 1000 + i % 7 } else { i % 3 }).collect();
    let change = interval::steadiness(&fallen, &[1.0; 60]).change;
    assert!((-1.0..-0.99).contains(&change), "no rate falls by more than 100 %: {change}");
    let stalled: Vec<u64> = (0..60).map(|i| if (14..46).contains(&i) { 4000 } else { i % 5 }).collect();
    let unusable = interval::throughput(&stalled, &[1.0; 60]);
    assert!(unusable.low.is_none() && unusable.method.contains("no usable interval"), "{unusable:?}");
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
    assert!(low < 1000.0 && 1000.0 < high && high - low < 30.0, "{estimate:?}");
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

#[test]
fn the_ends_of_a_throughput_lie_within_the_slowest_and_the_fastest_window() {
    let counts: Vec<u64> = (0..60).map(|i| if i % 20 < 10 { 1000 + i % 3 } else { 1400 + i % 3 }).collect();
    let estimate = interval::throughput(&counts, &[1.0; 60]);
    assert!(estimate.low.is_none_or(|low| low >= 1000.0), "{estimate:?}");
    assert!(estimate.high.is_none_or(|high| high <= 1402.0), "{estimate:?}");
}

#[test]
fn a_late_drop_is_as_unsteady_as_an_early_one() {
    for at in [0.1, 0.25, 0.5, 0.6, 0.75, 0.9] {
        for n in [60, 240, 600] {
            let found = (0..60).filter(|seed| {
                let mut rng = Rng::stream(*seed, &[n as u64]);
                let level = |t: usize| if (t as f64) < at * n as f64 { 1000.0 } else { 500.0 };
                let counts: Vec<u64> = (0..n).map(|t| (level(t) + 30.0 * rng.normal()) as u64).collect();
                interval::steadiness(&counts, &vec![1.0; n]).steady == Some(false)
            });
            assert_eq!(found.count(), 60, "{n} windows, at {at}");
        }
    }
}
