//! The run's parameters and headline figures.

use maud::{Markup, html};
use mydyno_model::Estimate;
use mydyno_model::summary::{LatencySummary, PointSummary, StepSummary};

use super::run_heading;
use crate::RunView;
use crate::answer;
use crate::charts::letter;
use crate::figures::{Unit, interval, number, percent, percentile_label, us};
use crate::intervals;
use crate::table::{Cell, Table};
use crate::text::html as esc;
use crate::tpcc;
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
pub fn masthead(runs: &[RunView<'_>]) -> Markup {
    let what = |run: &RunView<'_>| {
        html! { (esc(&run.summary.workload)) " " span { "on " (esc(&words::server(run))) } }
    };
    html! {
        header {
            "\n"
            p.brand { "mydyno report" } "\n"
            @match runs {
                [] => { h1 { "No runs" } "\n" }
                [run] => { h1 { (what(run)) } "\n" p.answer { (esc(&answer::of_run(run))) } "\n" (about(run)) }
                _ => {
                    h1 { "Runs side by side" } "\n"
                    ol.runs {
                        "\n"
                        @for (n, run) in runs.iter().enumerate() {
                            li {
                                b class={ "letter l" (n) } { (letter(runs, n)) }
                                div { p.what { (what(run)) } p.answer { (esc(&answer::of_run(run))) } "\n" (about(run)) }
                            }
                            "\n"
                        }
                    }
                    "\n"
                }
            }
        }
        "\n"
    }
}

fn about(run: &RunView<'_>) -> Markup {
    let (class, end) = match words::ending(run) {
        Ending::Complete => ("ok", "complete"),
        Ending::Interrupted => ("bad", "interrupted"),
        Ending::Killed => ("bad", "killed"),
        Ending::Recording => ("bad", "not at its end"),
        Ending::Broken => ("bad", "broke off"),
    };
    html! {
        p.about { span class={ "end " (class) } { (end) } " " (esc(&words::load(run))) } "\n"
        @for sentence in tpcc::headline(run.summary) { p.about { b { (esc(&sentence)) } } "\n" }
        p.about { (esc(&words::place(run))) } "\n"
        p.about { (esc(&words::target(run))) " · " span.id { (esc(&run.summary.run)) } } "\n"
    }
}

/// The headline of each step.
pub fn html(runs: &[RunView<'_>]) -> Markup {
    html! { @for (n, run) in runs.iter().enumerate() { (run_heading(runs, n)) (headline(run, runs.len() == 1)) } }
}

fn headline(run: &RunView<'_>, is_alone: bool) -> Markup {
    let steps = run.summary.steps.as_slice();
    let notes = intervals::about(run);
    html! {
        @match steps {
            [] => {
                p.empty { "No step was measured: there is nothing to show. The warnings above and the events of the record say why." }
                "\n"
            }
            [step] if is_alone => { (cards(step)) }
            steps => { (steps_table(steps).html()) }
        }
        @if !run.summary.points.is_empty() {
            p { "Repeats together; the intervals are those of the differences between repeats." } "\n"
            (points_table(&run.summary.points).html())
        }
        @if steps.len() > 1 || !is_alone {
            p.note { "p50 to max are response times of transactions, from the intended start to the last byte." } "\n"
        }
        @if !notes.is_empty() && !steps.is_empty() { p.note { (esc(&notes.join(" "))) } "\n" }
    }
}

/// One step: a few large figures, then all percentiles.
fn cards(step: &StepSummary) -> Markup {
    let estimate = |name: &str, unit: Unit, e: &Estimate| {
        (name.to_owned(), unit.show(e.value), interval(unit, e).unwrap_or("no interval".to_owned()))
    };
    let throughput = &step.throughput;
    let mut cards = vec![
        estimate("transactions", Unit::PerSecond, &throughput.transactions_per_s),
        estimate("queries", Unit::PerSecond, &throughput.queries_per_s),
    ];
    for name in ["p50", "p99"] {
        let percentile = step.response_us.percentiles.get(name);
        cards.extend(percentile.map(|e| estimate(&format!("response {name}"), Unit::Us, e)));
    }
    let mut card =
        |name: &str, value: String, small: &str| cards.push((name.to_owned(), value, small.to_owned()));
    card("response max", step.response_us.max.map_or("–".to_owned(), us), "the longest one");
    let errors: u64 = step.errors.values().sum();
    let again =
        step.attempts.as_ref().map(|a| format!(", {} of the attempts in vain", percent(1.0 - a.goodput)));
    let below = format!("{} succeeded{}", number(step.transactions as f64), again.unwrap_or_default());
    card("errors", number(errors as f64), &below);
    card("steady", intervals::steady(step).to_owned(), &format!("over {} s", number(step.window_s)));
    html! {
        dl.cards {
            @for (name, value, small) in &cards {
                div { dt { (esc(name)) } dd { (esc(value)) small { (esc(small)) } } }
            }
        }
        "\n"
        (percentiles(step).html())
    }
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
        cells.push(Cell::from(intervals::steady(step)).class(if step.steady == Some(false) {
            "bad"
        } else {
            ""
        }));
        table.row(cells);
    }
    table
}
