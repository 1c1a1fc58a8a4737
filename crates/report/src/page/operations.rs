//! Operations, errors and costs as tables.

use std::collections::BTreeMap;

use maud::{Markup, html};
use mydyno_model::record::OperationKind;
use mydyno_model::summary::{OperationSummary, StepSummary};
use mydyno_model::units::show_bytes;

use super::run_heading;
use crate::RunView;
use crate::charts::step_name;
use crate::compare::client_cpu_us;
use crate::figures::{Unit, number, percent, plural, us};
use crate::first_errors::{FirstError, first_errors};
use crate::scale::Scale;
use crate::table::{Cell, Table};
use crate::text::html as esc;
use crate::usage::usage;

/// One table for each step; all but the last are collapsed.
pub fn table(runs: &[RunView<'_>]) -> Markup {
    let has_any = |run: &RunView<'_>| run.summary.steps.iter().any(|step| !step.operations.is_empty());
    html! {
        @for (n, run) in runs.iter().enumerate().filter(|(_, run)| has_any(run)) {
            (run_heading(runs, n))
            @match run.summary.steps.as_slice() {
                [step] => { (operations(run, step).html()) }
                steps => @for (nth, step) in steps.iter().enumerate() {
                    details open[nth + 1 == steps.len()] {
                        summary { (esc(&step_name(step))) }
                        (operations(run, step).html())
                    }
                    "\n"
                }
            }
        }
        @if runs.iter().any(has_any) {
            p.note { "Of a statement inside a transaction the intended start is the answer before it. The bar runs from p50 to p99 of the response time, with a mark at the maximum; all bars of a table share a logarithmic scale." }
            "\n"
        }
    }
}

fn operations(run: &RunView<'_>, step: &StepSummary) -> Table {
    let mut table =
        Table::new(["operation", "count", "per second", "mean", "p50", "p99", "max", "", "statement"]);
    table.stacks = true;
    let scale = Scale::log_around(
        step.operations
            .iter()
            .flat_map(|o| [percentile(o, "p50"), o.response_us.max])
            .flatten()
            .collect::<Vec<_>>()
            .into_iter(),
    );
    for op in &step.operations {
        let sql = run.record.manifest.operations.iter().find(|o| o.name == op.name).map_or("", |o| &o.sql);
        let statement = match op.kind {
            OperationKind::Transaction => "whole transaction",
            OperationKind::Statement => sql,
        };
        let time = |v: Option<f64>| Cell::from(v.map_or("–".to_owned(), us));
        table.row([
            Cell::from(op.name.as_str()),
            Cell::from(number(op.count as f64)),
            Cell::from(format!("{}/s", number(op.count as f64 / step.window_s.max(1e-9)))),
            time(op.response_us.mean),
            Cell::estimate(Unit::Us, op.response_us.percentiles.get("p50")),
            Cell::estimate(Unit::Us, op.response_us.percentiles.get("p99")),
            time(op.response_us.max),
            Cell::drawing(bar(op, &scale)),
            Cell::from(statement).class("sql"),
        ]);
    }
    table
}

fn percentile(op: &OperationSummary, name: &str) -> Option<f64> {
    op.response_us.percentiles.get(name).map(|e| e.value)
}

fn bar(op: &OperationSummary, scale: &Scale) -> Markup {
    let (Some(p50), Some(p99), Some(max)) =
        (percentile(op, "p50"), percentile(op, "p99"), op.response_us.max)
    else {
        return Markup::default();
    };
    let [p50, p99, max] = [p50, p99, max].map(|v| scale.at(v).clamp(0.0, 1.0) * 100.0);
    let width = format!("{:.1}%", (p99 - p50).max(0.8));
    let [p50, max] = [p50, max].map(|at| format!("{at:.1}%"));
    html! {
        svg.bar width="100%" height="12" aria-hidden="true" {
            line.to x1=(p50) x2=(max) y1="6" y2="6" {}
            rect x=(p50) width=(width) y="3" height="6" rx="1" {}
            line.max x1=(max) x2=(max) y1="2" y2="10" {}
        }
    }
}

/// Errors by code, with the first message for each.
pub fn errors(runs: &[RunView<'_>]) -> Markup {
    let tables = runs.iter().map(errors_of).enumerate().filter(|(_, table)| !table.is_empty());
    html! { @for (n, table) in tables { (run_heading(runs, n)) (table.html()) } }
}

fn errors_of(run: &RunView<'_>) -> Table {
    let steps = &run.summary.steps;
    let mut head = vec!["code".to_owned(), "SQLSTATE".to_owned()];
    head.extend(steps.iter().map(|s| if steps.len() > 1 { step_name(s) } else { "count".to_owned() }));
    head.extend(["operation".to_owned(), "first message".to_owned()]);
    let mut table = Table::new(head);
    table.stacks = true;
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (code, count) in steps.iter().flat_map(|s| &s.errors) {
        *totals.entry(code).or_default() += count;
    }
    let first = first_errors(run.record);
    // An error in the warm-up is listed, with a count of zero in the window.
    for code in first.keys() {
        totals.entry(code).or_default();
    }
    let mut codes: Vec<(&str, u64)> = totals.into_iter().collect();
    codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (code, _) in codes {
        let FirstError { sqlstate, message, operation } = first.get(code).copied().unwrap_or_default();
        let mut cells = vec![Cell::from(code), Cell::from(sqlstate)];
        cells.extend(
            steps.iter().map(|s| Cell::from(number(s.errors.get(code).copied().unwrap_or(0) as f64))),
        );
        cells.extend([Cell::from(operation), Cell::from(message).class("sql")]);
        table.row(cells);
    }
    table
}

/// Resource use of load generator, server and host.
pub fn costs(runs: &[RunView<'_>]) -> Markup {
    let measured = || runs.iter().enumerate().filter(|(_, run)| !run.summary.steps.is_empty());
    html! {
        @for (n, run) in measured() {
            @let usage = usage_table(run);
            (run_heading(runs, n))
            (cost_table(run).html())
            @if !usage.is_empty() { (usage.html()) }
        }
        @if measured().next().is_some() {
            p.note { "By the operating system's account, over the measured window. A client whose threads are on a CPU for more than 90 % of the time may be the limit itself. Queries per wait: answers that one wake-up brought; the fewer, the more a query costs both sides." }
            "\n"
        }
    }
}

fn cost_table(run: &RunView<'_>) -> Table {
    let mut table = Table::new([
        "load",
        "server CPU per query",
        "client CPU per query",
        "client on CPU",
        "queries per wait",
        "client memory",
    ]);
    table.stacks = true;
    for step in &run.summary.steps {
        let client = &step.client;
        let busy = client.cpu_share_of_workers;
        let parts = format!(
            "user {}, system {}",
            us(client.cpu_user_us_per_query),
            us(client.cpu_system_us_per_query)
        );
        table.row([
            Cell::from(step_name(step)),
            Cell::from(step.server.cpu_us_per_query.map_or("not visible".to_owned(), us)),
            Cell::from(us(client_cpu_us(step))).small(parts),
            Cell::from(percent(busy)).class(if busy > 0.9 { "bad" } else { "" }),
            Cell::from(number(client.queries_per_wait))
                .small(format!("{} switches per query", number(client.switches_per_query))),
            Cell::from(show_bytes(client.resident_bytes as f64)).small(format!(
                "{} threads, {}",
                client.threads,
                plural(step.workers, "worker")
            )),
        ]);
    }
    table
}

/// Means of the samples over each measured window; empty when the host was not sampled.
fn usage_table(run: &RunView<'_>) -> Table {
    let mut table = Table::new([
        "load",
        "host CPUs in use",
        "server",
        "client",
        "steal",
        "waiting for disk",
        "busiest disk",
        "swapped",
    ]);
    table.stacks = true;
    for step in &run.summary.steps {
        let Some(usage) = usage(run.record, step.step).filter(|u| u.host_cpus.is_some()) else { continue };
        let cpus = |v: Option<f64>| Cell::from(v.map_or("–".to_owned(), |v| Unit::Cpus.show(v)));
        let share = |v: Option<f64>| Cell::from(v.map_or("–".to_owned(), percent));
        let notable = |v: Option<f64>| if v.is_some_and(|v| v >= 0.01) { "bad" } else { "" };
        let disk = match &usage.disk {
            Some(disk) => Cell::from(format!("{} {}", disk.name, percent(disk.busy))).small(disk.moved()),
            None => Cell::from("–"),
        };
        let swapped = usage.swap_pages_per_s;
        table.row([
            Cell::from(step_name(step)),
            Cell::from(usage.host_words().unwrap_or_default()),
            cpus(usage.server_cpus),
            cpus(Some(usage.client_cpus)),
            share(usage.steal).class(notable(usage.steal)),
            share(usage.disk_wait),
            disk,
            Cell::from(swapped.map_or("–".to_owned(), |p| {
                if p > 0.0 { format!("{} pages/s", number(p)) } else { "nothing".to_owned() }
            }))
            .class(if swapped.is_some_and(|p| p > 0.0) { "bad" } else { "" }),
        ]);
    }
    table
}
