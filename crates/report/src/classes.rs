//! Two servers compared by classes of statements, for people: what differs in the plans first, then times and gains.

use mydyno_model::Estimate;
use mydyno_model::experiment::classes::{ClassComparison, ClassPoint, ClassResult, PlanStep, QueryPlan};
use mydyno_model::units::{show_bytes, show_seconds};

use crate::text::terminal as clean;

mod html;

pub use html::html;

/// Columns of the table of a class.
const COLUMNS: [&str; 7] =
    ["clients", "baseline", "treatment", "gain", "noise", "user, system CPU", "memory"];

/// Plain text; the heading is bold where `color` is set.
pub fn terminal(document: &ClassComparison, color: bool) -> String {
    let (bold, plain) = if color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let mut lines = vec![
        format!("{bold}{}{plain}", clean(&document.question)),
        clean(&document.answer),
        String::new(),
        servers(document),
    ];
    for class in &document.classes {
        lines.push(String::new());
        lines.push(format!("{bold}{}{plain}", heading(class)));
        lines.extend(differences(class).into_iter().map(|line| format!("  {line}")));
        if !class.points.is_empty() {
            let rows: Vec<Vec<String>> = class.points.iter().map(row).collect();
            lines.extend(aligned(&rows).into_iter().map(|line| format!("  {line}")));
        }
        lines.extend(class.not_measured.iter().map(|what| format!("  not measured: {}", clean(what))));
        lines.extend(published(document, class).into_iter().map(|line| format!("  published: {line}")));
    }
    lines.push(String::new());
    lines.extend(
        document.stand_in.iter().map(|why| format!("A stand-in for the published set-up: {}", clean(why))),
    );
    lines.extend(document.set_up.iter().map(|line| clean(line)));
    lines.push(scope(document));
    lines.join("\n")
}

/// Markdown, with the plan of every statement on both servers.
pub fn markdown(document: &ClassComparison) -> String {
    let mut lines = vec![
        format!("# {}", cell(&document.question)),
        String::new(),
        cell(&document.answer),
        String::new(),
        cell(&servers(document)),
        String::new(),
    ];
    for class in &document.classes {
        lines.extend([format!("## {}", cell(&heading(class))), String::new()]);
        lines.extend(differences(class).iter().map(|line| format!("- {}", cell(line))));
        lines.extend(class.not_measured.iter().map(|what| format!("- not measured: {}", cell(what))));
        lines.extend(published(document, class).iter().map(|line| format!("- published: {}", cell(line))));
        lines.push(String::new());
        if !class.points.is_empty() {
            lines.push(format!("| {} |", COLUMNS.join(" | ")));
            lines.push(format!("|{}", "---|".repeat(COLUMNS.len())));
            lines.extend(class.points.iter().map(|point| format!("| {} |", row(point).join(" | "))));
            lines.push(String::new());
        }
        for statement in &class.statements {
            lines.extend([format!("`{}`", cell(&statement.sql)), String::new()]);
            lines.extend(plan_table("baseline", &statement.baseline));
            lines.extend(plan_table("treatment", &statement.treatment));
        }
    }
    lines.extend(
        document.stand_in.iter().map(|why| format!("A stand-in for the published set-up: {}", cell(why))),
    );
    lines.extend(["## Set-up".to_owned(), String::new()]);
    lines.extend(document.set_up.iter().map(|line| format!("- {}", cell(line))));
    lines.push(format!("- {}", cell(&scope(document))));
    lines.extend(document.command.iter().map(|command| format!("- `{}`", cell(command))));
    lines.join("\n") + "\n"
}

fn servers(document: &ClassComparison) -> String {
    let of = |number: usize| document.servers.get(number).map_or("unknown", String::as_str);
    format!("Baseline: {}. Treatment: {}.", clean(of(0)), clean(of(1)))
}

/// The class with the gain over all numbers of clients; a difference of plans comes first.
fn heading(class: &ClassResult) -> String {
    let plans = match class.plans_differ {
        Some(true) => "THE PLANS DIFFER: ",
        Some(false) => "",
        None => "plan unknown: ",
    };
    let gain =
        class.gain.map_or_else(String::new, |gain| format!(": gain {} (geometric mean)", percent(gain)));
    format!("{plans}{}{gain}", clean(&class.name))
}

