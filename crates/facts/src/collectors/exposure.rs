//! Files of the server that other users of the host may read or write, and files that it holds open though they are deleted.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Permissions of files, and deleted files.
pub static COLLECTOR: Collector = Collector {
    name: "exposure",
    cost: Cost { host_ms: 5, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.exposure.keys",
            "",
            "private keys, those of encrypted tables, files of the system tablespace, and those with the password of replication (master.info), that every user of the host may read: file, mode",
        ),
        fact(
            "server.exposure.logs",
            "",
            "logs of statements that are written and that every user of the host may read: file, mode, all (whether they hold every statement)",
        ),
        fact(
            "server.exposure.writable",
            "",
            "plugin_dir, init_file, the folders of socket and pid file, keys, files of the system tablespace and the error log where every user of the host may write to them: file, mode",
        ),
        fact(
            "server.exposure.writable_tables",
            "",
            "folders of schemas where every user of the host may write: folder, files (number of those of tables that are open to all), mode; 20 at most",
        ),
        fact(
            "server.exposure.standard_error",
            "",
            "where the server's standard error goes: a file, a pipe or a socket",
        ),
        fact(
            "server.exposure.logs_moved",
            "",
            "files that the slow log or the general log goes on in after they were renamed, ten minutes ago or more: file (that the variable names), goes_on_in (that the server writes to)",
        ),
        fact(
            "server.exposure.deleted_open",
            "",
            "logs, and other files of 64 MiB or more, that the server holds open though they are deleted: file, size_bytes; 20 at most",
        ),
    ],
    run: Run::Host(run),
};

/// Permission bits of all others.
const READ: u32 = 0o004;
const WRITE: u32 = 0o002;
const ENTER: u32 = 0o001;

/// Open files that are looked at.
const MOST_OPEN: usize = 20_000;

/// Files of tables that are looked at.
const MOST_FILES: usize = 20_000;

/// Folders that are named at most.
const LISTED: usize = 20;

/// Size from which a deleted file other than a log is told, in bytes: servers delete temporary files while they use them.
const LARGE: u64 = 64 << 20;

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID", missing),
    };
    let datadir = context.datadir().map(str::to_owned);
    let (datadir, view) = match (datadir, mounts::view(&context.source, server)) {
        (Ok(datadir), Ok(view)) => (datadir, view),
        (Err(missing), _) | (_, Err(missing)) => return readings.rest_is("datadir", &missing),
    };
    let place = Place { source: &context.source, view: &view };
    let within = |path: &str| match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{datadir}/{}", path.trim_start_matches("./")),
    };
    let private = private_files(context, &place, &datadir, &within);
    let readable = private.iter().filter_map(|path| place.open_to_all(path, READ)).collect::<Vec<Value>>();
    readings.put("server.exposure.keys", datadir.clone(), Ok(readable));
    let named = ["plugin_dir", "init_file"].iter().filter_map(|name| context.variable(name)).map(within);
    // Who may remove the socket can put another program in its place, which clients then give their passwords.
    let folder_of = |path: String| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let places = ["socket", "pid_file"].iter().filter_map(|name| context.variable(name)).map(within);
    let places = places.filter_map(folder_of).filter(|folder| *folder != datadir);
    readings.put("server.exposure.writable_tables", datadir.clone(), of_tables(&place, &datadir));
    let log = context.variable("log_error").filter(|log| !["", "stderr"].contains(log)).map(within);
    let mut all: Vec<String> = named.chain(places).chain(private).chain(log).collect();
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|path| seen.insert(path.clone()));
    let all = all.into_iter();
    let writable = all.filter_map(|path| place.open_to_all(&path, WRITE)).collect::<Vec<Value>>();
    readings.put("server.exposure.writable", datadir.clone(), Ok(writable));
    readings.put("server.exposure.logs", datadir.clone(), Ok(of_statements(context, &place, &within)));
    let logs = ["general_log_file", "slow_query_log_file", "log_error"];
    let logs: Vec<String> = logs.iter().filter_map(|name| context.variable(name)).map(within).collect();
    readings.put(
        "server.exposure.standard_error",
        server.file("fd/2"),
        context.source.link(&server.file("fd/2")),
    );
    let folder = server.file("fd");
    let open = open_files(&context.source, &folder);
    let moved = open.as_ref().map_err(Clone::clone).map(|open| {
        let on = logs_on(context).into_iter().map(within);
        on.filter_map(|log| moved(&place, open, &log, now_s())).collect::<Vec<Value>>()
    });
    readings.put("server.exposure.logs_moved", folder.clone(), moved);
    let tmpdir = context.variable("tmpdir").unwrap_or("/tmp");
    let deleted = open.map(|open| deleted(&context.source, &open, &logs, tmpdir));
    readings.put("server.exposure.deleted_open", folder, deleted);
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The files of logs that the server writes.
fn logs_on(context: &Context) -> Vec<&str> {
    let to_files = context.variable("log_output").is_none_or(|to| to.to_ascii_uppercase().contains("FILE"));
    let is_on = |name: &str| context.variable(name).is_some_and(|value| ["ON", "1"].contains(&value));
    let logs = [("slow_query_log", "slow_query_log_file"), ("general_log", "general_log_file")];
    let on = logs.into_iter().filter(|(switch, _)| to_files && is_on(switch));
    on.filter_map(|(_, file)| context.variable(file)).collect()
}

