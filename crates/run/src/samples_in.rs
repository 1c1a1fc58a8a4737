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

/// The samples inside the windows of a phase.
pub(crate) fn inside<'a>(
    record: &'a RunRecord,
    windows: &[&Interval],
) -> impl DoubleEndedIterator<Item = &'a Sample> + use<'a> {
    let start_s = windows.first().map_or(f64::INFINITY, |w| w.start_s);
    let end_s = windows.last().map_or(f64::NEG_INFINITY, |w| w.start_s + w.width_s);
    record.samples.iter().filter(move |s| s.at_s >= start_s && s.at_s <= end_s)
}

/// The measured window of a step.
pub(crate) fn measured(record: &RunRecord, step: usize) -> Vec<&Interval> {
    windows_of(record, step, Phase::Measure)
}

/// The windows of a phase of a step.
pub(crate) fn windows_of(record: &RunRecord, step: usize, phase: Phase) -> Vec<&Interval> {
    record.intervals.iter().filter(|i| i.step == step && i.phase == phase).collect()
}
