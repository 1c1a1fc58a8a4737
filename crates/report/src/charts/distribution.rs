//! The latency distribution on a percentile axis: the response times that 50, 90, 99, 99.9 … per cent of transactions did not
//! exceed.

use mydyno_model::record::{OperationTimes, Phase};
use mydyno_model::summary::StepSummary;
use mydyno_stats::{Distribution, Histogram};

use super::{line_name, step_name, transaction};
use crate::RunView;
use crate::chart::{Chart, Dash, Group, Point, Series};
use crate::figures::{Unit, us};
use crate::latency::merged;
use crate::scale::Scale;

/// Number of points for each nine.
const POINTS_A_NINE: u32 = 20;
/// Shares with a row in the table behind the chart.
const ROWS: [f64; 12] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999, 0.99999, 0.999_999];
/// Maximum number of charts for several runs: one for each step that they share.
const MOST_CHARTS: usize = 6;

/// One chart with all steps of a run; for several runs, one chart for each step with the runs overlaid.
pub fn distributions(runs: &[RunView<'_>]) -> Vec<Chart> {
    match runs {
        [] => Vec::new(),
        [run] => single(*run).into_iter().collect(),
        [first, ..] => {
            first.summary.steps.iter().filter_map(|step| overlaid(runs, step)).take(MOST_CHARTS).collect()
        }
    }
}

fn single(run: RunView<'_>) -> Option<Chart> {
    let steps = &run.summary.steps;
    let mut series = Vec::new();
    let mut coincide = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        let response = window(run, step, |o| &o.response);
        let service = window(run, step, |o| &o.service);
        if response.is_empty() {
            continue;
        }
        let same = same_curve(&response, &service);
        let name = |kind: &str| match steps.len() {
            1 => kind.to_owned(),
            _ if same => step_name(step),
            _ => format!("{}, {kind}", step_name(step)),
        };
        series.push(Series::line(name("response"), n, Dash::Solid, curve(&response)));
        if steps.len() == 1 {
            series.push(Series::line(name("service"), 1, Dash::Dashed, curve(&service)));
        } else if !same {
            series.push(Series::line(name("service"), n, Dash::Dashed, curve(&service)));
        }
        if same {
            coincide.push(step_name(step));
        }
    }
    if steps.len() > 1 && coincide.len() == series.len() {
        // No service time line needs the dash patterns here, so they can distinguish the steps.
        for (n, line) in series.iter_mut().enumerate() {
            line.dash = Dash::nth(n);
        }
    }
    let note = (!coincide.is_empty()).then(|| {
        let which = if coincide.len() == steps.len() { String::new() } else { format!(" with {}", coincide.join(", ")) };
        format!("Response and service time differ by less than 2 % at every percentile{which}: transactions did not wait to be sent.")
    });
    chart("distribution", "Latency distribution".to_owned(), series, note)
}

fn overlaid(runs: &[RunView<'_>], like: &StepSummary) -> Option<Chart> {
    let mut series = Vec::new();
    for (n, run) in runs.iter().enumerate() {
        let same = |s: &&StepSummary| {
            (s.connections, s.rate, s.repeat) == (like.connections, like.rate, like.repeat)
        };
        let step = run.summary.steps.iter().find(same)?;
        let times = window(*run, step, |o| &o.response);
        if !times.is_empty() {
            series.push(Series::line(line_name(runs, n, "response"), n, Dash::nth(n), curve(&times)));
        }
    }
    let id = format!("distribution-{}", like.step);
    chart(&id, format!("Latency distribution, {}", step_name(like)), series, None)
}

fn chart(id: &str, title: String, series: Vec<Series>, note: Option<String>) -> Option<Chart> {
    let farthest = series.iter().filter_map(|s| s.points.last()).map(|p| p.x).fold(0.0, f64::max);
    if farthest == 0.0 {
        return None;
    }
    let x = Scale::Nines { high: Scale::Nines { high: 1.0 }.at(farthest).max(2.0) };
    let about = series.iter().map(about).collect::<Vec<_>>().join("; ");
    Some(Chart {
        id: id.to_owned(),
        group: Group::Nines,
        title,
        subtitle: "time that so many per cent of the transactions did not exceed; both axes logarithmic"
            .to_owned(),
        about: format!("{about}."),
        x_label: "share of transactions".to_owned(),
        x_ticks: x.ticks(Unit::Count),
        x,
        y: Scale::log_around(series.iter().flat_map(Series::values).collect::<Vec<_>>().into_iter()),
        y_unit: Unit::Us,
        series,
        shades: Vec::new(),
        marks: Vec::new(),
        note,
        rows_at: ROWS.into_iter().filter(|q| *q <= farthest).collect(),
    })
}

fn about(series: &Series) -> String {
    let at = |q: f64| series.points.iter().find(|p| (p.x - q).abs() < 1e-9).and_then(|p| p.y);
    let known = [(0.5, "50 %"), (0.99, "99 %"), (0.999, "99.9 %")];
    let words = known.iter().filter_map(|(q, name)| at(*q).map(|v| format!("{name} within {}", us(v))));
    format!("{}: {}", series.name, words.collect::<Vec<_>>().join(", "))
}

/// The transaction's times over the measured window of a step.
fn window(
    run: RunView<'_>,
    step: &StepSummary,
    which: impl Fn(&OperationTimes) -> &mydyno_model::record::HistogramData,
) -> Histogram {
    let Some(name) = transaction(run.record) else { return Histogram::new() };
    let measured = run.record.intervals.iter().filter(|i| i.step == step.step && i.phase == Phase::Measure);
    merged(measured.filter_map(|i| i.operations.get(name)).map(which))
}

/// Shares from the minimum up to the last share that at least one value exceeds.
fn shares(count: u64) -> Vec<f64> {
    let last = 1.0 - 1.0 / count.max(2) as f64;
    let nines = (1..=POINTS_A_NINE * 8).map(|n| 1.0 - 10f64.powf(-f64::from(n) / f64::from(POINTS_A_NINE)));
    let mut shares: Vec<f64> = nines.chain(ROWS).filter(|q| *q < last).collect();
    shares.push(last);
    shares.sort_by(f64::total_cmp);
    shares.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    shares
}

fn curve(times: &Histogram) -> Vec<Point> {
    let us_at = |q: f64| match q {
        0.0 => times.min_ns().map(|ns| ns as f64 / 1e3),
        q => times.quantile_ns(q).map(|ns| ns / 1e3),
    };
    shares(times.count()).into_iter().map(|q| Point { x: q, y: us_at(q), range: None }).collect()
}

fn same_curve(a: &Histogram, b: &Histogram) -> bool {
    [0.5, 0.9, 0.99, 0.999, 1.0].iter().all(|q| match (a.quantile_ns(*q), b.quantile_ns(*q)) {
        (Some(a), Some(b)) => (a - b).abs() <= 0.02 * a.max(b),
        _ => false,
    })
}
