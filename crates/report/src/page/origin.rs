//! The origin of the record, and the command that repeats the run.

use maud::{Markup, html};
use mydyno_model::record::{EventKind, Phase};

use super::run_heading;
use crate::RunView;
use crate::charts::load_name;
use crate::contrast::shown;
use crate::figures::number;
use crate::scale::clock;
use crate::table::{Cell, Table};
use crate::text::{html as esc, shell};

/// Maximum number of events on the page.
const MOST_EVENTS: usize = 200;

/// The section.
pub fn html(runs: &[RunView<'_>]) -> Markup {
    html! {
        @for (n, run) in runs.iter().enumerate() {
            @let argv = &run.record.manifest.argv;
            (run_heading(runs, n))
            @if !argv.is_empty() {
                p.label id={ "repeat-" (n) } { "The command that repeats it, secrets removed" } "\n"
                pre.command tabindex="0" aria-labelledby={ "repeat-" (n) } { code { (esc(&shell(argv))) } } "\n"
            }
            (origin(run).html())
            (events(run))
        }
    }
}

fn origin(run: &RunView<'_>) -> Table {
    let manifest = &run.record.manifest;
    let mut table = Table::new(["", ""]);
    table.prose = true;
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.row([Cell::from(name), Cell::from(value)]);
        }
    };
    row("ended", run.summary.end.to_string());
    row("began", manifest.header.created.clone());
    let options = manifest.plan.workload.options.iter();
    row("options", options.map(|(k, v)| format!("--{k} {}", shown(v))).collect::<Vec<_>>().join(" "));
    row("seed", manifest.plan.seed.to_string());
    row("answers awaited by", manifest.plan.wait.backend.to_string());
    let wait = &manifest.plan.wait;
    let session = wait.session_nice.map(|nice| format!(", its session at nice {nice}")).unwrap_or_default();
    row("load generator's scheduling", format!("{}{session}", wait.scheduling));
    row("database", manifest.plan.database.clone());
    row("fingerprint of the data", run.summary.fingerprint.data.clone());
    row("fingerprint of the operations", run.summary.fingerprint.operations.clone());
    row("digest of the facts", manifest.facts_digest.clone());
    let source = manifest.clock.source.as_deref().map(|s| format!(" from {s}")).unwrap_or_default();
    row("clock", format!("{}{source}, {} ns a reading", manifest.clock.name, number(manifest.clock.read_ns)));
    let writer = &manifest.header.mydyno;
    row("recorded by", format!("mydyno {} ({})", writer.version, writer.commit));
    row("record", run.folder.map(|f| f.display().to_string()).unwrap_or_default());
    table
}

fn events(run: &RunView<'_>) -> Markup {
    let events = &run.record.events;
    if events.is_empty() {
        return Markup::default();
    }
    let mut table = Table::new(["at", "event", ""]);
    table.prose = true;
    let whole_s = events.last().map_or(0.0, |e| e.at_s);
    for event in events.iter().take(MOST_EVENTS) {
        let step = |n: &usize| format!("step {}", n + 1);
        let (name, text) = match &event.what {
            EventKind::Phase { step: n, phase } => (phase_name(*phase), step(n)),
            EventKind::Error { step: n, code, message, operation, .. } => {
                ("error", format!("{code} in {operation}, {}: {message}", step(n)))
            }
            EventKind::Warning(w) => ("warning", format!("{}: {}", w.id, w.text)),
            EventKind::Interrupted => ("interrupted", String::new()),
            EventKind::Step { step: n, plan } => (
                "step added",
                format!("{}: {}", step(n), load_name(plan.connections, plan.arrivals.rate_per_s())),
            ),
            EventKind::End { how } => ("end", how.to_string()),
        };
        table.row([clock(event.at_s, whole_s), name.to_owned(), text]);
    }
    let more = events.len().saturating_sub(MOST_EVENTS);
    html! {
        details {
            summary { (events.len()) " events" }
            (table.html())
            @if more > 0 { p.note { (more) " more events stand in the record." } }
        }
        "\n"
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Connect => "connect",
        Phase::Warmup => "warm-up",
        Phase::Measure => "measure",
        Phase::Drain => "drain",
    }
}

/// The last line of the page.
pub fn footer(runs: &[RunView<'_>]) -> Markup {
    let writer = mydyno_model::Writer::current();
    let what = if runs.len() == 1 { "the record of the run" } else { "the records of the runs" };
    html! {
        footer {
            p {
                "Made by mydyno " (writer.version) " (" (writer.commit) ") from " (what)
                " alone. This file asks for nothing from any network."
            }
        }
        "\n"
    }
}
