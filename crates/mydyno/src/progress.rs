//! Progress of a running bench: a line a second; a bar while tables are filled.

use std::io::Write;
use std::time::Instant;

use mydyno_model::plan::StepPlan;
use mydyno_model::record::{Interval, Phase};
use mydyno_model::units::{show_count, show_seconds, show_us, three_digits};
use mydyno_run::Progress;
use mydyno_stats::{Distribution, SparseHistogram};
use mydyno_tables::prepare::Prepared;

use crate::private;
use crate::sparkline::Sparkline;
use crate::ui::Ui;

/// Interval in seconds between states of a bar in plain output.
const PLAIN_EVERY_S: f64 = 5.0;

/// Seconds of throughput in the sparkline.
const SPARKLINE_S: usize = 20;

/// Characters of a bar; with fewer than the shortest one has, none is drawn.
const BAR: usize = 24;
const SHORTEST_BAR: usize = 5;

/// With fewer connections all are open before a bar could be read.
const MANY_CONNECTIONS: usize = 500;

/// Shows progress on standard error.
pub struct ProgressDisplay<'a> {
    ui: &'a Ui,
    operation: &'a str,
    started: Instant,
    shown_at_s: f64,
    bar_open: bool,
    throughput: Sparkline,
}

impl<'a> ProgressDisplay<'a> {
    /// `operation` is the transaction's name.
    pub fn new(ui: &'a Ui, operation: &'a str) -> Self {
        Self {
            ui,
            operation,
            started: Instant::now(),
            shown_at_s: -PLAIN_EVERY_S,
            bar_open: false,
            throughput: Sparkline::new(SPARKLINE_S),
        }
    }

    /// Shows an event of progress.
    pub fn show(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::LeftAlone(sentence) => return self.ui.always(sentence),
            Progress::SchemaWarning { statement, reported } => {
                let text = format!("schema.statement={statement}: the server says: {reported}");
                return self.ui.always(&text);
            }
            _ if self.ui.quiet => return,
            _ => {}
        }
        match progress {
            Progress::LeftAlone(_) | Progress::SchemaWarning { .. } => {}
            Progress::Server(step) => private::note(self.ui, step),
            Progress::Preparing { rows, of, found } => self.bar("rows", *rows, *of, *found),
            Progress::Ready(prepared) => {
                self.end_bar();
                if *prepared == Prepared::Made {
                    self.line(&format!(
                        "Tables made in {}",
                        show_seconds(self.started.elapsed().as_secs_f64())
                    ));
                }
            }
            Progress::Looking { done, of } => self.bar("statements", *done as u64, *of as u64, 0),
            Progress::Connecting { done, of, .. } => {
                if *of >= MANY_CONNECTIONS {
                    self.bar("connections", *done as u64, *of as u64, 0);
                }
            }
            Progress::Step { step, before, of, .. } => self.step(step, *before, *of),
            Progress::Tried { step, broken } => {
                let rate = step.arrivals.rate_per_s().map_or("-".to_owned(), three_digits);
                self.line(&match broken.first() {
                    None => format!("{rate}/s holds"),
                    Some(why) => format!("{rate}/s does not hold: {why}"),
                });
            }
            Progress::Phase { phase, .. } => self.phase(*phase),
            Progress::Interval { interval, .. } => self.interval(interval),
        }
    }

    fn step(&mut self, step: &StepPlan, before: usize, of: Option<usize>) {
        self.throughput.clear();
        let place = match of {
            Some(1) => String::new(),
            Some(of) => format!("Step {} of {of}: ", before + 1),
            None => format!("Step {}: ", before + 1),
        };
        let plural = if step.connections == 1 { "" } else { "s" };
        let rate = match step.arrivals.rate_per_s() {
            Some(rate) => format!(", {}/s", three_digits(rate)),
            None => String::new(),
        };
        let repeat = if step.repeat > 0 { format!(", repeat {}", step.repeat + 1) } else { String::new() };
        self.line(&format!(
            "{place}{} connection{plural}{rate}{repeat}",
            show_count(step.connections as u64)
        ));
    }

    fn phase(&mut self, phase: Phase) {
        self.end_bar();
        if phase == Phase::Connect {
            self.started = Instant::now();
            self.shown_at_s = -PLAIN_EVERY_S;
        }
    }

    fn interval(&mut self, interval: &Interval) {
        let phase = match interval.phase {
            Phase::Warmup => "warm-up",
            Phase::Measure => "measure",
            Phase::Connect | Phase::Drain => return,
        };
        self.throughput.push(interval.transactions as f64 / interval.width_s.max(1e-9));
        let errors = match interval.errors.values().sum() {
            0u64 => String::new(),
            errors => format!("  errors {}", show_count(errors)),
        };
        let late = match interval.arrivals.queued {
            0 => String::new(),
            queued => format!("  waiting {}", show_count(queued)),
        };
        let left = self.ui.live_width().saturating_sub(columns_of(&late) + columns_of(&errors));
        let text = line_of(phase, interval, self.operation, left);
        let left = left.saturating_sub(columns_of(&text) + 2);
        let throughput = if self.ui.live { self.throughput.text(left) } else { String::new() };
        let gap = if throughput.is_empty() { "" } else { "  " };
        let errors = if errors.is_empty() { errors } else { self.ui.highlight(&errors) };
        self.line(&format!("{text}{gap}{throughput}{late}{errors}"));
    }

    fn bar(&mut self, what: &str, done: u64, of: u64, found: u64) {
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let text = bar_text(what, done, of, found, elapsed_s);
        if self.ui.live {
            let text = with_bar(&text, share(done, of), self.ui.live_width());
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K{text}");
            self.bar_open = true;
        } else if elapsed_s - self.shown_at_s >= PLAIN_EVERY_S && elapsed_s >= 1.0 {
            self.shown_at_s = elapsed_s;
            self.line(&text);
        }
    }

    fn end_bar(&mut self) {
        if std::mem::take(&mut self.bar_open) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn line(&mut self, text: &str) {
        self.end_bar();
        self.ui.note(text);
    }
}

