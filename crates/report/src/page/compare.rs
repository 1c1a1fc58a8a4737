//! Comparison of other runs with the first one: headline figures with the interval of each difference, and other differences.

use std::fmt::Write;

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
pub fn html(runs: &[RunView<'_>]) -> String {
    let [first, others @ ..] = runs else { return String::new() };
    let mut out = String::new();
    for (n, other) in others.iter().enumerate() {
        let (a, b) = (letter(runs, 0), letter(runs, n + 1));
        let all = compared(first, other);
        if all.is_empty() {
            let _ = writeln!(out, "<p class=\"empty\">{a} and {b} have no step with the same load.</p>");
        }
        if all.len() > 1 {
            out.push_str(&overview(&a, &b, &all).html());
        }
        for each in &all {
            let figures = table(&a, &b, &each.differences).html();
            let name = esc(&each.name);
            match all.len() {
                1 => out.push_str(&figures),
                _ => {
                    let _ =
                        writeln!(out, "<details><summary>All figures, {name}</summary>{figures}</details>");
                }
            }
        }
        if let Some(about) = about_provisional(&all) {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", esc(&about));
        }
        if let Some(command) = command(first.record, other.record) {
            let _ =
                writeln!(out, "<p class=\"note\">In turns, to be sure: <code>{}</code></p>", esc(&command));
        }
        let contrasts = contrasts(first.record, other.record);
        if contrasts.is_empty() {
            let _ = writeln!(out, "<p class=\"fine\">Plan and facts of {a} and {b} do not differ.</p>");
            continue;
        }
        let mut table = Table::new(["what differs".to_owned(), a, b]);
        table.prose = true;
        for c in contrasts.iter().take(MOST_CONTRASTS) {
            table.row([c.name.as_str(), c.a.as_str(), c.b.as_str()]);
        }
        out.push_str(&table.html());
        if contrasts.len() > MOST_CONTRASTS {
            let _ = writeln!(out, "<p class=\"note\">{} more differ.</p>", contrasts.len() - MOST_CONTRASTS);
        }
    }
    if !out.is_empty() {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", esc(CAVEAT));
    }
    out
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

fn table(a: &str, b: &str, differences: &[Difference]) -> Table {
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
