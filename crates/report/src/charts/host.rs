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

/// The host's charts of one run; for several runs only the CPU charts. Empty when the host was not sampled.
pub fn host(runs: &[RunView<'_>]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = cpu(runs).into_iter().collect();
    if let [run] = runs {
        charts.extend(disk(*run));
        charts.extend(swap(*run));
        charts.extend(waiting(*run));
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
    // The kernel counts clock ticks with a small delay, so a fully loaded machine may seem to exceed 100 %.
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

/// The counters that the samples contain.
fn present(samples: &[Sample], names: &[&str]) -> Vec<String> {
    let has = |name: &&&str| samples.first().is_some_and(|s| s.values.contains_key(**name));
    names.iter().filter(has).map(|n| (*n).to_owned()).collect()
}

fn cpu_count(facts: &FactSet) -> Option<f64> {
    facts.number("host.cpu.count")
}

/// CPU use of the load generator, from the intervals.
fn client(run: RunView<'_>) -> Vec<Reading> {
    let timeline = Timeline::of(run.record);
    let readings = timeline.buckets.iter().map(|b| Reading {
        at_s: b.middle_s(),
        value: Some(b.rate(|i| i.client.user_us + i.client.system_us) / 1e6),
        range: None,
    });
    readings.collect()
}

/// Number of disks with separate lines: those that transferred the most bytes.
const MOST_DISKS: usize = 2;

fn disk(run: RunView<'_>) -> Option<Chart> {
    let samples = &run.record.samples;
    let (first, last) = (samples.first()?, samples.last()?);
    let moved = |name: &String| -> f64 {
        let growth = |end: &str| {
            let counter = format!("host.disk.{name}.{end}");
            last.values.get(&*counter).zip(first.values.get(&*counter)).map_or(0.0, |(b, a)| b - a)
        };
        growth("read_bytes") + growth("write_bytes")
    };
    let names =
        first.values.keys().filter_map(|n| n.strip_prefix("host.disk.")?.strip_suffix(".write_bytes"));
    let mut disks: Vec<(String, f64)> =
        names.map(str::to_owned).map(|n| (n.clone(), moved(&n))).filter(|(_, moved)| *moved > 0.0).collect();
    disks.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rate = |name: &str, end: &str| rates(samples, &[format!("host.disk.{name}.{end}")]);
    let lines = disks.iter().take(MOST_DISKS).enumerate().flat_map(|(n, (name, _))| {
        [
            (format!("{name} read"), 2 * n, rate(name, "read_bytes")),
            (format!("{name} written"), 2 * n + 1, rate(name, "write_bytes")),
        ]
    });
    let series = named(lines);
    let note = match disks.len() {
        0 | 1 => None,
        n if n > MOST_DISKS => Some(format!(
            "{} other devices moved less. A device on top of another shows the same bytes again.",
            n - MOST_DISKS
        )),
        _ => Some("A device on top of another shows the same bytes again.".to_owned()),
    };
    let largest = series.iter().flat_map(Series::extent).fold(0.0, f64::max);
    let unit = Unit::BytesPerSecond;
    let chart = plain_chart(
        run,
        "host-disk",
        ("Disk", "bytes per second"),
        Scale::from_zero_bytes(largest),
        unit,
        series,
    )?;
    Some(Chart { note, ..chart })
}

fn swap(run: RunView<'_>) -> Option<Chart> {
    let samples = &run.record.samples;
    let pages = |name: &str| rates(samples, &present(samples, &[name]));
    let lines = [("in", 0, pages("host.swap.in_pages")), ("out", 1, pages("host.swap.out_pages"))];
    let series = named(lines.into_iter().map(|(name, n, readings)| (name.to_owned(), n, readings)));
    // An empty chart is omitted; a sentence says that there was no activity.
    if series.iter().flat_map(Series::values).all(|v| v == 0.0) {
        return None;
    }
    let largest = series.iter().flat_map(Series::extent).fold(0.0, f64::max);
    let words = ("Swap", "pages per second");
    plain_chart(run, "host-swap", words, Scale::from_zero(largest), Unit::PerSecond, series)
}

/// Shares of the time in which tasks waited for the host's CPU, disks and memory (pressure stall information,
/// <https://docs.kernel.org/accounting/psi.html>) and for the next period of a CPU quota.
const WAITS: [(&str, &str); 5] = [
    ("some waited for a CPU", "host.pressure.cpu.some_s"),
    ("for a disk", "host.pressure.io.some_s"),
    ("for memory", "host.pressure.memory.some_s"),
    ("server throttled", "server.cgroup.cpu.throttled_s"),
    ("client throttled", "client.cgroup.cpu.throttled_s"),
];

fn waiting(run: RunView<'_>) -> Option<Chart> {
    let samples = &run.record.samples;
    let lines = WAITS
        .iter()
        .enumerate()
        .map(|(n, (name, counter))| ((*name).to_owned(), n, rates(samples, &present(samples, &[counter]))));
    // A quota that never throttled and a disk without waits would be lines along the bottom.
    let some = |(_, _, readings): &(String, usize, Vec<Reading>)| {
        readings.iter().any(|r| r.value.is_some_and(|v| v >= 0.005))
    };
    let series = named(lines.filter(some));
    let largest = series.iter().flat_map(Series::extent).fold(0.0, f64::max);
    let words = ("Pressure", "share of the time in which a task had to wait; throttling summed over CPUs");
    plain_chart(run, "host-pressure", words, Scale::from_zero(largest), Unit::Share, series)
}

fn named(lines: impl Iterator<Item = (String, usize, Vec<Reading>)>) -> Vec<Series> {
    let lines = lines.filter(|(_, _, r)| r.iter().any(|r| r.value.is_some()));
    lines.map(|(name, n, readings)| Series::line(name, n, Dash::nth(n), points(readings))).collect()
}

fn plain_chart(
    run: RunView<'_>,
    id: &str,
    (title, subtitle): (&str, &str),
    scale: Scale,
    unit: Unit,
    series: Vec<Series>,
) -> Option<Chart> {
    if series.is_empty() {
        return None;
    }
    Some(Chart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        about: about_range(&series, unit),
        ..over_time_chart(&[run], id, scale, unit, series)
    })
}

fn points(readings: Vec<Reading>) -> Vec<Point> {
    let at = |seconds: f64| (seconds * 1e3).round() / 1e3;
    readings.into_iter().map(|r| Point { x: at(r.at_s), y: r.value, range: r.range }).collect()
}
