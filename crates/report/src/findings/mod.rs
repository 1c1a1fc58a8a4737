//! Findings as a terminal page, HTML, Markdown and SARIF.

mod html;
mod markdown;
mod sarif;
mod terminal;

use std::collections::BTreeMap;

use mydyno_model::claim::{Cost, Effect, Ledger, Proof, StepKind, Touches};
use mydyno_model::finding::{Evidence, Finding, Findings, RemedyStep, State};
use serde_json::Value;

pub use html::html;
pub use markdown::markdown;
pub use sarif::sarif;
pub use terminal::{Page, terminal};

/// Findings in a state, in list order, without accepted ones.
fn of_state(findings: &Findings, state: State) -> impl Iterator<Item = &Finding> {
    findings.findings.iter().filter(move |f| f.state == state && f.accepted.is_none())
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

/// Number of claims in each state, in one line.
fn counted(findings: &Findings) -> String {
    let count = |name: &str| findings.counts.get(name).copied().unwrap_or(0);
    let accepted = match count("accepted") {
        0 => String::new(),
        n => format!(", {n} accepted"),
    };
    format!(
        "{} violated{accepted}, {} cannot be told, {} hold, {} do not apply",
        count("violated"),
        count("unknown"),
        count("holds"),
        count("not_applicable")
    )
}

/// A fact's value, text without quotes.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `host.swap.total_bytes = 2147483648 bytes (/proc/meminfo)`
fn evidence(evidence: &Evidence) -> String {
    const LONGEST: usize = 200;
    let value = value_text(&evidence.value);
    let mut shown: String = value.chars().take(LONGEST).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    let unit = if evidence.unit.is_empty() { String::new() } else { format!(" {}", evidence.unit) };
    let source: String = evidence.source.chars().take(LONGEST).collect();
    format!("{} = {shown}{unit} ({source})", evidence.fact)
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

/// Cost of applying the remedy.
const fn takes(cost: Cost) -> &'static str {
    match cost {
        Cost::Dynamic => "nothing but the change: the server keeps running",
        Cost::Restart => "a restart of the server",
        Cost::Reboot => "a restart of the host",
        Cost::Data => "a rewrite of data",
        Cost::Application => "a change of the programs that use the server, or of how it is run",
        Cost::Hardware => "other hardware or more of it",
    }
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