/// Files that a process holds open: the path below /proc and the file's.
fn open_files(source: &Source, folder: &str) -> Read<Vec<(String, String)>> {
    let numbers = source.list(folder)?.into_iter().take(MOST_OPEN).map(|number| format!("{folder}/{number}"));
    Ok(numbers.filter_map(|path| Some((path.clone(), source.link(&path).ok()?))).collect())
}

/// The file that a log goes on in, where it was renamed as logrotate does. Between the renaming and the server's opening it anew
/// some moments pass: a file of the log's name that is that young says nothing.
fn moved(place: &Place<'_>, open: &[(String, String)], log: &str, now_s: u64) -> Option<Value> {
    const YOUNG_S: u64 = 600;
    let renamed = |target: &&str| {
        target.strip_prefix(log).is_some_and(|rest| {
            rest.starts_with(['.', '-']) && !rest.contains('/') && !rest.ends_with(" (deleted)")
        })
    };
    let targets = || open.iter().map(|(_, target)| target.as_str());
    if targets().any(|target| target == log) {
        return None;
    }
    let written = targets().find(renamed)?;
    let new = place.source.stat(&format!("{}{log}", place.view)).ok();
    let is_young = new.is_some_and(|new| now_s.saturating_sub(new.modified_s) < YOUNG_S);
    (!is_young).then(|| json!({"file": log, "goes_on_in": written}))
}

/// Folders of schemas in which every user may write to files of tables: folder, files (their number), mode (of the first). Where the
/// bound on files ended the look and nothing was found, nothing can be said.
fn of_tables(place: &Place<'_>, datadir: &str) -> Read<Vec<Value>> {
    let mode = |path: &str| place.source.stat(&format!("{}{path}", place.view)).ok().map(|found| found.mode);
    let may_enter = |path: &str| mode(path).is_some_and(|mode| mode & ENTER != 0);
    if place.open_to_all(datadir, ENTER).is_none() {
        return Ok(vec![]);
    }
    let list = |folder: &str| place.source.list(&format!("{}{folder}", place.view)).unwrap_or_default();
    let mut found = Vec::new();
    let mut left = MOST_FILES;
    for folder in list(datadir).into_iter().filter(|name| !name.contains('.')) {
        let folder = format!("{datadir}/{folder}");
        if !may_enter(&folder) {
            continue;
        }
        let names = list(&folder);
        let modes = names.iter().take(left).filter_map(|name| mode(&format!("{folder}/{name}")));
        let open: Vec<u32> = modes.filter(|mode| mode & WRITE != 0).collect();
        let own = mode(&folder).filter(|mode| mode & (WRITE | 0o1000) == WRITE);
        if let Some(first) = open.first().copied().or(own) {
            let entry =
                json!({"folder": folder, "files": open.len(), "mode": format!("{:04o}", first & 0o7777)});
            found.push(entry);
        }
        left = left.saturating_sub(names.len());
        if left == 0 || found.len() == LISTED {
            break;
        }
    }
    if left == 0 && found.is_empty() {
        return Err(Missing::Error(format!("only {MOST_FILES} files of tables were looked at")));
    }
    Ok(found)
}

/// Private keys, by the server's variables and by the names that servers give them, the system tablespace, and what replication keeps.
fn private_files(
    context: &Context,
    place: &Place<'_>,
    datadir: &str,
    within: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let keys = [
        "ssl_key",
        "admin_ssl_key",
        "sha256_password_private_key_path",
        "caching_sha2_password_private_key_path",
        "keyring_file_data",
        "file_key_management_filename",
    ];
    let mut files: Vec<String> = keys.iter().filter_map(|name| context.variable(name)).map(within).collect();
    // The key by which the file of keys is encrypted may stand in a file as well.
    let of_key = context.variable("file_key_management_filekey").and_then(|key| key.strip_prefix("FILE:"));
    files.extend(of_key.map(within));
    for named in ["ssl_key", "ssl_ca"].iter().filter_map(|name| context.variable(name)) {
        // The key of the authority lies beside its certificate, or beside that of the server.
        let named = within(named);
        let folder = named.rsplit_once('/').map_or("", |(folder, _)| folder);
        files.extend(["ca-key.pem", "ca.key", "ca.key.pem"].iter().map(|name| format!("{folder}/{name}")));
    }
    let inside = place.source.list(&format!("{}{datadir}", place.view)).unwrap_or_default();
    let is_private = |name: &&String| {
        // MariaDB, and MySQL before 8.0, keep the password of replication there as it is.
        let of_replication = name.starts_with("master") && name.ends_with(".info");
        name.starts_with("ibdata")
            || name.ends_with("-key.pem")
            || *name == "private_key.pem"
            || of_replication
    };
    files.extend(inside.iter().filter(is_private).map(|name| format!("{datadir}/{name}")));
    files.sort();
    files.dedup();
    files
}

