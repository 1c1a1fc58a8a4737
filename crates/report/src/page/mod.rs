//! The report as one self-contained HTML file that loads no other resource.

mod compare;
mod facts;
mod frame;
mod headline;
mod operations;
mod origin;
mod warnings;

pub use frame::document;

use crate::RunView;
use crate::chart::{Chart, data_block};
use crate::charts;
use crate::text::html as esc;

/// A part of the page with a heading.
struct Section {
    id: &'static str,
    title: &'static str,
    html: String,
}

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
        Section { id: "host", title: "Host", html: figures(&host, "wide") + &facts::host_note(runs) },
        Section { id: "facts", title: "Facts", html: facts::html(runs) },
        Section { id: "origin", title: "This run", html: origin::html(runs) },
    ];
    let mut body = headline::masthead(runs);
    let sections: Vec<&Section> = sections.iter().filter(|s| !s.html.is_empty()).collect();
    body.push_str("<nav aria-label=\"Sections\"><ul>");
    for section in &sections {
        body.push_str(&format!("<li><a href=\"#{}\">{}</a></li>", section.id, esc(section.title)));
    }
    body.push_str("</ul></nav>\n<main>\n");
    for Section { id, title, html } in sections {
        body.push_str(&format!(
            "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{}</h2>\n{html}</section>\n",
            esc(title)
        ));
    }
    body.push_str("</main>\n");
    body.push_str(&origin::footer(runs));
    let all: Vec<&Chart> = time.iter().chain(&distributions).chain(&sweep).chain(&host).collect();
    document(&headline::title(runs), &body, &data_block(&all))
}

fn columns(charts: &[Chart]) -> &'static str {
    if charts.len() > 1 { "pair" } else { "wide" }
}

fn figures(charts: &[Chart], class: &str) -> String {
    if charts.is_empty() {
        return String::new();
    }
    let figures: String = charts.iter().map(Chart::html).collect();
    format!("<div class=\"charts {class}\">\n{figures}</div>\n")
}

/// A heading inside a section that covers several runs.
fn run_heading(runs: &[RunView<'_>], index: usize) -> String {
    match charts::letter(runs, index) {
        letter if letter.is_empty() => String::new(),
        letter => format!(
            "<h3 class=\"run\"><b class=\"letter l{index}\">{}</b> {}</h3>\n",
            esc(&letter),
            esc(&runs[index].summary.run)
        ),
    }
}
