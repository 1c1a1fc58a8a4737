//! What a bench shows while it runs: a line a second, a bar while tables are filled.

use std::io::Write;
use std::time::Instant;

use mydyno_model::plan::StepPlan;
use mydyno_model::record::{Interval, Phase};
use mydyno_model::units::{show_count, show_seconds, show_us};
use mydyno_run::Progress;
use mydyno_stats::{Distribution, SparseHistogram};
use mydyno_workload::prepare::Prepared;

use crate::ui::Ui;

/// Plain output shows a bar's state this often, in seconds.
const PLAIN_EVERY_S: f64 = 5.0;

/// Shows progress on standard error.
pub struct Shower<'a> {
    ui: &'a Ui,
    operation: &'a str,
    started: Instant,
    shown_at_s: f64,
    bar_open: bool,
}

impl<'a> Shower<'a> {
    /// `operation` is the transaction's name.
    pub fn new(ui: &'a Ui, operation: &'a str) -> Self {
        Self { ui, operation, started: Instant::now(), shown_at_s: -PLAIN_EVERY_S, bar_open: false }
    }

    /// Shows one piece of progress.
    pub fn show(&mut self, progress: &Progress<'_>) {
        if self.ui.quiet {
            return;
        }
        match progress {
            Progress::Preparing { rows, of } => self.bar("rows", *rows, *of),
            Progress::Ready(prepared) => {
                self.end_bar();
                if *prepared == Prepared::Made {
                    self.line(&format!(
                        "Tables made in {}",
                        show_seconds(self.started.elapsed().as_secs_f64())
                    ));
                }
            }
            Progress::Connecting { done, of, .. } => {
                if *of >= 500 {
                    self.bar("connections", *done as u64, *of as u64);
                }
            }
            Progress::Step { .. } | Progress::Tried { .. } => {}
            Progress::Phase { step, phase, .. } => self.phase(step, *phase),
            Progress::Interval { step, interval } => self.interval(step, interval),
        }
    }

    fn phase(&mut self, step: &StepPlan, phase: Phase) {
        self.end_bar();
        if phase == Phase::Connect {
            self.started = Instant::now();
            let plural = if step.connections == 1 { "" } else { "s" };
            self.line(&format!("{} connection{plural}", step.connections));
        }
    }

    fn interval(&mut self, _: &StepPlan, interval: &Interval) {
        let phase = match interval.phase {
            Phase::Warmup => "warm-up",
            Phase::Measure => "measure",
            Phase::Connect | Phase::Drain => return,
        };
        let times = interval.operations.get(self.operation).map(|t| &t.response);
        let times = times.and_then(|data| SparseHistogram::from_data(data).ok()).unwrap_or_default();
        let quantile = |q: f64| times.quantile_ns(q).map_or_else(|| "-".to_owned(), |ns| show_us(ns / 1e3));
        let per_s = |n: u64| show_count((n as f64 / interval.width_s).round() as u64);
        let errors: u64 = interval.errors.values().sum();
        let errors = if errors == 0 { String::new() } else { format!("  errors {}", show_count(errors)) };
        self.line(&format!(
            "{:>6.0}s {phase}  {:>9} tx/s {:>10} stmt/s  p50 {:>8}  p99 {:>8}{errors}",
            interval.start_s + interval.width_s,
            per_s(interval.transactions),
            per_s(interval.queries),
            quantile(0.5),
            quantile(0.99),
        ));
    }

    fn bar(&mut self, what: &str, done: u64, of: u64) {
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let share = if of == 0 { 1.0 } else { done as f64 / of as f64 };
        let rate = done as f64 / elapsed_s.max(1e-3);
        let left = if done == 0 || elapsed_s < 1.0 {
            String::new()
        } else {
            format!(", {} left", show_seconds((of - done) as f64 / rate))
        };
        let text = format!(
            "{} of {} {what} ({:.0} %), {}/s{left}",
            show_count(done),
            show_count(of),
            share * 100.0,
            show_count(rate as u64)
        );
        if self.ui.live {
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

impl Drop for Shower<'_> {
    fn drop(&mut self) {
        self.end_bar();
    }
}
