//! The windows of the load of a record, and the samples that lie inside them.

use mydyno_model::record::{Interval, Phase, RunRecord};
use mydyno_model::sample::Sample;

/// The first and the last sample inside the windows; `None` without two of them.
pub(crate) fn samples_within<'a>(
    record: &'a RunRecord,
    windows: &[&Interval],
) -> Option<(&'a Sample, &'a Sample)> {
    let mut inside = inside(record, windows);
    let first = inside.next()?;
    Some((first, inside.next_back()?))
}

/// Seconds that may lie between two windows that follow each other.
const GAP_S: f64 = 0.25;

/// The samples inside the windows of a phase.
pub(crate) fn inside<'a>(
    record: &'a RunRecord,
    windows: &[&Interval],
) -> impl DoubleEndedIterator<Item = &'a Sample> + use<'a> {
    let stretches = stretches(windows);
    let is_inside = move |at_s: f64| {
        let begun = stretches.partition_point(|(start_s, _)| *start_s <= at_s);
        begun.checked_sub(1).and_then(|last| stretches.get(last)).is_some_and(|(_, end_s)| at_s <= *end_s)
    };
    record.samples.iter().filter(move |s| is_inside(s.at_s))
}

/// The starts and ends of the stretches that windows cover; one, where the record is undamaged. In that of a file that somebody made up
/// the windows of each step may lie between those of all others.
fn stretches(windows: &[&Interval]) -> Vec<(f64, f64)> {
    let mut stretches: Vec<(f64, f64)> = Vec::new();
    for window in windows {
        let end_s = window.start_s + window.width_s;
        match stretches.last_mut() {
            Some((_, last_s)) if window.start_s <= *last_s + GAP_S => *last_s = last_s.max(end_s),
            _ => stretches.push((window.start_s, end_s)),
        }
    }
    stretches
}

/// The measured window of a step.
pub(crate) fn measured(record: &RunRecord, step: usize) -> Vec<&Interval> {
    windows_of(record, step, Phase::Measure)
}

/// The windows of a phase of a step.
pub(crate) fn windows_of(record: &RunRecord, step: usize, phase: Phase) -> Vec<&Interval> {
    record.intervals.iter().filter(|i| i.step == step && i.phase == phase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start_s: f64) -> Interval {
        let text = format!(
            r#"{{"step":0,"phase":"measure","start_s":{start_s:?},"width_s":1.0,"transactions":5,"queries":5,
            "client":{{"user_us":0,"system_us":0,"waits":0,"voluntary_switches":0,"involuntary_switches":0,
            "resident_bytes":0,"threads":1}},"lateness":{{"count":0}},"operations":{{}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn windows_cover_one_stretch_unless_others_lie_between_them() {
        let of = |starts: &[f64]| {
            let windows: Vec<Interval> = starts.iter().map(|start_s| window(*start_s)).collect();
            stretches(&windows.iter().collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[2.0, 3.0, 4.000_000_1]), [(2.0, 5.000_000_1)]);
        assert_eq!(of(&[2.0, 500.0, 501.0]), [(2.0, 3.0), (500.0, 502.0)]);
    }
}
