//! The report as Markdown: for tickets, pull requests and wikis.

use std::fmt::Write;

use crate::RunView;
use crate::answer::{self, Grade, graded};
use crate::bottlenecks::{NONE, bottlenecks, is_diagnosed};
use crate::budget;
use crate::charts::{letter, step_name};
use crate::compare::{CAVEAT, about_provisional, compared};
use crate::contrast::{command, contrasts};
use crate::details;
use crate::intervals;
use crate::scaling;
use crate::sheet::{self, Column, Sheet};
use crate::text::{markdown as esc, markdown_code, shell};
use crate::tpcc;
use crate::words::{self, GroupedWarning, Seen};

/// Markdown (CommonMark with tables).
pub fn markdown(runs: &[RunView<'_>]) -> String {
    let mut out = String::new();
    for (n, run) in runs.iter().enumerate() {
        one(&mut out, runs, n, run);
    }
    if let [first, others @ ..] = runs {
        for (n, other) in others.iter().enumerate() {
            difference(&mut out, runs, first, other, n + 1);
        }
    }
    out
}

fn one(out: &mut String, runs: &[RunView<'_>], n: usize, run: &RunView<'_>) {
    let letter = letter(runs, n);
    let prefix = if letter.is_empty() { String::new() } else { format!("{letter}: ") };
    let _ = writeln!(out, "# {prefix}{} on {}\n", esc(&run.summary.workload), esc(&words::server(run)));
    let _ = writeln!(out, "**{}**\n", esc(&answer::of_run(run)));
    let _ = writeln!(out, "{}; {}.\n", esc(&words::load(run)), esc(&words::target(run)));
    let warnings = graded(words::warnings(run));
    if warnings.is_empty() {
        out.push_str("No warnings.\n\n");
    }
    grouped(out, run, warnings, |id| format!(" ({})", Grade::of(id).label()));
    out.push_str("## Headline\n\n");
    match run.summary.steps.as_slice() {
        [] => out.push_str("No step was measured.\n\n"),
        [step] => table(out, sheet::figures(step)),
        _ => table(out, sheet::steps(run.summary)),
    }
    if !run.summary.points.is_empty() {
        out.push_str("Repeats together:\n\n");
        table(out, sheet::points(run.summary));
    }
    if run.summary.capacity.is_some() {
        table(out, sheet::capacity(run.summary));
    }
    if let Some(Ok(fit)) = scaling::law(run) {
        let _ = writeln!(out, "Scalability law: {}.\n", esc(&scaling::words(&fit)));
    }
    let notes = intervals::about(run);
    if !notes.is_empty() {
        let _ = writeln!(out, "{}\n", esc(&notes.join(" ")));
    }
    for sentence in tpcc::headline(run.summary) {
        let _ = writeln!(out, "{}\n", esc(&sentence));
    }
    if let Some((step, summary)) = tpcc::last(run.summary) {
        let _ = writeln!(out, "## Transactions, {}\n", esc(&step_name(step)));
        table(out, tpcc::transactions(summary));
        table(out, tpcc::requirements(summary));
    }
    if is_diagnosed(run) {
        out.push_str("## Bottlenecks\n\n");
        let found = bottlenecks(run);
        if found.is_empty() {
            let _ = writeln!(out, "{NONE}\n");
        }
        grouped(out, run, found, |_| String::new());
    }
    if budget::is_known(run) {
        out.push_str("## Where the time went\n\n");
        table(out, budget::sheet(run));
        let _ = writeln!(out, "{}\n", budget::ABOUT);
        for sentence in budget::disagreements(run) {
            let _ = writeln!(out, "The counters say something else: {}\n", esc(&sentence));
        }
    }
    for titled in details::tables(run) {
        let _ = writeln!(out, "## {}\n", titled.title);
        table(out, titled.sheet);
        let _ = writeln!(out, "{}\n", titled.about);
    }
    let spikes = budget::spikes(run);
    if !spikes.is_empty() {
        out.push_str("## Slow seconds\n\n");
        spikes.iter().for_each(|spike| _ = writeln!(out, "- {}", esc(spike)));
        out.push('\n');
    }
    let errors = sheet::errors(run);
    if errors.rows() > 0 {
        out.push_str("## Errors\n\n");
        table(out, errors);
    }
    if let Some(step) = run.summary.steps.last().filter(|s| s.operations.len() > 2) {
        let _ = writeln!(out, "## Operations, {}\n", esc(&step_name(step)));
        table(out, sheet::operations(step));
    }
    if !run.summary.steps.is_empty() {
        out.push_str("## What it cost\n\n");
        table(out, sheet::costs(run));
    }
    out.push_str("## This run\n\n");
    let print = &run.summary.fingerprint;
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(out, "- {name}: {}", esc(value));
    };
    row("run", &run.summary.run);
    row("ended", run.summary.end.as_str());
    row("data", &print.data);
    row("operations", &print.operations);
    let _ = writeln!(
        out,
        "\nThe command that repeats it:\n\n{}",
        markdown_code(&shell(&run.record.manifest.argv))
    );
}

fn grouped(
    out: &mut String,
    run: &RunView<'_>,
    warnings: Vec<GroupedWarning>,
    behind: impl Fn(&str) -> String,
) {
    for warning in warnings {
        for Seen { steps, text } in &warning.seen {
            let label = words::steps_label(run, steps);
            let label = if label.is_empty() { String::new() } else { format!("{}: ", esc(&label)) };
            let _ = writeln!(out, "- **{}**{}: {label}{}", esc(&warning.id), behind(&warning.id), esc(text));
        }
        let _ = writeln!(out, "  → {}\n", esc(&warning.next_step));
    }
}

fn difference(out: &mut String, runs: &[RunView<'_>], first: &RunView<'_>, other: &RunView<'_>, n: usize) {
    let (a, b) = (letter(runs, 0), letter(runs, n));
    if let Some(warning) = words::unequal_work(first, other) {
        let _ =
            writeln!(out, "- **{}**: {}\n  → {}\n", warning.id, esc(&warning.text), esc(&warning.next_step));
    }
    let all = compared(first, other);
    for each in &all {
        let _ = writeln!(out, "## {b} against {a}, {}\n", esc(&each.name));
        table(out, sheet::differences(&a, &b, &each.differences));
    }
    if let Some(about) = about_provisional(&all) {
        let _ = writeln!(out, "{}\n", esc(&about));
    }
    if let Some(command) = command(first.record, other.record) {
        let _ = writeln!(out, "In turns, to be sure:\n\n    {command}\n");
    }
    let contrasts = contrasts(first.record, other.record);
    if !contrasts.is_empty() {
        let cells =
            |f: &dyn Fn(&crate::contrast::Contrast) -> String| contrasts.iter().take(60).map(f).collect();
        let column = |head: &str, cells| Column { head: head.to_owned(), cells, drop: 0 };
        let columns = vec![
            column("what differs", cells(&|c| c.name.clone())),
            column(&a, cells(&|c| c.a.clone())),
            column(&b, cells(&|c| c.b.clone())),
        ];
        table(out, Sheet { columns });
    }
    let _ = writeln!(out, "{CAVEAT}\n");
}

fn table(out: &mut String, sheet: Sheet) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(sheet.columns.iter().map(|c| esc(&c.head)).collect()));
    let rule = (0..sheet.columns.len()).map(|n| if n == 0 { ":--" } else { "--:" }.to_owned());
    out.push_str(&line(rule.collect()));
    for row in 0..sheet.rows() {
        out.push_str(&line(sheet.columns.iter().map(|c| esc(&c.cells[row])).collect()));
    }
    out.push('\n');
}
