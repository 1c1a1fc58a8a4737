//! Throughput and response time against the load: connections, or the requested rate where only the rate varies.

use mydyno_model::Estimate;
use mydyno_model::summary::{PointSummary, StepSummary};
use mydyno_stats::usl::Law;

use super::line_name;
use super::time::about_range;
use crate::RunView;
use crate::chart::{Chart, Dash, Group, Point, Series};
use crate::figures::{Unit, compact};
use crate::scale::{Scale, Tick};
use crate::scaling;

const WHISKERS: &str =
    "Whiskers are the intervals of the headline, provisional ones too; a point without one has none.";
const REPEATED: &str = "Loads that were measured more than once are shown as the mean of their repeats, with the interval between \
repeats; the law is fitted to every repeat.";

/// Number of points on the law's curve in addition to the measured loads.
const CURVE_POINTS: u32 = 48;

/// Maximum length of whiskers, as a multiple of the highest value.
const HIGHEST_WHISKER: f64 = 2.0;

/// The two charts of a sweep; none when all steps had the same load.
pub fn sweep(runs: &[RunView<'_>]) -> Vec<Chart> {
    let steps = || runs.iter().flat_map(|r| &r.summary.steps);
    let connections = distinct(steps().map(|s| s.connections as f64));
    let rates = distinct(steps().filter_map(|s| s.rate));
    let by_connections = connections.len() > 1;
    let (loads, label, load): (_, _, fn(&Measured<'_>) -> Option<f64>) = match () {
        () if by_connections => (connections, "connections", |m| Some(m.connections() as f64)),
        () if rates.len() > 1 => (rates, "asked transactions per second", |m| m.rate()),
        () => return Vec::new(),
    };
    let mut throughput = lines(runs, load, |_| "transactions", &|m| m.transactions_per_s());
    let mut notes = vec![WHISKERS.to_owned()];
    notes.extend(runs.iter().any(|run| !run.summary.points.is_empty()).then(|| REPEATED.to_owned()));
    if by_connections {
        for (n, run) in runs.iter().enumerate() {
            match scaling::law(run) {
                Some(Ok(fit)) => {
                    let name = line_name(runs, n, "scalability law");
                    let color = if runs.len() == 1 { 6 } else { n };
                    throughput.push(Series::line(name.clone(), color, Dash::Dotted, curve(&fit.law, &loads)));
                    let name = if runs.len() == 1 { "Universal Scalability Law".to_owned() } else { name };
                    notes.push(format!("{name}: {}.", scaling::words(&fit)));
                }
                Some(Err(why)) => notes
                    .push(format!("{} was not fitted: {why}.", line_name(runs, n, "The scalability law"))),
                None => {}
            }
        }
    }
    // A very wide interval must not compress the curve to the bottom of the chart.
    let extent = throughput.iter().flat_map(Series::extent).fold(0.0, f64::max);
    let most = throughput.iter().flat_map(Series::values).fold(0.0, f64::max) * HIGHEST_WHISKER;
    if extent > most {
        notes.push("A whisker that leaves the chart goes on; its ends stand in the table.".to_owned());
    }
    let largest = extent.min(most);
    let mut response = Vec::new();
    for (nth, name) in ["p50", "p99"].into_iter().enumerate() {
        let mut each = lines(runs, load, |_| name, &|m| m.response_us(name));
        for series in &mut each {
            series.dash = if nth == 0 { Dash::Dotted } else { Dash::Solid };
            if runs.len() == 1 {
                series.color = nth;
            }
        }
        response.extend(each);
    }
    response.retain(|s| s.values().next().is_some());
    let chart =
        |id: &str, title: &str, subtitle: &str, y: Scale, y_unit: Unit, series: Vec<Series>, note: String| {
            let x = axis(&loads);
            Chart {
                id: id.to_owned(),
                group: Group::Load,
                title: title.to_owned(),
                subtitle: subtitle.to_owned(),
                about: about_range(&series, y_unit),
                x_label: label.to_owned(),
                x_ticks: ticks(&x, &loads),
                x,
                y,
                y_unit,
                series,
                shades: Vec::new(),
                marks: Vec::new(),
                note: Some(note),
                rows_at: loads.clone(),
            }
        };
    let log = Scale::log_around(response.iter().flat_map(Series::extent).collect::<Vec<_>>().into_iter());
    let mut charts = vec![chart(
        "sweep-throughput",
        "Throughput against load",
        "transactions per second",
        Scale::from_zero(largest),
        Unit::PerSecond,
        throughput,
        notes.join(" "),
    )];
    if !response.is_empty() {
        let subtitle = "of transactions; logarithmic";
        charts.push(chart(
            "sweep-response",
            "Response time against load",
            subtitle,
            log,
            Unit::Us,
            response,
            WHISKERS.to_owned(),
        ));
    }
    charts
}

/// Measurement at one load: a single step, or the repeats of a point.
enum Measured<'a> {
    Once(&'a StepSummary),
    Repeats(&'a PointSummary),
}

impl<'a> Measured<'a> {
    /// The measurements of a run, one for each load.
    fn of(run: &RunView<'a>) -> Vec<Self> {
        let points = &run.summary.points;
        let repeated = |step: &StepSummary| points.iter().any(|point| point.steps.contains(&step.step));
        let once = run.summary.steps.iter().filter(|step| !repeated(step)).map(Self::Once);
        once.chain(points.iter().map(Self::Repeats)).collect()
    }

    fn connections(&self) -> usize {
        match self {
            Self::Once(step) => step.connections,
            Self::Repeats(point) => point.connections,
        }
    }

    fn rate(&self) -> Option<f64> {
        match self {
            Self::Once(step) => step.rate,
            Self::Repeats(point) => point.rate,
        }
    }

    fn transactions_per_s(&self) -> Option<&'a Estimate> {
        Some(match self {
            Self::Once(step) => &step.throughput.transactions_per_s,
            Self::Repeats(point) => &point.throughput.transactions_per_s,
        })
    }

    fn response_us(&self, percentile: &str) -> Option<&'a Estimate> {
        match self {
            Self::Once(step) => step.response_us.percentiles.get(percentile),
            Self::Repeats(point) => point.response_us.get(percentile),
        }
    }
}

fn lines<'a>(
    runs: &[RunView<'a>],
    load: fn(&Measured<'a>) -> Option<f64>,
    name: impl Fn(usize) -> &'static str,
    value: &dyn Fn(&Measured<'a>) -> Option<&'a Estimate>,
) -> Vec<Series> {
    let series = runs.iter().enumerate().map(|(n, run)| {
        let mut points: Vec<Point> = Measured::of(run)
            .iter()
            .filter_map(|measured| {
                let estimate = value(measured)?;
                Some(Point {
                    x: load(measured)?,
                    y: Some(estimate.value),
                    range: estimate.low.zip(estimate.high),
                })
            })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series::dots(line_name(runs, n, name(n)), n, Dash::nth(n), points)
    });
    series.collect()
}

/// The law from the lowest to the highest load, evaluated also at every measured load.
fn curve(law: &Law, loads: &[f64]) -> Vec<Point> {
    let (low, high) = (loads[0], loads[loads.len() - 1]);
    let between = (1..CURVE_POINTS).map(|n| low * (high / low).powf(f64::from(n) / f64::from(CURVE_POINTS)));
    let xs = distinct(between.chain(loads.iter().copied()));
    xs.into_iter().map(|x| Point { x, y: Some(law.at(x)), range: None }).collect()
}

fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Logarithmic axis with a margin around the outer points.
fn axis(loads: &[f64]) -> Scale {
    let (low, high) = (loads[0], loads[loads.len() - 1]);
    let margin = (high / low).powf(0.06);
    Scale::Log { low: low / margin, high: high * margin }
}

/// Ticks at the loads, as far as their labels fit.
fn ticks(x: &Scale, loads: &[f64]) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    for load in loads {
        let at = x.at(*load);
        if ticks.last().is_none_or(|last| at - last.at > 0.045) {
            let wide_only = ticks.last().is_some_and(|last| at - last.at < 0.12 && !last.wide_only);
            ticks.push(Tick { at, label: compact(*load), wide_only });
        }
    }
    ticks
}
