//! Events of a run, as marks on the charts over time.

use mydyno_model::record::{EventKind, RunRecord};
use mydyno_model::summary::Spike;
use mydyno_model::units::{show_us, three_digits};

use crate::RunView;
use crate::chart::Mark;

/// Maximum number of marks that are drawn and described; the tables list the rest.
const MOST: usize = 12;

/// The first error of each code, warnings, lost connections, and the end where it was not planned. Several runs get no marks,
/// because a mark would not show which run it belongs to.
pub fn marks(runs: &[RunView<'_>]) -> Vec<Mark> {
    let [run] = runs else { return Vec::new() };
    let mut marks = all(run);
    marks.truncate(MOST);
    marks
}

/// The marks in a sentence, for print and screen readers; `None` without any.
pub fn marked(runs: &[RunView<'_>]) -> Option<String> {
    let [run] = runs else { return None };
    let all = all(run);
    let reported: Vec<String> = all.iter().take(MOST).map(|m| m.text.clone()).collect();
    let more = match all.len().checked_sub(MOST) {
        Some(more) if more > 0 => format!("; {more} more are not marked"),
        _ => String::new(),
    };
    (!reported.is_empty()).then(|| format!("Marked by dotted lines: {}{more}.", reported.join("; ")))
}

fn all(run: &RunView<'_>) -> Vec<Mark> {
    let mut marks = happened(run.record);
    marks.extend(slow(run));
    marks.sort_by(|a, b| a.at.total_cmp(&b.at));
    marks
}

fn happened(record: &RunRecord) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for event in &record.events {
        let what = match &event.what {
            EventKind::Error { code, operation, .. } => format!("first error {code}, of {operation}"),
            EventKind::Warning(warning) => format!("warning {}", warning.id),
            EventKind::Interrupted => "interrupted".to_owned(),
            _ => continue,
        };
        marks.push(Mark { at: event.at_s, text: at(event.at_s, &what) });
    }
    for step in 0..record.manifest.plan.steps.len() {
        let again = record.intervals.iter().find(|i| i.step == step && i.reconnects > 0);
        if let Some(interval) = again {
            let what = "connections were opened again";
            marks.push(Mark { at: interval.start_s, text: at(interval.start_s, what) });
        }
    }
    marks.sort_by(|a, b| a.at.total_cmp(&b.at));
    marks
}

/// The slow seconds of a run.
fn slow(run: &RunView<'_>) -> Vec<Mark> {
    let spikes = run.summary.steps.iter().flat_map(|step| &step.spikes);
    let mark = |spike: &Spike| {
        let middle_s = spike.at_s + spike.over_s / 2.0;
        Mark { at: middle_s, text: at(spike.at_s, &format!("a slow second (p99 {})", show_us(spike.p99_us))) }
    };
    spikes.map(mark).collect()
}

fn at(seconds: f64, what: &str) -> String {
    format!("{what} at {} s", three_digits(seconds))
}
