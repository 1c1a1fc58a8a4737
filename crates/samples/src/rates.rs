//! Rates between two samples: pure arithmetic.

use indexmap::IndexMap;
use mydyno_model::sample::Sample;

use crate::growth::Growth;

/// Rates between two samples. A rate whose counters are missing in a sample or fell (a restart, a removed device) is
/// `None`: a gap is never reported as zero.
///
/// Shares are fractions of 1. CPU shares are fractions of all online CPUs, computed from the kernel's own account of
/// the time, so that they do not depend on the exact instant of reading.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rates {
    /// Length of the window in seconds.
    pub over_s: f64,
    /// CPUs that were online at its end.
    pub cpus: Option<f64>,
    /// Share of CPU time that was used: all but idle, I/O wait and stolen time.
    pub busy_share: Option<f64>,
    /// Share in user code, nice included.
    pub user_share: Option<f64>,
    /// Share in the kernel, interrupts included.
    pub system_share: Option<f64>,
    /// Share that was idle while a task waited for a disk.
    pub iowait_share: Option<f64>,
    /// Share that the hypervisor gave to other guests.
    pub steal_share: Option<f64>,
    /// Context switches a second.
    pub context_switches_per_s: Option<f64>,
    /// Pages read from swap a second.
    pub swap_in_pages_per_s: Option<f64>,
    /// Pages written to swap a second.
    pub swap_out_pages_per_s: Option<f64>,
    /// Page faults of all processes that read from a disk, a second.
    pub major_faults_per_s: Option<f64>,
    /// Processes that the OOM killer ended in the window.
    pub oom_kills: Option<f64>,
    /// Share of the time in which some task waited for a CPU (PSI).
    pub pressure_cpu_share: Option<f64>,
    /// Share of the time in which some task waited for a disk (PSI).
    pub pressure_io_share: Option<f64>,
    /// Share of the time in which some task waited for memory (PSI).
    pub pressure_memory_share: Option<f64>,
    /// CPU time that the server used, in CPUs.
    pub server_cpus: Option<f64>,
    /// Share of the window in which the server's groups were throttled, summed over CPUs: above 1 where several were.
    pub server_throttled_share: Option<f64>,
    /// The same for mydyno itself.
    pub client_throttled_share: Option<f64>,
    /// Bytes a second that the server read from storage.
    pub server_read_bytes_per_s: Option<f64>,
    /// Bytes a second that the server wrote to storage.
    pub server_write_bytes_per_s: Option<f64>,
    /// Share of one CPU that sampling itself used.
    pub observe_cpu_share: Option<f64>,
    /// Each disk that is in both samples.
    pub disks: IndexMap<String, DiskRates>,
}

/// Rates of one disk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiskRates {
    /// Reads a second.
    pub reads_per_s: Option<f64>,
    /// Writes a second.
    pub writes_per_s: Option<f64>,
    /// Bytes read a second.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes written a second.
    pub write_bytes_per_s: Option<f64>,
    /// Mean time of a read in microseconds; `None` when there was none.
    pub read_us: Option<f64>,
    /// Mean time of a write in microseconds; `None` when there was none.
    pub write_us: Option<f64>,
    /// Cache flushes a second.
    pub flushes_per_s: Option<f64>,
    /// Mean time of a flush in microseconds; `None` when there was none.
    pub flush_us: Option<f64>,
    /// Share of the time with at least one request in flight. A disk that serves many requests in parallel is not
    /// saturated at 1.
    pub util_share: Option<f64>,
    /// Mean number of requests in flight.
    pub queue: Option<f64>,
}

const CPU_TIMES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

impl Rates {
    /// The rates from `before` to `after`, both full frames; all `None` when no time lies between them.
    pub fn between(before: &Sample, after: &Sample) -> Self {
        let window = Window { before, after, over_s: after.at_s - before.at_s };
        if window.over_s.is_nan() || window.over_s <= 0.0 {
            return Self::default();
        }
        let mut rates = Self {
            over_s: window.over_s,
            cpus: after.values.get("host.cpu.count").copied(),
            context_switches_per_s: window.per_s("host.context_switches"),
            swap_in_pages_per_s: window.per_s("host.swap.in_pages"),
            swap_out_pages_per_s: window.per_s("host.swap.out_pages"),
            major_faults_per_s: window.per_s("host.memory.major_faults"),
            oom_kills: window.grown("host.memory.oom_kills"),
            pressure_cpu_share: window.share("host.pressure.cpu.some_s"),
            pressure_io_share: window.share("host.pressure.io.some_s"),
            pressure_memory_share: window.share("host.pressure.memory.some_s"),
            server_cpus: window
                .per_s("server.cpu.total_s")
                .or_else(|| Some(window.per_s("server.cpu.user_s")? + window.per_s("server.cpu.system_s")?)),
            server_throttled_share: window.per_s("server.cgroup.cpu.throttled_s"),
            client_throttled_share: window.per_s("client.cgroup.cpu.throttled_s"),
            server_read_bytes_per_s: window.per_s("server.io.read_bytes"),
            server_write_bytes_per_s: window.per_s("server.io.write_bytes"),
            observe_cpu_share: window.per_s("observe.cpu_s"),
            ..Self::default()
        };
        rates.cpu(&window);
        rates.disks = disks(&window);
        rates
    }

