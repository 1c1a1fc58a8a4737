//! Restores changes: newest first, only those that are still mydyno's, and again after any interruption.

use mydyno_model::change::{ChangeInfo, LeaseState, RestoreOutcome, RestoreState};
use serde_json::Map;

use crate::change::Context;
use crate::dependencies::{ends_with, in_order, keeps, users};
use crate::error::JournalError;
use crate::file::Journal;
use crate::lease::{Lease, Liveness};
use crate::machine::{Machine, Presence};
use crate::replay::Open;

pub use crate::change::{Hooks, NoHooks};
pub use crate::outcome::Outcome;

/// Restores changes that this command owns, newest first, and closes their entries.
///
/// # Errors
/// The journal cannot be written or `/proc` cannot be read; the remaining changes stay in the journal.
pub fn put_back(
    journal: &Journal,
    machine: &Machine,
    ours: &[Open],
    hooks: &dyn Hooks,
) -> Result<Vec<(Open, Outcome)>, JournalError> {
    let ours = in_order(ours);
    let mut outcomes: Vec<(Open, Outcome)> = Vec::with_capacity(ours.len());
    for open in &ours {
        let open: &Open = open;
        // The folder must stay while the process that works in it could not be ended.
        let stuck = outcomes.iter().find(|(later, outcome)| {
            later.entry.purpose == open.entry.purpose
                && outcome.state == RestoreState::Failed
                && later.entry.change.rests_on(&*open.entry.change)
        });
        let ended = ends_with(&ours, open)
            .map(|id| outcomes.iter().find(|(other, _)| other.entry.id == id).map(|(_, outcome)| outcome));
        let (change, place) = (&open.entry.change, &open.entry.place);
        let outcome = match (stuck, ended) {
            (Some((later, _)), _) => {
                Outcome::failed(format!("{} has to go first", later.entry.change.what()))
            }
            // Another program's object has taken its name.
            (None, _) if change.ends_with_boot() && place.boot_id != machine.place().boot_id => {
                Outcome::restored("it ended with an earlier boot")
            }
            (None, Some(other)) => change.ended_with(other.unwrap_or(&Outcome::restored("it ended"))),
            (None, None) => change.put_back(&Context { machine, place, hooks })?,
        };
        journal.close_with(open.entry.id, &outcome)?;
        outcomes.push((open.clone(), outcome));
    }
    Ok(outcomes)
}

/// Checks that all wanted changes can be restored from this process: a mount in another namespace, or an object of a
/// process that is not visible, would be taken for another program's.
///
/// # Errors
/// One cannot; the error says where it can. Or the journal or `/proc` cannot be read.
pub fn check_in_reach(
    journal: &Journal,
    machine: &Machine,
    wanted: impl Fn(&Open) -> bool,
) -> Result<(), JournalError> {
    for open in journal.read()?.open.iter().filter(|open| wanted(open)) {
        let unseen = match open.entry.change.process() {
            Some(process) => machine.presence(process)? == Presence::Unseen,
            None => false,
        };
        let why = open.entry.out_of_reach(machine).or_else(|| {
            unseen.then(|| "it runs on another machine or in another container: do this there".to_owned())
        });
        if let Some(why) = why {
            return Err(JournalError::OutOfReach { what: open.entry.change.what(), why });
        }
    }
    Ok(())
}

/// Restores the changes of commands that have ended, after taking them over. Changes that a running command owns, or
/// that are kept on purpose, are listed and stay unchanged; with `all`, kept ones are restored too, and those of
/// machines and containers that are not visible here.
///
/// # Errors
/// The journal cannot be read or written, or `/proc` cannot be read. Run it again: it continues where it stopped.
pub fn restore(
    journal: &Journal,
    lease: &Lease,
    all: bool,
    hooks: &dyn Hooks,
) -> Result<Vec<RestoreOutcome>, JournalError> {
    let machine = lease.machine();
    let mut outcomes = Vec::new();
    let mut free = Vec::new();
    let mut staying: Vec<&Open> = Vec::new();
    let mut claims = Vec::new();
    let before = journal.read()?;
    for open in before.open.iter().rev() {
        // A change that stays keeps its dependencies: the folder of a swap file, the device of a mount.
        let mut above = obstacle(open, machine, all)?;
        for user in users(open, &before.open) {
            above = above.or(obstacle(user, machine, all)?);
        }
        let obstacle = match above {
            None => staying.iter().find(|later| keeps(later, open)).map(|later| {
                format!("{} has to go first, and that is left alone for now", later.entry.change.what())
            }),
            why => why,
        };
        let claimed = match open.entry.change.may_be_shared() && obstacle.is_none() {
            true => hooks.claim(&open.entry.purpose, &*open.entry.change),
            false => Ok(None),
        };
        let used = claimed.map(|claim| claims.extend(claim)).err();
        match obstacle.or(used) {
            Some(why) => {
                outcomes.push(report(open, machine, Outcome::left_alone(why))?);
                staying.push(open);
            }
            None => free.push(open),
        }
    }
    // Other commands may have taken over, closed or kept entries since they were read.
    let taken = journal.take_over(lease, |open| free.contains(&open))?;
    for (open, outcome) in put_back(journal, machine, &taken, hooks)? {
        // The report names the previous owner; taking over has made this command the owner.
        let former = Open { lease: open.entry.lease.clone(), ..open };
        outcomes.push(report(&former, machine, outcome)?);
    }
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.change.id));
    Ok(outcomes)
}

