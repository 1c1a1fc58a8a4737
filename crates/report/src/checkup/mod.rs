//! A check-up for people: the answer first, what to do in which order with the way back, then what brings nothing and why.

mod html;
mod markdown;
mod terminal;

use mydyno_model::Estimate;
use mydyno_model::checkup::{Advice, Checkup, Outcome};
use mydyno_model::finding::RemedyStep;

pub use html::html;
pub use markdown::markdown;
pub use terminal::terminal;

/// Advice of one kind, with its heading.
struct Section<'a> {
    title: String,
    advice: Vec<&'a Advice>,
    /// Whether remedy and way back are shown.
    steps: bool,
}

/// The sections that have content, in the order in which they are read.
fn sections(checkup: &Checkup) -> Vec<Section<'_>> {
    let of = |outcome: Outcome, for_safety: bool| -> Vec<&Advice> {
        let advice = checkup.advice.iter();
        advice.filter(|advice| advice.outcome == outcome && advice.for_safety == for_safety).collect()
    };
    let safety: Vec<&Advice> = checkup
        .advice
        .iter()
        .filter(|advice| advice.for_safety && advice.outcome != Outcome::NotMeasured)
        .collect();
    let not_measured = [of(Outcome::NotMeasured, false), of(Outcome::NotMeasured, true)].concat();
    let delta = format!("{:.1} %", checkup.delta * 100.0);
    let all = [
        ("What to do, in this order".to_owned(), of(Outcome::Gain, false), true),
        ("For the safety of the data, whatever it costs".to_owned(), safety, true),
        ("Slower here: leave these as they are".to_owned(), of(Outcome::Loss, false), false),
        ("Not decided within the budget".to_owned(), of(Outcome::Undecided, false), false),
        (format!("No effect above {delta} under this load"), of(Outcome::NoEffect, false), false),
        ("Not measured".to_owned(), not_measured, false),
    ];
    let filled = all.into_iter().filter(|(_, advice, _)| !advice.is_empty());
    filled.map(|(title, advice, steps)| Section { title, advice, steps }).collect()
}

/// Effect on transactions per second, as in `+12.3 % (10.1 … 14.5 %)`.
fn figure(ratio: &Estimate) -> String {
    let share = |ratio: f64| (ratio - 1.0) * 100.0;
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            format!("{:+.1} % ({:+.1} … {:+.1} %)", share(ratio.value), share(low), share(high))
        }
        _ => format!("{:+.1} %", share(ratio.value)),
    }
}

/// The figure of a piece of advice, or the reason why there is none.
fn result(advice: &Advice) -> String {
    match (&advice.effect_ratio, &advice.why) {
        (Some(ratio), _) => figure(ratio),
        (None, Some(why)) => why.clone(),
        (None, None) => String::new(),
    }
}

/// The settings that were measured, as in `sort_buffer_size = 262144`.
fn changes(advice: &Advice) -> String {
    let plain = |text: &String| text.strip_prefix("option.").unwrap_or(text).replacen('=', " = ", 1);
    advice.changes.iter().map(plain).collect::<Vec<_>>().join(", ")
}

/// The steps of the remedy for the audited server: when, and the text.
fn steps(advice: &Advice) -> Vec<(&'static str, String)> {
    let of = |when: &'static str, steps: &[RemedyStep]| -> Vec<(&'static str, String)> {
        steps.iter().map(|step| (when, step.text.clone())).collect()
    };
    [of("now", &advice.now), of("lasting", &advice.persistent), of("undo", &advice.undo)].concat()
}

/// The audited server: release, host, port and data directory, as far as they were seen.
fn server(checkup: &Checkup) -> String {
    let scope = &checkup.scope;
    let place = [
        scope.host_name.clone(),
        scope.port.map(|port| format!("port {port}")),
        scope.data_directory.clone(),
    ];
    [vec![scope.server.clone()], place.into_iter().flatten().collect()].concat().join(", ")
}

/// Facts about the check-up, line by line.
fn lines(checkup: &Checkup) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("server", server(checkup)),
        ("load", checkup.load.clone()),
        ("host", checkup.host.join("; ")),
        (
            "time",
            format!(
                "{:.1} min; the experiments had at most {:.1} min",
                checkup.took_s / 60.0,
                checkup.budget_s / 60.0
            ),
        ),
    ];
    lines.extend(checkup.shape.notes.iter().map(|note| ("shape", note.clone())));
    if !checkup.shape.left_out.is_empty() {
        lines.push(("left out", format!("settings of this place: {}", checkup.shape.left_out.join(", "))));
    }
    if let Some(joint) = &checkup.joint {
        let ratio = joint.effect_ratio.as_ref();
        let text = ratio.map_or_else(|| format!("not measured: {}", joint.answer), figure);
        lines.push(("together", format!("{} against the start: {text}", joint.claims.join(", "))));
    }
    if let Some(minimal) = &checkup.minimal {
        lines.push((
            "least change",
            format!(
                "{}: {:.0} % of the gain, if the effects multiply; not measured together",
                minimal.claims.join(", "),
                minimal.share_of_gain * 100.0
            ),
        ));
    }
    lines
}

/// The scope of the conclusion, in one sentence.
const SCOPE: &str = "Measured in private servers on this host under this load; another load or host can answer otherwise. The audited server was only read.";

#[cfg(test)]
mod tests;