/// The logs of statements that every user may read.
fn of_statements(context: &Context, place: &Place<'_>, within: &dyn Fn(&str) -> String) -> Vec<Value> {
    let on = |name: &str| context.variable(name).is_some_and(|value| ["ON", "1"].contains(&value));
    let to_file = context.variable("log_output").is_none_or(|to| to.to_ascii_uppercase().contains("FILE"));
    let is_zero = context.variable("long_query_time").and_then(|text| text.parse::<f64>().ok()) == Some(0.0);
    let mut found = Vec::new();
    for (switch, file, all) in
        [("general_log", "general_log_file", true), ("slow_query_log", "slow_query_log_file", is_zero)]
    {
        let path = context.variable(file).filter(|_| to_file && on(switch)).map(within);
        if let Some(mut entry) = path.and_then(|path| place.open_to_all(&path, READ)) {
            entry["all"] = all.into();
            found.push(entry);
        }
    }
    found
}

/// Where files are seen from here.
pub(super) struct Place<'a> {
    pub source: &'a Source,
    /// Prefix of the server's paths.
    pub view: &'a str,
}

impl Place<'_> {
    /// The file with its mode where all users have the permission `bit` on it, and may enter every folder above it.
    pub fn open_to_all(&self, path: &str, bit: u32) -> Option<Value> {
        let mode =
            |path: &str| self.source.stat(&format!("{}{path}", self.view)).ok().map(|found| found.mode);
        let own = mode(path)? & 0o7777;
        // In a folder with the sticky bit, as /tmp, users cannot remove the files of others.
        if own & bit == 0 || own & 0o1000 != 0 {
            return None;
        }
        let mut above = path.trim_end_matches('/');
        while let Some((folder, _)) = above.rsplit_once('/').filter(|(folder, _)| !folder.is_empty()) {
            if mode(folder)? & ENTER == 0 {
                return None;
            }
            above = folder;
        }
        Some(json!({"file": path, "mode": format!("{own:04o}")}))
    }
}

/// An option file that all users may read and in which a password stands.
pub(super) fn with_password(source: &Source, view: &str, path: &str) -> Option<Value> {
    let found = Place { source, view }.open_to_all(path, READ)?;
    let text = source.text_within(&format!("{view}{path}"), crate::option_files::LARGEST_FILE).ok()?;
    let is_password = |line: &str| {
        let Some((name, value)) = line.split_once('=') else { return false };
        let name = name.trim().to_ascii_lowercase().replace('-', "_");
        let value = value.trim().trim_matches(['"', '\'']);
        ["password", "master_password", "wsrep_sst_auth"].contains(&name.as_str()) && !value.is_empty()
    };
    text.lines().any(is_password).then_some(found)
}

