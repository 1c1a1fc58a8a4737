//! Share of an experiment's time that neither warmed up a server nor measured.

use std::collections::BTreeSet;

use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::{Design, Role, Slice};

/// The share of the slices so far: making, filling, starting and ending servers, setting levers, and opening
/// connections. The part cut from a slice's beginning counts as a warm-up. `None` before the first measured slice.
pub(crate) fn share(design: &Design, slices: &[Slice]) -> Option<f64> {
    let end = |slice: &Slice| slice.at_s + design.settle_s + slice.measured_s;
    let total_s = slices.iter().filter(|slice| slice.failed.is_none()).map(end).fold(0.0, f64::max);
    let measured = slices.iter().filter(|slice| slice.failed.is_none());
    let at_once = if design.mode == Mode::Duet { 2.0 } else { 1.0 };
    let loaded_s = measured.map(|slice| design.settle_s + slice.measured_s).sum::<f64>() / at_once;
    let starts = slices.iter().map(|slice| slice.row.start).collect::<BTreeSet<_>>().len();
    let warmups = match design.mode {
        Mode::Alternate | Mode::Duet => starts * Role::ALL.len(),
        Mode::InPlace => starts,
        Mode::Rows => slices.len(),
    };
    let used_s = loaded_s + warmups as f64 * design.warmup_s;
    (total_s > 0.0).then(|| (1.0 - used_s / total_s).clamp(0.0, 1.0))
}
