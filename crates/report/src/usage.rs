//! Use of the host's resources in the measured window of a step, from samples and intervals.

use mydyno_model::record::{Interval, Phase, RunRecord};
use mydyno_model::sample::Sample;
use mydyno_model::units::{show_bytes, three_digits};

/// Counters of productive CPU time. User and nice time include the time of guests.
pub const BUSY: &[&str] =
    &["host.cpu.user_s", "host.cpu.nice_s", "host.cpu.system_s", "host.cpu.irq_s", "host.cpu.softirq_s"];
/// Counters of the server process.
pub const SERVER: &[&str] = &["server.cpu.user_s", "server.cpu.system_s"];

/// Means over a measured window; `None` for quantities that were not sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// CPUs that were online.
    pub cpus: Option<f64>,
    /// CPUs in use by all processes.
    pub host_cpus: Option<f64>,
    /// CPUs in use by the server.
    pub server_cpus: Option<f64>,
    /// CPUs in use by the load generator.
    pub client_cpus: f64,
    /// Share of all CPU time that other guests used.
    pub steal: Option<f64>,
    /// Share of all CPU time that was idle while a task waited for a disk.
    pub disk_wait: Option<f64>,
    /// The disk that was busy for the largest share of the time.
    pub disk: Option<DiskUsage>,
    /// Pages swapped in and out, a second.
    pub swap_pages_per_s: Option<f64>,
}

/// One disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskUsage {
    /// Name in the kernel.
    pub name: String,
    /// Share of the time with a request in flight.
    pub busy: f64,
    /// Bytes read a second.
    pub read_per_s: f64,
    /// Bytes written a second.
    pub write_per_s: f64,
}

/// The usage of a step; `None` when none of it was measured.
pub fn usage(record: &RunRecord, step: usize) -> Option<Usage> {
    let window: Vec<&Interval> =
        record.intervals.iter().filter(|i| i.step == step && i.phase == Phase::Measure).collect();
    let start_s = window.first()?.start_s;
    let last = window.last()?;
    let end_s = last.start_s + last.width_s;
    let width_s: f64 = window.iter().map(|i| i.width_s).sum();
    let client_us: u64 = window.iter().map(|i| i.client.user_us + i.client.system_us).sum();
    let mut inside = record.samples.iter().filter(|s| s.at_s >= start_s - 0.5 && s.at_s <= end_s + 0.5);
    let ends = inside.next().and_then(|first| inside.next_back().map(|last| Ends { first, last }));
    let known = record.facts.as_ref().and_then(|f| f.number("host.cpu.count"));
    let cpus = known.or_else(|| ends.as_ref()?.last.values.get("host.cpu.count").copied());
    let share = |rate: Option<f64>| rate.zip(cpus).map(|(rate, cpus)| rate / cpus);
    let rate = |names: &[&str]| ends.as_ref().and_then(|e| e.rate(names));
    Some(Usage {
        cpus,
        host_cpus: rate(BUSY),
        server_cpus: rate(SERVER),
        client_cpus: client_us as f64 / 1e6 / width_s,
        steal: share(rate(&["host.cpu.steal_s"])),
        disk_wait: share(rate(&["host.cpu.iowait_s"])),
        disk: ends.as_ref().and_then(Ends::busiest_disk),
        swap_pages_per_s: rate(&["host.swap.in_pages", "host.swap.out_pages"]),
    })
}

struct Ends<'a> {
    first: &'a Sample,
    last: &'a Sample,
}

impl Ends<'_> {
    /// Increase a second of the sum of the available counters; `None` when none is available.
    fn rate(&self, names: &[&str]) -> Option<f64> {
        let gap_s = self.last.at_s - self.first.at_s;
        let growth: Vec<f64> = names
            .iter()
            .filter_map(|n| Some(self.last.values.get(*n)? - self.first.values.get(*n)?))
            .collect();
        let sum: f64 = growth.iter().sum();
        (!growth.is_empty() && sum >= 0.0 && gap_s > 0.0).then(|| sum / gap_s)
    }

    fn busiest_disk(&self) -> Option<DiskUsage> {
        let names =
            self.first.values.keys().filter_map(|n| n.strip_prefix("host.disk.")?.strip_suffix(".io_s"));
        let of = |name: &str, what: &str| self.rate(&[format!("host.disk.{name}.{what}").as_str()]);
        let disks = names.filter_map(|name| {
            Some(DiskUsage {
                name: name.to_owned(),
                busy: of(name, "io_s")?.min(1.0),
                read_per_s: of(name, "read_bytes")?,
                write_per_s: of(name, "write_bytes")?,
            })
        });
        disks.max_by(|a, b| {
            (a.busy, a.write_per_s).partial_cmp(&(b.busy, b.write_per_s)).unwrap_or(std::cmp::Ordering::Equal)
        })
    }
}

impl Usage {
    /// CPUs of the host, as in `5.1 of 8 CPUs`.
    pub fn host_words(&self) -> Option<String> {
        let busy = three_digits(self.host_cpus?);
        Some(match self.cpus {
            Some(cpus) => format!("{busy} of {} CPUs", three_digits(cpus)),
            None => format!("{busy} CPUs"),
        })
    }
}

impl DiskUsage {
    /// Data rates, as in `500 KiB/s read, 21 MiB/s written`; empty below a kibibyte a second.
    pub fn moved(&self) -> String {
        let both = [(self.read_per_s, "read"), (self.write_per_s, "written")];
        let words = both.iter().filter(|(bytes, _)| *bytes >= 1024.0);
        words.map(|(bytes, what)| format!("{}/s {what}", show_bytes(*bytes))).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_disk_is_the_one_with_requests_in_flight_for_the_longest() {
        let sample = |at_s: f64, scale: f64| Sample {
            at_s,
            took_s: 0.0,
            key: true,
            values: [("io_s", 0.5), ("read_bytes", 0.0), ("write_bytes", 2_097_152.0)]
                .iter()
                .flat_map(|(what, v)| {
                    [
                        (format!("host.disk.vda.{what}").into(), v * scale),
                        (format!("host.disk.vdb.{what}").into(), v * scale / 2.0),
                    ]
                })
                .collect(),
            ..Sample::default()
        };
        let (first, last) = (sample(0.0, 0.0), sample(10.0, 10.0));
        let ends = Ends { first: &first, last: &last };
        let disk = ends.busiest_disk().unwrap();
        assert_eq!((disk.name.as_str(), disk.busy, disk.write_per_s), ("vda", 0.5, 2_097_152.0));
    }

    #[test]
    fn what_was_not_sampled_is_not_nothing() {
        let empty = |at_s| Sample { at_s, key: true, ..Sample::default() };
        let ends = Ends { first: &empty(0.0), last: &empty(9.0) };
        assert_eq!(ends.rate(BUSY), None);
    }
}
