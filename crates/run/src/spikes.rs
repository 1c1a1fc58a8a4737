//! Seconds in which response times rose far above those of the other seconds of a step, and the figures that differed in them.

use std::collections::BTreeMap;

use mydyno_model::record::Interval;
use mydyno_model::summary::{Differs, Spike};
use mydyno_model::watch::WatchInterval;

use crate::operation::latency;

/// Fewest seconds of a step that have a usual response time.
const FEWEST_SECONDS: usize = 8;

/// Fewest transactions of a second that have a 99th percentile.
const FEWEST_TRANSACTIONS: u64 = 20;

/// A second is a spike when its p99 is so many times the usual one, and longer by so many microseconds.
const TIMES: f64 = 3.0;
const LONGER_US: f64 = 1_000.0;

/// Most spikes of a step, and most figures of a spike, that are kept: the largest.
const MOST_SPIKES: usize = 5;
const MOST_FIGURES: usize = 5;

/// A figure differs when it is so many deviations from its usual value; a deviation is at least this share of the value.
const DEVIATIONS: f64 = 4.0;
const LEAST_DEVIATION: f64 = 0.1;

/// Scales a median absolute deviation to a standard deviation of the normal distribution.
const MAD_SCALE: f64 = 1.4826;

/// Figures that can tell why a second was slow, by the start of their names: not those that follow from the load itself.
const TELLING: [&str; 28] = [
    "host.cpu.steal_share",
    "host.cpu.iowait_share",
    "host.cpu.busy_share",
    "host.cpu.hottest_share",
    "host.cpu.hottest_interrupt_share",
    "host.load.",
    "host.swap.",
    "host.memory.major_faults",
    "host.memory.allocation_stalls",
    "host.memory.writeback",
    "host.pressure.",
    "host.disk.",
    "host.tcp.",
    "server.throttled_share",
    "server.threads_waiting_for_cpu",
    "server.run_queue_us",
    "server.memory.swap_bytes",
    "server.waits.",
    "host.softirqs",
    "server.connections_per_s",
    "server.tmp_disk_tables_per_s",
    "server.opened_tables_per_s",
    "server.sessions.",
    "server.file.",
    "innodb.",
    "budget.",
    "client.throttled_share",
    "server.major_faults_per_s",
];

/// The spikes of a step in the order of their time, with what differed in the intervals that lie in them.
pub fn of_step(transaction: &str, windows: &[&Interval], beside: &[WatchInterval]) -> Vec<Spike> {
    let seconds: Vec<(&Interval, f64)> =
        windows.iter().filter_map(|window| Some((*window, p99_us(transaction, window)?))).collect();
    if seconds.len() < FEWEST_SECONDS {
        return Vec::new();
    }
    let usual_us = median(seconds.iter().map(|(_, p99)| *p99).collect());
    let is_spike = |p99_us: f64| p99_us >= TIMES * usual_us && p99_us - usual_us >= LONGER_US;
    let mut spikes: Vec<(&Interval, f64)> =
        seconds.iter().copied().filter(|(_, p99_us)| is_spike(*p99_us)).collect();
    let (inside, outside): (Vec<_>, Vec<_>) =
        beside.iter().partition(|interval| spikes.iter().any(|(window, _)| overlaps(interval, window)));
    spikes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    spikes.truncate(MOST_SPIKES);
    spikes.sort_by(|(a, _), (b, _)| a.start_s.total_cmp(&b.start_s));
    let spike = |(window, p99_us): &(&Interval, f64)| Spike {
        at_s: window.start_s,
        over_s: window.width_s,
        p99_us: *p99_us,
        usual_us,
        differs: differs(inside.iter().copied().filter(|i| overlaps(i, window)), &outside),
    };
    spikes.iter().map(spike).collect()
}

fn p99_us(transaction: &str, window: &Interval) -> Option<f64> {
    let times = window.operations.get(transaction)?;
    let found = latency(std::iter::once(Some(&times.response)), &[99.0], window.width_s);
    let p99 = found.percentiles.get("p99").filter(|_| found.count >= FEWEST_TRANSACTIONS)?;
    Some(p99.value)
}

/// Whether an interval of the samples lies in a window of the load, at least by half of the shorter one.
fn overlaps(interval: &WatchInterval, window: &Interval) -> bool {
    let start = (interval.at_s - interval.over_s).max(window.start_s);
    let end = interval.at_s.min(window.start_s + window.width_s);
    end - start >= 0.5 * interval.over_s.min(window.width_s)
}

