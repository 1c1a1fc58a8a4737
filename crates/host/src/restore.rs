//! Putting back what was changed: newest first, only what is still ours, and again after any interruption.

use std::fs::File;
use std::path::Path;

use mydyno_model::change::{ChangeInfo, LeaseState, RestoreOutcome, RestoreState};
use serde_json::Map;

use crate::change::{Change, ChangedVariable};
use crate::emulated;
use crate::error::HostError;
use crate::journal::{Closing, Journal, Open};
use crate::lease::{Lease, Liveness};
use crate::machine::{Machine, Place, Presence};

/// How putting one change back ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The end.
    pub state: RestoreState,
    /// What was done, or why not.
    pub why: String,
}

impl Outcome {
    /// All is as before.
    pub fn restored(why: impl Into<String>) -> Self {
        Self { state: RestoreState::Restored, why: why.into() }
    }

    /// It is not, or no longer, ours to put back.
    pub fn left_alone(why: impl Into<String>) -> Self {
        Self { state: RestoreState::LeftAlone, why: why.into() }
    }

    /// It is ours and could not be put back.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { state: RestoreState::Failed, why: why.into() }
    }

    /// How the journal entry is closed; `None` when it stays open.
    pub fn closing(&self) -> Option<Closing> {
        match self.state {
            RestoreState::Restored => Some(Closing::Restored),
            RestoreState::LeftAlone => Some(Closing::LeftAlone),
            RestoreState::Failed => None,
        }
    }
}

/// Puts changes back that this command answers for, newest first, and closes their entries.
///
/// # Errors
/// The journal cannot be written or `/proc` cannot be read; what was not reached stays in the journal.
pub fn put_back(
    journal: &Journal,
    machine: &Machine,
    ours: &[Open],
    servers: &dyn Servers,
) -> Result<Vec<(Open, Outcome)>, HostError> {
    let mut ours: Vec<&Open> = ours.iter().collect();
    // A variable whose server is ended too is judged last: only then is it known whether the server is gone.
    let with_its_server: Vec<u64> =
        ours.iter().filter(|open| server_of(&ours, open).is_some()).map(|open| open.entry.id).collect();
    ours.sort_by_key(|open| (with_its_server.contains(&open.entry.id), std::cmp::Reverse(open.entry.id)));
    // What is dirty above an emulated disk would be waited for at its speed; and for ever where it does not answer, unless its
    // process is ended before what is mounted above it: then all requests fail at once.
    let deaf = |open: &&&Open| matches!(&open.entry.change, Change::Mount(mount) if !emulated::hurry(mount));
    let first: Vec<u64> = ours.iter().filter(deaf).filter_map(|mount| served_by(&ours, mount)).collect();
    ours.sort_by_key(|open| !first.contains(&open.entry.id));
    let mut outcomes: Vec<(Open, Outcome)> = Vec::with_capacity(ours.len());
    for open in &ours {
        let open: &Open = open;
        // A folder must not go while the process that works in it could not be ended.
        let stuck = outcomes.iter().find(|(later, outcome)| {
            later.entry.purpose == open.entry.purpose
                && outcome.state == RestoreState::Failed
                && rests_on(&later.entry.change, &open.entry.change)
        });
        let outcome = match (stuck, &open.entry.change) {
            (Some((later, _)), _) => {
                Outcome::failed(format!("{} has to go first", later.entry.change.what()))
            }
            (None, change) if ended_with_its_boot(change, &open.entry.place, machine) => {
                Outcome::restored("it ended with an earlier boot")
            }
            (None, Change::Folder(folder)) => folder.put_back(machine)?,
            (None, Change::Process(process)) => process.put_back(machine)?,
            (None, Change::Setting(setting)) => setting.put_back(machine, &open.entry.place),
            (None, Change::Loop(device)) => device.put_back(),
            (None, Change::Mount(mount)) => mount.put_back(machine)?,
            (None, Change::Swap(swap)) => swap.put_back(machine)?,
            (None, Change::Zram(swap)) => swap.put_back(machine),
            (None, Change::Cgroup(group)) => group.put_back(),
            (None, Change::Task(task)) => task.put_back(machine)?,
            (None, Change::Variable(variable)) => match server_of(&ours, open) {
                Some(server) => with_server(&outcomes, server),
                None => put_back_variable(machine, variable, servers)?,
            },
            (None, Change::Unknown(_)) => {
                Outcome::failed("a newer mydyno made this change: run its `mydyno host restore`")
            }
        };
        journal.close_with(open.entry.id, &outcome)?;
        outcomes.push((open.clone(), outcome));
    }
    Ok(outcomes)
}

