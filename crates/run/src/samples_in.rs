//! The samples of a record that lie inside windows of the load.

use mydyno_model::record::{Interval, RunRecord};
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