/// Restores the changes of one purpose and reports them as [`restore`] does. This command wrote their entries itself,
/// for changes that the journal had lost.
///
/// # Errors
/// As [`restore`].
pub fn restore_found(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    hooks: &dyn Hooks,
) -> Result<Vec<RestoreOutcome>, JournalError> {
    let machine = lease.machine();
    let taken = journal.take_over(lease, |open| open.entry.purpose == purpose)?;
    let done = put_back(journal, machine, &taken, hooks)?;
    done.into_iter()
        .map(|(open, outcome)| {
            let why = format!("the journal did not know it, its mark did: {}", outcome.why);
            report(&open, machine, Outcome { why, ..outcome })
        })
        .collect()
}

/// The changes in force, as `mydyno host status` shows them, oldest first.
///
/// # Errors
/// The journal or `/proc` cannot be read.
pub fn status(journal: &Journal, machine: &Machine) -> Result<Vec<ChangeInfo>, JournalError> {
    let all = journal.read()?.open;
    all.iter()
        .map(|open| {
            // A disk below a kept folder is kept as well.
            let kept = users(open, &all).into_iter().find_map(|user| user.kept_until.clone());
            info(&Open { kept_until: open.kept_until.clone().or(kept), ..open.clone() }, machine)
        })
        .collect()
}

fn obstacle(open: &Open, machine: &Machine, all: bool) -> Result<Option<String>, JournalError> {
    if let Some(until) = &open.kept_until {
        let why = format!("it is kept on purpose: `{until}` ends it, or `mydyno host restore --all`");
        return Ok((!all).then_some(why));
    }
    let lease = &open.lease;
    if !all && let Some(why) = open.entry.out_of_reach(machine) {
        return Ok(Some(why));
    }
    Ok(match lease.liveness(machine)? {
        Liveness::Dead => None,
        Liveness::Alive => Some(format!(
            "`mydyno {}` (pid {}) is at work and puts it back itself",
            lease.command, lease.process.pid
        )),
        Liveness::Unseen => (!all).then(|| {
            format!(
                "`mydyno {}` made it on {} in PID namespace {}, which cannot be seen from here: run `mydyno host restore` \
                 there, or with --all if that machine or container is gone",
                lease.command, lease.process.place.host, lease.process.place.pid_namespace
            )
        }),
    })
}

fn report(open: &Open, machine: &Machine, outcome: Outcome) -> Result<RestoreOutcome, JournalError> {
    Ok(RestoreOutcome { change: info(open, machine)?, outcome: outcome.state, why: outcome.why })
}

fn info(open: &Open, machine: &Machine) -> Result<ChangeInfo, JournalError> {
    let (pid, command) = (open.lease.process.pid, open.lease.command.clone());
    let lease = match &open.kept_until {
        Some(until) => LeaseState::Kept { until: until.clone() },
        None => match open.lease.liveness(machine)? {
            Liveness::Dead => LeaseState::Abandoned { pid, command },
            Liveness::Alive | Liveness::Unseen => LeaseState::Held { pid, command },
        },
    };
    Ok(ChangeInfo {
        id: open.entry.id,
        what: open.entry.change.what(),
        was: open.entry.was.clone(),
        now: open.entry.now.clone(),
        since: open.entry.at.clone(),
        lease,
        extra: Map::new(),
    })
}