/// Differences in the plans of a class, or why they are unknown.
fn differences(class: &ClassResult) -> Vec<String> {
    let mut lines = Vec::new();
    for statement in &class.statements {
        let name = clean(&statement.name);
        match statement.baseline.differs(&statement.treatment) {
            Some(false) => {}
            Some(true) => lines.push(format!(
                "{name}: baseline {}; treatment {}",
                in_short(&statement.baseline),
                in_short(&statement.treatment)
            )),
            None => {
                let why = [&statement.baseline, &statement.treatment];
                let why = why.iter().find_map(|plan| plan.unknown.as_deref()).unwrap_or_default();
                lines.push(format!("{name}: {}", clean(why)));
            }
        }
    }
    lines
}

/// As in `r ALL → o eq_ref PRIMARY(7) → s ref submitter(4)`.
fn in_short(plan: &QueryPlan) -> String {
    let step = |step: &PlanStep| {
        let key =
            if step.key.is_empty() { String::new() } else { format!(" {}({})", step.key, step.key_length) };
        clean(&format!("{} {}{key}", step.table, step.access))
    };
    plan.steps.iter().map(step).collect::<Vec<_>>().join(" → ")
}

fn row(point: &ClassPoint) -> Vec<String> {
    let both = |of: fn(&mydyno_model::experiment::classes::ClassFigures) -> (f64, f64)| {
        let one = |(user, system): (f64, f64)| format!("{}, {}", show_seconds(user), show_seconds(system));
        format!("{} / {}", one(of(&point.baseline)), one(of(&point.treatment)))
    };
    vec![
        point.connections.to_string(),
        show_seconds(point.baseline.time_s),
        show_seconds(point.treatment.time_s),
        format!("{}{}", interval(&point.gain), decided(point)),
        interval(&point.noise),
        both(|figures| (figures.user_s, figures.system_s)),
        format!("{} / {}", show_bytes(point.baseline.memory_bytes), show_bytes(point.treatment.memory_bytes)),
    ]
}

fn interval(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            format!("{} ({} to {})", percent(estimate.value), percent(low), percent(high))
        }
        _ => format!("{} (no interval)", percent(estimate.value)),
    }
}

/// A mark where the error of all points together decides the direction.
fn decided(point: &ClassPoint) -> &'static str {
    match point.faster {
        Some(true) => " faster",
        Some(false) => " slower",
        None => "",
    }
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// Published figures whose conditions begin with the name of the class.
fn published(document: &ClassComparison, class: &ClassResult) -> Vec<String> {
    let of = document.published.iter().filter(|p| p.conditions.starts_with(&class.name));
    of.map(|p| clean(&format!("{} {} ({}; {})", p.figure, p.unit, p.source, p.conditions))).collect()
}

fn scope(document: &ClassComparison) -> String {
    match document.starts {
        0..=2 => {
            "Intervals are over rounds: they hold for these starts of the servers on this host.".to_owned()
        }
        starts => format!("Intervals are over {starts} starts of the servers on this host."),
    }
}

fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let header: Vec<String> = COLUMNS.map(str::to_owned).into();
    let all: Vec<&Vec<String>> = [&header].into_iter().chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let line = |row: &&Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let pad = width(column) - cell.chars().count();
            format!("{}{cell}", " ".repeat(pad))
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    all.iter().map(line).collect()
}

fn plan_table(who: &str, plan: &QueryPlan) -> Vec<String> {
    if let Some(why) = &plan.unknown {
        return vec![format!("{who}: unknown: {}", cell(why)), String::new()];
    }
    let mut lines = vec![
        format!("| {who} | table | access | key | key length | rows | extra |"),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    for step in &plan.steps {
        let cells =
            [&step.select, &step.table, &step.access, &step.key, &step.key_length, &step.rows, &step.extra];
        lines.push(format!("| {} |", cells.map(|text| cell(text)).join(" | ")));
    }
    lines.push(String::new());
    lines
}

/// A text as one cell of a table.
fn cell(text: &str) -> String {
    clean(text).replace('|', "\\|").replace('\n', " ")
}
