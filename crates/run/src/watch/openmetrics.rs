//! The latest sample as OpenMetrics text, for the textfile collector of Prometheus' node exporter.
//!
//! It contains raw counters, not rates: the monitoring system derives those. Names follow the OpenMetrics specification
//! 1.0: a prefix, base units in the name, `_total` on counters, `# EOF` at the end. The textfile collector accepts
//! `_total` names, refuses timestamps, and reads files that end in `.prom`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use mydyno_linux::calls::replace::Replacement;
use mydyno_model::sample::Sample;
use mydyno_samples::growth::may_fall;

use crate::error::RunError;

/// Replaces the file atomically by the text of a sample. The node exporter runs as its own user, so all users may read
/// it.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn write(path: &Path, sample: &Sample, up: Option<bool>) -> Result<(), RunError> {
    let text = text(sample, up);
    // The collector reads only files that end in `.prom`, so it never sees the one that is being written.
    Replacement::of(path)
        .mode(0o644)
        .write(|mut file| file.write_all(text.as_bytes()))
        .map_err(RunError::file("writing", path))
}

/// A family of metrics: samples with the same name and other labels.
#[derive(Debug, Default)]
struct Family {
    is_counter: bool,
    unit: &'static str,
    lines: Vec<String>,
}

/// The text of a sample. `up` tells whether the server answered, where there is one.
fn text(sample: &Sample, up: Option<bool>) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    if let Some(up) = up {
        let lines = vec![format!("mydyno_server_up {}", u8::from(up))];
        families.insert("mydyno_server_up".to_owned(), Family { lines, ..Family::default() });
    }
    for (name, value) in &sample.values {
        let metric = Metric::of(name);
        let family = families.entry(metric.family.clone()).or_insert_with(|| Family {
            is_counter: metric.is_counter,
            unit: metric.unit,
            lines: Vec::new(),
        });
        // Names that differ only in characters that OpenMetrics forbids are distinguished by their kind.
        if family.is_counter != metric.is_counter {
            continue;
        }
        let suffix = if metric.is_counter { "_total" } else { "" };
        family.lines.push(format!("{}{suffix}{} {}", metric.family, metric.labels, number(*value)));
    }
    let mut text = String::new();
    for (name, mut family) in families {
        let kind = if family.is_counter { "counter" } else { "gauge" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# TYPE {name} {kind}");
        if !family.unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {}", family.unit);
        }
        family.lines.sort();
        family.lines.dedup_by(|a, b| a.rsplit_once(' ').map(|p| p.0) == b.rsplit_once(' ').map(|p| p.0));
        for line in family.lines {
            let _ = writeln!(text, "{line}");
        }
    }
    text + "# EOF\n"
}

/// The representation of a value.
#[derive(Debug, PartialEq)]
struct Metric {
    family: String,
    labels: String,
    is_counter: bool,
    unit: &'static str,
}

/// Suffixes of the names of samples, with their OpenMetrics units.
const UNITS: [(&str, &str); 2] = [("_s", "seconds"), ("_bytes", "bytes")];

impl Metric {
    fn of(name: &str) -> Self {
        // Instants of readings, and values like a process or connection number, are no counters.
        let is_gauge = may_fall(name) || name.ends_with(".at_s");
        let (base, label) = labelled(name);
        let base = base.strip_suffix("_now").unwrap_or(&base);
        let (base, unit) = UNITS
            .iter()
            .find_map(|(ending, unit)| Some((base.strip_suffix(ending)?, *unit)))
            .unwrap_or((base, ""));
        let mut family = format!("mydyno_{}", sanitised(base));
        if !unit.is_empty() {
            family = format!("{family}_{unit}");
        }
        // `_total` belongs to the samples of a counter, not to the name of its family.
        let family = family.strip_suffix("_total").map_or(family.clone(), str::to_owned);
        let labels =
            label.map(|(key, value)| format!("{{{key}=\"{}\"}}", escaped(&value))).unwrap_or_default();
        Self { family, labels, is_counter: !is_gauge, unit }
    }
}

