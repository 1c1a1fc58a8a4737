//! Findings as a terminal page, HTML, Markdown and SARIF.

mod html;
mod markdown;
mod sarif;
mod terminal;

use std::collections::BTreeMap;

use mydyno_model::claim::{Cost, Effect, Ledger, Proof, Severity, StepKind, Touches};
use mydyno_model::experiment::proved::ProvedHere;
use mydyno_model::finding::{Evidence, Finding, FindingRemedy, Findings, RemedyStep, State};
use mydyno_model::units::{show_bytes, show_seconds, show_us, three_digits};
use serde_json::Value;

pub use html::html;
pub use markdown::markdown;
pub use sarif::sarif;
pub use terminal::{Details, Page, terminal};

/// Findings in a state, in list order, without accepted ones.
fn of_state(findings: &Findings, state: State) -> impl Iterator<Item = &Finding> {
    findings.findings.iter().filter(move |f| f.state == state && f.accepted.is_none())
}

/// The numbers of violated findings in the overview; one that tells the same cause as the one before has none.
fn places(violated: &[&Finding]) -> Vec<Option<usize>> {
    let mut last = 0;
    let place = |finding: &&Finding| {
        finding.same_cause_as.is_none().then(|| {
            last += 1;
            last
        })
    };
    violated.iter().map(place).collect()
}

/// Undecided claims by reason, most common reason first: one missing privilege may affect many claims.
fn unknown_by_reason(findings: &Findings) -> Vec<(&str, Vec<String>)> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for finding in of_state(findings, State::Unknown) {
        for missing in &finding.missing {
            let named = format!("{} ({})", finding.claim, missing.fact);
            by_reason.entry(&missing.why).or_default().push(named);
        }
    }
    let mut reasons: Vec<_> = by_reason.into_iter().collect();
    reasons.sort_by_key(|(_, claims)| std::cmp::Reverse(claims.len()));
    reasons
}

/// The visible part of the system, in one line.
fn seen(findings: &Findings) -> String {
    let scope = &findings.scope;
    let server = if scope.server.is_empty() { "no server" } else { &scope.server };
    let host = match scope.host.as_str() {
        "bare" => "on bare metal",
        "vm" => "in a virtual machine",
        "container" => "in a container",
        _ => "on a host that is not visible",
    };
    format!("{server}, {host}; facts of {}", findings.facts_created)
}

