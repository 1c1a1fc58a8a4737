//! Lists private servers, those of earlier and of killed commands included, and ends them.

use std::collections::BTreeSet;
use std::fs;

use mydyno_host::journal::{Open, Replay, refusal};
use mydyno_host::machine::{Presence, ProcessIdentity};
use mydyno_host::process::StartedProcess;
use mydyno_host::{Liveness, Machine, StateDir, folder, lost};
use mydyno_model::server::{ServerInfo, ServerState};
use serde_json::Map;

use crate::data;
use crate::error::SandboxError;
use crate::folder::{ServerFolder, check_name};
use crate::purpose;
use crate::site::Site;

/// All private servers by name.
///
/// # Errors
/// The journal, the state folder or `/proc` cannot be read.
pub fn list(state: &StateDir, machine: &Machine) -> Result<Vec<ServerInfo>, SandboxError> {
    let replay = state.journal().read()?;
    names(state, &replay)?.iter().map(|name| describe(state, machine, &replay, name)).collect()
}

/// Names of private servers that no other running command uses: kept ones, and those of commands that have ended.
///
/// # Errors
/// As [`list`].
pub fn free(state: &StateDir, machine: &Machine) -> Result<Vec<String>, SandboxError> {
    let replay = state.journal().read()?;
    let mut free = Vec::new();
    for name in names(state, &replay)? {
        if in_use(machine, &replay, &purpose::of_server(&name))?.is_none() {
            free.push(name);
        }
    }
    Ok(free)
}

/// The entry of a private server that a running command holds, or that is of another machine or container.
fn in_use<'a>(
    machine: &Machine,
    replay: &'a Replay,
    purpose: &str,
) -> Result<Option<&'a Open>, SandboxError> {
    for open in replay.open.iter().filter(|open| open.entry.purpose == purpose) {
        let held = open.kept_until.is_none() && open.lease.liveness(machine)? != Liveness::Dead;
        if held || runs_elsewhere(machine, open)? {
            return Ok(Some(open));
        }
    }
    Ok(None)
}

fn runs_elsewhere(machine: &Machine, open: &Open) -> Result<bool, SandboxError> {
    Ok(match open.entry.change.process() {
        Some(process) => machine.presence(process)? == Presence::Unseen,
        None => false,
    })
}

/// Ends a private server and removes its process, its folder and its journal entries. It may be a kept one, one of this
/// command, or one of a command that has ended. Returns a sentence for each change that stays because another program
/// has changed it since.
///
/// # Errors
/// There is none with this name, a running command uses it, a part of it is not reachable from here (all of it then
/// stays), or a part could not be removed.
pub fn down(site: &Site, name: &str) -> Result<Vec<String>, SandboxError> {
    check_name(name)?;
    let purpose = purpose::of_server(name);
    let folder = ServerFolder::of(site.state, name);
    let replay = site.journal.read()?;
    let known = replay.open.iter().any(|open| open.entry.purpose == purpose);
    if !known && !folder::is_marked(folder.path()) {
        return Err(SandboxError::NoSuchServer {
            name: name.to_owned(),
            known: names(site.state, &replay)?.into_iter().collect(),
        });
    }
    if !known {
        // The journal was lost. The folder is in mydyno's state folder and identifies the process.
        let process = folder.load()?.map(|d| StartedProcess { identity: d.process, program: d.program });
        lost::adopt(site.journal, site.lease, &purpose, folder.path(), process)?;
    }
    check_in_sight(site, name, &purpose)?;
    data::check_in_reach(site, &folder)?;
    let _nobody_else = folder.lock(name)?;
    // After a reboot its folder on the disk of kept data is accessible only after mounting. If that fails, the folder
    // stays on the disk.
    drop(data::mount_for(site, &folder));
    let left_alone = site.undo(&purpose)?;
    data::leave_unused(site)?;
    Ok(left_alone)
}