/// The entry of the process that serves an emulated disk: the first after its mount's.
fn served_by(ours: &[&Open], mount: &Open) -> Option<u64> {
    let after = ours.iter().filter(|open| {
        open.entry.purpose == mount.entry.purpose
            && open.entry.id > mount.entry.id
            && matches!(open.entry.change, Change::Process(_))
    });
    after.map(|open| open.entry.id).min()
}

/// That everything wanted can be put back from here: what is mounted in another namespace, or belongs to a process that cannot
/// be seen, would be given up as somebody else's.
///
/// # Errors
/// Something cannot; it says where it can. Or the journal or `/proc` cannot be read.
pub fn check_in_reach(
    journal: &Journal,
    machine: &Machine,
    wanted: impl Fn(&Open) -> bool,
) -> Result<(), HostError> {
    for open in journal.read()?.open.iter().filter(|open| wanted(open)) {
        let unseen = match &open.entry.change {
            Change::Process(process) => machine.presence(&process.identity)? == Presence::Unseen,
            _ => false,
        };
        let why = open.entry.out_of_reach(machine).or_else(|| {
            unseen.then(|| "it runs on another machine or in another container: do this there".to_owned())
        });
        if let Some(why) = why {
            return Err(HostError::OutOfReach { what: open.entry.change.what(), why });
        }
    }
    Ok(())
}

/// Whether a change was of an earlier boot and went with it, so that whatever is in its place is somebody else's. Settings
/// and processes say so themselves; folders outlive a boot.
fn ended_with_its_boot(change: &Change, place: &Place, machine: &Machine) -> bool {
    let goes = matches!(
        change,
        Change::Loop(_)
            | Change::Mount(_)
            | Change::Swap(_)
            | Change::Zram(_)
            | Change::Cgroup(_)
            | Change::Task(_)
            | Change::Variable(_)
    );
    goes && place.boot_id != machine.place().boot_id
}

/// Whether a change that stays needs an earlier one. Commands share purposes, and a process stands for all that its own
/// command made.
fn keeps(later: &Open, earlier: &Open) -> bool {
    let one_command = later.entry.lease.process == earlier.entry.lease.process;
    later.entry.purpose == earlier.entry.purpose
        && (one_command || !matches!(later.entry.change, Change::Process(_) | Change::Unknown(_)))
        && rests_on(&later.entry.change, &earlier.entry.change)
}

/// The folders that were made on a mounted disk, or a device's, for another purpose. Whoever mounted it need not be the one who
/// leaves last, so it stays while one of them does.
fn folders_on<'a>(open: &Open, all: &'a [Open]) -> Vec<&'a Open> {
    let on = |mount: &Open| {
        let Change::Mount(mounted) = &mount.entry.change else { return vec![] };
        let others = all.iter().filter(|other| other.entry.purpose != mount.entry.purpose);
        let below = |other: &&Open| matches!(&other.entry.change, Change::Folder(f) if f.path.starts_with(&mounted.point));
        others.filter(below).collect()
    };
    match &open.entry.change {
        Change::Loop(device) => {
            let own = all.iter().filter(|other| other.entry.purpose == open.entry.purpose);
            own.filter(|other| matches!(&other.entry.change, Change::Mount(m) if m.device == device.device))
                .flat_map(on)
                .collect()
        }
        _ => on(open),
    }
}

