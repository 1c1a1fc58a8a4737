//! The report of a load: text, or a line of comma-separated values.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use super::settings::{Engine, Settings};
use crate::streams::Streams;
use crate::sysbench::histogram::Histogram;

/// Results of the iterations of a load.
pub(super) struct Outcome<'a> {
    pub(super) engine: Option<&'a Engine>,
    pub(super) clients: u64,
    /// Queries of each client.
    pub(super) queries: u64,
    pub(super) durations: &'a [Duration],
    /// Milliseconds of each query.
    pub(super) latency: &'a Histogram,
}

impl Outcome<'_> {
    /// Mean, least and greatest duration of an iteration.
    fn times(&self) -> [Duration; 3] {
        let sum: Duration = self.durations.iter().sum();
        let mean = sum.checked_div(self.durations.len() as u32).unwrap_or_default();
        let least = self.durations.iter().min().copied().unwrap_or_default();
        [mean, least, self.durations.iter().max().copied().unwrap_or_default()]
    }

    fn text(&self, settings: &Settings) -> String {
        let mut text = String::from("Benchmark\n");
        if let Some(engine) = self.engine {
            let _ = writeln!(text, "\tRunning for engine {}", engine.name);
        }
        for (name, time) in ["Average", "Minimum", "Maximum"].iter().zip(self.times()) {
            let _ =
                writeln!(text, "\t{name} number of seconds to run all queries: {} seconds", seconds(time));
        }
        let _ = writeln!(text, "\tNumber of clients running queries: {}", self.clients);
        let _ = writeln!(text, "\tAverage number of queries per client: {}", self.queries);
        let latency = self.latency.counts();
        for percentile in &settings.percentiles {
            let value = latency.percentile(*percentile);
            let _ = writeln!(text, "\tLatency of a query, percentile {percentile}: {value:.3} ms");
        }
        text.push('\n');
        text
    }

    fn line(&self, settings: &Settings) -> String {
        let engine = self.engine.map_or("", |engine| engine.name.as_str());
        let load = settings.shape.map_or("mixed", |shape| shape.load.name());
        let [mean, least, most] = self.times().map(seconds);
        format!("{engine},{load},{mean},{least},{most},{},{}\n", self.clients, self.queries)
    }
}

fn seconds(time: Duration) -> String {
    format!("{}.{:03}", time.as_secs(), time.subsec_millis())
}

/// Prints the report where one is wanted.
///
/// # Errors
/// The file of values cannot be written.
pub(super) fn print(outcome: &Outcome<'_>, settings: &Settings, streams: &Streams) -> Result<(), String> {
    if settings.only_print {
        return Ok(());
    }
    match &settings.csv {
        None if settings.silent => {}
        None => streams.output(outcome.text(settings).as_bytes()),
        Some(None) => streams.output(outcome.line(settings).as_bytes()),
        Some(Some(path)) => {
            let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
            opened
                .and_then(|mut file| file.write_all(outcome.line(settings).as_bytes()))
                .map_err(|error| format!("Could not open csv file '{}': {error}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds() {
        assert_eq!(seconds(Duration::from_micros(12_034_999)), "12.034");
        let durations = [Duration::from_millis(2), Duration::from_millis(15)];
        let latency = Histogram::of_latency();
        let outcome =
            Outcome { engine: None, clients: 4, queries: 5, durations: &durations, latency: &latency };
        assert_eq!(outcome.times().map(seconds), ["0.008", "0.002", "0.015"]);
    }
}