/// Checks that a server is a kept one or this command's, and that it is on this machine if it runs.
///
/// # Errors
/// There is none, another command owns it, or it runs elsewhere.
pub(crate) fn check_ours(site: &Site, name: &str) -> Result<(), SandboxError> {
    let purpose = purpose::of_server(name);
    let replay = site.journal.read()?;
    let own = |open: &Open| open.lease.process == site.lease.identity().process;
    let mut entries = replay.open.iter().filter(|open| open.entry.purpose == purpose).peekable();
    if entries.peek().is_none() {
        let known = names(site.state, &replay)?.into_iter().collect();
        return Err(SandboxError::NoSuchServer { name: name.to_owned(), known });
    }
    match entries.find(|open| open.kept_until.is_none() && !own(open)) {
        Some(open) => Err(refusal(open, site.lease.machine())?.into()),
        None => check_in_sight(site, name, &purpose),
    }
}

/// A server of another machine or container may be running; its folder must not be removed.
fn check_in_sight(site: &Site, name: &str, purpose: &str) -> Result<(), SandboxError> {
    let machine = site.lease.machine();
    for open in site.journal.read()?.open.iter().filter(|open| open.entry.purpose == purpose) {
        let held = open.kept_until.is_none() && open.lease.liveness(machine)? == Liveness::Unseen;
        if held || runs_elsewhere(machine, open)? {
            return Err(SandboxError::Elsewhere {
                name: name.to_owned(),
                host: open.entry.place.host.clone(),
            });
        }
    }
    Ok(())
}

fn names(state: &StateDir, replay: &Replay) -> Result<BTreeSet<String>, SandboxError> {
    let journalled = replay.open.iter().filter_map(|open| purpose::server_of(&open.entry.purpose));
    let mut names: BTreeSet<String> = journalled.map(str::to_owned).collect();
    let servers = state.servers();
    match fs::read_dir(&servers) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry.map_err(|e| SandboxError::io("read", &servers, e))?;
                // mydyno did not make a folder without a mark.
                let name = entry.file_name().into_string().ok().filter(|n| check_name(n).is_ok());
                names.extend(name.filter(|_| folder::is_marked(&entry.path())));
            }
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(SandboxError::io("read", servers, e)),
    }
    Ok(names)
}

fn describe(
    state: &StateDir,
    machine: &Machine,
    replay: &Replay,
    name: &str,
) -> Result<ServerInfo, SandboxError> {
    let folder = ServerFolder::of(state, name);
    let purpose = purpose::of_server(name);
    let entries: Vec<&Open> = replay.open.iter().filter(|open| open.entry.purpose == purpose).collect();
    // The server must be listed even if its description cannot be read: the journal is enough to end it.
    let saved = folder.load().unwrap_or_default();
    let process: Option<ProcessIdentity> = entries
        .iter()
        .rev()
        .find_map(|open| open.entry.change.process().cloned())
        .or_else(|| saved.as_ref().map(|s| s.process.clone()));
    let runs = match &process {
        Some(process) => matches!(machine.presence(process)?, Presence::Running | Presence::Unseen),
        None => false,
    };
    let kept = !entries.is_empty() && entries.iter().all(|open| open.kept_until.is_some());
    let held = match entries.first() {
        Some(open) => open.lease.liveness(machine)? != Liveness::Dead,
        None => false,
    };
    let state = match (kept, held, runs, saved.is_some()) {
        (true, _, true, _) | (false, true, true, true) => ServerState::Running,
        (true, _, false, _) | (false, true, false, true) => ServerState::Stopped,
        (false, true, _, false) => ServerState::Starting,
        (false, false, _, _) => ServerState::Orphaned,
    };
    let mut info = saved.map_or_else(|| unfinished(&folder, name), |s| s.server);
    info.pid = process.filter(|_| runs).map(|p| p.pid);
    info.state = state;
    Ok(info)
}

fn unfinished(folder: &ServerFolder, name: &str) -> ServerInfo {
    let show = |path: std::path::PathBuf| path.display().to_string();
    ServerInfo {
        name: name.to_owned(),
        engine: String::new(),
        version: String::new(),
        pid: None,
        socket: String::new(),
        port: 0,
        user: String::new(),
        password_file: show(folder.password_file()),
        dsn: String::new(),
        datadir: show(folder.data()),
        log: show(folder.log()),
        state: ServerState::Orphaned,
        extra: Map::new(),
    }
}
