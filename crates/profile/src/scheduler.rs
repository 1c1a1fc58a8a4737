//! Counters of the kernel's scheduler for the threads of a process, from files of /proc.

use std::collections::HashMap;
use std::time::{Duration, Instant};

const PROC: &str = "/proc";
/// Stacks of waits a second that are aimed at, over all CPUs.
const WAITS_PER_S: f64 = 300.0;
/// How long switches are counted before the first capture.
const COUNTED: Duration = Duration::from_millis(200);

/// The threads of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("{PROC}/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// For how long each thread could run and waited for a CPU since its start, in nanoseconds: the second field of `schedstat`. Where the
/// kernel does not count it, all fields are 0, and no thread is here.
pub fn run_delays(pid: u32) -> HashMap<u32, u64> {
    let of = |tid: u32| -> Option<(u32, u64)> {
        let text = std::fs::read_to_string(format!("{PROC}/{pid}/task/{tid}/schedstat")).ok()?;
        let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
        let (_running_ns, delay_ns, slices) = (fields.next()??, fields.next()??, fields.next()??);
        (slices > 0).then_some((tid, delay_ns))
    };
    threads(pid).into_iter().filter_map(of).collect()
}

/// Switches of a process a second, counted for a moment.
pub fn switches_per_s(pid: u32) -> f64 {
    let count = || -> u64 {
        let of = |tid: u32| {
            let status =
                std::fs::read_to_string(format!("{PROC}/{pid}/task/{tid}/status")).unwrap_or_default();
            let field = |key| {
                mydyno_linux::text::field(&status, key, ':').and_then(|text| text.trim().parse::<u64>().ok())
            };
            field("voluntary_ctxt_switches").unwrap_or(0) + field("nonvoluntary_ctxt_switches").unwrap_or(0)
        };
        threads(pid).into_iter().map(of).sum()
    };
    let (before, begun) = (count(), Instant::now());
    std::thread::sleep(COUNTED);
    count().saturating_sub(before) as f64 / begun.elapsed().as_secs_f64()
}

/// A period at which so many switches a second give about [`WAITS_PER_S`] stacks: odd, so that it does not keep step with pairs of
/// switches.
pub fn period_for(switches_per_s: f64) -> u64 {
    let period = (switches_per_s / WAITS_PER_S).floor() as u64;
    if period < 2 { 1 } else { period | 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_odd_and_one_where_switches_are_few() {
        assert_eq!([0.0, 299.0, 700.0, 1_250.0, 30_000.0].map(period_for), [1, 1, 3, 5, 101]);
    }
}