/// Whether a later change of the same purpose needs an earlier one for as long as it is there. What a kernel setting was has
/// nothing to do with a disk that is still in use.
fn rests_on(later: &Change, earlier: &Change) -> bool {
    let place = match later {
        Change::Folder(folder) => Some(&folder.path),
        Change::Loop(device) => Some(&device.backing),
        Change::Mount(mount) => Some(&mount.point),
        Change::Swap(swap) => Some(&swap.path),
        _ => None,
    };
    let within = |folder: &Path| place.is_some_and(|place| place.starts_with(folder));
    match (later, earlier) {
        (Change::Unknown(_), _) => true,
        (Change::Process(_), Change::Folder(_) | Change::Mount(_) | Change::Cgroup(_)) => true,
        (_, Change::Folder(folder)) => within(&folder.path),
        (Change::Mount(mount), Change::Loop(device)) => mount.device == device.device,
        // Settings of a queue stay with the device's number: its next user would get them.
        (Change::Setting(setting), Change::Loop(device)) => {
            setting.name.starts_with(&format!("queue.{}.", device.name()))
        }
        (_, Change::Mount(mount)) => within(&mount.point),
        _ => false,
    }
}

/// The entry of a variable's server if it is among what is put back: then nobody needs to speak with it, and it may be one
/// that does not answer.
fn server_of(ours: &[&Open], open: &Open) -> Option<u64> {
    let Change::Variable(variable) = &open.entry.change else { return None };
    let server = ours
        .iter()
        .find(|o| matches!(&o.entry.change, Change::Process(p) if p.identity == variable.process))?;
    Some(server.entry.id)
}

/// How it went with a variable whose server was to be ended.
fn with_server(outcomes: &[(Open, Outcome)], server: u64) -> Outcome {
    match outcomes.iter().find(|(open, _)| open.entry.id == server) {
        Some((_, Outcome { state: RestoreState::Failed, why })) => {
            Outcome::failed(format!("its server could not be ended: {why}"))
        }
        _ => Outcome::restored("its server is ended, and its value with it"),
    }
}

/// Who can speak with private servers, to put variables back while they run.
pub trait Servers {
    /// Sets a variable of a running server back if it still has the value that was set.
    fn put_back(&self, variable: &ChangedVariable) -> Outcome;

    /// Claims what a dead command mounted. A lock, where there is one, is held until all is put back, so that nobody begins to
    /// use it meanwhile.
    ///
    /// # Errors
    /// Who uses it: it stays for now.
    fn claim(&self, _mount: &Open) -> Result<Option<File>, String> {
        Ok(None)
    }
}

/// Nobody can: variables of running servers stay in the journal.
#[derive(Debug, Clone, Copy)]
pub struct NoServers;

impl Servers for NoServers {
    fn put_back(&self, _: &ChangedVariable) -> Outcome {
        Outcome::failed("its server runs: `mydyno host restore` can speak with it")
    }
}

fn put_back_variable(
    machine: &Machine,
    variable: &ChangedVariable,
    servers: &dyn Servers,
) -> Result<Outcome, HostError> {
    Ok(match machine.presence(&variable.process)? {
        Presence::Running => servers.put_back(variable),
        Presence::Unseen => Outcome::left_alone("its server belongs to another machine or container"),
        Presence::Ended | Presence::Recycled | Presence::OtherBoot => {
            Outcome::restored("its server ended, and its value with it")
        }
    })
}

