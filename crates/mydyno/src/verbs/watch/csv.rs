//! Intervals as comma-separated values (RFC 4180). The columns are fixed by the first interval.

use mydyno_model::watch::WatchInterval;
use mydyno_samples::figures::names::{NAMES, OF_DISK};

/// The columns, once the first interval has named the disks.
#[derive(Debug, Default)]
pub struct Table {
    figures: Vec<String>,
}

impl Table {
    /// The line of an interval, with the line of headings before the first one. A figure that is absent is an empty field.
    pub fn lines(&mut self, interval: &WatchInterval) -> String {
        let mut text = String::new();
        if self.figures.is_empty() {
            self.figures = columns(interval);
            let fixed = ["created", "at_s", "over_s", "late_s", "missed"].map(str::to_owned);
            let names: Vec<String> = fixed.into_iter().chain(self.figures.iter().map(|n| field(n))).collect();
            text = names.join(",") + ",events\n";
        }
        let number =
            |value: Option<f64>| value.map(|value| format!("{}", rounded(value))).unwrap_or_default();
        let mut fields = vec![
            interval.header.created.clone(),
            number(Some(interval.at_s)),
            number(Some(interval.over_s)),
            number(interval.late_s),
            interval.missed.to_string(),
        ];
        fields.extend(self.figures.iter().map(|name| number(interval.figures.get(name).copied())));
        let events: Vec<&str> = interval.events.iter().map(|event| event.text.as_str()).collect();
        fields.push(field(&events.join("; ")));
        text + &fields.join(",")
    }
}

fn columns(interval: &WatchInterval) -> Vec<String> {
    let disks = interval.figures.keys().filter_map(|name| {
        let (disk, what) = name.strip_prefix("host.disk.")?.rsplit_once('.')?;
        (what == "util_share").then_some(disk)
    });
    let of_disks = disks.flat_map(|disk| OF_DISK.map(|what| format!("host.disk.{disk}.{what}")));
    let cpus = interval.figures.keys().filter(|name| name.starts_with("host.cpu.cpu")).cloned();
    NAMES.iter().map(|name| (*name).to_owned()).chain(of_disks).chain(cpus).collect()
}

/// Six decimals are below the resolution of every counter.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
