//! Estimates over the repeats of a point of the sweep.

use std::collections::BTreeMap;

use mydyno_model::Estimate;
use mydyno_model::plan::StepPlan;
use mydyno_model::summary::{PointSummary, StepSummary, Throughput};
use mydyno_stats::interval::LEVEL;
use mydyno_stats::slow::{RELIABLE_S, reliable};
use mydyno_stats::special::t_quantile;

/// Share of the planned window above which a step counts as a repeat.
const WHOLE: f64 = 0.9;

/// One entry a point that was measured more than once, in the order of the plan.
pub fn points(plan: &[StepPlan], time_s: f64, steps: &[StepSummary]) -> Vec<PointSummary> {
    let mut points: Vec<Vec<&StepSummary>> = Vec::new();
    // A step that was cut short is no repeat.
    let whole = |step: &&StepSummary| step.window_s >= WHOLE * time_s;
    for step in steps.iter().filter(whole) {
        let same = |other: &&StepSummary| match (plan.get(step.step), plan.get(other.step)) {
            (Some(a), Some(b)) => a.same_point(b),
            _ => false,
        };
        match points.iter_mut().find(|point| point.first().is_some_and(same)) {
            Some(point) => point.push(step),
            None => points.push(vec![step]),
        }
    }
    points.iter().filter(|point| point.len() > 1).filter_map(|point| merge(point)).collect()
}

fn merge(repeats: &[&StepSummary]) -> Option<PointSummary> {
    let first = repeats.first()?;
    let time_s = repeats.iter().map(|s| s.window_s).sum();
    let rate = |of: fn(&Throughput) -> &Estimate| {
        between(&repeats.iter().map(|s| of(&s.throughput).value).collect::<Vec<_>>(), time_s)
    };
    // A percentile that one repeat lacks has no mean over all of them.
    let percentile = |name: &String| {
        let of = |s: &&StepSummary| s.response_us.percentiles.get(name).map(|e| e.value);
        let values: Vec<f64> = repeats.iter().map(of).collect::<Option<_>>()?;
        Some((name.clone(), between_ratios(&values, time_s)))
    };
    let response_us = first.response_us.percentiles.keys().filter_map(percentile).collect();
    let mut errors = BTreeMap::new();
    for (code, count) in repeats.iter().flat_map(|s| &s.errors) {
        *errors.entry(code.clone()).or_insert(0) += count;
    }
    Some(PointSummary {
        connections: first.connections,
        rate: first.rate,
        steps: repeats.iter().map(|s| s.step).collect(),
        throughput: Throughput {
            transactions_per_s: rate(|t| &t.transactions_per_s),
            queries_per_s: rate(|t| &t.queries_per_s),
        },
        response_us,
        errors,
    })
}

/// Mean and Student's margin from the differences between values; `None` without differences.
fn student(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let known = values.len() > 1 && variance > 0.0;
    (mean, known.then(|| t_quantile(0.5 + LEVEL / 2.0, n - 1.0) * (variance / n).sqrt()))
}

fn method(values: &[f64]) -> String {
    format!("Student's t between {} repeats", values.len())
}

/// An interval with its level, provisional where the repeats together last less than [`RELIABLE_S`]: the rule of single runs.
fn relied_on(value: f64, low: f64, high: f64, method: String, time_s: f64) -> Estimate {
    if reliable(time_s) {
        return Estimate::with_interval(value, low, high, LEVEL, method);
    }
    let why = format!("less than {RELIABLE_S} seconds cannot tell slow changes from noise");
    Estimate::provisional(value, low, high, format!("{method}; provisional: {why}"))
}

/// Mean of the repeats, `time_s` seconds together, with its interval.
fn between(values: &[f64], time_s: f64) -> Estimate {
    match student(values) {
        (mean, Some(margin)) if margin >= mean => {
            Estimate::without_interval(mean, "no usable interval: the repeats differ as much as their mean")
        }
        (mean, Some(margin)) => relied_on(mean, mean - margin, mean + margin, method(values), time_s),
        (mean, None) => Estimate::without_interval(mean, "the repeats do not differ"),
    }
}

/// Geometric mean of the repeats with its interval: times differ by factors.
fn between_ratios(values: &[f64], time_s: f64) -> Estimate {
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    match student(&logs) {
        (mean, Some(margin)) if mean.is_finite() => {
            let (low, high) = ((mean - margin).exp(), (mean + margin).exp());
            relied_on(mean.exp(), low, high, method(values), time_s)
        }
        (mean, _) => Estimate::without_interval(mean.exp(), "the repeats do not differ"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        assert!((found.unwrap() / expected - 1.0).abs() < 1e-6, "{found:?} is not {expected}");
    }

    #[test]
    fn the_interval_of_repeats_is_students() {
        // Mean 101, variance 6.5; the 97.5 % quantile of t with 4 degrees of freedom is 2.776445.
        let e = between(&[98.0, 103.0, 101.0, 104.0, 99.0], 300.0);
        assert_eq!(e.value, 101.0);
        near(e.low, 97.834_366);
        near(e.high, 104.165_634);
    }

    #[test]
    fn times_are_averaged_as_factors() {
        let e = between_ratios(&[1.0, 4.0], 240.0);
        assert!((e.value - 2.0).abs() < 1e-12);
        // Two values: t(0.975, 1) = 12.7062 times the standard error ln(4)/2.
        near(e.high, 2.0 * (12.706_205 * 4f64.ln() / 2.0).exp());
    }

    #[test]
    fn ten_seconds_thrice_promise_no_more_than_half_a_minute_does() {
        let e = between(&[98.0, 103.0, 101.0], 30.0);
        assert!(e.is_provisional() && e.method.contains("less than 240 seconds"), "{e:?}");
        assert_eq!(between(&[98.0, 103.0, 101.0], 240.0).level, Some(0.95));
        assert!(between(&[1.0, 300.0], 300.0).method.contains("no usable interval"));
    }

    #[test]
    fn equal_repeats_have_no_interval() {
        let e = between(&[5.0, 5.0], 240.0);
        assert_eq!((e.value, e.low, e.method.as_str()), (5.0, None, "the repeats do not differ"));
    }
}
