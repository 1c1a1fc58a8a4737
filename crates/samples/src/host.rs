//! CPU, swap, memory, pressure and load of the host.

use crate::reader::{Reader, first, line_value};
use crate::values::{Scale, Values};
use mydyno_facts::Source;

/// Columns of a cpu line of /proc/stat (proc_stat(5)), in its order.
const CPU: [&str; 10] = [
    "host.cpu.user_s",
    "host.cpu.nice_s",
    "host.cpu.system_s",
    "host.cpu.idle_s",
    "host.cpu.iowait_s",
    "host.cpu.irq_s",
    "host.cpu.softirq_s",
    "host.cpu.steal_s",
    "host.cpu.guest_s",
    "host.cpu.guest_nice_s",
];

/// Other lines of /proc/stat.
const STAT: [(&str, &str); 4] = [
    ("ctxt", "host.context_switches"),
    ("processes", "host.forks"),
    ("procs_running", "host.load.running_now"),
    ("procs_blocked", "host.load.blocked_now"),
];

/// Lines of /proc/vmstat.
const VMSTAT: [(&str, &str); 5] = [
    ("pswpin", "host.swap.in_pages"),
    ("pswpout", "host.swap.out_pages"),
    ("pgmajfault", "host.memory.major_faults"),
    ("compact_stall", "host.memory.compaction_stalls"),
    ("oom_kill", "host.memory.oom_kills"),
];

/// Lines of /proc/vmstat that count pages: beyond the mean of both the kernel slows down who writes to the page cache
/// (`balance_dirty_pages`).
const VMSTAT_PAGES: [(&str, &str); 2] = [
    ("nr_dirty_threshold", "host.memory.dirty_limit_bytes"),
    ("nr_dirty_background_threshold", "host.memory.dirty_background_bytes"),
];

/// Lines of /proc/meminfo, in kB there.
const MEMINFO: [(&str, &str); 4] = [
    ("MemAvailable", "host.memory.available_bytes"),
    ("Cached", "host.memory.cached_bytes"),
    ("Dirty", "host.memory.dirty_bytes"),
    ("Writeback", "host.memory.writeback_bytes"),
];

/// Files of /proc/pressure, with the names of their lines.
const PRESSURE: [(&str, [&str; 2]); 3] = [
    ("/proc/pressure/cpu", ["host.pressure.cpu.some_s", "host.pressure.cpu.full_s"]),
    ("/proc/pressure/io", ["host.pressure.io.some_s", "host.pressure.io.full_s"]),
    ("/proc/pressure/memory", ["host.pressure.memory.some_s", "host.pressure.memory.full_s"]),
];

/// Open files of the host.
#[derive(Debug)]
pub struct Host {
    scale: Scale,
    stat: Reader,
    vmstat: Reader,
    meminfo: Reader,
    pressure: [(Reader, [&'static str; 2]); 3],
}

impl Host {
    pub fn open(source: &Source, scale: Scale) -> Self {
        Self {
            scale,
            stat: Reader::open(source, "/proc/stat"),
            vmstat: Reader::open(source, "/proc/vmstat"),
            meminfo: Reader::open(source, "/proc/meminfo"),
            pressure: PRESSURE.map(|(path, names)| (Reader::open(source, path), names)),
        }
    }

    pub fn gaps(&self) -> Vec<String> {
        let pressure = self.pressure.iter().map(|(reader, _)| reader);
        [&self.stat, &self.vmstat, &self.meminfo]
            .into_iter()
            .chain(pressure)
            .filter_map(Reader::gap)
            .collect()
    }

    pub fn read(&mut self, values: &mut Values) {
        if let Some(text) = self.stat.text() {
            stat(text, self.scale.tick_s, values);
        }
        if let Some(text) = self.vmstat.text() {
            vmstat(text, self.scale.page_bytes, values);
        }
        if let Some(text) = self.meminfo.text() {
            meminfo(text, values);
        }
        for (reader, names) in &mut self.pressure {
            if let Some(text) = reader.text() {
                pressure(text, names, values);
            }
        }
    }
}

fn stat(text: &str, tick_s: f64, values: &mut Values) {
    let mut cpus = 0_u32;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("cpu") {
            if rest.starts_with(' ') {
                for (name, ticks) in CPU.iter().zip(rest.split_ascii_whitespace()) {
                    values.set_some(name, ticks.parse::<u64>().ok().map(|t| t as f64 * tick_s));
                }
            } else if rest.starts_with(|c: char| c.is_ascii_digit()) {
                cpus += 1;
            }
        } else if let Some((name, value)) = STAT.iter().find_map(|(k, n)| Some((n, line_value(line, k)?))) {
            values.set_some(name, first(value).map(|n| n as f64));
        }
    }
    if cpus > 0 {
        values.set("host.cpu.count", f64::from(cpus));
    }
}

fn vmstat(text: &str, page_bytes: f64, values: &mut Values) {
    // Stalls are counted for each zone since Linux 4.10, and in one line before.
    let mut stalls: Option<u64> = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else { continue };
        if key.starts_with("allocstall") {
            if let Some(n) = first(value) {
                stalls = Some(stalls.unwrap_or(0).saturating_add(n));
            }
        } else if let Some((_, name)) = VMSTAT.iter().find(|(k, _)| *k == key) {
            values.set_some(name, first(value).map(|n| n as f64));
        } else if let Some((_, name)) = VMSTAT_PAGES.iter().find(|(k, _)| *k == key) {
            values.set_some(name, first(value).map(|n| n as f64 * page_bytes));
        }
    }
    values.set_some("host.memory.allocation_stalls", stalls.map(|n| n as f64));
}

fn meminfo(text: &str, values: &mut Values) {
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        if let Some((_, name)) = MEMINFO.iter().find(|(k, _)| *k == key) {
            values.set_some(name, first(value).map(|kib| kib as f64 * 1024.0));
        }
    }
}

