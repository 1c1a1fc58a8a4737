//! A verdict for people: the answer in one sentence first, then what it rests on.

mod curve;
mod html;
mod markdown;
mod terminal;

use mydyno_model::Estimate;
use mydyno_model::experiment::pooled::Pooled;
use mydyno_model::experiment::{Curve, CurvePoint, Finding, PAIRS_OF_RUNS, Role, Verdict};
use mydyno_model::units::show_bytes;

pub use html::html;
pub use markdown::markdown;
pub use terminal::terminal;

/// The words of a command line as a shell reads them back.
pub fn command_line(words: &[String]) -> String {
    crate::text::shell(words)
}

/// A line under the answer: what it is about, and its text.
type Line = (&'static str, String);

/// The evidence of a verdict, line by line, in the order in which it is shown.
fn lines(verdict: &Verdict) -> Vec<Line> {
    let mut lines = Vec::new();
    for role in Role::ALL {
        if let Some(arm) = verdict.arms.iter().find(|arm| arm.role == role && role != Role::Again) {
            lines.push((role.name(), arm.label()));
        }
    }
    for response in &verdict.responses {
        let (of, unit) = (&response.effect_ratio, &response.unit);
        let (from, to) = (in_unit(response.baseline, unit), in_unit(response.treatment, unit));
        let text = match unit.as_str() {
            "B" | "share" => format!("{from} → {to}: {}", change(of)),
            unit => format!("{from} → {to} {unit}: {}", change(of)),
        };
        lines.push((label(&response.name), text));
    }
    lines.extend(
        verdict
            .curve
            .iter()
            .flat_map(|curve| curve.points.iter().map(|point| ("curve", on_curve(curve, point)))),
    );
    for price in verdict.price.iter().flat_map(|price| &price.ledger) {
        lines.push(("price", price.clone()));
    }
    for crash in verdict.price.iter().flat_map(|price| &price.crashes) {
        lines.push(("crash", crash.text()));
    }
    let measured = match &verdict.probe {
        Some(_) => format!("{} blocks", verdict.blocks),
        None if verdict.units == PAIRS_OF_RUNS => format!("{} {PAIRS_OF_RUNS}", verdict.blocks),
        None => format!("{} blocks in {} starts of the servers", verdict.blocks, verdict.starts),
    };
    lines.push(("measured", measured));
    if let Some(share) = verdict.overhead {
        let text = format!("{:.0} % of the time neither warmed up nor measured", share * 100.0);
        lines.push(("overhead", text));
    }
    if verdict.under_mutual_load {
        let text = "under mutual load: both servers at the same time on equal parts of the CPUs; not comparable with arms that are loaded in turns";
        lines.push(("load", text.to_owned()));
    }
    if let Some(floor) = verdict.noise_floor {
        let text =
            format!("{:.2} %: chance alone stays below it in 19 of 20 such experiments", floor * 100.0);
        lines.push(("noise floor", text));
    }
    if let Some(again) = &verdict.again {
        lines.push(("baseline again", change(again)));
    }
    lines.extend(verdict.pooled.iter().map(|all| ("pooled", pooled(all))));
    if let Some(effect) = verdict.minimum_detectable_effect {
        let text = format!("{:.1} %: found in 4 of 5 such experiments", effect * 100.0);
        lines.push(("smallest effect", text));
    }
    lines.push(("delta", format!("{:.1} %: effects below it do not matter", verdict.delta * 100.0)));
    lines.push(("scope", verdict.scope.clone()));
    lines.extend(verdict.set_up.iter().map(|line| ("set-up", line.clone())));
    lines.extend(verdict.literature.iter().map(|line| ("published", line.clone())));
    lines.extend(verdict.failures.iter().map(|line| ("failed", line.clone())));
    lines.push(("day", verdict.header.created.chars().take(10).collect()));
    lines.extend(verdict.changed.iter().map(|line| ("changed", line.clone())));
    lines.extend(verdict.command.iter().map(|line| ("repeat it", line.clone())));
    lines
}

/// One value of a curve, as in `x=4: 12.3 1/s, +4.0 % (+2.1 … +5.9 %, level 98 %)`.
fn on_curve(curve: &Curve, point: &CurvePoint) -> String {
    let unit = if ["B", "share"].contains(&curve.unit.as_str()) { "" } else { curve.unit.as_str() };
    let mean = point.mean.map_or_else(
        || "not measured".to_owned(),
        |mean| format!("{} {unit}", in_unit(mean, &curve.unit)).trim_end().to_owned(),
    );
    let effect = match (&point.effect_ratio, point.arm) {
        (Some(ratio), _) => format!(", {}", change(ratio)),
        (None, Role::Baseline) => ", the baseline".to_owned(),
        (None, _) => String::new(),
    };
    format!("{}={}: {mean}{effect}", curve.lever, point.value)
}

/// Several executions of the experiment together.
fn pooled(all: &Pooled) -> String {
    let days: Vec<&str> =
        all.earlier.iter().map(|one| one.created.get(..10).unwrap_or(&one.created)).collect();
    let differ = match all.between {
        between if between > 0.0 => {
            format!("they differ by {:.1} % beyond their own intervals", between * 100.0)
        }
        _ => "they differ by no more than their own intervals explain".to_owned(),
    };
    format!("{} with the executions of {}; {differ}", change(&all.effect_ratio), days.join(", "))
}

/// Name of a response for people.
fn label(name: &str) -> &'static str {
    match name {
        "transactions_per_s" => "throughput",
        "response_mean" => "mean response",
        "response_p95" | "p95_us" => "95th percentile",
        "per_s" | "bytes_per_s" => "rate",
        "p50_us" => "median",
        "p99_us" => "99th percentile",
        "minor_faults" => "page faults",
        "server_resident_bytes" => "memory",
        "server_peak_bytes" => "peak of memory",
        "server_swap_bytes" => "in swap",
        "server_huge_bytes" => "in huge pages",
        "server_cpu_us_per_transaction" => "server's CPU",
        "survival" => "outlived",
        _ => "response",
    }
}

/// The finding in capitals, as a heading; one under mutual load says so.
fn heading(verdict: &Verdict) -> String {
    let finding = finding(verdict.verdict);
    if verdict.under_mutual_load { format!("{finding} UNDER MUTUAL LOAD") } else { finding.to_owned() }
}

fn finding(finding: Finding) -> &'static str {
    match finding {
        Finding::Supported => "SUPPORTED",
        Finding::Refuted => "REFUTED",
        Finding::Undecided => "UNDECIDED",
        Finding::NotTestableHere => "NOT TESTABLE HERE",
    }
}

/// A ratio as a change with its interval; a provisional one carries a tilde.
fn change(ratio: &Estimate) -> String {
    let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    match (ratio.low, ratio.high, ratio.level) {
        (Some(low), Some(high), Some(level)) => format!(
            "{} % ({} … {} %, level {:.0} %)",
            percent(ratio.value),
            percent(low),
            percent(high),
            level * 100.0
        ),
        (Some(low), Some(high), None) => {
            format!("~{} % ({} … {} %, provisional)", percent(ratio.value), percent(low), percent(high))
        }
        _ => format!("{} % (no interval: {})", percent(ratio.value), ratio.method),
    }
}

/// A figure in its unit: bytes and shares as people write them.
fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "B" => show_bytes(value),
        "share" => format!("{:.0} %", value * 100.0),
        _ => figure(value),
    }
}

/// A figure with three to four digits that count.
fn figure(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.3}"),
    }
}

#[cfg(test)]
mod tests;
