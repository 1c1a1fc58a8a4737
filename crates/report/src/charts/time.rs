//! Throughput, response time and errors over time.

use mydyno_model::record::Phase;
use mydyno_stats::Histogram;

use super::events::{marked, marks};
use super::{line_name, load_name, transaction};
use crate::RunView;
use crate::chart::{Chart, Dash, Group, Point, Series, Shade};
use crate::figures::{Unit, number, us};
use crate::latency::quantile_us;
use crate::scale::Scale;
use crate::series::{Bucket, Timeline, spans};

/// Maximum number of error codes with separate lines.
const MOST_CODES: usize = 5;

/// The charts over time of the runs, which share one axis. Empty when nothing was recorded.
pub fn over_time(runs: &[RunView<'_>]) -> Vec<Chart> {
    let timelines: Vec<Timeline<'_>> = runs.iter().map(|r| Timeline::of(r.record)).collect();
    if timelines.iter().all(|t| t.buckets.is_empty()) {
        return Vec::new();
    }
    let mut charts = vec![throughput(runs, &timelines)];
    charts.push(response(runs, &timelines));
    charts.extend(errors(runs, &timelines));
    charts
}

/// The axis that all charts over time share: from the start of the run to its last second.
pub fn time_axis(runs: &[RunView<'_>]) -> Scale {
    let ends = runs.iter().flat_map(|r| spans(r.record)).map(|s| s.end_s);
    Scale::Linear { low: 0.0, high: ends.fold(1.0, f64::max) }
}

/// Shades for the warm-up and names for the steps. For several runs only when all of them had the same phases.
pub fn shades(runs: &[RunView<'_>]) -> Vec<Shade> {
    let Some(first) = runs.first() else { return Vec::new() };
    let same = |r: &RunView<'_>| {
        let (a, b) = (&r.record.manifest.plan, &first.record.manifest.plan);
        a.steps == b.steps && a.time_s == b.time_s && a.warmup == b.warmup
    };
    if !runs.iter().all(same) {
        return Vec::new();
    }
    let steps = &first.record.manifest.plan.steps;
    let mut shades = Vec::new();
    for span in spans(first.record) {
        let label = match (span.phase, steps.get(span.step)) {
            (Phase::Measure, Some(step)) if steps.len() > 1 => {
                let rate = step.arrivals.rate_per_s();
                let short = rate.map_or_else(|| step.connections.to_string(), number);
                (if steps.len() > 4 { short.clone() } else { load_name(step.connections, rate) }, short)
            }
            _ => Default::default(),
        };
        shades.push(Shade { from: span.start_s, to: span.end_s, dim: span.phase != Phase::Measure, label });
    }
    make_room(&mut shades, &time_axis(runs));
    shades
}

/// Width of a bold character on charts of a wide and of a narrow screen, as shares of the axis.
const CHARACTER: (f64, f64) = (0.010, 0.026);

/// Removes names that would overlap the previous name, for each of the two widths.
fn make_room(shades: &mut [Shade], axis: &Scale) {
    let (mut end_wide, mut end_narrow) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for shade in shades.iter_mut().filter(|s| !s.label.1.is_empty()) {
        let middle = axis.at((shade.from + shade.to) / 2.0);
        for (label, end, character) in [
            (&mut shade.label.0, &mut end_wide, CHARACTER.0),
            (&mut shade.label.1, &mut end_narrow, CHARACTER.1),
        ] {
            let half = (label.chars().count() as f64 + 1.0) * character / 2.0;
            if middle - half < *end {
                label.clear();
            } else {
                *end = middle + half;
            }
        }
    }
}

/// One point for each bucket, with a gap at the start of each step.
fn points<'a>(
    timeline: &Timeline<'a>,
    mut value: impl FnMut(&Bucket<'a>) -> (Option<f64>, Option<(f64, f64)>),
) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut step = None;
    for bucket in &timeline.buckets {
        if step.is_some_and(|s| s != bucket.step) {
            points.push(Point { x: round_ms(bucket.start_s), y: None, range: None });
        }
        step = Some(bucket.step);
        let (y, range) = value(bucket);
        points.push(Point { x: round_ms(bucket.middle_s()), y, range });
    }
    points
}

fn round_ms(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

fn chart(runs: &[RunView<'_>], id: &str, y: Scale, y_unit: Unit, series: Vec<Series>) -> Chart {
    let x = time_axis(runs);
    Chart {
        id: id.to_owned(),
        group: Group::Time,
        title: String::new(),
        subtitle: String::new(),
        about: String::new(),
        x_label: "time since the run began".to_owned(),
        x_ticks: x.time_ticks(),
        x,
        y,
        y_unit,
        series,
        shades: shades(runs),
        marks: marks(runs),
        note: None,
        rows_at: Vec::new(),
    }
}

/// A chart over time without its texts.
pub fn over_time_chart(runs: &[RunView<'_>], id: &str, y: Scale, unit: Unit, series: Vec<Series>) -> Chart {
    chart(runs, id, y, unit, series)
}

fn throughput(runs: &[RunView<'_>], timelines: &[Timeline<'_>]) -> Chart {
    let series: Vec<Series> = timelines
        .iter()
        .enumerate()
        .map(|(n, t)| {
            let points = points(t, |b| (Some(b.rate(|i| i.transactions)), b.rate_range(|i| i.transactions)));
            Series::line(line_name(runs, n, "transactions"), n, Dash::nth(n), points)
        })
        .collect();
    let largest = series.iter().flat_map(Series::extent).fold(0.0, f64::max);
    Chart {
        title: "Throughput".to_owned(),
        subtitle: "transactions completed without an error, per second".to_owned(),
        about: about_range(&series, Unit::PerSecond),
        note: sentences([marked(runs), note(timelines)]),
        ..chart(runs, "throughput", Scale::from_zero(largest), Unit::PerSecond, series)
    }
}

fn response(runs: &[RunView<'_>], timelines: &[Timeline<'_>]) -> Chart {
    let mut series = Vec::new();
    for (n, timeline) in timelines.iter().enumerate() {
        let Some(transaction) = transaction(runs[n].record) else { continue };
        // The histograms are merged once for all percentiles, since merging dominates the time for a long run.
        let merged: Vec<Histogram> = timeline.buckets.iter().map(|b| b.response(transaction)).collect();
        let quantile = |q: f64| {
            let mut values = merged.iter().map(|times| quantile_us(times, q));
            points(timeline, |b| {
                let range = (b.parts.len() > 1).then(|| part_range(b, transaction, q)).flatten();
                (values.next().flatten(), range)
            })
        };
        let max = || points(timeline, |b| (b.response_max_us(transaction), None));
        if runs.len() == 1 {
            series.push(Series::line("p50", 0, Dash::Solid, quantile(0.5)));
            series.push(Series::line("p95", 2, Dash::Dashed, quantile(0.95)));
            series.push(Series::line("p99", 1, Dash::Solid, quantile(0.99)));
            series.push(Series::line("max", 6, Dash::Dotted, max()));
        } else {
            series.push(Series::line(line_name(runs, n, "p50"), n, Dash::Dotted, quantile(0.5)));
            series.push(Series::line(line_name(runs, n, "p99"), n, Dash::Solid, quantile(0.99)));
        }
    }
    // A percentile is drawn only if some bucket has enough values for it.
    series.retain(|s| s.values().next().is_some());
    let scale = Scale::log_around(series.iter().flat_map(Series::values).collect::<Vec<_>>().into_iter());
    let sparse = "A percentile is drawn where at least one value lies beyond it: p99 needs 100 transactions in a second.";
    Chart {
        title: "Response time".to_owned(),
        subtitle: "of transactions, from the intended start to the last byte; logarithmic".to_owned(),
        about: about_range(&series, Unit::Us),
        note: sentences([Some(sparse.to_owned()), note(timelines)]),
        ..chart(runs, "response", scale, Unit::Us, series)
    }
}

/// Lowest and highest percentile of the intervals in a bucket.
fn part_range(bucket: &Bucket<'_>, operation: &str, q: f64) -> Option<(f64, f64)> {
    let single = |i| quantile_us(&Bucket { parts: vec![i], ..bucket.clone() }.response(operation), q);
    let values: Vec<f64> = bucket.parts.iter().filter_map(|i| single(*i)).collect();
    (!values.is_empty())
        .then(|| values.iter().fold((f64::INFINITY, 0.0), |(low, high), v| (v.min(low), v.max(high))))
}

fn errors(runs: &[RunView<'_>], timelines: &[Timeline<'_>]) -> Option<Chart> {
    let mut series = Vec::new();
    let mut left_out = 0;
    for (n, timeline) in timelines.iter().enumerate() {
        let codes = timeline.error_codes();
        left_out += codes.len().saturating_sub(MOST_CODES);
        for code in codes.iter().take(MOST_CODES) {
            let points =
                points(timeline, |b| (Some(b.rate(|i| i.errors.get(code).copied().unwrap_or(0))), None));
            let color = if runs.len() > 1 { n } else { series.len() };
            series.push(Series::line(
                line_name(runs, n, &format!("error {code}")),
                color,
                Dash::nth(series.len()),
                points,
            ));
        }
        for (name, count) in [("retries", retries as fn(&Bucket<'_>) -> f64), ("reconnects", reconnects)] {
            if timeline.buckets.iter().any(|b| count(b) > 0.0) {
                let points = points(timeline, |b| (Some(count(b)), None));
                series.push(Series::line(line_name(runs, n, name), 6, Dash::nth(series.len()), points));
            }
        }
    }
    if series.is_empty() {
        return None;
    }
    let largest = series.iter().flat_map(Series::extent).fold(0.0, f64::max);
    let about = about_range(&series, Unit::PerSecond);
    Some(Chart {
        title: "Errors".to_owned(),
        subtitle: "per second, by code".to_owned(),
        about,
        note: (left_out > 0)
            .then(|| format!("{left_out} less frequent codes stand in the table of errors only.")),
        ..chart(runs, "errors-over-time", Scale::from_zero(largest), Unit::PerSecond, series)
    })
}

fn retries(bucket: &Bucket<'_>) -> f64 {
    bucket.rate(|i| i.retries)
}

fn reconnects(bucket: &Bucket<'_>) -> f64 {
    bucket.rate(|i| i.reconnects)
}

fn sentences(all: [Option<String>; 2]) -> Option<String> {
    let reported: Vec<String> = all.into_iter().flatten().collect();
    (!reported.is_empty()).then(|| reported.join(" "))
}

fn note(timelines: &[Timeline<'_>]) -> Option<String> {
    timelines.iter().find_map(Timeline::note)
}

/// Lowest and highest value of each line, in words.
pub fn about_range(series: &[Series], unit: Unit) -> String {
    let ranges = series.iter().filter_map(|s| {
        let (low, high) =
            s.values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let show = |v: f64| if unit == Unit::Us { us(v) } else { unit.show(v) };
        (low <= high).then(|| format!("{} from {} to {}", s.name, show(low), show(high)))
    });
    format!("{}.", ranges.collect::<Vec<_>>().join("; "))
}