/// `some avg10=… total=N` and `full …`; totals are microseconds (psi.rst of the kernel).
fn pressure(text: &str, names: &[&str; 2], values: &mut Values) {
    for line in text.lines() {
        let name = match line.split(' ').next() {
            Some("some") => names[0],
            Some("full") => names[1],
            _ => continue,
        };
        let total = line.rsplit_once("total=").and_then(|(_, us)| first(us));
        values.set_some(name, total.map(|us| us as f64 * 1e-6));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parse: impl Fn(&mut Values)) -> Vec<(String, f64)> {
        let mut values = Values::default();
        parse(&mut values);
        values.numbers.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn of<'a>(values: &'a [(String, f64)], name: &str) -> Option<&'a f64> {
        values.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    #[test]
    fn the_lines_of_stat_become_seconds_and_counts() {
        let text = "cpu  100 20 30 4000 50 6 7 8 90 10\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu3 1 1 1 1 1 1 1 1 1 1\nintr 5 4 3\nctxt 777\nbtime 1\nprocesses 12\nprocs_running 3\nprocs_blocked 2\nsoftirq 1 2\n";
        let values = read(|v| stat(text, 0.01, v));
        let expected = [1.0, 0.2, 0.3, 40.0, 0.5, 0.06, 0.07, 0.08, 0.9, 0.1];
        for (name, value) in CPU.iter().zip(expected) {
            assert!((of(&values, name).unwrap() - value).abs() < 1e-12, "{name}");
        }
        for (name, value) in [
            ("host.cpu.count", 2.0),
            ("host.context_switches", 777.0),
            ("host.forks", 12.0),
            ("host.load.running_now", 3.0),
            ("host.load.blocked_now", 2.0),
        ] {
            assert_eq!(of(&values, name), Some(&value), "{name}");
        }
    }

    #[test]
    fn columns_that_a_kernel_does_not_have_and_numbers_that_overflow_are_left_out() {
        let values = read(|v| stat("cpu  1 2 3 99999999999999999999 5\nctxt x\nprocs_running\n", 0.01, v));
        assert_eq!(of(&values, "host.cpu.user_s"), Some(&0.01));
        for name in [
            "host.cpu.idle_s",
            "host.cpu.steal_s",
            "host.cpu.count",
            "host.context_switches",
            "host.load.running_now",
        ] {
            assert_eq!(of(&values, name), None, "{name}");
        }
    }

    #[test]
    fn stalls_are_summed_over_zones() {
        let values = read(|v| {
            vmstat(
                "pswpin 4\npswpout 5\nallocstall_dma 1\nallocstall_normal 2\nallocstall_movable x\nzz\nnr_dirty_threshold 3\n",
                4096.0,
                v,
            )
        });
        assert_eq!(of(&values, "host.memory.allocation_stalls"), Some(&3.0));
        assert_eq!(of(&values, "host.swap.in_pages"), Some(&4.0));
        assert_eq!(of(&values, "host.swap.out_pages"), Some(&5.0));
        assert_eq!(of(&values, "host.memory.oom_kills"), None);
    }

    #[test]
    fn memory_is_in_bytes_and_swap_cache_is_not_page_cache() {
        let values = read(|v| {
            meminfo("MemAvailable:  2 kB\nSwapCached: 9 kB\nCached: 3 kB\nDirty: kB\nWriteback: 0 kB\n", v)
        });
        assert_eq!(of(&values, "host.memory.available_bytes"), Some(&2048.0));
        assert_eq!(of(&values, "host.memory.cached_bytes"), Some(&3072.0));
        assert_eq!(of(&values, "host.memory.writeback_bytes"), Some(&0.0));
        assert_eq!(of(&values, "host.memory.dirty_bytes"), None);
    }

    #[test]
    fn pressure_totals_become_seconds() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 total=x\n";
        let values = read(|v| pressure(text, &["some", "full"], v));
        assert_eq!(values, [("some".to_owned(), 2.5)]);
    }
}