/// The figures that differ most from their usual values, the largest first.
pub(crate) fn differs<'a>(
    inside: impl Iterator<Item = &'a WatchInterval>,
    outside: &[&WatchInterval],
) -> Vec<Differs> {
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, value) in inside.flat_map(|interval| &interval.figures) {
        let so_far = largest.entry(name).or_insert(*value);
        *so_far = so_far.max(*value);
    }
    let mut found: Vec<(f64, Differs)> = Vec::new();
    for (name, value) in largest {
        if !TELLING.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let others: Vec<f64> = outside.iter().filter_map(|i| i.figures.get(name).copied()).collect();
        if others.len() < FEWEST_SECONDS / 2 {
            continue;
        }
        let usual = median(others.clone());
        let deviation = MAD_SCALE * median(others.iter().map(|other| (other - usual).abs()).collect());
        let most = others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let unit = deviation.max(LEAST_DEVIATION * usual.abs()).max(1e-3 * value.abs()).max(1e-9);
        let far = (value - usual) / unit;
        // What is larger in many other seconds too explains nothing.
        if far >= DEVIATIONS && value > most {
            found.push((far, Differs { figure: name.to_owned(), value, usual }));
        }
    }
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().take(MOST_FIGURES).map(|(_, differs)| differs).collect()
}

/// The median of finite values; 0 without any.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use mydyno_model::document::Header;
    use mydyno_model::record::{ArrivalCounts, ClientUse, HistogramData, OperationTimes, Phase};
    use mydyno_stats::Histogram;
    use time::macros::datetime;

    use super::*;

    fn second(n: u32, us: u64) -> Interval {
        let mut histogram = Histogram::new();
        (0..100).for_each(|_| histogram.record(us * 1_000));
        let data = histogram.to_data();
        let times = OperationTimes { response: data.clone(), service: data };
        Interval {
            step: 0,
            phase: Phase::Measure,
            start_s: f64::from(n),
            width_s: 1.0,
            transactions: 100,
            queries: 100,
            errors: BTreeMap::new(),
            retries: 0,
            retried: HistogramData::default(),
            reconnects: 0,
            arrivals: ArrivalCounts::default(),
            connect: HistogramData::default(),
            client: ClientUse::default(),
            lateness: HistogramData::default(),
            operations: IndexMap::from([("t".to_owned(), times)]),
            counts: Default::default(),
            extra: serde_json::Map::new(),
        }
    }

    fn beside(n: u32, flush_us: f64, busy: f64) -> WatchInterval {
        let figures = [
            ("host.disk.vda.flush_us", flush_us),
            ("host.cpu.busy_share", busy),
            ("server.uptime_s", f64::from(n)),
        ];
        WatchInterval {
            header: Header::of::<WatchInterval>(datetime!(2026-11-23 12:00 UTC)),
            at_s: f64::from(n) + 1.0,
            over_s: 1.0,
            late_s: None,
            missed: 0,
            figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            waits: Vec::new(),
            statements: Vec::new(),
            events: Vec::new(),
            extra: serde_json::Map::new(),
        }
    }

    #[test]
    fn a_second_of_slow_flushes_is_named_with_them_and_nothing_else() {
        let windows: Vec<Interval> =
            (0..12).map(|n| second(n, if n == 7 { 40_000 } else { 2_000 })).collect();
        let windows: Vec<&Interval> = windows.iter().collect();
        let samples: Vec<WatchInterval> = (0..12)
            .map(|n| {
                beside(n, if n == 7 { 30_000.0 } else { 900.0 + f64::from(n) }, 0.5 + 0.01 * f64::from(n % 3))
            })
            .collect();
        let found = of_step("t", &windows, &samples);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].at_s, found[0].differs.len()) == (7.0, 1), "{found:?}");
        assert_eq!(found[0].differs[0].figure, "host.disk.vda.flush_us");
        assert!(
            (found[0].p99_us / 40_000.0 - 1.0).abs() < 0.02
                && (found[0].usual_us / 2_000.0 - 1.0).abs() < 0.02
        );
    }

    #[test]
    fn even_seconds_and_few_seconds_have_no_spike() {
        let even: Vec<Interval> = (0..12).map(|n| second(n, 2_000 + u64::from(n))).collect();
        assert!(of_step("t", &even.iter().collect::<Vec<_>>(), &[]).is_empty());
        let few: Vec<Interval> = (0..5).map(|n| second(n, if n == 2 { 90_000 } else { 2_000 })).collect();
        assert!(of_step("t", &few.iter().collect::<Vec<_>>(), &[]).is_empty());
    }
}
