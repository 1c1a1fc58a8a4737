//! CPU, swap and disk of the host during the run, where it was sampled.

use mydyno_model::facts::FactSet;
use mydyno_model::sample::Sample;

use super::line_name;
use super::time::{about_range, over_time_chart};
use crate::RunView;
use crate::chart::{Chart, Dash, Point, Series};
use crate::figures::Unit;
use crate::scale::Scale;
use crate::series::{Reading, Timeline, rates};
use crate::usage::{BUSY, SERVER};

/// The host's charts of one run; of several runs those of CPU alone. Empty when nothing was sampled.
pub fn host(runs: &[RunView<'_>]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = cpu(runs).into_iter().collect();
    if let [run] = runs {
        charts.extend(disk(*run));
        charts.extend(swap(*run));
    }
    charts
}

fn cpu(runs: &[RunView<'_>]) -> Option<Chart> {
    let mut series = Vec::new();
    for (n, run) in runs.iter().enumerate() {
        let samples = &run.record.samples;
        let alone = runs.len() == 1;
        let mut add = |name: &str, color: usize, dash: Dash, readings: Vec<Reading>| {
            if readings.iter().any(|r| r.value.is_some()) {
                let color = if alone { color } else { n };
                series.push(Series::line(line_name(runs, n, name), color, dash, points(readings)));
            }
        };
        add("host, busy", 0, Dash::Solid, rates(samples, &present(samples, BUSY)));
        add("server", 1, Dash::Dashed, rates(samples, &present(samples, SERVER)));
        if alone && !samples.is_empty() {
            add("client", 2, Dash::Dotted, client(*run));
            let zero = |r: &[Reading]| r.iter().all(|r| r.value.is_none_or(|v| v < 0.005));
            for (name, color, counter) in
                [("steal", 3, "host.cpu.steal_s"), ("waiting for disk", 4, "host.cpu.iowait_s")]
            {
                let readings = rates(samples, &present(samples, &[counter]));
                if name == "steal" || !zero(&readings) {
                    add(name, color, Dash::Solid, readings);
                }
            }
        }
    }
    if series.is_empty() {
        return None;
    }
    let cpus = runs.iter().filter_map(|r| r.record.facts.as_ref()).find_map(cpu_count);
    let largest = series.iter().flat_map(Series::extent).fold(0.0, f64::max);
    // Clock ticks are counted a little late: a full machine may seem to be more than full.
    let scale = match cpus {
        Some(cpus) if largest <= cpus * 1.05 => Scale::Linear { low: 0.0, high: cpus },
        _ => Scale::from_zero(largest),
    };
    let subtitle = match cpus {
        Some(cpus) => format!("CPUs in use, of {}", mydyno_model::units::three_digits(cpus)),
        None => "CPUs in use".to_owned(),
    };
    Some(Chart {
        title: "CPU".to_owned(),
        subtitle,
        about: about_range(&series, Unit::Cpus),
        ..over_time_chart(runs, "host-cpu", scale, Unit::Cpus, series)
    })
}

/// Those of the counters that the samples have.
fn present(samples: &[Sample], names: &[&str]) -> Vec<String> {
    let has = |name: &&&str| samples.first().is_some_and(|s| s.values.contains_key(**name));
    names.iter().filter(has).map(|n| (*n).to_owned()).collect()
}

fn cpu_count(facts: &FactSet) -> Option<f64> {
    facts.number("host.cpu.count")
}

/// The load generator's own use, from the intervals.
fn client(run: RunView<'_>) -> Vec<Reading> {
    let timeline = Timeline::of(run.record);
    let readings = timeline.buckets.iter().map(|b| Reading {
        at_s: b.middle_s(),
        value: Some(b.rate(|i| i.client.user_us + i.client.system_us) / 1e6),
        range: None,
    });
    readings.collect()
}

fn disk(run: RunView<'_>) -> Option<Chart> {
    let samples = &run.record.samples;
    let totals = |end: &str| rates(samples, &ending(samples, "host.disk.", end));
    let series = named(vec![("read", 0, totals("read_bytes")), ("written", 1, totals("write_bytes"))]);
    byte_chart(run, "host-disk", "Disk", "bytes per second, all disks", series)
}

/// Bytes of a page where the samples count pages: that of x86-64 and of most arm64 kernels.
const PAGE_BYTES: f64 = 4096.0;

fn swap(run: RunView<'_>) -> Option<Chart> {
    let samples = &run.record.samples;
    let bytes = |name: &str| -> Vec<Reading> {
        let scale = |v: f64| v * PAGE_BYTES;
        let pages = rates(samples, &present(samples, &[name]));
        pages
            .into_iter()
            .map(|r| Reading {
                value: r.value.map(scale),
                range: r.range.map(|(l, h)| (scale(l), scale(h))),
                ..r
            })
            .collect()
    };
    let series =
        named(vec![("in", 0, bytes("host.swap.in_pages")), ("out", 1, bytes("host.swap.out_pages"))]);
    // No chart of nothing; that there was none is said in words.
    if series.iter().flat_map(Series::values).all(|v| v == 0.0) {
        return None;
    }
    byte_chart(run, "host-swap", "Swap", "bytes per second", series)
}

/// Names of the first sample that begin and end so; the disk's name stands between.
fn ending(samples: &[Sample], begin: &str, end: &str) -> Vec<String> {
    let names = samples.first().map(|s| s.values.keys()).into_iter().flatten();
    names.filter(|n| n.starts_with(begin) && n.ends_with(&format!(".{end}"))).cloned().collect()
}

fn named(lines: Vec<(&str, usize, Vec<Reading>)>) -> Vec<Series> {
    let lines = lines.into_iter().filter(|(_, _, r)| r.iter().any(|r| r.value.is_some()));
    lines.map(|(name, n, readings)| Series::line(name, n, Dash::nth(n), points(readings))).collect()
}

fn byte_chart(run: RunView<'_>, id: &str, title: &str, subtitle: &str, series: Vec<Series>) -> Option<Chart> {
    if series.is_empty() {
        return None;
    }
    let largest = series.iter().flat_map(Series::extent).fold(0.0, f64::max);
    Some(Chart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        about: about_range(&series, Unit::BytesPerSecond),
        ..over_time_chart(&[run], id, Scale::from_zero_bytes(largest), Unit::BytesPerSecond, series)
    })
}

fn points(readings: Vec<Reading>) -> Vec<Point> {
    let at = |seconds: f64| (seconds * 1e3).round() / 1e3;
    readings.into_iter().map(|r| Point { x: at(r.at_s), y: r.value, range: r.range }).collect()
}
