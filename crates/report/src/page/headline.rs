//! The run's parameters and headline figures.

use std::fmt::Write;

use mydyno_model::Estimate;
use mydyno_model::summary::{LatencySummary, PointSummary, StepSummary};

use super::run_heading;
use crate::RunView;
use crate::charts::letter;
use crate::figures::{Unit, interval, number, percent, percentile_label, us};
use crate::table::{Cell, Table};
use crate::text::html as esc;
use crate::words::{self, Ending};

/// Title of the document.
pub fn title(runs: &[RunView<'_>]) -> String {
    let names: Vec<String> = runs.iter().map(|r| r.summary.run.clone()).collect();
    match names.as_slice() {
        [] => "mydyno report".to_owned(),
        names => format!("{} · mydyno report", names.join(" and ")),
    }
}

/// The masthead of the page.
pub fn masthead(runs: &[RunView<'_>]) -> String {
    let mut out = String::from("<header>\n<p class=\"brand\">mydyno report</p>\n");
    match runs {
        [] => out.push_str("<h1>No runs</h1>\n"),
        [run] => {
            let _ = writeln!(
                out,
                "<h1>{} <span>on {}</span></h1>",
                esc(&run.summary.workload),
                esc(&words::server(run))
            );
            about(&mut out, run);
        }
        _ => {
            out.push_str("<h1>Runs side by side</h1>\n<ol class=\"runs\">\n");
            for (n, run) in runs.iter().enumerate() {
                let _ = write!(
                    out,
                    "<li><b class=\"letter l{n}\">{}</b><div><p class=\"what\">{} <span>on {}</span></p>",
                    esc(&letter(runs, n)),
                    esc(&run.summary.workload),
                    esc(&words::server(run))
                );
                about(&mut out, run);
                out.push_str("</div></li>\n");
            }
            out.push_str("</ol>\n");
        }
    }
    out.push_str("</header>\n");
    out
}

fn about(out: &mut String, run: &RunView<'_>) {
    let (class, end) = match words::ending(run) {
        Ending::Complete => ("ok", "complete"),
        Ending::Interrupted => ("bad", "interrupted"),
        Ending::Killed => ("bad", "killed"),
        Ending::Broken => ("bad", "broke off"),
    };
    let _ = writeln!(
        out,
        "<p class=\"about\"><span class=\"end {class}\">{end}</span> {}</p>\n<p class=\"about\">{} · <span class=\"id\">{}</span></p>",
        esc(&words::load(run)),
        esc(&words::target(run)),
        esc(&run.summary.run)
    );
}

/// The headline of each step.
pub fn html(runs: &[RunView<'_>]) -> String {
    let mut out = String::new();
    for (n, run) in runs.iter().enumerate() {
        out.push_str(&run_heading(runs, n));
        if let Some(capacity) = &run.summary.capacity {
            let _ = writeln!(out, "<p>{}</p>", esc(&words::capacity(capacity)));
        }
        match run.summary.steps.as_slice() {
            [] => out.push_str("<p class=\"empty\">No step was measured: there is nothing to show. The warnings above and the events of the record say why.</p>\n"),
            [step] if runs.len() == 1 => out.push_str(&cards(step)),
            steps => out.push_str(&steps_table(steps).html()),
        }
        if !run.summary.points.is_empty() {
            out.push_str(
                "<p>Repeats together; the intervals are those of the differences between repeats.</p>\n",
            );
            out.push_str(&points_table(&run.summary.points).html());
        }
        let notes = words::about_intervals(run);
        if run.summary.steps.len() > 1 || runs.len() > 1 {
            out.push_str("<p class=\"note\">p50 to max are response times of transactions, from the intended start to the last byte.</p>\n");
        }
        if !notes.is_empty() && !run.summary.steps.is_empty() {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", esc(&notes.join(" ")));
        }
    }
    out
}

/// One step: a few large figures, then all percentiles.
fn cards(step: &StepSummary) -> String {
    let mut out = String::from("<dl class=\"cards\">");
    let mut card = |name: &str, value: &str, small: &str| {
        let _ = write!(
            out,
            "<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>",
            esc(name),
            esc(value),
            esc(small)
        );
    };
    let estimate = |unit: Unit, e: &Estimate| {
        (unit.show(e.value), interval(unit, e).unwrap_or("no interval".to_owned()))
    };
    let (value, small) = estimate(Unit::PerSecond, &step.throughput.transactions_per_s);
    card("transactions", &value, &small);
    let (value, small) = estimate(Unit::PerSecond, &step.throughput.queries_per_s);
    card("queries", &value, &small);
    for name in ["p50", "p99"] {
        if let Some(e) = step.response_us.percentiles.get(name) {
            let (value, small) = estimate(Unit::Us, e);
            card(&format!("response {name}"), &value, &small);
        }
    }
    card("response max", &step.response_us.max.map_or("–".to_owned(), us), "the longest one");
    let errors: u64 = step.errors.values().sum();
    let again =
        step.attempts.as_ref().map(|a| format!(", {} of the attempts in vain", percent(1.0 - a.goodput)));
    let below = format!("{} succeeded{}", number(step.transactions as f64), again.unwrap_or_default());
    card("errors", &number(errors as f64), &below);
    card("steady", words::steady(step), &format!("over {} s", number(step.window_s)));
    out.push_str("</dl>\n");
    out.push_str(&percentiles(step).html());
    out
}

/// Response, service and lateness side by side.
fn percentiles(step: &StepSummary) -> Table {
    let names: Vec<&String> = step.response_us.percentiles.keys().collect();
    let head = ["of transactions".to_owned(), "mean".to_owned()].into_iter();
    let labels = names.iter().map(|n| percentile_label(n));
    let mut table = Table::new(head.chain(labels).chain(["max".to_owned(), "values".to_owned()]));
    table.stacks = true;
    let kinds: [(&str, &str, &LatencySummary); 3] = [
        ("response time", "from the intended start", &step.response_us),
        ("service time", "from the send", &step.service_us),
        ("lateness", "from the intended start to the send", &step.lateness_us),
    ];
    for (kind, meaning, times) in kinds {
        if times.count == 0 && kind == "lateness" {
            continue;
        }
        let exact = |v: Option<f64>| Cell::from(v.map_or("–".to_owned(), us)).small("exact");
        let mut cells = vec![Cell::from(kind).small(meaning), exact(times.mean)];
        cells.extend(names.iter().map(|n| Cell::estimate(Unit::Us, times.percentiles.get(*n))));
        cells.push(exact(times.max));
        cells.push(Cell::from(number(times.count as f64)));
        table.row(cells);
    }
    table
}

/// One row for each point that was measured more than once.
fn points_table(points: &[PointSummary]) -> Table {
    let names: Vec<&String> = points.first().map(|p| p.response_us.keys().collect()).unwrap_or_default();
    let rates = points.iter().any(|p| p.rate.is_some());
    let mut head = vec!["connections".to_owned()];
    head.extend(rates.then(|| "asked".to_owned()));
    head.extend(["repeats", "transactions", "queries"].map(str::to_owned));
    head.extend(names.iter().map(|n| percentile_label(n)));
    let mut table = Table::new(head);
    table.stacks = true;
    for point in points {
        let mut cells = vec![Cell::from(point.connections.to_string())];
        if rates {
            cells.push(Cell::from(point.rate.map_or("–".to_owned(), |r| format!("{}/s", number(r)))));
        }
        cells.push(Cell::from(point.steps.len().to_string()));
        cells.push(Cell::estimate(Unit::PerSecond, Some(&point.throughput.transactions_per_s)));
        cells.push(Cell::estimate(Unit::PerSecond, Some(&point.throughput.queries_per_s)));
        cells.extend(names.iter().map(|n| Cell::estimate(Unit::Us, point.response_us.get(*n))));
        table.row(cells);
    }
    table
}

/// One row for each step.
fn steps_table(steps: &[StepSummary]) -> Table {
    let rates = steps.iter().any(|s| s.rate.is_some());
    let mut names: Vec<&String> = Vec::new();
    for name in steps.iter().flat_map(|s| s.response_us.percentiles.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut head = vec!["connections".to_owned()];
    head.extend(rates.then(|| "asked".to_owned()));
    head.extend(["transactions", "queries"].map(str::to_owned));
    head.extend(names.iter().map(|n| percentile_label(n)));
    head.extend(["max", "errors", "steady"].map(str::to_owned));
    let mut table = Table::new(head);
    table.stacks = true;
    for step in steps {
        let mut cells = vec![Cell::from(step.connections.to_string())];
        if rates {
            cells.push(Cell::from(step.rate.map_or("–".to_owned(), |r| format!("{}/s", number(r)))));
        }
        cells.push(Cell::estimate(Unit::PerSecond, Some(&step.throughput.transactions_per_s)));
        cells.push(Cell::estimate(Unit::PerSecond, Some(&step.throughput.queries_per_s)));
        cells.extend(names.iter().map(|n| Cell::estimate(Unit::Us, step.response_us.percentiles.get(*n))));
        cells.push(Cell::from(step.response_us.max.map_or("–".to_owned(), us)));
        let errors: u64 = step.errors.values().sum();
        cells.push(Cell::from(number(errors as f64)).class(if errors > 0 { "bad" } else { "" }));
        cells.push(Cell::from(words::steady(step)).class(if step.steady == Some(false) {
            "bad"
        } else {
            ""
        }));
        table.row(cells);
    }
    table
}
