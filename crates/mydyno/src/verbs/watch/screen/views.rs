//! The lines of each view.

use mydyno_judge::diagnosis::{Rules, diagnose};
use mydyno_model::profile::TimeClass;
use mydyno_model::text::line;
use mydyno_model::units::{show_us, three_digits};
use mydyno_model::watch::WatchInterval;

use super::app::App;
use crate::verbs::watch::text;

/// Intervals that the diagnosis and the budget go back.
const BACK: usize = 60;

/// A terminal of fewer columns shows the text of a statement on a line of its own.
const NARROW: usize = 100;

const NOTHING: &str = "Nothing was sampled yet.";
const NO_SCHEMA: &str = "The performance schema is off, or may not be read.";
const NO_STACKS: &str =
    "No stacks: --budget captures them; it needs root or CAP_PERFMON, on the server's own host.";

/// A bar of so many columns for a share.
fn bar(share: f64, columns: usize) -> String {
    let filled = (share.clamp(0.0, 1.0) * columns as f64).round() as usize;
    format!("{}{}", "#".repeat(filled), ".".repeat(columns.saturating_sub(filled)))
}

/// A value in the unit that ends its figure's name.
fn shown(name: &str, value: f64) -> String {
    match name.rsplit_once('_').map(|(_, unit)| unit) {
        Some("share") => format!("{:.1} %", 100.0 * value),
        Some("us") => show_us(value),
        Some("bytes") => mydyno_model::units::show_bytes(value),
        _ => three_digits(value),
    }
}

/// All figures whose names begin with one of these, a line each.
fn figures(interval: &WatchInterval, starts: &[&str]) -> Vec<String> {
    let found =
        interval.figures.iter().filter(|(name, _)| starts.iter().any(|start| name.starts_with(start)));
    found.map(|(name, value)| format!("{name:<42} {:>14}", shown(name, *value))).collect()
}

/// The same block as without a terminal, and the bottlenecks of the last minute.
pub fn overview(app: &App, width: usize) -> Vec<String> {
    let Some(interval) = app.shown() else { return vec![NOTHING.to_owned()] };
    let mut lines: Vec<String> = text::block(interval, width).lines().map(str::to_owned).collect();
    lines.push(String::new());
    let latest: Vec<WatchInterval> = app.until_shown(BACK).into_iter().cloned().collect();
    let Ok(rules) = Rules::embedded() else { return lines };
    let found = diagnose(&rules, &latest);
    lines.push(format!("# Bottlenecks of the last {} intervals", latest.len()));
    if found.bottlenecks.is_empty() {
        lines.push("none that counters can show".to_owned());
    }
    for bottleneck in &found.bottlenecks {
        lines.push(format!("{:>4.0} %  {}: {}", 100.0 * bottleneck.share, bottleneck.id, bottleneck.title));
    }
    lines
}

/// Each CPU, and what all of them do.
pub fn cpus(app: &App, width: usize) -> Vec<String> {
    let Some(interval) = app.shown() else { return vec![NOTHING.to_owned()] };
    let mut lines = vec!["# CPUs".to_owned()];
    let columns = width.saturating_sub(20).min(60);
    for (name, share) in &interval.figures {
        let cpu = name.strip_prefix("host.cpu.cpu").and_then(|rest| rest.strip_suffix(".busy_share"));
        if let Some(cpu) = cpu {
            lines.push(format!("cpu{cpu:<5} {:>5.1} %  {}", 100.0 * share, bar(*share, columns)));
        }
    }
    lines.push("# All together".to_owned());
    let names = [
        "host.cpu.busy",
        "host.cpu.user",
        "host.cpu.system",
        "host.cpu.iowait",
        "host.cpu.steal",
        "host.cpu.hottest",
        "host.load",
        "host.context",
        "host.pressure.cpu",
        "server.cpus",
        "server.threads",
        "server.throttled",
    ];
    lines.extend(figures(interval, &names));
    lines
}

/// Each disk, and what waits for them.
pub fn disks(app: &App, _: usize) -> Vec<String> {
    let Some(interval) = app.shown() else { return vec![NOTHING.to_owned()] };
    let mut lines = Vec::new();
    let names = interval
        .figures
        .keys()
        .filter_map(|name| name.strip_prefix("host.disk.")?.strip_suffix(".util_share"));
    for disk in names {
        lines.push(format!("# {disk}"));
        lines.extend(
            figures(interval, &[&format!("host.disk.{disk}.")])
                .into_iter()
                .map(|line| line.replacen(&format!("host.disk.{disk}."), "  ", 1)),
        );
    }
    lines.push("# Waiting for them".to_owned());
    lines.extend(figures(
        interval,
        &[
            "host.pressure.io",
            "host.load.blocked",
            "host.memory.dirty",
            "host.memory.writeback",
            "host.swap",
            "server.read",
            "server.write",
        ],
    ));
    lines
}

