//! Plain-text tables, for the terminal and for Markdown.

use mydyno_model::Estimate;
use mydyno_model::summary::{CapacityTrial, PointSummary, StepSummary, Summary};

use crate::charts::step_name;
use crate::compare::{Difference, client_cpu_us};
use crate::figures::{Unit, change, interval, number, percent, percentile_label, us};
use crate::first_errors::{FirstError, first_errors};
use crate::intervals;
use crate::usage::{Usage, usage};

/// Columns of equal length.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    /// Columns from left to right; the first contains the row labels.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading, with the unit where the cells have none.
    pub head: String,
    /// Its cells.
    pub cells: Vec<String>,
    /// Priority of removal where space is short: columns with the highest number go first; 0 always stays.
    pub drop: u8,
}

impl Sheet {
    /// Adds a column on the right.
    pub fn column(&mut self, head: impl Into<String>, drop: u8, cells: impl Iterator<Item = String>) {
        self.columns.push(Column { head: head.into(), cells: cells.collect(), drop });
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.cells.len())
    }
}

fn between(unit: Unit, estimate: Option<&Estimate>) -> String {
    estimate.and_then(|e| interval(unit, e)).unwrap_or_else(|| "–".to_owned())
}

fn time(estimate: Option<&Estimate>) -> String {
    estimate.map_or("–".to_owned(), |e| us(e.value))
}

