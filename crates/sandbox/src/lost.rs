//! Private servers that the journal has lost: found by the marks of their folders, and removed where that is safe.

use std::fs;
use std::path::Path;

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

/// Removes private servers whose marked folders have no journal entry. Without `all`, a server whose process runs
/// stays, because the journal would have said whether it is kept or in use; so do named disks, which are always kept.
///
/// # Errors
/// The state folder, `/proc` or the journal cannot be read or written.
pub fn put_back_lost(host: &Host, all: bool) -> Result<Vec<RestoreOutcome>, SandboxError> {
    // The journal is read after the folders: a command that makes a server meanwhile writes its entry before the folder
    // exists.
    let servers = lost::marked_below(&host.state.servers(), |name| check_name(name).is_ok())?;
    let disks = lost::marked_below(host.state.path(), |name| name.starts_with("disk-"))?;
    let known = host.journal.read()?.open;
    let is_lost = |purpose: &str| !known.iter().any(|open| open.entry.purpose == purpose);
    let mut outcomes = Vec::new();
    for path in servers {
        let name = name_of(&path);
        let purpose = purpose::of_server(name);
        if is_lost(&purpose) {
            outcomes.extend(server(host, name, &purpose, all)?);
        }
    }
    for path in disks {
        let name = name_of(&path).trim_start_matches("disk-");
        let purpose = format!("disk {name}");
        if !is_lost(&purpose) {
            continue;
        }
        if all {
            lost::adopt(&host.journal, &host.lease, &purpose, &path, None)?;
            outcomes.extend(restore_found(&host.journal, &host.lease, &purpose, &PrivateServers)?);
        } else {
            let until = format!("mydyno host disk down {name}");
            outcomes.push(left(&path, format!("emulated disk {name}"), "it may be kept on purpose", until));
        }
    }
    Ok(outcomes)
}

fn server(host: &Host, name: &str, purpose: &str, all: bool) -> Result<Vec<RestoreOutcome>, SandboxError> {
    let folder = ServerFolder::of(&host.state, name);
    let leave = |why: &str| {
        let (what, until) = (format!("private server {name}"), format!("mydyno server down {name}"));
        Ok(vec![left(folder.path(), what, why, until)])
    };
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

/// A lost change that stays for now.
fn left(path: &Path, what: String, why: &str, until: String) -> RestoreOutcome {
    let made = fs::symlink_metadata(path).and_then(|meta| meta.modified()).ok();
    let change = ChangeInfo {
        id: 0,
        what,
        was: Value::from("absent"),
        now: Value::from("present"),
        since: made.map(|time| rfc3339(time.into())).unwrap_or_default(),
        lease: LeaseState::Kept { until: until.clone() },
        extra: Map::new(),
    };
    let why = format!(
        "the journal does not know it, and its mark says that it is mydyno's; {why}: `{until}` ends it, or `mydyno host restore --all`"
    );
    RestoreOutcome { change, outcome: RestoreState::LeftAlone, why }
}