    fn cpu(&mut self, window: &Window<'_>) {
        let mut grown = [0.0; 8];
        for (place, name) in grown.iter_mut().zip(CPU_TIMES) {
            let name = format!("host.cpu.{name}_s");
            *place = match (window.grown(&name), name.as_str()) {
                (Some(seconds), _) => seconds,
                // The kernel permits these two to decrease a little (proc_stat(5), cputime of idle CPUs).
                (None, "host.cpu.idle_s" | "host.cpu.iowait_s") if window.has(&name) => 0.0,
                // Steal was added in Linux 2.6.11; older kernels have none.
                (None, "host.cpu.steal_s") if !window.has(&name) => 0.0,
                _ => return,
            };
        }
        let total: f64 = grown.iter().sum();
        if total <= 0.0 {
            return;
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = grown;
        self.busy_share = Some((total - idle - iowait - steal) / total);
        self.user_share = Some((user + nice) / total);
        self.system_share = Some((system + irq + softirq) / total);
        self.iowait_share = Some(iowait / total);
        self.steal_share = Some(steal / total);
    }
}

fn disks(window: &Window<'_>) -> IndexMap<String, DiskRates> {
    let names = window.after.values.keys().filter_map(|name| {
        let (disk, what) = name.strip_prefix("host.disk.")?.rsplit_once('.')?;
        (what == "io_s").then_some(disk)
    });
    names
        .map(|disk| {
            let of = |what: &str| format!("host.disk.{disk}.{what}");
            let mean_us = |time: &str, count: &str| {
                let (time, count) = (window.grown(&of(time))?, window.grown(&of(count))?);
                (count > 0.0).then(|| time / count * 1e6)
            };
            let rates = DiskRates {
                reads_per_s: window.per_s(&of("reads")),
                writes_per_s: window.per_s(&of("writes")),
                read_bytes_per_s: window.per_s(&of("read_bytes")),
                write_bytes_per_s: window.per_s(&of("write_bytes")),
                read_us: mean_us("read_s", "reads"),
                write_us: mean_us("write_s", "writes"),
                flushes_per_s: window.per_s(&of("flushes")),
                flush_us: mean_us("flush_s", "flushes"),
                util_share: window.share(&of("io_s")),
                queue: window.per_s(&of("queue_s")),
            };
            (disk.to_owned(), rates)
        })
        .collect()
}

struct Window<'a> {
    before: &'a Sample,
    after: &'a Sample,
    over_s: f64,
}

