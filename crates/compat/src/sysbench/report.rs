//! The reports of a test, in the formats of sysbench 1.0.20.

use std::fmt::Write as _;

use super::stats::{Count, Stat, mean_and_deviation};

/// An intermediate report of a test that sends no SQL.
pub(crate) fn intermediate(stat: &Stat, percentile: f64, with_queue: bool) -> String {
    let mut text = format!(
        "[ {:.0}s ] thds: {} eps: {:4.2} lat (ms,{percentile}%): {:4.2}",
        stat.time_total,
        stat.threads_running,
        per_second(stat.totals.get(Count::Event), stat),
        stat.latency_pct * 1e3
    );
    if with_queue {
        let _ = write!(
            text,
            "\n[ {:.0}s ] queue length: {} concurrency: {}",
            stat.time_total, stat.queue_length, stat.concurrency
        );
    }
    text
}

/// An intermediate report of a test that sends SQL.
pub(crate) fn intermediate_sql(stat: &Stat, percentile: f64, with_queue: bool) -> String {
    let rate = |count: Count| per_second(stat.totals.get(count), stat);
    let (read, write, other) = (rate(Count::Read), rate(Count::Write), rate(Count::Other));
    let mut text = format!(
        "[ {:.0}s ] thds: {} tps: {:4.2} qps: {:4.2} (r/w/o: {read:4.2}/{write:4.2}/{other:4.2}) \
         lat (ms,{percentile}%): {:4.2} err/s: {:4.2} reconn/s: {:4.2}",
        stat.time_total,
        stat.threads_running,
        rate(Count::Event),
        read + write + other,
        stat.latency_pct * 1e3,
        rate(Count::Error),
        rate(Count::Reconnect),
    );
    if with_queue {
        let _ = write!(
            text,
            "\n[ {:.0}s ] queue length: {}, concurrency: {}",
            stat.time_total, stat.queue_length, stat.concurrency
        );
    }
    text
}

/// The statistics of statements in a cumulative report.
pub(crate) fn sql_statistics(stat: &Stat) -> String {
    let count = |count: Count| stat.totals.get(count);
    let (read, write, other) = (count(Count::Read), count(Count::Write), count(Count::Other));
    let total = read + write + other;
    let line = |name: &str, number: u64| {
        format!("    {:36} {number:<6} ({:.2} per sec.)\n", format!("{name}:"), per_second(number, stat))
    };
    let mut text = String::from("SQL statistics:\n    queries performed:\n");
    for (name, number) in [("read", read), ("write", write), ("other", other), ("total", total)] {
        let _ = writeln!(text, "        {:32} {number}", format!("{name}:"));
    }
    text.push_str(&line("transactions", count(Count::Event)));
    text.push_str(&line("queries", total));
    text.push_str(&line("ignored errors", count(Count::Error)));
    text.push_str(&line("reconnects", count(Count::Reconnect)));
    if !stat.errors.is_empty() {
        text.push_str("    ignored errors by number:\n");
        for (number, count) in &stat.errors {
            let _ = writeln!(text, "        {:32} {count}", format!("{number}:"));
        }
    }
    text
}

/// The part of a cumulative report that every test has.
pub(crate) fn general(stat: &Stat, percentile: f64, with_threads: bool) -> String {
    let (min, mean, max, sum) = stat.latency();
    let mut text = String::new();
    if let Some(unfinished) = stat.unfinished {
        let _ = writeln!(text, "\nNumber of unfinished transactions on forced shutdown: {unfinished}");
    }
    let _ = write!(
        text,
        "\nGeneral statistics:\n    total time:                          {:.4}s\n    \
         total number of events:              {}\n\nLatency (ms):\n",
        stat.time_total,
        stat.totals.get(Count::Event)
    );
    for (name, seconds) in [("min", min), ("avg", mean), ("max", max)] {
        let _ = writeln!(text, "         {name}: {:39.2}", seconds * 1e3);
    }
    if percentile == 0.0 {
        text.push_str("         percentile stats:               disabled\n");
    } else {
        for (percentile, seconds) in
            std::iter::once((percentile, stat.latency_pct)).chain(stat.percentiles.iter().copied())
        {
            let _ = writeln!(text, "{percentile:11}th percentile: {:27.2}", seconds * 1e3);
        }
    }
    let _ = writeln!(text, "         sum: {:39.2}", sum * 1e3);
    let events: Vec<f64> = stat.threads.iter().map(|thread| thread.events as f64).collect();
    let times: Vec<f64> = stat.threads.iter().map(|thread| thread.sum.as_secs_f64()).collect();
    let ((mean, deviation), (time, time_deviation)) =
        (mean_and_deviation(&events), mean_and_deviation(&times));
    let _ = write!(
        text,
        "\nThreads fairness:\n    events (avg/stddev):           {mean:.4}/{deviation:3.2}\n    \
         execution time (avg/stddev):   {time:.4}/{time_deviation:3.2}\n\n"
    );
    if with_threads {
        text.push_str(&threads(stat));
    }
    text
}

/// A line a thread, for `--debug`.
fn threads(stat: &Stat) -> String {
    let mut text = String::from("DEBUG: Verbose per-thread statistics:\n\n");
    for (id, thread) in stat.threads.iter().enumerate() {
        let mean = thread.sum.as_secs_f64() / thread.events.max(1) as f64;
        let _ = writeln!(
            text,
            "DEBUG:     thread #{id:3}: min: {:.4}s  avg: {mean:.4}s  max: {:.4}s  events: {}\n\
             DEBUG:                  total time taken by event execution: {:.4}s",
            thread.min.as_secs_f64(),
            thread.max.as_secs_f64(),
            thread.events,
            thread.sum.as_secs_f64()
        );
    }
    text.push('\n');
    text
}

/// A number per second of the report's interval.
pub(crate) fn per_second(number: u64, stat: &Stat) -> f64 {
    if stat.time_interval > 0.0 { number as f64 / stat.time_interval } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::stats::Totals;
    use super::*;

    fn stat() -> Stat {
        Stat {
            threads_running: 4,
            time_interval: 2.0,
            time_total: 10.0,
            latency_pct: 0.0125,
            totals: Totals([20, 140, 40, 10, 1, 0]),
            ..Stat::default()
        }
    }

    #[test]
    fn intermediate_reports_are_one_line() {
        assert_eq!(
            intermediate_sql(&stat(), 95.0, false),
            "[ 10s ] thds: 4 tps: 5.00 qps: 100.00 (r/w/o: 70.00/20.00/10.00) lat (ms,95%): 12.50 \
             err/s: 0.50 reconn/s: 0.00"
        );
        assert_eq!(intermediate(&stat(), 95.0, false), "[ 10s ] thds: 4 eps: 5.00 lat (ms,95%): 12.50");
    }

    #[test]
    fn statistics_of_statements_align_as_parsers_expect() {
        let text = sql_statistics(&stat());
        assert!(text.contains("        read:                            140\n"), "{text}");
        assert!(text.contains("    transactions:                        10     (5.00 per sec.)\n"), "{text}");
        assert!(text.contains("    ignored errors:                      1      (0.50 per sec.)\n"), "{text}");
    }
}
