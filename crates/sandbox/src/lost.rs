//! Private servers that the journal has lost: found by the marks of their folders, and removed where that is safe.

use std::fs;
use std::path::{Path, PathBuf};

use mydyno_host::machine::Presence;
use mydyno_host::process::StartedProcess;
use mydyno_host::restore::restore_found;
use mydyno_host::{Host, lost};
use mydyno_model::change::{ChangeInfo, LeaseState, RestoreOutcome, RestoreState};
use mydyno_model::document::rfc3339;
use serde_json::{Map, Value};

use crate::error::SandboxError;
use crate::folder::{ServerFolder, check_name};
use crate::purpose;
use crate::variable::PrivateServers;

/// Marked folders of private servers and named disks without an entry in the journal.
struct Unknown {
    servers: Vec<PathBuf>,
    disks: Vec<PathBuf>,
}

impl Unknown {
    fn find(host: &Host) -> Result<Self, SandboxError> {
        // The journal is read after the folders: a command that makes a server meanwhile writes its entry before the folder
        // exists.
        let mut servers = lost::marked_below(&host.state.servers(), |name| check_name(name).is_ok())?;
        let mut disks = lost::marked_below(host.state.path(), |name| name.starts_with("disk-"))?;
        let known = host.journal.read()?.open;
        let is_unknown = |purpose: &str| !known.iter().any(|open| open.entry.purpose == purpose);
        servers.retain(|path| is_unknown(&purpose::of_server(name_of(path))));
        disks.retain(|path| is_unknown(&of_disk(disk_name(path))));
        Ok(Self { servers, disks })
    }
}

/// Private servers and named disks that the journal does not know, as changes that stay until a command ends them.
///
/// # Errors
/// The state folder or the journal cannot be read.
pub fn unknown_to_journal(host: &Host) -> Result<Vec<ChangeInfo>, SandboxError> {
    let Unknown { servers, disks } = Unknown::find(host)?;
    let servers = servers.iter().map(|path| change_of_server(path, name_of(path)));
    let disks = disks.iter().map(|path| change_of_disk(path, disk_name(path)));
    let mark = |mut change: ChangeInfo| {
        change.what.push_str(" (the journal does not know it)");
        change
    };
    Ok(servers.chain(disks).map(mark).collect())
}

/// Removes private servers whose marked folders have no journal entry. Without `all`, a server whose process runs
/// stays, because the journal would have said whether it is kept or in use; so do named disks, which are always kept.
///
/// # Errors
/// The state folder, `/proc` or the journal cannot be read or written.
pub fn put_back_lost(host: &Host, all: bool) -> Result<Vec<RestoreOutcome>, SandboxError> {
    let Unknown { servers, disks } = Unknown::find(host)?;
    let mut outcomes = Vec::new();
    for path in servers {
        let name = name_of(&path);
        outcomes.extend(server(host, name, &purpose::of_server(name), all)?);
    }
    for path in disks {
        let name = disk_name(&path);
        if all {
            let purpose = of_disk(name);
            lost::adopt(&host.journal, &host.lease, &purpose, &path, None)?;
            outcomes.extend(restore_found(&host.journal, &host.lease, &purpose, &PrivateServers)?);
        } else {
            outcomes.push(left(change_of_disk(&path, name), "it may be kept on purpose"));
        }
    }
    Ok(outcomes)
}

fn server(host: &Host, name: &str, purpose: &str, all: bool) -> Result<Vec<RestoreOutcome>, SandboxError> {
    let folder = ServerFolder::of(&host.state, name);
    let leave = |why: &str| Ok(vec![left(change_of_server(folder.path(), name), why)]);
    let process = match folder.load() {
        Ok(saved) => saved.map(|saved| StartedProcess { identity: saved.process, program: saved.program }),
        // Whether its process runs is unknown.
        Err(_) if !all => return leave("its description cannot be read"),
        Err(_) => None,
    };
    let presence = process.as_ref().map(|p| host.machine().presence(&p.identity)).transpose()?;
    match presence {
        Some(Presence::Running) if !all => return leave("its process runs, and it may be kept on purpose"),
        Some(Presence::Unseen) => return leave("it belongs to another machine or container"),
        _ => {}
    }
    let Ok(_nobody_else) = folder.lock(name) else { return leave("another command is at work with it") };
    lost::adopt(&host.journal, &host.lease, purpose, folder.path(), process)?;
    Ok(restore_found(&host.journal, &host.lease, purpose, &PrivateServers)?)
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn disk_name(path: &Path) -> &str {
    name_of(path).trim_start_matches("disk-")
}

/// The purpose of a named disk in the journal.
fn of_disk(name: &str) -> String {
    format!("disk {name}")
}

fn change_of_server(path: &Path, name: &str) -> ChangeInfo {
    change(path, format!("private server {name}"), format!("mydyno server down {name}"))
}

fn change_of_disk(path: &Path, name: &str) -> ChangeInfo {
    change(path, format!("emulated disk {name}"), format!("mydyno host disk down {name}"))
}

fn change(path: &Path, what: String, until: String) -> ChangeInfo {
    let made = fs::symlink_metadata(path).and_then(|meta| meta.modified()).ok();
    ChangeInfo {
        id: 0,
        what,
        was: Value::from("absent"),
        now: Value::from("present"),
        since: made.map(|time| rfc3339(time.into())).unwrap_or_default(),
        lease: LeaseState::Kept { until },
        extra: Map::new(),
    }
}

/// A lost change that stays for now.
fn left(change: ChangeInfo, why: &str) -> RestoreOutcome {
    let until = match &change.lease {
        LeaseState::Kept { until } => until.as_str(),
        _ => "mydyno host restore",
    };
    let why = format!(
        "the journal does not know it, and its mark says that it is mydyno's; {why}: `{until}` ends it, or `mydyno host restore --all`"
    );
    RestoreOutcome { change, outcome: RestoreState::LeftAlone, why }
}
