//! Restores the changes of a purpose.

use mydyno_host::journal::Open;
use mydyno_host::restore::{Outcome, check_in_reach, put_back};
use mydyno_model::change::RestoreState;

use crate::error::SandboxError;
use crate::site::Site;
use crate::variable::PrivateServers;

/// Restores this command's changes of a purpose, newest first. Returns a sentence for each change that stays.
///
/// # Errors
/// A change could not be restored; its entry stays in the journal.
pub fn put_back_own(site: &Site<'_>, purpose: &str) -> Result<Vec<String>, SandboxError> {
    let own = &site.lease.identity().process;
    site.undo_where(|open| {
        open.entry.purpose == purpose && open.kept_until.is_none() && open.lease.process == *own
    })
}

impl Site<'_> {
    /// Takes over all changes of a purpose and restores them, newest first. Returns a sentence for each change that
    /// stays.
    pub(crate) fn undo(&self, purpose: &str) -> Result<Vec<String>, SandboxError> {
        self.undo_where(|open| open.entry.purpose == purpose)
    }

    /// Restores this command's changes of a purpose. Other commands may work on the same purpose: two can build one
    /// template at once.
    pub(crate) fn undo_own(&self, purpose: &str) -> Result<(), SandboxError> {
        let own = &self.lease.identity().process;
        self.undo_where(|open| {
            open.entry.purpose == purpose && open.kept_until.is_none() && open.lease.process == *own
        })
        .map(drop)
    }

    /// Restores this command's changes of a purpose that failed; the error says so when that fails too.
    pub(crate) fn undo_after(&self, error: SandboxError, purpose: &str) -> SandboxError {
        match self.undo_own(purpose) {
            Ok(()) => error,
            Err(then) => SandboxError::NotUndone { error: Box::new(error), then: Box::new(then) },
        }
    }

    /// Restores one entry.
    pub(crate) fn undo_one(&self, id: u64) -> Result<(), SandboxError> {
        self.undo_where(|open| open.entry.id == id).map(drop)
    }

    fn undo_where(&self, wanted: impl Fn(&Open) -> bool) -> Result<Vec<String>, SandboxError> {
        let machine = self.lease.machine();
        // All or nothing: an unreachable change may depend on a reachable one.
        check_in_reach(self.journal, machine, &wanted)?;
        let taken = self.journal.take_over(self.lease, wanted)?;
        let outcomes = put_back(self.journal, machine, &taken, &PrivateServers)?;
        let failed = |(_, outcome): &&(Open, Outcome)| outcome.state == RestoreState::Failed;
        match outcomes.iter().find(failed) {
            Some((open, outcome)) => {
                Err(SandboxError::NotPutBack { what: open.entry.change.what(), why: outcome.why.clone() })
            }
            None => Ok(outcomes.iter().filter_map(left_alone).collect()),
        }
    }
}

fn left_alone((open, outcome): &(Open, Outcome)) -> Option<String> {
    let what = || format!("{} was left alone: {}", open.entry.change.what(), outcome.why);
    (outcome.state == RestoreState::LeftAlone).then(what)
}
