//! Activity of the host during the audit: counters that are read twice, and the kernel's pressure averages.

use std::time::Instant;

use serde_json::Value;

use mydyno_linux::calls;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::{flat_number, unexpected};
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Work of the host over the window.
pub static COLLECTOR: Collector = Collector {
    name: "activity",
    cost: Cost { host_ms: 3, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact("host.window_s", "s", "time between the two readings of the host's counters"),
        fact(
            "host.cpu.busy_percent",
            "percent",
            "share of the CPUs' time that was used, over the window; stolen time is not",
        ),
        fact("host.cpu.busiest_percent", "percent", "the same of the CPU that was used most"),
        fact(
            "host.cpu.steal_percent",
            "percent",
            "share of the CPUs' time that the hypervisor gave to others, over the window",
        ),
        fact("host.cpu.steal_since_boot_percent", "percent", "the same since boot"),
        fact("host.swap.in_rate", "bytes/s", "memory that was read back from swap, over the window"),
        fact("host.swap.out_rate", "bytes/s", "memory that was written to swap, over the window"),
        fact(
            "host.memory.direct_reclaim_rate",
            "1/s",
            "allocations that had to free memory themselves (allocstall), over the window",
        ),
        fact("host.memory.oom_kills", "count", "processes killed for want of memory, since boot"),
        fact("host.memory.balloon_bytes", "bytes", "memory that the hypervisor has taken back (balloon)"),
        fact(
            "host.pressure.RESOURCE.some_avg300",
            "percent",
            "share of the last five minutes in which some task waited for cpu, io or memory",
        ),
        fact(
            "host.pressure.RESOURCE.full_avg300",
            "percent",
            "share of the last five minutes in which all tasks waited for io or memory",
        ),
    ],
    run: Run::Host(run),
};

const STAT: &str = "/proc/stat";
const VMSTAT: &str = "/proc/vmstat";

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    let before = Reading::of(source);
    pressure(source, readings);
    since_boot(&before, readings);
    let Some(window) = context.options.window else {
        let why = Missing::Absent("the counters were read once: no window was asked for".to_owned());
        return readings.rest_is(STAT, &why);
    };
    context.options.cancellation.sleep_until(before.at + window);
    if context.options.cancellation.is_set() {
        return;
    }
    let after = Reading::of(source);
    over_window(&before, &after, readings);
}

/// All counters at an instant.
struct Reading {
    at: Instant,
    stat: Read<String>,
    vmstat: Read<String>,
}

impl Reading {
    fn of(source: &Source) -> Self {
        Self { at: Instant::now(), stat: source.read(STAT), vmstat: source.read(VMSTAT) }
    }

    fn times(&self) -> Read<Vec<Times>> {
        let text = self.stat.as_deref().map_err(Clone::clone)?;
        let times: Vec<Times> = text.lines().filter_map(Times::of).collect();
        if times.is_empty() { Err(unexpected(STAT, "lines of CPUs", text)) } else { Ok(times) }
    }

    fn counter(&self, key: &str) -> Read<u64> {
        let text = self.vmstat.as_deref().map_err(Clone::clone)?;
        flat_number(text, key).ok_or_else(|| Missing::Absent(format!("{VMSTAT} has no line {key}")))
    }

    /// Stalls are counted for each zone since Linux 4.10, and in one line before.
    fn stalls(&self) -> Read<u64> {
        let text = self.vmstat.as_deref().map_err(Clone::clone)?;
        let stalls = text.lines().filter(|line| line.starts_with("allocstall"));
        let counts: Vec<u64> = stalls.filter_map(|l| l.split(' ').nth(1)?.trim().parse().ok()).collect();
        if counts.is_empty() {
            return Err(Missing::Absent(format!("{VMSTAT} has no line allocstall")));
        }
        Ok(counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)))
    }
}

/// A line of /proc/stat in clock ticks (proc_stat(5)). Guests are part of user and nice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Times {
    busy: u64,
    steal: u64,
    all: u64,
}

impl Times {
    fn of(line: &str) -> Option<Self> {
        let ticks: Vec<u64> = line
            .strip_prefix("cpu")?
            .split_ascii_whitespace()
            // The first word is the CPU's number, or nothing for all of them.
            .skip(usize::from(!line.starts_with("cpu ")))
            .map(|word| word.parse().unwrap_or(0))
            .collect();
        let [user, nice, system, idle, iowait, irq, softirq, rest @ ..] = ticks.as_slice() else {
            return None;
        };
        let steal = rest.first().copied().unwrap_or(0);
        let busy =
            [user, nice, system, irq, softirq].into_iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let all = busy.saturating_add(*idle).saturating_add(*iowait).saturating_add(steal);
        Some(Self { busy, steal, all })
    }

    /// Growth since the first reading; a counter that fell, as iowait can, counts as 0.
    fn since(self, before: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(before.busy),
            steal: self.steal.saturating_sub(before.steal),
            all: self.all.saturating_sub(before.all),
        }
    }
}

fn percent(part: u64, whole: u64) -> Read<f64> {
    if whole == 0 {
        return Err(Missing::Error(format!("{STAT}: no time has passed")));
    }
    Ok(100.0 * part as f64 / whole as f64)
}

