//! Runs beside the first one: headlines with the interval of each difference, and what else differs.

use std::fmt::Write;

use crate::RunView;
use crate::charts::{letter, step_name};
use crate::compare::{CAVEAT, Difference, Verdict, contrasts, differences, pairs};
use crate::figures::change;
use crate::table::{Cell, Table};
use crate::text::html as esc;

/// Rows of the table of what differs at most.
const MOST_CONTRASTS: usize = 60;

/// The section; empty for a single run.
pub fn html(runs: &[RunView<'_>]) -> String {
    let [first, others @ ..] = runs else { return String::new() };
    let mut out = String::new();
    for (n, other) in others.iter().enumerate() {
        let (a, b) = (letter(runs, 0), letter(runs, n + 1));
        let pairs = pairs(first, other);
        if pairs.is_empty() {
            let _ = writeln!(out, "<p class=\"empty\">{a} and {b} have no step with the same load.</p>");
        }
        for (in_a, in_b) in pairs {
            let _ = writeln!(out, "<h3>{b} against {a}, {}</h3>", esc(&step_name(in_a)));
            out.push_str(&table(&a, &b, &differences(in_a, in_b)).html());
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

fn table(a: &str, b: &str, differences: &[Difference]) -> Table {
    let mut table = Table::new(["".to_owned(), a.to_owned(), b.to_owned(), "change".to_owned(), "".to_owned()]);
    table.stacks = true;
    for d in differences {
        let changed = match d.change() {
            None => Cell::from("–"),
            Some(c) => {
                let small = c.interval.map_or("no interval".to_owned(), |(l, h)| format!("{} … {}", change(l), change(h)));
                Cell::from(change(c.value)).small(small)
            }
        };
        let verdict = d.verdict();
        let class = match verdict {
            Verdict::Better => "good",
            Verdict::Worse => "bad",
            Verdict::Unresolved | Verdict::NoInterval => "dim",
        };
        table.row([
            Cell::from(d.name.as_str()),
            Cell::estimate(d.unit, Some(&d.a)),
            Cell::estimate(d.unit, Some(&d.b)),
            changed,
            Cell::from(verdict.word()).class(class),
        ]);
    }
    table
}
