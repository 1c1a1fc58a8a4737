//! Dependencies between changes, and the order in which changes are restored.

use std::cmp::Reverse;

use crate::change::Preparation;
use crate::replay::Open;

/// The order in which changes are restored: newest first, with two exceptions.
///
/// A change that ends with another one of the list comes last: only then is it known whether that one has ended. A
/// process that must end before the change that it serves can be restored comes first.
pub(crate) fn in_order(ours: &[Open]) -> Vec<&Open> {
    let mut ours: Vec<&Open> = ours.iter().collect();
    let last: Vec<u64> =
        ours.iter().filter(|open| ends_with(&ours, open).is_some()).map(|open| open.entry.id).collect();
    ours.sort_by_key(|open| (last.contains(&open.entry.id), Reverse(open.entry.id)));
    let waits = |open: &&&Open| open.entry.change.prepare() == Preparation::AfterItsProcess;
    let first: Vec<u64> = ours.iter().filter(waits).filter_map(|open| served_by(&ours, open)).collect();
    ours.sort_by_key(|open| !first.contains(&open.entry.id));
    ours
}

/// The entry of the process that serves a change: the next process of the same purpose.
fn served_by(ours: &[&Open], served: &Open) -> Option<u64> {
    let after = ours.iter().filter(|open| {
        open.entry.purpose == served.entry.purpose
            && open.entry.id > served.entry.id
            && open.entry.change.process().is_some()
    });
    after.map(|open| open.entry.id).min()
}

/// The entry of the list that a change ends with by itself.
pub(crate) fn ends_with(ours: &[&Open], open: &Open) -> Option<u64> {
    let other = ours.iter().find(|other| open.entry.change.ends_with(&*other.entry.change))?;
    Some(other.entry.id)
}

/// Whether a change that stays depends on an earlier one.
pub(crate) fn keeps(later: &Open, earlier: &Open) -> bool {
    let one_command = later.entry.lease.process == earlier.entry.lease.process;
    later.entry.purpose == earlier.entry.purpose
        && (one_command || !later.entry.change.rests_by_presumption())
        && later.entry.change.rests_on(&*earlier.entry.change)
}

/// Changes of other purposes that use a change, directly or through one of its own purpose. The command that mounted a
/// disk need not be the last one that uses it, so the disk stays while such a change exists.
pub(crate) fn users<'a>(open: &Open, all: &'a [Open]) -> Vec<&'a Open> {
    let carried = all.iter().filter(|other| open.entry.change.carries(&*other.entry.change));
    carried
        .flat_map(|other| match other.entry.purpose == open.entry.purpose {
            true => users(other, all),
            false => vec![other],
        })
        .collect()
}
