//! A probe's document as text.

use mydyno_model::Estimate;
use mydyno_model::probe::{Figure, Measure, ProbeReport, Storage};
use mydyno_model::units::{show_bytes, show_count, show_us, three_digits};

/// The whole document.
pub fn of(report: &ProbeReport) -> String {
    let mut lines = vec![machine(report)];
    lines.extend(report.storage.iter().flat_map(storage));
    if let Some(levers) = report.parameters.get("levers").and_then(|levers| levers.as_array()) {
        let levers: Vec<&str> = levers.iter().filter_map(|lever| lever.as_str()).collect();
        lines.push(format!("Set during the probe, and restored: {}", levers.join(", ")));
    }
    if report.interrupted {
        lines.push("Interrupted: what follows was measured until then.".to_owned());
    }
    lines.push(String::new());
    lines.extend(table(&report.measures));
    let section = |lines: &mut Vec<String>, title: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            lines.push(String::new());
            lines.push(title.to_owned());
            lines.extend(entries.into_iter().map(|entry| format!("  {entry}")));
        }
    };
    let doubts: Vec<String> = report.measures.iter().filter_map(doubt).collect();
    section(&mut lines, "Intervals that promise less", doubts);
    let warnings =
        report.warnings.iter().map(|w| format!("{}: {} → {}", w.id, w.text, w.next_step)).collect();
    section(&mut lines, "Warnings", warnings);
    section(&mut lines, "What it means for a server here", report.meaning.clone());
    let missing = report.not_measured.iter().map(|n| format!("{}: {}", n.id, n.why)).collect();
    section(&mut lines, "Not measured", missing);
    let published = report.literature.iter().map(|p| {
        let note = p.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        format!("{} {}: {}: {}{note}. {}", p.year, p.measure, p.what, p.value, p.source)
    });
    section(&mut lines, "What others published", published.collect());
    lines.push(String::new());
    lines.join("\n")
}

fn machine(report: &ProbeReport) -> String {
    let machine = &report.machine;
    let plural = if machine.cpus == 1 { "" } else { "s" };
    let stolen = match machine.stolen_share {
        Some(share) if share >= 0.0005 => format!(", {:.1} % of CPU time stolen", share * 100.0),
        _ => String::new(),
    };
    format!(
        "{}: {}, {} CPU{plural}, {}, Linux {}, clock {}{stolen}",
        report.probe,
        machine.cpu,
        machine.cpus,
        show_bytes(machine.memory_bytes as f64),
        machine.kernel,
        machine.clock_source
    )
}

fn storage(storage: &Storage) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} on {} ({})",
        storage.folder, storage.file_system, storage.mount_point, storage.mount_options
    )];
    for device in &storage.devices {
        let mut says = vec![device.model.clone().unwrap_or_else(|| "no model given".to_owned())];
        says.extend(
            device.rotational.map(|yes| if yes { "rotational" } else { "not rotational" }.to_owned()),
        );
        says.extend(device.write_cache.as_ref().map(|cache| format!("write cache \"{cache}\"")));
        says.extend(device.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")));
        says.extend(device.backing_file.as_ref().map(|file| format!("a file: {file}")));
        lines.push(format!("  {}: {}", device.name, says.join(", ")));
    }
    lines.extend(storage.disk.as_ref().map(|disk| format!("  {disk}")));
    let sent = match storage.flushes_sent {
        Some(true) => "sent",
        Some(false) => "not sent",
        None => "unknown",
    };
    lines.push(format!("Flushes: {sent}: {}", storage.flushes_why));
    lines
}

/// A row per measure, its figures in columns; intervals are below their values.
fn table(measures: &[Measure]) -> Vec<String> {
    let width = measures.iter().map(|m| m.id.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for measure in measures {
        let figures: Vec<String> = measure.figures.iter().map(figure).collect();
        lines.push(format!("{:<width$}  {}", measure.id, figures.join("  ")));
        lines.push(format!("{:width$}  {}", "", measure.what));
    }
    lines
}

/// As in `per_s 3,456 [3,400, 3,510]`; `~` before an interval without a known level.
fn figure(figure: &Figure) -> String {
    let (name, unit) = split(&figure.name);
    let show = |value: f64| match unit {
        "us" => show_us(value),
        "ns" => show_us(value / 1e3),
        "bytes_per_s" => format!("{}/s", show_bytes(value)),
        "per_s" if value >= 1000.0 => format!("{}/s", show_count(value.round() as u64)),
        "per_s" => format!("{}/s", three_digits(value)),
        _ => three_digits(value),
    };
    let name = if name.is_empty() { String::new() } else { format!("{name} ") };
    let Estimate { value, low, high, .. } = &figure.estimate;
    match (low, high) {
        (Some(low), Some(high)) => {
            let doubtful = if figure.estimate.is_provisional() { "~" } else { "" };
            format!("{name}{} {doubtful}[{}, {}]", show(*value), show(*low), show(*high))
        }
        _ => format!("{name}{}", show(*value)),
    }
}

fn split(name: &str) -> (&str, &str) {
    match name {
        "per_s" | "bytes_per_s" => ("", name),
        "minor_faults" => ("faults", ""),
        "p999_us" => ("p99.9", "us"),
        name => name.rsplit_once('_').unwrap_or((name, "")),
    }
}

/// The reason why figures of a measure have no interval, or one without a known level.
fn doubt(measure: &Measure) -> Option<String> {
    let says = |figure: &Figure| {
        let estimate = &figure.estimate;
        let why = match (estimate.low, estimate.is_provisional()) {
            (None, _) => estimate.method.clone(),
            (Some(_), true) => estimate.method.split("provisional: ").nth(1)?.to_owned(),
            (Some(_), false) => return None,
        };
        let counted = why.starts_with("counted") || why.starts_with("the longest");
        let name = Some(split(&figure.name).0).filter(|name| !name.is_empty()).unwrap_or("rate");
        (!counted).then(|| format!("{name}: {why}"))
    };
    let all: Vec<String> = measure.figures.iter().filter_map(says).collect();
    (!all.is_empty()).then(|| format!("{}: {}", measure.id, all.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_shows_its_interval_and_whether_its_level_is_promised() {
        let show = |name: &str, estimate| figure(&Figure { name: name.to_owned(), estimate });
        let rate = Estimate::with_interval(3456.0, 3400.0, 3510.0, 0.95, "a test");
        assert_eq!(show("per_s", rate), "3,456/s [3,400/s, 3,510/s]");
        let time = Estimate::provisional(250.0, 240.0, 261.0, "Woodruff; provisional: few windows");
        assert_eq!(show("p99_us", time), "p99 250 µs ~[240 µs, 261 µs]");
        assert_eq!(show("p50_ns", Estimate::without_interval(1.5, "why")), "p50 1.5 ns");
    }
}
