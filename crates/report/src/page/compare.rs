//! Comparison of other runs with the first one: headline figures with the interval of each difference, and other differences.

use maud::{Markup, html};
use mydyno_model::Estimate;

use crate::RunView;
use crate::charts::letter;
use crate::compare::{CAVEAT, Compared, Difference, Verdict, about_provisional, compared};
use crate::contrast::{command, contrasts};
use crate::figures::{change, interval};
use crate::table::{Cell, Table};
use crate::text::html as esc;

/// Maximum number of rows in the table of differences.
const MOST_CONTRASTS: usize = 60;

/// The section; empty for a single run.
pub fn html(runs: &[RunView<'_>]) -> Markup {
    let [first, others @ ..] = runs else { return Markup::default() };
    html! {
        @for (n, other) in others.iter().enumerate() { (pair(&letter(runs, 0), &letter(runs, n + 1), first, other)) }
        @if !others.is_empty() { p.note { (CAVEAT) } "\n" }
    }
}

/// One run against the first.
fn pair(a: &str, b: &str, first: &RunView<'_>, other: &RunView<'_>) -> Markup {
    let all = compared(first, other);
    let contrasts = contrasts(first.record, other.record);
    let mut table = Table::new(["what differs", a, b]);
    table.prose = true;
    for c in contrasts.iter().take(MOST_CONTRASTS) {
        table.row([c.name.as_str(), c.a.as_str(), c.b.as_str()]);
    }
    html! {
        @if all.is_empty() { p.empty { (a) " and " (b) " have no step with the same load." } "\n" }
        @if all.len() > 1 { (overview(a, b, &all).html()) }
        @for each in &all {
            @let figures = figures(a, b, &each.differences).html();
            @if all.len() == 1 {
                (figures)
            } @else {
                details { summary { "All figures, " (esc(&each.name)) } (figures) } "\n"
            }
        }
        @if let Some(about) = about_provisional(&all) { p.note { (esc(&about)) } "\n" }
        @if let Some(command) = command(first.record, other.record) {
            p.note { "In turns, to be sure: " code { (esc(&command)) } } "\n"
        }
        @if contrasts.is_empty() {
            p.fine { "Plan and facts of " (a) " and " (b) " do not differ." } "\n"
        } @else {
            (table.html())
            @if contrasts.len() > MOST_CONTRASTS {
                p.note { (contrasts.len() - MOST_CONTRASTS) " more differ." } "\n"
            }
        }
    }
}

/// The changes of the main figures, one row for each load.
fn overview(a: &str, b: &str, all: &[Compared]) -> Table {
    const MAIN: [&str; 4] = ["transactions", "response p50", "response p95", "response p99"];
    let mut table =
        Table::new([format!("{b} against {a}")].into_iter().chain(MAIN.map(|m| m.replace("response ", ""))));
    table.stacks = true;
    for each in all {
        let cell = |name: &str| {
            each.differences
                .iter()
                .find(|d| d.name == name)
                .map_or_else(|| Cell::from("–"), |d| changed(d).class(class(d)))
        };
        table.row([Cell::from(each.name.as_str())].into_iter().chain(MAIN.map(cell)));
    }
    table
}

fn changed(d: &Difference) -> Cell {
    match d.change() {
        None => Cell::from("–"),
        Some(c) => {
            let cell = Cell::from(change(c.value));
            match c.ends() {
                Some(ends) => cell.small(ends),
                None => cell,
            }
        }
    }
}

fn class(d: &Difference) -> &'static str {
    match d.verdict() {
        Verdict::Better => "good",
        Verdict::Worse => "bad",
        _ => "dim",
    }
}

/// All figures at one load.
fn figures(a: &str, b: &str, differences: &[Difference]) -> Table {
    let mut table = Table::new(["", a, b, "change", "in these runs"]);
    table.stacks = true;
    for d in differences {
        let value = |e: &Estimate| {
            let cell = Cell::from(d.unit.show(e.value));
            match interval(d.unit, e) {
                Some(interval) => cell.small(interval),
                None => cell,
            }
        };
        let word = Cell::from(d.verdict().word()).class(class(d));
        table.row([Cell::from(d.name.as_str()), value(&d.a), value(&d.b), changed(d), word]);
    }
    table
}