impl Window<'_> {
    fn has(&self, name: &str) -> bool {
        self.before.values.contains_key(name) && self.after.values.contains_key(name)
    }

    /// The growth of a counter; `None` when a sample lacks it or it was restarted.
    fn grown(&self, name: &str) -> Option<f64> {
        Growth::of(name, self.before, self.after).amount()
    }

    fn per_s(&self, name: &str) -> Option<f64> {
        Some(self.grown(name)? / self.over_s)
    }

    /// The growth of a time counter as a share of the window. The counter and the clock are not read at the same
    /// instant, so the quotient can slightly exceed 1; it is limited to 1.
    fn share(&self, name: &str) -> Option<f64> {
        Some(self.per_s(name)?.min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, values: &[(&str, f64)]) -> Sample {
        let values = values.iter().map(|(n, v)| ((*n).into(), *v)).collect();
        Sample { at_s, key: true, values, ..Sample::default() }
    }

    /// Two seconds on two CPUs: user 1.5, nice 0.1, system 0.4, idle 1.2, iowait 0.3, irq 0.05, softirq 0.05,
    /// steal 0.4: 4.0 in all.
    fn pair() -> (Sample, Sample) {
        let cpu = |k: f64| {
            [
                ("host.cpu.user_s", 10.0 + 1.5 * k),
                ("host.cpu.nice_s", 1.0 + 0.1 * k),
                ("host.cpu.system_s", 5.0 + 0.4 * k),
                ("host.cpu.idle_s", 100.0 + 1.2 * k),
                ("host.cpu.iowait_s", 2.0 + 0.3 * k),
                ("host.cpu.irq_s", 0.05 * k),
                ("host.cpu.softirq_s", 0.05 * k),
                ("host.cpu.steal_s", 3.0 + 0.4 * k),
                ("host.cpu.count", 2.0),
                ("host.swap.in_pages", 50.0 * k),
                ("host.swap.out_pages", 7.0),
                ("host.pressure.cpu.some_s", 1.0 + 0.5 * k),
                ("host.pressure.io.some_s", 2.5 * k),
                ("server.cpu.user_s", 1.0 + k),
                ("server.cpu.system_s", 1.0 + 0.5 * k),
                ("host.disk.vda.reads", 0.0),
                ("host.disk.vda.writes", 100.0 * k),
                ("host.disk.vda.write_bytes", 4_000_000.0 * k),
                ("host.disk.vda.write_s", 0.25 * k),
                ("host.disk.vda.read_s", 0.0),
                ("host.disk.vda.io_s", 0.8 * k),
                ("host.disk.vda.queue_s", 3.0 * k),
            ]
        };
        (sample(10.0, &cpu(0.0)), sample(12.0, &cpu(1.0)))
    }

    #[track_caller]
    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("a rate");
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn the_shares_of_the_cpus_are_those_computed_by_hand() {
        let (before, after) = pair();
        let rates = Rates::between(&before, &after);
        near(rates.busy_share, 2.1 / 4.0);
        near(rates.user_share, 1.6 / 4.0);
        near(rates.system_share, 0.5 / 4.0);
        near(rates.iowait_share, 0.3 / 4.0);
        near(rates.steal_share, 0.4 / 4.0);
        near(rates.server_cpus, 0.75);
        near(Some(rates.over_s), 2.0);
    }

    #[test]
    fn swap_pressure_and_disks_are_per_second_of_the_window() {
        let (before, after) = pair();
        let rates = Rates::between(&before, &after);
        near(rates.swap_in_pages_per_s, 25.0);
        near(rates.swap_out_pages_per_s, 0.0);
        near(rates.pressure_cpu_share, 0.25);
        near(rates.pressure_io_share, 1.0);
        assert_eq!(rates.pressure_memory_share, None);
        let vda = &rates.disks["vda"];
        near(vda.writes_per_s, 50.0);
        near(vda.write_bytes_per_s, 2_000_000.0);
        near(vda.write_us, 2500.0);
        assert_eq!(vda.read_us, None);
        near(vda.util_share, 0.4);
        near(vda.queue, 1.5);
        assert_eq!(vda.flushes_per_s, None);
    }

    #[test]
    fn a_counter_that_fell_or_is_missing_gives_no_rate() {
        let (before, mut after) = pair();
        after.values.insert("host.swap.in_pages".into(), -1.0);
        after.values.shift_remove("server.cpu.user_s");
        after.values.insert("host.cpu.user_s".into(), 0.0);
        let rates = Rates::between(&before, &after);
        assert_eq!((rates.swap_in_pages_per_s, rates.server_cpus, rates.busy_share), (None, None, None));
    }

    #[test]
    fn idle_time_that_goes_back_a_little_counts_as_none() {
        let (before, mut after) = pair();
        after.values.insert("host.cpu.iowait_s".into(), 1.99);
        let rates = Rates::between(&before, &after);
        near(rates.iowait_share, 0.0);
        near(rates.busy_share, 2.1 / 3.7);
    }

    #[test]
    fn no_time_between_two_samples_gives_nothing() {
        let (before, _) = pair();
        assert_eq!(Rates::between(&before, &before), Rates::default());
        let mut odd = before.clone();
        odd.at_s = f64::NAN;
        assert_eq!(Rates::between(&before, &odd), Rates::default());
    }

    #[test]
    fn a_disk_with_dots_in_its_name_keeps_it() {
        let values = [("host.disk.nvme0.1n1.io_s", 0.0)];
        let rates = Rates::between(&sample(0.0, &values), &sample(1.0, &values));
        assert!(rates.disks.contains_key("nvme0.1n1"));
    }
}