/// The server's address, data directory and uptime, in one line; empty where none of them is known.
fn instance(findings: &Findings) -> String {
    let scope = &findings.scope;
    let parts = [
        scope.host_name.as_ref().map(|name| format!("host {name}")),
        scope.port.map(|port| format!("port {port}")),
        scope.socket.as_ref().map(|path| format!("socket {path}")),
        scope.data_directory.as_ref().map(|path| format!("data directory {path}")),
        scope.uptime_s.map(|s| format!("up for {}", show_seconds(s as f64))),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// Number of violated claims of each severity, most severe first; empty where none is violated.
fn by_severity(findings: &Findings) -> String {
    let severities = [Severity::Critical, Severity::High, Severity::Medium, Severity::Low, Severity::Info];
    let count = |severity| of_state(findings, State::Violated).filter(|f| f.severity == severity).count();
    let counts = severities.into_iter().map(|severity| (count(severity), severity.name()));
    counts.filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect::<Vec<String>>().join(", ")
}

/// Number of claims in each state, in one line.
fn counted(findings: &Findings) -> String {
    let count = |name: &str| findings.counts.get(name).copied().unwrap_or(0);
    let accepted = match count("accepted") {
        0 => String::new(),
        n => format!(", {n} accepted"),
    };
    format!(
        "{} violated{accepted}, {} unknown, {} hold, {} do not apply",
        count("violated"),
        count("unknown"),
        count("holds"),
        count("not_applicable")
    )
}

/// A fact's value with its unit for people: text without quotes, sizes and times in the unit that suits them, and no more than
/// four digits of a fraction.
fn value_text(value: &Value, unit: &str) -> String {
    let suffix = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let Some(number) = value.as_f64().filter(|n| n.is_finite()) else {
        return match value {
            Value::String(text) if text.is_empty() => "(empty)".to_owned(),
            Value::String(text) => text.clone() + &suffix,
            other => other.to_string() + &suffix,
        };
    };
    match unit {
        "bytes" if number >= 0.0 => show_bytes(number),
        "KiB" if number >= 0.0 => show_bytes(number * 1024.0),
        "bytes/s" if number >= 0.0 => format!("{}/s", show_bytes(number)),
        "s" if number >= 0.0 => show_seconds(number),
        "ms" if number >= 0.0 => show_seconds(number / 1e3),
        "us" if number >= 0.0 => show_us(number),
        "ns" if number >= 0.0 => show_us(number / 1e3),
        "percent" => format!("{} %", plain_number(number)),
        "count" => plain_number(number),
        "1/s" => format!("{}/s", plain_number(number)),
        _ => plain_number(number) + &suffix,
    }
}

/// Whole numbers whole, others with three digits.
fn plain_number(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 { format!("{number:.0}") } else { three_digits(number) }
}

/// The parts of a source before its address, and the address: `Manual, section: ` and `https://…`.
fn address(source: &str) -> (&str, &str) {
    let start = source.find("https://").or_else(|| source.find("http://"));
    match start {
        Some(at) if !source[at..].contains(char::is_whitespace) => source.split_at(at),
        _ => (source, ""),
    }
}

/// `host.swap.total_bytes = 2 GiB (/proc/meminfo)`
fn evidence(evidence: &Evidence) -> String {
    const LONGEST: usize = 200;
    let value = value_text(&evidence.value, &evidence.unit);
    let mut shown: String = value.chars().take(LONGEST).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    let source: String = evidence.source.chars().take(LONGEST).collect();
    format!("{} = {shown} ({source})", evidence.fact)
}

/// A step as it is typed: for a line of a file, the kind of file precedes it.
fn step(step: &RemedyStep) -> String {
    let text = &step.text;
    match step.kind {
        StepKind::Sql => format!("{};", text.trim_end_matches(';')),
        StepKind::Sysctl => format!("sysctl -w {}", text.replace(" = ", "=")),
        StepKind::Shell | StepKind::Text => text.clone(),
        StepKind::Cnf => format!("option file, [mysqld]: {text}"),
        StepKind::Udev => format!("udev rule: {text}"),
        StepKind::Systemd => format!("drop-in of the server's unit, [Service]: {text}"),
        StepKind::Tmpfiles => format!("tmpfiles.d: {text}"),
        StepKind::Kernel => format!("boot parameter: {text}"),
    }
}

/// A persistent step: kernel settings are written to a file.
fn lasting(one: &RemedyStep) -> String {
    match one.kind {
        StepKind::Sysctl => format!("sysctl.d: {}", one.text),
        _ => step(one),
    }
}

/// Cost of applying the remedy. Statements that work at once are no part of a restart.
fn takes(remedy: &FindingRemedy) -> String {
    let at_once = remedy.now.iter().any(|step| step.kind == StepKind::Sql);
    let whole = match remedy.cost {
        Cost::Restart if at_once => "a restart of the server, and none for the statements under Now",
        Cost::Dynamic => "nothing but the change: the server keeps running",
        Cost::Restart => "a restart of the server",
        Cost::Reboot => "a restart of the host",
        Cost::Data => "a rewrite of data",
        Cost::Application => "a change of the programs that use the server, or of how it is run",
        Cost::Hardware => "other hardware or more of it",
    };
    whole.to_owned()
}

fn ledger(ledger: &Ledger) -> String {
    let what = match ledger.touches {
        Touches::Durability => "durability",
        Touches::CrashSafety => "crash safety",
        Touches::Semantics => "results and behaviour",
    };
    let effect = match ledger.effect {
        Effect::Strengthens => "strengthened by the remedy",
        Effect::Keeps => "at stake here, kept by the remedy",
        Effect::Changes => "changed by the remedy",
    };
    format!("{what}: {effect}. {}", ledger.note)
}

/// A verdict of an experiment on this host, with its day and what has changed since.
fn proved(proved: &ProvedHere) -> String {
    let day = proved.at.split('T').next().unwrap_or_default();
    let changed = match proved.changed.as_slice() {
        [] => "host and server are as they were".to_owned(),
        changed => format!("since then: {}", changed.join(", ")),
    };
    format!("{} on {day} by {}: {} ({changed})", proved.verdict.name(), proved.experiment, proved.answer)
}

fn proof(proof: &Proof) -> String {
    let levels: Vec<String> =
        proof.levels.iter().map(|l| l.as_str().map_or_else(|| l.to_string(), str::to_owned)).collect();
    match (&proof.experiment, &proof.factor, &proof.not_testable) {
        (Some(experiment), Some(factor), _) => {
            format!("experiment {experiment}: {factor} at {}", levels.join(", "))
        }
        (Some(experiment), None, _) => format!("experiment {experiment}"),
        (None, _, Some(why)) => format!("no experiment: {why}"),
        (None, _, None) => String::new(),
    }
}

#[cfg(test)]
mod tests;
