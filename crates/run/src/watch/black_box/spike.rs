//! When the server itself says that it became slow.

use std::collections::VecDeque;

use mydyno_model::units::three_digits;
use mydyno_model::watch::WatchInterval;

/// Intervals that give the usual value, and the fewest of them.
const MOST: usize = 120;
const FEWEST: usize = 20;

/// A value is a spike when it is so many times the usual one.
const TIMES: f64 = 5.0;

/// Signals, the most direct first: the figure, and the least by which a spike exceeds the usual value. Of those that a server has, the
/// first decides together with the sessions' number and age.
const LATENCIES: [(&str, f64); 3] = [
    // Microseconds.
    ("server.statement_us", 5_000.0),
    ("server.file.redo.misc_us", 20_000.0),
    ("disk.busiest.flush_us", 20_000.0),
];
const SESSIONS: [(&str, f64); 2] = [("server.threads_running", 15.0), ("server.sessions.oldest_s", 20.0)];

/// The latest values of the signals.
#[derive(Debug, Default)]
pub struct SpikeWatch {
    latest: VecDeque<WatchInterval>,
}

impl SpikeWatch {
    /// Adds an interval; what is a spike in it, in words.
    pub fn push(&mut self, interval: &WatchInterval) -> Option<String> {
        let latency = LATENCIES.iter().find(|(figure, _)| value(interval, figure).is_some());
        let found = latency.into_iter().chain(&SESSIONS).find_map(|(figure, least)| {
            let now = value(interval, figure)?;
            let mut before: Vec<f64> = self.latest.iter().filter_map(|i| value(i, figure)).collect();
            before.sort_by(f64::total_cmp);
            let usual = *before.get(before.len() / 2).filter(|_| before.len() >= FEWEST)?;
            let is_spike = now >= TIMES * usual && now - usual >= *least;
            is_spike.then(|| format!("{figure} {} (usually {})", three_digits(now), three_digits(usual)))
        });
        self.latest.push_back(interval.clone());
        if self.latest.len() > MOST {
            self.latest.pop_front();
        }
        found
    }
}

fn value(interval: &WatchInterval, figure: &str) -> Option<f64> {
    match figure.strip_prefix("disk.busiest.") {
        None => interval.figures.get(figure).copied(),
        Some(what) => {
            let disks = interval.figures.iter().filter(|(name, _)| name.starts_with("host.disk."));
            let values = disks.filter(|(name, _)| name.ends_with(&format!(".{what}")));
            values.map(|(_, value)| *value).max_by(f64::total_cmp)
        }
    }
}
