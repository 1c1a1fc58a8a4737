//! Changes of counters between two samples. Readers compute them; samples contain the values as read.

use mydyno_model::sample::Sample;

/// Milliseconds of block devices are 32 bits wide in the kernel's struct disk_stats, also where a long has 64
/// (block/genhd.c prints them with %u); the recorded seconds wrap here.
const DISK_TIME_WRAP_S: f64 = 4_294_967.296;

/// The change of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Growth {
    /// It grew by this much, or did not change.
    Grew(f64),
    /// It reached its maximum and restarted from zero; this is the growth including the wrap.
    Wrapped(f64),
    /// It fell because its source was restarted, as a server is. The growth is unknown.
    Restarted,
    /// The later sample lacks it.
    Vanished,
    /// The earlier sample lacks it.
    Appeared,
    /// Neither sample has it.
    Unknown,
}

impl Growth {
    /// The growth of a counter between two full frames.
    pub fn of(name: &str, before: &Sample, after: &Sample) -> Self {
        match (before.values.get(name), after.values.get(name)) {
            (Some(before), Some(after)) => Self::between(name, *before, *after),
            (Some(_), None) => Self::Vanished,
            (None, Some(_)) => Self::Appeared,
            (None, None) => Self::Unknown,
        }
    }

    fn between(name: &str, before: f64, after: f64) -> Self {
        if after >= before {
            return Self::Grew(after - before);
        }
        match wraps_at(name) {
            // A wrap goes from the last quarter of the range to the first; any other fall is a restart.
            Some(width) if before <= width && before > 0.75 * width && after < 0.25 * width => {
                Self::Wrapped(after + width - before)
            }
            _ => Self::Restarted,
        }
    }

    /// The growth, if it is known.
    pub fn amount(self) -> Option<f64> {
        match self {
            Self::Grew(amount) | Self::Wrapped(amount) => Some(amount),
            Self::Restarted | Self::Vanished | Self::Appeared | Self::Unknown => None,
        }
    }
}

fn wraps_at(name: &str) -> Option<f64> {
    let (_, what) = name.strip_prefix("host.disk.")?.rsplit_once('.')?;
    ["read_s", "write_s", "io_s", "queue_s", "flush_s"].contains(&what).then_some(DISK_TIME_WRAP_S)
}

/// A counter that did not simply grow.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterEvent {
    /// Seconds since the run began: the later of the two samples.
    pub at_s: f64,
    /// The counter.
    pub name: String,
    /// The change; never [`Growth::Grew`].
    pub change: Growth,
}

/// Counters that wrapped, restarted, vanished or appeared between two full frames. Gauges may change in any way; they
/// count as events only when they vanish or appear.
pub fn events(before: &Sample, after: &Sample) -> Vec<CounterEvent> {
    let appeared = after.values.keys().filter(|name| !before.values.contains_key(*name));
    before
        .values
        .keys()
        .chain(appeared)
        .map(|name| (name, Growth::of(name, before, after)))
        .filter(|(name, change)| match change {
            Growth::Grew(_) | Growth::Unknown => false,
            Growth::Wrapped(_) | Growth::Restarted => !may_fall(name),
            Growth::Vanished | Growth::Appeared => true,
        })
        .map(|(name, change)| CounterEvent { at_s: after.at_s, name: (**name).to_owned(), change })
        .collect()
}

/// Whether a value may fall in normal operation: gauges, and CPU times that the kernel corrects downwards.
pub fn may_fall(name: &str) -> bool {
    if let Some(status) = name.strip_prefix("server.status.") {
        return mydyno_facts::is_status_gauge(status);
    }
    name.ends_with("_now")
        || name.ends_with(".count")
        || name.ends_with("rss_bytes")
        || (name.starts_with("host.memory.") && name.ends_with("_bytes"))
        || name.starts_with("server.sessions.")
        // proc_stat(5): idle time of a CPU that goes off line, and iowait, may decrease.
        || matches!(name, "host.cpu.idle_s" | "host.cpu.iowait_s")
        || (name.starts_with("host.cpu.cpu") && name.ends_with(".idle_s"))
        // Summed over live threads: threads that end take their counts with them.
        || matches!(name, "server.voluntary_switches" | "server.involuntary_switches")
        || name.starts_with("server.threads.")
        || ["server.cgroup.memory.", "server.memory.", "server.smaps."]
            .iter()
            .any(|start| name.starts_with(start) && name.ends_with("_bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, values: &[(&str, f64)]) -> Sample {
        let values = values.iter().map(|(n, v)| ((*n).into(), *v)).collect();
        Sample { at_s, key: true, values, ..Sample::default() }
    }

    #[test]
    fn a_wrap_keeps_its_growth_and_a_restart_has_none() {
        let near_the_end = DISK_TIME_WRAP_S - 0.296;
        for (name, before, after, expected) in [
            ("host.disk.sda.io_s", near_the_end, 1.0, Growth::Wrapped(1.296)),
            ("host.disk.sda.io_s", 100.0, 1.0, Growth::Restarted),
            ("host.disk.sda.io_s", near_the_end, near_the_end - 1.0, Growth::Restarted),
            ("host.disk.sda.reads", near_the_end, 1.0, Growth::Restarted),
            ("server.cpu.user_s", 5.0, 5.0, Growth::Grew(0.0)),
        ] {
            let found = Growth::of(name, &sample(0.0, &[(name, before)]), &sample(1.0, &[(name, after)]));
            match (found, expected) {
                (Growth::Wrapped(found), Growth::Wrapped(expected)) => {
                    assert!((found - expected).abs() < 1e-6, "{name}: {found}");
                }
                (found, expected) => assert_eq!(found, expected, "{name}"),
            }
        }
    }

    #[test]
    fn a_server_that_restarts_is_an_event_for_each_counter_and_never_a_negative_rate() {
        let before =
            sample(1.0, &[("server.cpu.user_s", 9.0), ("server.threads_now", 9.0), ("host.forks", 1.0)]);
        let after = sample(2.0, &[("server.cpu.user_s", 0.5), ("server.threads_now", 3.0), ("new", 1.0)]);
        let found: Vec<(String, Growth)> =
            events(&before, &after).into_iter().map(|e| (e.name, e.change)).collect();
        let expected = [
            ("server.cpu.user_s".to_owned(), Growth::Restarted),
            ("host.forks".to_owned(), Growth::Vanished),
            ("new".to_owned(), Growth::Appeared),
        ];
        assert_eq!(found, expected);
        assert_eq!(Growth::of("server.cpu.user_s", &before, &after).amount(), None);
    }

    #[test]
    fn gauges_and_status_gauges_may_fall() {
        for name in
            ["host.disk.sda.in_flight_now", "host.memory.dirty_bytes", "server.status.threads_running"]
        {
            assert!(may_fall(name), "{name}");
        }
        for name in ["server.status.questions", "host.disk.sda.read_bytes", "server.io.write_bytes"] {
            assert!(!may_fall(name), "{name}");
        }
    }
}
