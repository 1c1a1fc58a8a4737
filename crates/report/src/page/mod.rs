//! The report as one self-contained HTML file that loads no other resource.

mod compare;
mod facts;
mod frame;
mod headline;
mod operations;
mod origin;
mod warnings;

pub use frame::{Section, document, document_of, in_sections};
use maud::{Markup, html};

use crate::RunView;
use crate::budget;
use crate::chart::{Chart, data_block};
use crate::charts;
use crate::details;
use crate::sheet::Sheet;
use crate::table::Table;
use crate::text::html as esc;

/// The whole page.
pub fn page(runs: &[RunView<'_>]) -> String {
    let time = charts::over_time(runs);
    let distributions = charts::distributions(runs);
    let sweep = charts::sweep(runs);
    let host = charts::host(runs);
    let sections = [
        Section { id: "warnings", title: "Is it trustworthy", html: warnings::html(runs) },
        Section { id: "difference", title: "Difference", html: compare::html(runs) },
        Section { id: "headline", title: "Headline", html: headline::html(runs) },
        Section { id: "bottlenecks", title: "Bottlenecks", html: warnings::bottlenecks(runs) },
        Section { id: "budget", title: "Where the time went", html: time_budget(runs) },
        Section { id: "spikes", title: "Slow seconds", html: spikes(runs) },
        Section { id: "details", title: "InnoDB, waits and statements", html: details(runs) },
        Section { id: "time", title: "Over time", html: figures(&time, "wide") },
        Section {
            id: "latency",
            title: "Distribution",
            html: figures(&distributions, columns(&distributions)),
        },
        Section { id: "sweep", title: "Against load", html: figures(&sweep, "pair") },
        Section { id: "errors", title: "Errors", html: operations::errors(runs) },
        Section { id: "operations", title: "Operations", html: operations::table(runs) },
        Section { id: "costs", title: "What it used", html: operations::costs(runs) },
        Section {
            id: "host",
            title: "Host",
            html: html! { (figures(&host, "wide")) (facts::host_note(runs)) },
        },
        Section { id: "facts", title: "Facts", html: facts::html(runs) },
        Section { id: "origin", title: "This run", html: origin::html(runs) },
    ];
    let body = html! { (headline::masthead(runs)) (in_sections(&sections)) (origin::footer(runs)) };
    let all: Vec<&Chart> = time.iter().chain(&distributions).chain(&sweep).chain(&host).collect();
    document(&headline::title(runs), &body, &data_block(&all))
}

fn columns(charts: &[Chart]) -> &'static str {
    if charts.len() > 1 { "pair" } else { "wide" }
}

fn figures(charts: &[Chart], class: &str) -> Markup {
    html! {
        @if !charts.is_empty() {
            div class={ "charts " (class) } { "\n" @for chart in charts { (chart.html()) } }
            "\n"
        }
    }
}

fn time_budget(runs: &[RunView<'_>]) -> Markup {
    html! {
        @for (n, run) in runs.iter().enumerate().filter(|(_, run)| budget::is_known(run)) {
            (run_heading(runs, n))
            (budget::bars(run))
            @let differ = budget::disagreements(run);
            @if !differ.is_empty() {
                p.note { "The counters say something else:" }
                ul { @for sentence in &differ { li { (esc(sentence)) } "\n" } }
            }
        }
    }
}

/// InnoDB, waits and statements of each step.
fn details(runs: &[RunView<'_>]) -> Markup {
    html! {
        @for (n, run) in runs.iter().enumerate() {
            @let tables = details::tables(run);
            @if !tables.is_empty() {
                (run_heading(runs, n))
                @for titled in &tables {
                    (table_of(&titled.sheet).html())
                    p.note { (titled.about) }
                    "\n"
                }
            }
        }
    }
}

/// A sheet as a table of the page.
fn table_of(sheet: &Sheet) -> Table {
    let mut table = Table::new(sheet.columns.iter().map(|column| column.head.clone()));
    for row in 0..sheet.rows() {
        table.row(sheet.columns.iter().map(|column| column.cells[row].clone()));
    }
    table
}

fn spikes(runs: &[RunView<'_>]) -> Markup {
    html! {
        @for (n, run) in runs.iter().enumerate() {
            @let spikes = budget::spikes(run);
            @if !spikes.is_empty() {
                (run_heading(runs, n))
                ul { @for spike in &spikes { li { (esc(spike)) } "\n" } }
                p.note { "Seconds whose 99th percentile was three times the usual one or more, with the figures that were larger in them than in every other second." }
                "\n"
            }
        }
    }
}

/// A heading inside a section that covers several runs.
fn run_heading(runs: &[RunView<'_>], index: usize) -> Markup {
    let letter = charts::letter(runs, index);
    html! {
        @if !letter.is_empty() {
            h3.run { b class={ "letter l" (index) } { (letter) } " " (esc(&runs[index].summary.run)) }
            "\n"
        }
    }
}