/// Files that a process holds open and that have no name any more.
fn deleted(source: &Source, open: &[(String, String)], logs: &[String], tmpdir: &str) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for (path, target) in open {
        let Some(name) = target.strip_suffix(" (deleted)").filter(|name| name.starts_with('/')) else {
            continue;
        };
        let Ok(attributes) = source.stat(path) else { continue };
        // As slow.log, and slow.log.1 after a rotation that removed it later.
        let is_log = logs.iter().any(|log| {
            name.strip_prefix(log.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
        });
        let is_temporary = name.starts_with(&format!("{}/", tmpdir.trim_end_matches('/')));
        if is_log || (attributes.size_bytes >= LARGE && !is_temporary) {
            found.push(json!({"file": name, "size_bytes": attributes.size_bytes}));
        }
    }
    found.sort_by_key(|entry| entry["file"].to_string());
    found.dedup_by_key(|entry| entry["file"].clone());
    found.truncate(20);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    fn mode(tree: &Tree, path: &str, mode: u32) {
        set_permissions(tree.at(path), Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_is_open_to_all_where_it_and_every_folder_above_it_are() {
        let tree =
            Tree::of(&[("srv/data/server-key.pem", "key"), ("etc/my.cnf", "[client]\npassword = x\n")]);
        let source = tree.source();
        let place = Place { source: &source, view: "" };
        let key = "/srv/data/server-key.pem";
        mode(&tree, "srv", 0o755);
        mode(&tree, "srv/data", 0o755);
        mode(&tree, key, 0o644);
        assert_eq!(place.open_to_all(key, READ), Some(json!({"file": key, "mode": "0644"})));
        assert_eq!(place.open_to_all(key, WRITE), None);
        mode(&tree, "srv/data", 0o750);
        assert_eq!(place.open_to_all(key, READ), None);
        mode(&tree, "srv/data", 0o777);
        assert_eq!(place.open_to_all("/srv/data", WRITE).unwrap()["mode"], "0777");
        mode(&tree, "srv/data", 0o1777);
        assert_eq!(place.open_to_all("/srv/data", WRITE), None);
        mode(&tree, "etc", 0o755);
        mode(&tree, "etc/my.cnf", 0o644);
        assert!(with_password(&source, "", "/etc/my.cnf").is_some());
        tree.file("etc/my.cnf", "[mysqld]\nport = 3306\n# password = x\n");
        assert!(with_password(&source, "", "/etc/my.cnf").is_none());
        mode(&tree, "etc/my.cnf", 0o600);
    }

    #[test]
    fn folders_of_schemas_where_all_may_write_are_named_with_the_number_of_their_files() {
        let tree = Tree::of(&[
            ("srv/data/shop/a.ibd", ""),
            ("srv/data/shop/b.ibd", ""),
            ("srv/data/fine/c.ibd", ""),
            ("srv/data/closed/d.ibd", ""),
        ]);
        for (path, bits) in [
            ("srv", 0o755),
            ("srv/data", 0o755),
            ("srv/data/shop", 0o755),
            ("srv/data/fine", 0o755),
            ("srv/data/closed", 0o750),
            ("srv/data/shop/a.ibd", 0o666),
            ("srv/data/shop/b.ibd", 0o640),
            ("srv/data/fine/c.ibd", 0o644),
            ("srv/data/closed/d.ibd", 0o666),
        ] {
            mode(&tree, path, bits);
        }
        let source = tree.source();
        let place = Place { source: &source, view: "" };
        let entry = json!({"folder": "/srv/data/shop", "files": 1, "mode": "0666"});
        assert_eq!(of_tables(&place, "/srv/data").unwrap(), [entry]);
        mode(&tree, "srv/data/shop/a.ibd", 0o640);
        assert!(of_tables(&place, "/srv/data").unwrap().is_empty());
        mode(&tree, "srv/data/fine", 0o777);
        assert_eq!(of_tables(&place, "/srv/data").unwrap()[0]["mode"], "0777");
        mode(&tree, "srv/data", 0o750);
        assert!(of_tables(&place, "/srv/data").unwrap().is_empty());
    }

    #[test]
    fn a_log_that_was_deleted_while_it_is_open_is_named_and_temporary_files_are_not() {
        let tree = Tree::of(&[("srv/general.log (deleted)", "rows"), ("tmp/ibXYZ (deleted)", "")]);
        let real = |path: &str| tree.at(path).display().to_string();
        tree.link("proc/1/fd/3", &real("srv/general.log (deleted)"));
        tree.link("proc/1/fd/4", &real("tmp/ibXYZ (deleted)"));
        tree.link("proc/1/fd/5", "/srv/data/ibdata1");
        let logs = [real("srv/general.log")];
        let open = open_files(&tree.source(), "/proc/1/fd").unwrap();
        let found = deleted(&tree.source(), &open, &logs, &real("tmp"));
        assert_eq!(found, [json!({"file": logs[0], "size_bytes": 4})]);
    }

    #[test]
    fn a_log_that_was_renamed_under_the_server_is_told_with_the_file_it_goes_on_in() {
        let tree = Tree::of(&[("var/log/slow.log", "")]);
        let source = tree.source();
        let place = Place { source: &source, view: "" };
        let written_s = source.stat("/var/log/slow.log").unwrap().modified_s;
        let of = |target: &str, age_s: u64| {
            let open = [("/proc/1/fd/7".to_owned(), target.to_owned())];
            moved(&place, &open, "/var/log/slow.log", written_s + age_s)
        };
        let expected = json!({"file": "/var/log/slow.log", "goes_on_in": "/var/log/slow.log.1"});
        assert_eq!(of("/var/log/slow.log.1", 600), Some(expected));
        for (target, age_s) in [
            ("/var/log/slow.log.1", 599),
            ("/var/log/slow.log", 600),
            ("/var/log/slow.log.1 (deleted)", 600),
            ("/var/log/slow.logs", 600),
        ] {
            assert_eq!(of(target, age_s), None, "{target}");
        }
    }
}
