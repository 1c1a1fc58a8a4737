//! The charts of the report, built from records.

mod distribution;
mod events;
mod host;
mod sweep;
mod time;

pub use distribution::distributions;
pub use host::host;
pub use sweep::sweep;
pub use time::over_time;

use mydyno_model::record::RunRecord;
use mydyno_model::summary::StepSummary;

use crate::RunView;
use crate::figures::{number, plural};

/// Name of a run among several: `A`, `B`, …; empty when it is alone.
pub fn letter(runs: &[RunView<'_>], index: usize) -> String {
    if runs.len() < 2 {
        return String::new();
    }
    let letter = char::from_u32('A' as u32 + index as u32 % 26).unwrap_or('?');
    match index / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{}", round + 1),
    }
}

/// Label of a line: with several runs, prefixed with the run's letter.
fn line_name(runs: &[RunView<'_>], index: usize, name: &str) -> String {
    match letter(runs, index) {
        letter if letter.is_empty() => name.to_owned(),
        letter => format!("{letter}: {name}"),
    }
}

/// Name of the operation that arrives: the transaction.
fn transaction(record: &RunRecord) -> Option<&str> {
    record.manifest.operations.first().map(|o| o.name.as_str())
}

/// Label that distinguishes a step: connections, the requested rate if any, and the repeat number except for the first.
pub fn step_name(step: &StepSummary) -> String {
    let name = load_name(step.connections, step.rate);
    if step.repeat > 0 { format!("{name}, repeat {}", step.repeat + 1) } else { name }
}

/// Label of a step's load, for a step that may not have a summary.
pub fn load_name(connections: usize, rate: Option<f64>) -> String {
    match rate {
        Some(rate) => format!("{}, {}/s asked", plural(connections, "connection"), number(rate)),
        None => plural(connections, "connection"),
    }
}