impl Drop for ProgressDisplay<'_> {
    fn drop(&mut self) {
        self.end_bar();
    }
}

fn share(done: u64, of: u64) -> f64 {
    if of == 0 { 1.0 } else { done as f64 / of as f64 }
}

fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// A bar beside its text. What is redrawn must not reach the last column: the terminal would go on to a second line, which the
/// next state does not remove. So a bar is shorter, and left out, where there is no place for it.
fn with_bar(text: &str, share: f64, columns: usize) -> String {
    let most = columns.saturating_sub(1);
    let length = most.saturating_sub(columns_of(text) + 1).min(BAR);
    if length < SHORTEST_BAR {
        return text.chars().take(most).collect();
    }
    let full = ((length as f64 * share) as usize).min(length);
    format!("{}{} {text}", "█".repeat(full), "░".repeat(length - full))
}

/// The progress line of one second, in so many columns: the statements, and then the median, are left out where they have no place.
fn line_of(phase: &str, interval: &Interval, operation: &str, columns: usize) -> String {
    let times = interval.operations.get(operation).map(|t| &t.response);
    let times = times.and_then(|data| SparseHistogram::from_data(data).ok()).unwrap_or_default();
    let quantile = |q: f64| times.quantile_ns(q).map_or_else(|| "-".to_owned(), |ns| show_us(ns / 1e3));
    let at = format!("{:>6.0}s {phase}", interval.start_s + interval.width_s);
    let transactions = format!("  {:>9} tx/s", per_s(interval.transactions, interval.width_s));
    let statements = format!(" {:>10} stmt/s", per_s(interval.queries, interval.width_s));
    let [median, tail] =
        [("p50", 0.5), ("p99", 0.99)].map(|(name, q)| format!("  {name} {:>8}", quantile(q)));
    let whole = [&at, &transactions, &statements, &median, &tail].map(String::as_str);
    let without_statements = [&at, &transactions, &median, &tail].map(String::as_str);
    let fits = |line: &String| columns_of(line) <= columns;
    [whole.concat(), without_statements.concat()]
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| [at, transactions, tail].concat())
}

/// Slow rates keep their fraction.
fn per_s(count: u64, width_s: f64) -> String {
    let rate = count as f64 / width_s.max(1e-9);
    if rate >= 100.0 { show_count(rate.round() as u64) } else { three_digits(rate) }
}

/// `found` rows existed at the beginning and do not count for the rate.
fn bar_text(what: &str, done: u64, of: u64, found: u64, elapsed_s: f64) -> String {
    let made = done.saturating_sub(found);
    let rate = made as f64 / elapsed_s.max(1e-3);
    let left = if made == 0 || elapsed_s < 1.0 {
        String::new()
    } else {
        format!(", {} left", show_seconds(of.saturating_sub(done) as f64 / rate))
    };
    format!(
        "{} of {} {what} ({:.0} %), {}/s{left}",
        show_count(done),
        show_count(of),
        share(done, of) * 100.0,
        show_count(rate as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_much_how_fast_and_how_long_still() {
        assert_eq!(
            bar_text("rows", 250_000, 1_000_000, 0, 5.0),
            "250,000 of 1,000,000 rows (25 %), 50,000/s, 15 s left"
        );
        assert_eq!(
            bar_text("rows", 900_000, 1_000_000, 850_000, 5.0),
            "900,000 of 1,000,000 rows (90 %), 10,000/s, 10 s left"
        );
        assert_eq!(bar_text("rows", 0, 10, 0, 0.0), "0 of 10 rows (0 %), 0/s");
    }

    #[test]
    fn a_bar_never_reaches_the_last_column() {
        let text = bar_text("rows", 250_000, 1_000_000, 0, 5.0);
        assert_eq!(with_bar(&text, 0.25, usize::MAX), format!("{}{} {text}", "█".repeat(6), "░".repeat(18)));
        assert_eq!(with_bar(&text, 0.25, columns_of(&text) + 10), format!("██░░░░░░ {text}"));
        for columns in 1..120 {
            let shown = with_bar(&text, 0.5, columns);
            assert!(columns_of(&shown) < columns && (columns < 60 || shown.ends_with(&text)), "{shown}");
        }
    }

    #[test]
    fn a_second_has_one_line_whatever_the_width() {
        let line = r#"{"step":0,"phase":"measure","start_s":9.0,"width_s":1.0,"transactions":12345,"queries":24690,
            "client":{"user_us":0,"system_us":0,"waits":0,"voluntary_switches":0,"involuntary_switches":0,
            "resident_bytes":0,"threads":1},"lateness":{"count":0},"operations":{}}"#;
        let interval: Interval = serde_json::from_str(line).unwrap();
        let shown = |columns| line_of("warm-up", &interval, "t", columns);
        let whole = "    10s warm-up     12,345 tx/s     24,690 stmt/s  p50        -  p99        -";
        assert_eq!((shown(usize::MAX), shown(77)), (whole.to_owned(), whole.to_owned()));
        assert_eq!(shown(60), "    10s warm-up     12,345 tx/s  p50        -  p99        -");
        assert_eq!(shown(50), "    10s warm-up     12,345 tx/s  p99        -");
    }

    #[test]
    fn slow_rates_keep_their_fraction() {
        assert_eq!((per_s(1, 2.0), per_s(12_345, 1.0)), ("0.5".to_owned(), "12,345".to_owned()));
    }
}
