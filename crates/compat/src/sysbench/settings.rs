//! The general options as values, checked in the order in which sysbench checks them.

use std::time::Duration;

use super::log::{Level, Log};
use super::options::Options;
use super::wanted::Wanted;

/// Values of the general options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) threads: usize,
    /// Limit of events; 0 for none.
    pub(crate) events: u64,
    /// Length of the test; `None` for no limit.
    pub(crate) time: Option<Duration>,
    /// Time from the start to a forced end.
    pub(crate) forced_shutdown: Option<Duration>,
    /// Time in which all threads must be ready to begin; `None` for no limit.
    pub(crate) thread_init: Option<Duration>,
    /// Arrivals per second; 0 for none.
    pub(crate) rate: f64,
    /// Seconds between reports; 0 for none. A negative number is shown and reports nothing.
    pub(crate) report_interval: i64,
    /// Seconds after the start, ascending.
    pub(crate) checkpoints: Vec<u64>,
    pub(crate) debug: bool,
    pub(crate) validate: bool,
    /// Percentile of the reports, in percent; 0 for none.
    pub(crate) percentile: f64,
    /// Further percentiles of the reports of the whole.
    pub(crate) more_percentiles: Vec<f64>,
    /// Reports of the whole have the ignored errors by number.
    pub(crate) errors_by_code: bool,
    /// A record is written.
    pub(crate) record: Option<Wanted>,
    pub(crate) histogram: bool,
    /// 0 for one of the clock.
    pub(crate) seed: i64,
}

/// Old names of options, in the order of their warnings.
const RENAMED: [(&str, &str); 4] =
    [("num-threads", "threads"), ("max-requests", "events"), ("max-time", "time"), ("tx-rate", "rate")];

/// The level of `--verbosity`, raised to diagnostics by `--debug`.
///
/// # Errors
/// A line for the output.
pub(crate) fn verbosity(options: &Options) -> Result<Level, String> {
    let number = options.int("verbosity");
    match Level::of(number) {
        None => Err(format!("Invalid value for verbosity: {number}")),
        Some(_) if options.is_on("debug") => Ok(Level::Debug),
        Some(level) => Ok(level),
    }
}

/// Gives the values of old names to the new ones, with a warning each.
pub(crate) fn apply_old_names(options: &mut Options, log: &Log) {
    for (old, new) in RENAMED {
        if options.given(old) {
            log.line(Level::Warning, &format!("--{old} is deprecated, use --{new} instead"));
            let value = options.text(old).map(str::to_owned);
            // The new name is known and of the same kind.
            let _ = options.set(new, value.as_deref());
        }
    }
}

impl Settings {
    /// Checks the values.
    ///
    /// # Errors
    /// The first value that is not possible, as the text of a fatal line.
    pub(crate) fn new(options: &Options) -> Result<Self, String> {
        let threads = options.int("threads");
        let threads = match usize::try_from(threads) {
            Ok(threads @ 1..=1_000_000) => threads,
            _ => return Err(format!("Invalid value for --threads: {threads}.\n")),
        };
        let seconds = |option: &str| u64::try_from(options.int(option)).ok().filter(|s| *s > 0);
        let time = seconds("time").map(Duration::from_secs);
        let forced_shutdown = forced_shutdown(options, time)?;
        let kind = options.text("rand-type").unwrap_or_default();
        if !["uniform", "gaussian", "special", "pareto", "zipfian"].contains(&kind) {
            return Err(format!("Invalid random numbers distribution: {kind}."));
        }
        let mut checkpoints = Vec::new();
        for text in options.list("report-checkpoints") {
            let second = text.parse::<u64>().ok().filter(|second| *second > 0);
            checkpoints
                .push(second.ok_or_else(|| format!("Invalid value for --report-checkpoints: '{text}'"))?);
        }
        checkpoints.sort_unstable();
        let text = options.text("percentile").unwrap_or("0");
        let mut percentiles = Vec::new();
        for part in text.split(',') {
            let percentile = part.trim().parse().ok().filter(|percentile| (0.0..=100.0).contains(percentile));
            percentiles.push(percentile.ok_or_else(|| format!("Invalid value for --percentile: {text}"))?);
        }
        let percentile = percentiles.remove(0);
        let histogram = options.is_on("histogram");
        if histogram && percentile == 0.0 {
            return Err("--histogram cannot be used with --percentile=0".to_owned());
        }
        Ok(Self {
            threads,
            events: u64::try_from(options.int("events")).unwrap_or(0),
            time,
            forced_shutdown,
            thread_init: seconds("thread-init-timeout").map(Duration::from_secs),
            rate: options.text("rate").and_then(|text| text.trim().parse().ok()).unwrap_or(0.0_f64).max(0.0),
            report_interval: options.int("report-interval"),
            checkpoints,
            debug: options.is_on("debug"),
            validate: options.is_on("validate"),
            percentile,
            more_percentiles: percentiles,
            errors_by_code: options.is_on("errors-by-code"),
            record: None,
            histogram,
            seed: options.int("rand-seed"),
        })
    }
}

/// The time of a forced end: the length of the test and an allowance, of 5 % unless given, at least until the next full
/// second.
fn forced_shutdown(options: &Options, time: Option<Duration>) -> Result<Option<Duration>, String> {
    let Some(time) = time else { return Ok(None) };
    let text = options.text("forced-shutdown").unwrap_or_default();
    let seconds = time.as_secs();
    let end = if text == "off" {
        return Ok(None);
    } else if text.is_empty() {
        seconds + seconds / 20
    } else if let Some(percentage) = text.strip_suffix('%').and_then(|number| number.parse::<u64>().ok()) {
        seconds + seconds * percentage / 100
    } else if let Ok(allowance) = text.parse::<u64>() {
        seconds + allowance
    } else {
        return Err(format!("Invalid value for --forced-shutdown: '{text}'"));
    };
    Ok(Some(Duration::from_secs(end)))
}

#[cfg(test)]
mod tests {
    use super::super::options::read;
    use super::*;

    fn settings(words: &str) -> Result<Settings, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Settings::new(&read(&words).unwrap().options)
    }

    #[test]
    fn values_that_are_not_possible_are_told_in_the_order_of_sysbench() {
        let refused = |words: &str| settings(words).unwrap_err();
        assert_eq!(refused("--threads=0 --percentile=101"), "Invalid value for --threads: 0.\n");
        assert_eq!(refused("--forced-shutdown=x --rand-type=x"), "Invalid value for --forced-shutdown: 'x'");
        assert_eq!(
            refused("--rand-type=x --report-checkpoints=x"),
            "Invalid random numbers distribution: x."
        );
        assert_eq!(
            refused("--report-checkpoints=x --percentile=101"),
            "Invalid value for --report-checkpoints: 'x'"
        );
        assert_eq!(refused("--percentile=-1"), "Invalid value for --percentile: -1");
        assert_eq!(refused("--percentile=0 --histogram"), "--histogram cannot be used with --percentile=0");
    }

    #[test]
    fn a_forced_end_follows_the_time_by_seconds_or_a_percentage() {
        let end = |words: &str| settings(words).unwrap().forced_shutdown.map(|d| d.as_secs());
        assert_eq!(end("--time=1 --forced-shutdown=2"), Some(3));
        assert_eq!(end("--time=20 --forced-shutdown=50%"), Some(30));
        assert_eq!(end("--time=1 --forced-shutdown"), Some(1));
        assert_eq!(end("--time=1"), None);
    }
}