/// Names of the percentiles in the steps.
fn percentiles(steps: &[StepSummary]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in steps.iter().flat_map(|s| s.response_us.percentiles.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// One row for each step.
pub fn steps(summary: &Summary) -> Sheet {
    let steps = &summary.steps;
    let mut sheet = Sheet::default();
    sheet.column("connections", 0, steps.iter().map(|s| s.connections.to_string()));
    if steps.iter().any(|s| s.repeat > 0) {
        sheet.column("repeat", 7, steps.iter().map(|s| (s.repeat + 1).to_string()));
    }
    if steps.iter().any(|s| s.rate.is_some()) {
        sheet.column("asked/s", 1, steps.iter().map(|s| s.rate.map_or("–".to_owned(), number)));
    }
    let tps = |s: &StepSummary| s.throughput.transactions_per_s.clone();
    sheet.column("transactions/s", 0, steps.iter().map(|s| number(tps(s).value)));
    sheet.column("low–high", 2, steps.iter().map(|s| between(Unit::PerSecond, Some(&tps(s)))));
    sheet.column("queries/s", 8, steps.iter().map(|s| number(s.throughput.queries_per_s.value)));
    for name in percentiles(steps) {
        let of = |s: &'_ StepSummary| s.response_us.percentiles.get(name).cloned();
        let drop = match name {
            "p50" => 4,
            "p99" => 0,
            "p999" => 6,
            _ => 7,
        };
        sheet.column(percentile_label(name), drop, steps.iter().map(|s| time(of(s).as_ref())));
        if name == "p99" {
            sheet.column("low–high", 3, steps.iter().map(|s| between(Unit::Us, of(s).as_ref())));
        }
    }
    sheet.column("max", 5, steps.iter().map(|s| s.response_us.max.map_or("–".to_owned(), us)));
    if steps.iter().any(|s| s.rate.is_some()) {
        sheet.column("late p99", 3, steps.iter().map(|s| time(s.lateness_us.percentiles.get("p99"))));
    }
    if steps.iter().any(|s| s.rate.is_some() && s.due.is_some()) {
        let waiting = |s: &StepSummary| s.due.map_or("–".to_owned(), |due| number(due.waiting as f64));
        sheet.column("waiting", 2, steps.iter().map(waiting));
    }
    let errors = |s: &StepSummary| number(s.errors.values().sum::<u64>() as f64);
    sheet.column("errors", 1, steps.iter().map(errors));
    sheet.column("steady", 9, steps.iter().map(|s| intervals::steady(s).to_owned()));
    sheet
}

/// One row for each point of the sweep that was measured more than once.
pub fn points(summary: &Summary) -> Sheet {
    let points = &summary.points;
    let mut sheet = Sheet::default();
    sheet.column("connections", 0, points.iter().map(|p| p.connections.to_string()));
    if points.iter().any(|p| p.rate.is_some()) {
        sheet.column("asked/s", 1, points.iter().map(|p| p.rate.map_or("–".to_owned(), number)));
    }
    sheet.column("repeats", 1, points.iter().map(|p| p.steps.len().to_string()));
    let tps = |p: &PointSummary| p.throughput.transactions_per_s.clone();
    sheet.column("transactions/s", 0, points.iter().map(|p| number(tps(p).value)));
    sheet.column("low–high", 0, points.iter().map(|p| between(Unit::PerSecond, Some(&tps(p)))));
    let names = points.first().map(|p| p.response_us.keys().collect::<Vec<_>>()).unwrap_or_default();
    for name in names {
        let drop = if name == "p99" { 0 } else { 3 };
        let of = |p: &PointSummary| p.response_us.get(name).cloned();
        sheet.column(percentile_label(name), drop, points.iter().map(|p| time(of(p).as_ref())));
        if name == "p99" {
            sheet.column("low–high", 1, points.iter().map(|p| between(Unit::Us, of(p).as_ref())));
        }
    }
    sheet
}

/// One row for each trial of a search for the highest rate, lowest rate first; the last column is prose.
pub fn capacity(summary: &Summary) -> Sheet {
    let Some(capacity) = &summary.capacity else { return Sheet::default() };
    let mut trials: Vec<_> = capacity.trials.iter().collect();
    trials.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let step = |t: &CapacityTrial| summary.steps.iter().find(|s| s.step == t.step);
    let percentile =
        |t: &CapacityTrial, name: &str| time(step(t).and_then(|s| s.response_us.percentiles.get(name)));
    let mut sheet = Sheet::default();
    sheet.column("asked/s", 0, trials.iter().map(|t| number(t.rate_per_s)));
    sheet.column("done/s", 0, trials.iter().map(|t| number(t.done_per_s)));
    sheet.column("p50", 0, trials.iter().map(|t| percentile(t, "p50")));
    sheet.column("p99", 0, trials.iter().map(|t| percentile(t, "p99")));
    let holds = |t: &CapacityTrial| match t.broken.first() {
        None => "holds".to_owned(),
        Some(why) => why.clone(),
    };
    sheet.column("", 0, trials.iter().map(|t| holds(t)));
    sheet
}

/// One row for each figure of a step.
pub fn figures(step: &StepSummary) -> Sheet {
    let mut rows: Vec<[String; 3]> = Vec::new();
    let mut row = |name: String, value: String, interval: String| rows.push([name, value, interval]);
    let throughput =
        [("transactions", &step.throughput.transactions_per_s), ("queries", &step.throughput.queries_per_s)];
    for (name, e) in throughput {
        row(name.to_owned(), Unit::PerSecond.show(e.value), between(Unit::PerSecond, Some(e)));
    }
    if let Some(rate) = step.rate {
        row("asked".to_owned(), format!("{}/s", number(rate)), String::new());
    }
    for (name, e) in &step.response_us.percentiles {
        row(format!("response {}", percentile_label(name)), us(e.value), between(Unit::Us, Some(e)));
    }
    row("response max".to_owned(), step.response_us.max.map_or("–".to_owned(), us), String::new());
    if step.rate.is_some() {
        for (kind, times) in [("service", &step.service_us), ("lateness", &step.lateness_us)] {
            if let Some(e) = times.percentiles.get("p99") {
                row(format!("{kind} p99"), us(e.value), between(Unit::Us, Some(e)));
            }
        }
    }
    if let Some(due) = step.due.filter(|_| step.rate.is_some()) {
        let count = |n: u64| number(n as f64);
        row("due".to_owned(), count(due.carried + due.intended), String::new());
        row("done".to_owned(), count(due.done), String::new());
        row("failed".to_owned(), count(due.failed), String::new());
        row("still waiting at the end".to_owned(), count(due.waiting), String::new());
        row("longest queue".to_owned(), count(due.most_queued), String::new());
    }
    if let Some(times) = &step.connect_us {
        for name in ["p50", "p99"] {
            if let Some(e) = times.percentiles.get(name) {
                row(format!("opening a connection {name}"), us(e.value), between(Unit::Us, Some(e)));
            }
        }
    }
    if let Some(attempts) = &step.attempts {
        row("attempts".to_owned(), number(attempts.attempts as f64), String::new());
        row("of them in vain".to_owned(), percent(1.0 - attempts.goodput), String::new());
        for name in ["p50", "p99"] {
            if let Some(e) = attempts.retried_us.percentiles.get(name) {
                row(format!("attempt that was tried again {name}"), us(e.value), between(Unit::Us, Some(e)));
            }
        }
    }
    row("errors".to_owned(), number(step.errors.values().sum::<u64>() as f64), String::new());
    row("steady".to_owned(), intervals::steady(step).to_owned(), String::new());
    let mut sheet = Sheet::default();
    for (n, head) in ["", "value", "low–high"].into_iter().enumerate() {
        sheet.column(head, 0, rows.iter().map(|r| r[n].clone()));
    }
    sheet
}

/// One row for each operation.
pub fn operations(step: &StepSummary) -> Sheet {
    let ops = &step.operations;
    let mut sheet = Sheet::default();
    let of = |name: &'static str| {
        move |o: &mydyno_model::summary::OperationSummary| time(o.response_us.percentiles.get(name))
    };
    sheet.column("operation", 0, ops.iter().map(|o| o.name.clone()));
    sheet.column("per second", 0, ops.iter().map(|o| number(o.count as f64 / step.window_s.max(1e-9))));
    sheet.column("mean", 3, ops.iter().map(|o| o.response_us.mean.map_or("–".to_owned(), us)));
    sheet.column("p50", 2, ops.iter().map(of("p50")));
    sheet.column("p99", 0, ops.iter().map(of("p99")));
    let interval =
        |o: &mydyno_model::summary::OperationSummary| between(Unit::Us, o.response_us.percentiles.get("p99"));
    sheet.column("low–high", 4, ops.iter().map(interval));
    sheet.column("max", 1, ops.iter().map(|o| o.response_us.max.map_or("–".to_owned(), us)));
    sheet
}

/// One row for each error code, with its count in each step.
pub fn errors(run: &crate::RunView<'_>) -> Sheet {
    let steps = &run.summary.steps;
    let mut codes: Vec<&String> = steps.iter().flat_map(|s| s.errors.keys()).collect();
    codes.sort();
    codes.dedup();
    let count = |code: &String| steps.iter().filter_map(|s| s.errors.get(code)).sum::<u64>();
    codes.sort_by_cached_key(|code| std::cmp::Reverse(count(code)));
    let first = first_errors(run.record);
    let message = |code: &String| {
        let told = |e: &FirstError<'_>| format!("{} (first at {})", e.message, e.operation);
        first.get(code.as_str()).map(told).unwrap_or_default()
    };
    let mut sheet = Sheet::default();
    sheet.column("error", 0, codes.iter().map(|c| (*c).clone()));
    sheet.column("count", 0, codes.iter().map(|c| number(count(c) as f64)));
    sheet.column("message", 0, codes.iter().map(|c| message(c)));
    sheet
}

/// One row for each step: the cost of a query, and the use of the host's resources.
pub fn costs(run: &crate::RunView<'_>) -> Sheet {
    let steps = &run.summary.steps;
    let usages: Vec<Option<Usage>> = steps.iter().map(|s| usage(run.record, s.step)).collect();
    let mut sheet = Sheet::default();
    sheet.column("", 0, steps.iter().map(step_name));
    let server = |s: &StepSummary| s.server.cpu_us_per_query.map_or("not visible".to_owned(), us);
    sheet.column("server CPU/query", 0, steps.iter().map(server));
    sheet.column("client CPU/query", 0, steps.iter().map(|s| us(client_cpu_us(s))));
    sheet.column("client on CPU", 1, steps.iter().map(|s| percent(s.client.cpu_share_of_workers)));
    sheet.column("queries/wait", 4, steps.iter().map(|s| number(s.client.queries_per_wait)));
    let mut sampled = |head: &str, drop: u8, words: fn(&Usage) -> Option<String>| {
        let cells: Vec<Option<String>> = usages.iter().map(|u| u.as_ref().and_then(words)).collect();
        if cells.iter().any(Option::is_some) {
            sheet.column(head, drop, cells.into_iter().map(|c| c.unwrap_or_else(|| "–".to_owned())));
        }
    };
    sampled("host used", 2, Usage::host_words);
    sampled("steal", 3, |u| u.steal.map(percent));
    sampled("busiest disk", 5, |u| u.disk.as_ref().map(|d| format!("{} {}", d.name, percent(d.busy))));
    sampled("swapped pages/s", 6, |u| u.swap_pages_per_s.filter(|p| *p > 0.0).map(number));
    sheet
}

/// One row for each headline figure of two runs.
pub fn differences(a: &str, b: &str, all: &[Difference]) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.column("", 0, all.iter().map(|d| d.name.clone()));
    sheet.column(a, 0, all.iter().map(|d| d.unit.show(d.a.value)));
    sheet.column("low–high", 3, all.iter().map(|d| between(d.unit, Some(&d.a))));
    sheet.column(b, 0, all.iter().map(|d| d.unit.show(d.b.value)));
    sheet.column("low–high", 3, all.iter().map(|d| between(d.unit, Some(&d.b))));
    sheet.column("change", 0, all.iter().map(|d| d.change().map_or("–".to_owned(), |c| change(c.value))));
    let between = |d: &Difference| d.change().and_then(|c| c.ends()).unwrap_or_else(|| "–".to_owned());
    sheet.column("low … high", 1, all.iter().map(between));
    sheet.column("in these runs", 2, all.iter().map(|d| d.verdict().word().to_owned()));
    sheet
}