fn since_boot(now: &Reading, readings: &Readings) {
    let steal = now.times().and_then(|times| {
        let all = times.first().copied().unwrap_or_default();
        percent(all.steal, all.all)
    });
    readings.put("host.cpu.steal_since_boot_percent", STAT, steal);
    readings.put("host.memory.oom_kills", VMSTAT, now.counter("oom_kill"));
    let balloon = now.counter("balloon_inflate").and_then(|taken| {
        let pages = taken.saturating_sub(now.counter("balloon_deflate")?);
        Ok(pages.saturating_mul(calls::page_bytes() as u64))
    });
    readings.put("host.memory.balloon_bytes", VMSTAT, balloon);
}

fn over_window(before: &Reading, after: &Reading, readings: &Readings) {
    let window_s = after.at.duration_since(before.at).as_secs_f64();
    readings.put("host.window_s", "CLOCK_MONOTONIC", Ok(window_s));
    let twice = |path: &str| format!("{path}, twice");
    // A CPU that went on or off line makes the lists differ: the line for all of them still stands first.
    let grown = before.times().and_then(|first| {
        let last = after.times()?;
        Ok(last.iter().zip(&first).map(|(after, before)| after.since(*before)).collect::<Vec<Times>>())
    });
    let all = grown.clone().map(|times| times.first().copied().unwrap_or_default());
    readings.put("host.cpu.busy_percent", twice(STAT), all.clone().and_then(|t| percent(t.busy, t.all)));
    readings.put("host.cpu.steal_percent", twice(STAT), all.and_then(|t| percent(t.steal, t.all)));
    let busiest = grown.map(|times| {
        let shares = times.iter().skip(1).filter_map(|t| percent(t.busy, t.all).ok());
        shares.fold(0.0, f64::max)
    });
    readings.put("host.cpu.busiest_percent", twice(STAT), busiest);
    let rate = |count: &dyn Fn(&Reading) -> Read<u64>| -> Read<f64> {
        let grown = count(after)?.saturating_sub(count(before)?);
        Ok(grown as f64 / window_s)
    };
    let page_bytes = calls::page_bytes() as f64;
    for (id, key) in [("host.swap.in_rate", "pswpin"), ("host.swap.out_rate", "pswpout")] {
        readings.put(id, twice(VMSTAT), rate(&|r| r.counter(key)).map(|pages| pages * page_bytes));
    }
    readings.put("host.memory.direct_reclaim_rate", twice(VMSTAT), rate(&Reading::stalls));
}

/// `some avg10=… avg60=… avg300=0.12 total=…` and `full …` (psi.rst of the kernel).
fn pressure(source: &Source, readings: &Readings) {
    for resource in ["cpu", "io", "memory"] {
        let path = format!("/proc/pressure/{resource}");
        let text = source.read(&path);
        for line in ["some", "full"] {
            // The kernel defines `full` of the CPU for groups only (psi.rst).
            if (resource, line) == ("cpu", "full") {
                continue;
            }
            let id = format!("host.pressure.{resource}.{line}_avg300");
            readings.put::<Value>(
                &id,
                path.as_str(),
                text.clone().and_then(|t| Ok(average(&t, line, &path)?.into())),
            );
        }
    }
}

fn average(text: &str, line: &str, path: &str) -> Read<f64> {
    let words = text.lines().find_map(|l| l.strip_prefix(line));
    let value = words.and_then(|w| w.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg300=")));
    value.and_then(|v| v.parse().ok()).ok_or_else(|| unexpected(path, &format!("{line} avg300=N"), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_cpu_is_divided_into_busy_and_stolen_time() {
        let all = Times::of("cpu  10 1 5 80 4 1 3 16 9 0").unwrap();
        assert_eq!(all, Times { busy: 20, steal: 16, all: 120 });
        assert_eq!(Times::of("cpu1 10 1 5 80 4 1 3 16 9 0"), Some(all));
        // Linux 2.6.10 did not count steal time.
        assert_eq!(Times::of("cpu0 1 0 0 1 0 0 0"), Some(Times { busy: 1, steal: 0, all: 2 }));
        assert_eq!(Times::of("ctxt 5"), None);
        let later = Times { busy: 30, steal: 10, all: 170 };
        assert_eq!(later.since(all), Times { busy: 10, steal: 0, all: 50 });
    }

    #[test]
    fn stalls_of_all_zones_are_one_number() {
        let of =
            |text: &str| Reading { at: Instant::now(), stat: Ok(String::new()), vmstat: Ok(text.to_owned()) };
        assert_eq!(of("allocstall_dma 1\nallocstall_normal 2\nallocstall_movable 4").stalls(), Ok(7));
        assert_eq!(of("allocstall 3\npswpin 9").stalls(), Ok(3));
        assert!(matches!(of("pswpin 9").stalls(), Err(Missing::Absent(_))));
    }

    #[test]
    fn averages_of_pressure_are_read_from_their_line() {
        let text = "some avg10=87.41 avg60=51.10 avg300=27.85 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.63 total=0";
        assert_eq!(average(text, "some", "/p"), Ok(27.85));
        assert_eq!(average(text, "full", "/p"), Ok(0.63));
        assert!(average("some avg10=1", "some", "/p").is_err());
    }
}