/// What `mydyno host restore` does: takes over the changes of commands that died and puts them back. Changes that a
/// living command answers for, or that are kept on purpose, are named and left alone; with `all`, kept ones are put
/// back too, and those of machines and containers that cannot be seen from here.
///
/// # Errors
/// The journal cannot be read or written, or `/proc` cannot be read. Run it again: it goes on where it stopped.
pub fn restore(
    journal: &Journal,
    lease: &Lease,
    all: bool,
    servers: &dyn Servers,
) -> Result<Vec<RestoreOutcome>, HostError> {
    let machine = lease.machine();
    let mut outcomes = Vec::new();
    let mut free = Vec::new();
    let mut staying: Vec<&Open> = Vec::new();
    let mut claims = Vec::new();
    let before = journal.read()?;
    for open in before.open.iter().rev() {
        // What stays keeps what it needs: the folder of a swap file, the device of a mount.
        let mut above = obstacle(open, machine, all)?;
        for folder in folders_on(open, &before.open) {
            above = above.or(obstacle(folder, machine, all)?);
        }
        let obstacle = match above {
            None => staying.iter().find(|later| keeps(later, open)).map(|later| {
                format!("{} has to go first, and that is left alone for now", later.entry.change.what())
            }),
            why => why,
        };
        let claimed = match &open.entry.change {
            Change::Mount(_) if obstacle.is_none() => servers.claim(open),
            _ => Ok(None),
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
    // What somebody took, closed or handed over in between is no longer what was looked at.
    let taken = journal.take_over(lease, |open| free.contains(&open))?;
    for (open, outcome) in put_back(journal, machine, &taken, servers)? {
        // Who answered for it before is what the reader wants to know; taking over made it ours.
        let former = Open { lease: open.entry.lease.clone(), ..open };
        outcomes.push(report(&former, machine, outcome)?);
    }
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.change.id));
    Ok(outcomes)
}

/// Puts back what was done for one purpose and reports it, as [`restore`] does. The entries are this command's own: it wrote them
/// for what the journal had lost.
///
/// # Errors
/// As [`restore`].
pub fn restore_found(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    servers: &dyn Servers,
) -> Result<Vec<RestoreOutcome>, HostError> {
    let machine = lease.machine();
    let taken = journal.take_over(lease, |open| open.entry.purpose == purpose)?;
    let done = put_back(journal, machine, &taken, servers)?;
    done.into_iter()
        .map(|(open, outcome)| {
            let why = format!("the journal did not know it, its mark did: {}", outcome.why);
            report(&open, machine, Outcome { why, ..outcome })
        })
        .collect()
}

/// What `mydyno host status` shows: changes in force, oldest first.
///
/// # Errors
/// The journal or `/proc` cannot be read.
pub fn status(journal: &Journal, machine: &Machine) -> Result<Vec<ChangeInfo>, HostError> {
    let all = journal.read()?.open;
    all.iter()
        .map(|open| {
            // What a folder that is kept lies on is kept with it.
            let kept = folders_on(open, &all).into_iter().find_map(|folder| folder.kept_until.clone());
            info(&Open { kept_until: open.kept_until.clone().or(kept), ..open.clone() }, machine)
        })
        .collect()
}

fn obstacle(open: &Open, machine: &Machine, all: bool) -> Result<Option<String>, HostError> {
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

fn report(open: &Open, machine: &Machine, outcome: Outcome) -> Result<RestoreOutcome, HostError> {
    Ok(RestoreOutcome { change: info(open, machine)?, outcome: outcome.state, why: outcome.why })
}

fn info(open: &Open, machine: &Machine) -> Result<ChangeInfo, HostError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::AttachedLoop;
    use crate::setting::ChangedSetting;

    #[test]
    fn a_loop_device_waits_for_the_settings_of_its_own_queue() {
        let device = Change::Loop(AttachedLoop {
            device: "/dev/loop3".into(),
            backing: "/d/image".into(),
            inode: 7,
            label: "ab".to_owned(),
        });
        let setting = |name: &str| {
            Change::Setting(ChangedSetting {
                name: name.to_owned(),
                was: "none".to_owned(),
                now: "bfq".to_owned(),
                device: None,
                namespace: None,
                along: vec![],
                along_after: vec![],
            })
        };
        assert!(rests_on(&setting("queue.loop3.scheduler"), &device));
        assert!(!rests_on(&setting("queue.loop30.scheduler"), &device));
        assert!(!rests_on(&setting("vm.swappiness"), &device));
    }
}
