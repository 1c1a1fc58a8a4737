//! Places that the server depends on: its folders for temporary files, the file that its messages go to, and redo logs of a release
//! before.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::parse::required;
use crate::process::Process;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Folders and files that are where the server takes them to be, or not.
pub static COLLECTOR: Collector = Collector {
    name: "places",
    cost: Cost { host_ms: 2, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.places.tmpdir_trouble",
            "",
            "folders of tmpdir that the server cannot write to: folder, trouble; permission bits are looked at, and no access control lists",
        ),
        fact(
            "server.places.error_log_moved",
            "",
            "the file that the server's messages go to, where it is another one of the folder than log_error names: it was renamed while the server ran",
        ),
        fact(
            "server.places.old_redo",
            "",
            "redo log files of releases before MySQL 8.0.30 (ib_logfile0, …) beside the redo logs that the server uses",
        ),
    ],
    run: Run::Host(run),
};

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID", missing),
    };
    let view = match mounts::view(&context.source, server) {
        Ok(view) => view,
        Err(missing) => return readings.rest_is("/proc/PID", &missing),
    };
    let tmpdir = context.variable("tmpdir").filter(|path| !path.is_empty());
    let trouble = tmpdir
        .ok_or_else(|| Missing::Absent("the server tells no tmpdir".to_owned()))
        .and_then(|folders| trouble(&context.source, server, &view, folders));
    readings.put("server.places.tmpdir_trouble", "stat(2)", trouble);
    let moved = context
        .variable("log_error")
        .filter(|path| path.starts_with('/'))
        .ok_or_else(|| Missing::Absent("log_error names no file by its whole path".to_owned()))
        .and_then(|path| Ok(moved(path, &context.source.link(&server.file("fd/2"))?)));
    readings.put("server.places.error_log_moved", server.file("fd/2"), moved);
    readings.put("server.places.old_redo", "the data directory", old_redo(context, &view));
}

/// Who the server's process is, as far as permissions depend on it.
pub(super) struct Identity {
    pub user: u32,
    groups: Vec<u32>,
}

impl Identity {
    pub fn of(source: &Source, server: &Process) -> Read<Self> {
        let path = server.file("status");
        let text = source.read(&path)?;
        let numbers = |name: &str| -> Read<Vec<u32>> {
            let words = required(&text, name, &path)?.split_whitespace();
            Ok(words.filter_map(|word| word.parse().ok()).collect())
        };
        // Real, effective, saved and of the file system, which is the one that counts.
        let last = |name: &str| -> Read<u32> {
            let all = numbers(name)?;
            all.get(3)
                .copied()
                .ok_or_else(|| Missing::Error(format!("{path}: {name} has fewer than four numbers")))
        };
        let mut groups = numbers("Groups")?;
        groups.push(last("Gid")?);
        Ok(Self { user: last("Uid")?, groups })
    }

    /// Whether it may make files in a folder, by its permission bits.
    pub fn may_write(&self, mode: u32, user: u32, group: u32) -> bool {
        const WRITE_AND_ENTER: u32 = 0o3;
        let shift = match (self.user == user, self.groups.contains(&group)) {
            (true, _) => 6,
            (false, true) => 3,
            (false, false) => 0,
        };
        self.user == 0 || (mode >> shift) & WRITE_AND_ENTER == WRITE_AND_ENTER
    }
}

fn trouble(source: &Source, server: &Process, view: &str, folders: &str) -> Read<Vec<Value>> {
    let identity = Identity::of(source, server)?;
    let mut found = Vec::new();
    for folder in folders.split(':').filter(|folder| folder.starts_with('/')) {
        let trouble = match source.stat(&format!("{view}{folder}")) {
            Ok(at) if identity.may_write(at.mode, at.uid, at.gid) => continue,
            Ok(at) => format!("its mode is {:03o} and its owner another user", at.mode & 0o7777),
            Err(Missing::Absent(_)) => "it is not there".to_owned(),
            Err(other) => return Err(other),
        };
        found.push(json!({"folder": folder, "trouble": trouble}));
    }
    Ok(found)
}

/// The file that is written to, where it lies in the folder of the one that is named and has another name.
fn moved(named: &str, written: &str) -> Vec<String> {
    let parts = |path: &str| path.rsplit_once('/').map(|(folder, name)| (folder.to_owned(), name.to_owned()));
    match (parts(named), parts(written)) {
        (Some((folder, name)), Some((other_folder, other))) if folder == other_folder && name != other => {
            vec![written.to_owned()]
        }
        _ => vec![],
    }
}

fn old_redo(context: &Context, view: &str) -> Read<Vec<String>> {
    let datadir = context.datadir()?.trim_end_matches('/');
    let names = context.source.list(&format!("{view}{datadir}"))?;
    if !names.iter().any(|name| name == "#innodb_redo") {
        return Ok(vec![]);
    }
    let is_old = |name: &&String| {
        name.strip_prefix("ib_logfile")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    Ok(names.iter().filter(is_old).take(20).map(|name| format!("{datadir}/{name}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_written_by_its_owner_its_group_or_everybody() {
        let server = Identity { user: 104, groups: vec![105, 4] };
        for (mode, user, group, may) in [
            (0o755, 104, 0, true),
            (0o755, 0, 105, false),
            (0o775, 0, 105, true),
            (0o775, 0, 0, false),
            (0o1777, 0, 0, true),
            (0o555, 104, 105, false),
            (0o077, 104, 105, false),
        ] {
            assert_eq!(server.may_write(mode, user, group), may, "{mode:o} {user} {group}");
        }
        assert!(Identity { user: 0, groups: vec![] }.may_write(0o500, 1, 1));
    }

    #[test]
    fn a_log_that_was_renamed_is_told_and_one_by_another_path_is_not() {
        assert_eq!(
            moved("/var/log/mysql/error.log", "/var/log/mysql/error.log.1"),
            ["/var/log/mysql/error.log.1"]
        );
        for written in
            ["/var/log/mysql/error.log", "/data/log/error.log", "/dev/null", "pipe:[4711]", "socket:[1]"]
        {
            assert_eq!(moved("/var/log/mysql/error.log", written), Vec::<String>::new(), "{written}");
        }
    }
}