/// InnoDB's figures.
pub fn innodb(app: &App, _: usize) -> Vec<String> {
    let Some(interval) = app.shown() else { return vec![NOTHING.to_owned()] };
    let mut lines = vec!["# InnoDB".to_owned()];
    lines.extend(figures(interval, &["innodb."]));
    if lines.len() == 1 {
        lines.push("The server gave no figures in this interval.".to_owned());
    }
    lines
}

/// Waits of sessions and files.
pub fn waits(app: &App, _: usize) -> Vec<String> {
    let Some(interval) = app.shown() else { return vec![NOTHING.to_owned()] };
    let mut lines = vec!["# Sessions".to_owned()];
    lines.extend(figures(
        interval,
        &[
            "server.threads_",
            "server.sessions.",
            "server.statement",
            "innodb.row_lock",
            "innodb.deadlocks",
            "innodb.lock_timeouts",
            "server.table_lock",
        ],
    ));
    lines.push("# Files (performance schema)".to_owned());
    let before = lines.len();
    lines.extend(figures(interval, &["server.file."]));
    if lines.len() == before {
        lines.push(NO_SCHEMA.to_owned());
    }
    lines.push("# Waits (performance schema, all threads of the server)".to_owned());
    // They are read every few seconds.
    let read = app.until_shown(BACK).into_iter().rev().find(|interval| !interval.waits.is_empty());
    let Some(read) = read else {
        lines.push(NO_SCHEMA.to_owned());
        return lines;
    };
    for wait in &read.waits {
        let length = wait.wait_us.map(show_us).unwrap_or_default();
        lines.push(format!(
            "{:<48} {:>7} threads {:>8}/s {length:>9}",
            line(&wait.event),
            three_digits(wait.threads),
            three_digits(wait.waits_per_s)
        ));
    }
    lines.extend(figures(interval, &["server.replica."]));
    lines
}

/// The statements that take the most time, by digest.
pub fn statements(app: &App, width: usize) -> Vec<String> {
    let read = app.until_shown(BACK).into_iter().rev().find(|interval| !interval.statements.is_empty());
    let Some(read) = read else {
        return vec!["# Statements".to_owned(), NO_SCHEMA.to_owned()];
    };
    let mut lines = vec![
        "# Statements by the time they take (performance schema; mydyno's own too)".to_owned(),
        "threads      per s       mean   examined       used  statement".to_owned(),
    ];
    let is_narrow = width < NARROW;
    let number = |value: Option<f64>| value.map(three_digits).unwrap_or_default();
    for statement in &read.statements {
        let mean = statement.statement_us.map(show_us).unwrap_or_default();
        let words = line(statement.text.as_deref().unwrap_or(&statement.digest));
        let room = if is_narrow { width.saturating_sub(2) } else { width.saturating_sub(53) };
        let words: String = words.chars().take(room).collect();
        let numbers = format!(
            "{:>7} {:>10} {mean:>10} {:>10} {:>10}",
            three_digits(statement.threads),
            three_digits(statement.statements_per_s),
            number(statement.rows_examined),
            number(statement.rows_used),
        );
        match is_narrow {
            true => lines.extend([numbers, format!("  {words}")]),
            false => lines.push(format!("{numbers}  {words}")),
        }
    }
    lines
}

/// Where the time of statements goes, over the last minute.
pub fn budget(app: &App, width: usize) -> Vec<String> {
    let latest: Vec<WatchInterval> = app.until_shown(BACK).into_iter().cloned().collect();
    let found = Rules::embedded().ok().and_then(|rules| diagnose(&rules, &latest).budget);
    let Some(budget) = found else { return vec![NO_STACKS.to_owned()] };
    let mut lines = vec![format!(
        "# {} threads at work on average, {} captures in {} intervals",
        three_digits(budget.busy_threads),
        budget.captures,
        latest.len()
    )];
    let columns = width.saturating_sub(40).min(50);
    for class in &budget.classes {
        lines.push(format!(
            "{:<26} {:>5.1} %  {}",
            class.class.words(),
            100.0 * class.share,
            bar(class.share, columns)
        ));
    }
    lines.push(format!(
        "idle for their clients: {} threads; {}",
        three_digits(budget.idle_threads),
        TimeClass::ClientIdle.words()
    ));
    lines
}

/// The functions on the CPU since the start.
pub fn profile(app: &App, width: usize) -> Vec<String> {
    let (functions, samples) = &app.functions;
    if *samples <= 0.0 {
        return vec![NO_STACKS.to_owned()];
    }
    let mut lines = vec![
        format!("# Functions on the CPU, {samples:.0} samples since the start"),
        "   own   total  function".to_owned(),
    ];
    for function in functions {
        let name: String = function.name.chars().take(width.saturating_sub(18)).collect();
        lines.push(format!(
            "{:>5.1} % {:>5.1} %  {name}",
            100.0 * function.own / samples,
            100.0 * function.total / samples
        ));
    }
    lines
}