/// A name without the device, kind of wait, statement or channel in it, and that as a label.
fn labelled(name: &str) -> (String, Option<(&'static str, String)>) {
    for (prefix, key) in [("host.disk.", "device"), ("host.net.", "device"), ("host.cpu.cpu", "cpu")] {
        let found = name.strip_prefix(prefix).and_then(|rest| rest.rsplit_once('.'));
        if let Some((device, what)) = found {
            let family = prefix.trim_end_matches("cpu").trim_end_matches('.');
            let family = if key == "cpu" { "host.one_cpu" } else { family };
            return (format!("{family}.{what}"), Some((key, device.to_owned())));
        }
    }
    for (prefix, family, key) in [
        ("server.waits.", "server.wait", "event"),
        ("server.digest.", "server.digest", "digest"),
        ("server.replica.", "server.replica", "channel"),
    ] {
        if let Some((of, what)) = name.strip_prefix(prefix).and_then(|rest| rest.rsplit_once('.')) {
            return (format!("{family}.{what}"), Some((key, of.to_owned())));
        }
    }
    if let Some(cpu) = name.strip_prefix("host.interrupts.cpu") {
        return ("host.interrupts".to_owned(), Some(("cpu", cpu.to_owned())));
    }
    if let Some(kind) = name.strip_prefix("host.softirqs.") {
        return ("host.softirqs".to_owned(), Some(("kind", kind.to_owned())));
    }
    (name.to_owned(), None)
}

/// Replaces characters other than letters, digits and underscores.
fn sanitised(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 9e15 { format!("{value:.0}") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[(&str, f64)]) -> Sample {
        let values = values.iter().map(|(n, v)| ((*n).into(), *v)).collect();
        Sample { at_s: 1.0, key: true, values, ..Sample::default() }
    }

    #[test]
    fn a_sample_is_the_text_that_the_specification_asks_for() {
        let found = text(
            &sample(&[
                ("host.cpu.user_s", 12.5),
                ("host.memory.dirty_bytes", 4096.0),
                ("host.disk.nvme0.1n1.read_bytes", 512.0),
                ("host.disk.a\"b\\.read_bytes", 1.0),
                ("host.cpu.cpu3.busy_s", 2.0),
                ("server.status.threads_running", 3.0),
                ("server.status.questions", 7.0),
                ("server.waits.io/file/sql/binlog.time_s", 1.5),
                ("server.digest.e19033140a2ee399@my.db.rows_sent", 4.0),
                ("server.replica.default.lag_s_now", 2.0),
                ("host.interrupts.cpu0", 9.0),
            ]),
            Some(true),
        );
        let expected = "\
# TYPE mydyno_host_cpu_user_seconds counter
# UNIT mydyno_host_cpu_user_seconds seconds
mydyno_host_cpu_user_seconds_total 12.5
# TYPE mydyno_host_disk_read_bytes counter
# UNIT mydyno_host_disk_read_bytes bytes
mydyno_host_disk_read_bytes_total{device=\"a\\\"b\\\\\"} 1
mydyno_host_disk_read_bytes_total{device=\"nvme0.1n1\"} 512
# TYPE mydyno_host_interrupts counter
mydyno_host_interrupts_total{cpu=\"0\"} 9
# TYPE mydyno_host_memory_dirty_bytes gauge
# UNIT mydyno_host_memory_dirty_bytes bytes
mydyno_host_memory_dirty_bytes 4096
# TYPE mydyno_host_one_cpu_busy_seconds counter
# UNIT mydyno_host_one_cpu_busy_seconds seconds
mydyno_host_one_cpu_busy_seconds_total{cpu=\"3\"} 2
# TYPE mydyno_server_digest_rows_sent counter
mydyno_server_digest_rows_sent_total{digest=\"e19033140a2ee399@my.db\"} 4
# TYPE mydyno_server_replica_lag_seconds gauge
# UNIT mydyno_server_replica_lag_seconds seconds
mydyno_server_replica_lag_seconds{channel=\"default\"} 2
# TYPE mydyno_server_status_questions counter
mydyno_server_status_questions_total 7
# TYPE mydyno_server_status_threads_running gauge
mydyno_server_status_threads_running 3
# TYPE mydyno_server_up gauge
mydyno_server_up 1
# TYPE mydyno_server_wait_time_seconds counter
# UNIT mydyno_server_wait_time_seconds seconds
mydyno_server_wait_time_seconds_total{event=\"io/file/sql/binlog\"} 1.5
# EOF
";
        assert_eq!(found, expected);
    }

    #[test]
    fn no_name_is_there_twice_and_no_counter_lacks_its_total() {
        let found = text(&sample(&[("a.b", 1.0), ("a_b", 2.0), ("x.y_total", 1.0), ("é.z_now", 1.0)]), None);
        let names: Vec<&str> = found
            .lines()
            .filter(|l| !l.starts_with('#'))
            .filter_map(|l| Some(l.rsplit_once(' ')?.0))
            .collect();
        assert_eq!(names, ["mydyno___z", "mydyno_a_b_total", "mydyno_x_y_total"], "{found}");
    }
}
