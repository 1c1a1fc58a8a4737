//! An experiment with several factors for people: its design with the alias table, and its effects.

use std::fmt::Write;

mod html;

use mydyno_model::Estimate;
use mydyno_model::experiment::Finding;
use mydyno_model::experiment::factorial::{
    AliasRow, AliasedWith, DesignFamily, Factorial, FactorialEffect, FactorialResponse,
};

use crate::text::terminal as clean;

pub use html::html;

/// Effects of an alias that are named; the document has all.
const NAMED: usize = 6;

/// The factors, the kind of design with its resolution, and the alias table.
pub fn design(document: &Factorial) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for factor in &document.factors {
        let of = [&factor.letter, &factor.lever, &factor.low, &factor.high].map(|text| clean(text));
        lines.push(format!("  {}  {}: {} → {}", of[0], of[1], of[2], of[3]));
    }
    let (factors, runs) = (document.factors.len(), document.runs.len());
    let kind = match document.family {
        DesignFamily::Full => {
            format!("Full factorial of {factors} factors: {runs} runs; no effect is aliased.")
        }
        DesignFamily::Fractional => format!(
            "Fractional factorial 2^({factors}-{}) of resolution {}: {runs} runs, {}.",
            document.generators.len(),
            roman(document.resolution),
            clean(&document.generators.join(", "))
        ),
        DesignFamily::Screening => format!(
            "Plackett-Burman screening design of resolution {}: {factors} factors in {runs} runs.",
            roman(document.resolution)
        ),
    };
    lines.push(kind);
    if document.family != DesignFamily::Full {
        lines.push("Alias table: each effect stands for its sum with these.".to_owned());
        let row = |row: &AliasRow| format!("  {:<3} {}", clean(&row.effect), clean(&aliases(row)));
        lines.extend(document.aliases.iter().map(row));
    }
    lines
}

fn roman(resolution: Option<usize>) -> &'static str {
    const NUMERALS: [&str; 8] = ["", "I", "II", "III", "IV", "V", "VI", "VII"];
    resolution.and_then(|resolution| NUMERALS.get(resolution).copied()).unwrap_or("above VII")
}

/// As in `+ BCD`, or `+ 0.33 × (CD, CE, …)`.
fn aliases(row: &AliasRow) -> String {
    if row.aliased_with.is_empty() {
        return "with none of up to three factors".to_owned();
    }
    row.aliased_with.iter().map(group).collect::<Vec<_>>().join(" ")
}

fn group(with: &AliasedWith) -> String {
    let sign = if with.weight < 0.0 { "-" } else { "+" };
    let named = &with.effects[..with.effects.len().min(NAMED)];
    let more = match with.effects.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    if with.weight.abs() == 1.0 {
        return format!("{sign} {}{more}", named.join(&format!(" {sign} ")));
    }
    format!("{sign} {:.2} × ({}{more})", with.weight.abs(), named.join(", "))
}

/// Plain text; the heading is bold where `color` is set.
pub fn terminal(document: &Factorial, color: bool) -> String {
    let mut out = String::new();
    let heading = if color { "\x1b[1mEFFECTS\x1b[0m" } else { "EFFECTS" };
    let _ = writeln!(out, "{heading}  {}\n", clean(&document.answer));
    for line in design(document) {
        let _ = writeln!(out, "{line}");
    }
    if let Some(response) = document.responses.first() {
        let _ = writeln!(out, "\n{}", effects(document, response));
    }
    for (name, text) in lines(document) {
        let _ = writeln!(out, "  {name:<10}  {}", clean(&text));
    }
    for threat in &document.threats {
        let _ = writeln!(out, "\n  ! {}", clean(threat));
    }
    out
}

/// The evidence line by line.
fn lines(document: &Factorial) -> Vec<(&'static str, String)> {
    let delta = document.delta * 100.0;
    let (measured, rows) = (document.measured_rows, document.rows.len());
    let mut lines = vec![("measured", format!("{measured} of {rows} rows in {} blocks", document.blocks))];
    lines.push(("delta", format!("{delta:.1} %: effects below it do not matter")));
    lines.extend(document.set_up.iter().map(|line| ("set-up", line.clone())));
    lines.extend(document.failures.iter().map(|line| ("failed", line.clone())));
    lines.extend(document.changed.iter().map(|line| ("changed", line.clone())));
    lines.extend(document.crashes.iter().map(|crash| ("crash", crash.text())));
    lines.extend(document.command.iter().map(|line| ("repeat it", line.clone())));
    lines
}

/// The effects on a response as a table, with what holds for all of them.
fn effects(document: &Factorial, response: &FactorialResponse) -> String {
    let name = clean(&response.name);
    let mut out = format!(
        "Effects on {name} (mean {:.1} {}), from low to high:\n",
        response.mean,
        clean(&response.unit)
    );
    let width = response.effects.iter().map(|effect| levers(document, effect).len()).max().unwrap_or(0);
    for effect in &response.effects {
        let levers = levers(document, effect);
        let p = effect.p_adjusted.map_or_else(|| "-".to_owned(), |p| format!("{p:.4}"));
        let _ = writeln!(
            out,
            "  {:<3} {levers:<width$}  {}  p {p}  {}",
            clean(&effect.effect),
            change(&effect.effect_ratio),
            word(effect.finding)
        );
    }
    let _ = write!(
        out,
        "The intervals hold together with 95 %; p values are corrected by Holm for {} effects, against effects of at most {:.1} %.",
        response.effects.len(),
        document.delta * 100.0
    );
    if let Some(sd) = response.sd {
        let _ =
            write!(out, " Equal rows differ by {:.1} % ({} degrees of freedom).", sd * 100.0, response.df);
    }
    out
}

fn levers(document: &Factorial, effect: &FactorialEffect) -> String {
    let factor = |letter: char| document.factors.iter().find(|factor| factor.letter.starts_with(letter));
    let levers: Vec<&str> =
        effect.effect.chars().filter_map(factor).map(|factor| factor.lever.as_str()).collect();
    clean(&levers.join(" × "))
}

fn word(finding: Finding) -> &'static str {
    match finding {
        Finding::Supported => "acts",
        Finding::Refuted => "no effect beyond delta",
        Finding::Undecided | Finding::NotTestableHere => "undecided",
    }
}

/// A ratio as a change, with its interval.
fn change(ratio: &Estimate) -> String {
    let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!("{} % ({} … {} %)", percent(ratio.value), percent(low), percent(high)),
        None => format!("{} % (no interval: {})", percent(ratio.value), ratio.method),
    }
}

#[cfg(test)]
mod tests;
