//! What on the host takes care of the server's data: jobs that make backups, and permissions of the data directory.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Backups and permissions.
pub static COLLECTOR: Collector = Collector {
    name: "upkeep",
    cost: Cost { host_ms: 5, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.upkeep.backup_jobs",
            "",
            "files of cron and systemd on the server's host that name a program which makes backups of databases; 20 at most",
        ),
        fact("server.upkeep.backups_running", "", "programs for backups that run on the server's host now"),
        fact(
            "server.upkeep.newest_backup_age_s",
            "s",
            "age of the newest file of a backup in the folders that such jobs name, and in usual ones as /var/backups and /backup",
        ),
        fact("server.upkeep.newest_backup", "", "that file"),
        fact("server.upkeep.datadir_mode", "", "permissions of the data directory, as octal digits"),
        fact(
            "server.upkeep.datadir_open",
            "",
            "whether users beside its owner and its group may read or enter the data directory",
        ),
    ],
    run: Run::Host(run),
};

/// Folders of jobs.
const FOLDERS: [&str; 8] = [
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/var/spool/cron",
    "/var/spool/cron/crontabs",
    "/etc/systemd/system",
];

/// Parts of the names of programs that make backups and have no `backup` in their names.
const PROGRAMS: [&str; 12] = [
    "mysqldump",
    "mariadb-dump",
    "mysqlpump",
    "mydumper",
    "mysqlsh",
    "holland",
    "zmanda",
    "borgmatic",
    "restic",
    "mysqlhotcopy",
    "lvcreate",
    "zfs snapshot",
];

/// Largest file of a job.
const LARGEST: u64 = 256 << 10;

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/etc/cron.d", missing),
    };
    let jobs = backup_jobs(&context.source);
    let newest = match &jobs {
        Ok((_, folders)) => newest(&context.source, folders),
        Err(missing) => Err(missing.clone()),
    };
    readings.put("server.upkeep.backup_jobs", "cron and systemd", jobs.map(|(jobs, _)| jobs));
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let age = newest.clone().map(|(_, written_s)| now_s.saturating_sub(written_s));
    readings.put("server.upkeep.newest_backup_age_s", "folders of backups", age);
    readings.put("server.upkeep.newest_backup", "folders of backups", newest.map(|(path, _)| path));
    readings.put("server.upkeep.backups_running", "/proc/*/comm", running(&context.source));
    let mode = || -> Read<(String, u32)> {
        let datadir = context.datadir()?;
        let seen = format!("{}{datadir}", mounts::view(&context.source, server)?);
        Ok((datadir.to_owned(), context.source.stat(&seen)?.mode & 0o7777))
    };
    let mode = mode();
    let from = mode.as_ref().map_or("datadir", |(path, _)| path.as_str()).to_owned();
    let mode = mode.map(|(_, mode)| mode);
    readings.put("server.upkeep.datadir_mode", from.clone(), mode.clone().map(|mode| format!("{mode:03o}")));
    readings.put("server.upkeep.datadir_open", from, mode.map(|mode| mode & 0o005 != 0));
}

/// Files that name such a program outside comments, and the folders that these lines name. Files of other users' jobs are
/// read by root only.
fn backup_jobs(source: &Source) -> Read<(Vec<Value>, Vec<String>)> {
    let mut files = vec!["/etc/crontab".to_owned()];
    for folder in FOLDERS {
        match source.list(folder) {
            Ok(names) => files.extend(names.iter().map(|name| format!("{folder}/{name}"))),
            Err(denied @ Missing::Denied(_)) => return Err(denied),
            Err(_) => {}
        }
    }
    let (mut jobs, mut folders) = (Vec::new(), Vec::new());
    for path in files {
        let text = source.text_within(&path, LARGEST).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let calls: Vec<&str> = lines.filter(|line| makes_backups(line)).collect();
        if !calls.is_empty() {
            jobs.push(Value::from(path));
            folders.extend(calls.into_iter().flat_map(folders_of));
        }
    }
    jobs.truncate(20);
    Ok((jobs, folders))
}

/// Folders of the absolute paths in a line, and these paths themselves where they may be folders.
fn folders_of(line: &str) -> Vec<String> {
    let separators = |c: char| c.is_whitespace() || ['=', '>', '"', '\'', ';', '|', '(', ')'].contains(&c);
    let paths = line.split(separators).filter(|word| word.starts_with('/') && word.len() > 1);
    let parts = paths.flat_map(|path| {
        let bare = path.split(['$', '%', '`', '*', '\\']).next().unwrap_or(path);
        let folder = bare.rsplit_once('/').map_or("", |(folder, _)| folder);
        [bare.trim_end_matches('/').to_owned(), folder.to_owned()]
    });
    const NONE: [&str; 8] = ["", "/bin", "/usr/bin", "/usr/local/bin", "/usr/sbin", "/etc", "/dev", "/tmp"];
    parts.filter(|path| !NONE.contains(&path.as_str()) && !path.starts_with("/etc/")).collect()
}

/// Folders in which backups usually lie.
const USUAL: [&str; 10] = [
    "/backup",
    "/backups",
    "/data/backup",
    "/mnt/backup",
    "/srv/backup",
    "/srv/backups",
    "/var/backup",
    "/var/backups/mysql",
    "/var/backups/mariadb",
    "/var/lib/mysql-backups",
];

/// Files of backups that are looked at.
const MOST_FILES: usize = 2000;

/// The newest file whose name is that of a dump or an archive, with when it was written; folders within a folder are looked
/// into as well, as each backup of a copying program is one.
fn newest(source: &Source, named: &[String]) -> Read<(String, u64)> {
    const PARTS: [&str; 8] =
        [".sql", ".xb", ".mb", "dump", "backup", "xtrabackup_", "mariadb_backup_", ".tar"];
    let mut found: Option<(String, u64)> = None;
    let mut left = MOST_FILES;
    let mut folders: Vec<(String, bool)> = USUAL.iter().map(|path| ((*path).to_owned(), true)).collect();
    folders.extend(named.iter().map(|path| (path.clone(), true)));
    while let Some((folder, outer)) = folders.pop() {
        for name in source.list(&folder).unwrap_or_default() {
            if left == 0 {
                break;
            }
            left -= 1;
            let path = format!("{folder}/{name}");
            let Ok(file) = source.stat(&path) else { continue };
            let is_folder = file.mode & 0o170_000 == 0o040_000;
            if is_folder && outer {
                folders.push((path, false));
            } else if !is_folder && PARTS.iter().any(|part| name.contains(part)) {
                let newer = found.as_ref().is_none_or(|(_, written_s)| file.modified_s > *written_s);
                found = if newer { Some((path, file.modified_s)) } else { found };
            }
        }
    }
    found.ok_or_else(|| Missing::Absent("no file of a backup was found on this host".to_owned()))
}

/// Programs that make a backup now, by the names of their processes, which the kernel cuts after 15 bytes.
fn running(source: &Source) -> Read<Vec<Value>> {
    const NAMES: [&str; 7] =
        ["mysqldump", "mariadb-dump", "mysqlpump", "mydumper", "xtrabackup", "mariabackup", "mariadb-backup"];
    let mut found = Vec::new();
    for pid in source.list("/proc")?.iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit())) {
        let Ok(name) = source.read(&format!("/proc/{pid}/comm")) else { continue };
        if NAMES.contains(&name.as_str()) && !found.contains(&Value::from(name.as_str())) {
            found.push(Value::from(name));
        }
    }
    Ok(found)
}

/// Whether a line calls one of the programs, or a script with a name of its own, as in /usr/local/bin/db-backup.sh.
fn makes_backups(line: &str) -> bool {
    // Jobs of Debian that keep copies of the lists of packages and users.
    let of_system = ["dpkg", "/var/backups", "/etc/passwd"].iter().any(|text| line.contains(text));
    !of_system && (line.contains("backup") || PROGRAMS.iter().any(|program| line.contains(program)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn jobs_that_name_a_program_for_backups_are_found_and_comments_are_not() {
        let (_tree, source) = tree(&[
            ("etc/crontab", "17 * * * * root run-parts /etc/cron.hourly\n"),
            ("etc/cron.d/dump", "0 3 * * * root mysqldump --all-databases > /srv/a.sql\n"),
            ("etc/cron.d/off", "# 0 3 * * * root mysqldump --all-databases\n"),
            ("var/spool/cron/crontabs/dba", "0 4 * * * /usr/local/bin/db-backup.sh\n"),
            ("etc/systemd/system/x.service", "[Service]\nExecStart=/usr/bin/mariadb-backup --backup\n"),
        ]);
        let (found, folders) = backup_jobs(&source).unwrap();
        assert!(folders.contains(&"/srv".to_owned()), "{folders:?}");
        let expected = ["/etc/cron.d/dump", "/var/spool/cron/crontabs/dba", "/etc/systemd/system/x.service"];
        assert_eq!(found, expected.map(Value::from));
    }

    #[test]
    fn a_host_without_jobs_has_no_backups() {
        let (_tree, source) =
            tree(&[("etc/cron.daily/dpkg", "#!/bin/sh\nexec /usr/libexec/dpkg/dpkg-db-backup\n")]);
        assert_eq!(backup_jobs(&source), Ok((Vec::new(), Vec::new())));
    }

    #[test]
    fn the_newest_backup_is_found_in_the_folder_of_a_job_and_in_folders_within_it() {
        let (_tree, source) = tree(&[
            ("srv/dumps/shop.sql.gz", "x"),
            ("srv/dumps/notes", "x"),
            ("backup/2026-11-23/xtrabackup_info", "x"),
        ]);
        let folders =
            folders_of("0 3 * * * root mysqldump --all-databases | gzip > /srv/dumps/$(date +%F).sql.gz");
        assert!(folders.contains(&"/srv/dumps".to_owned()), "{folders:?}");
        assert!(newest(&source, &folders).is_ok());
        assert!(newest(&source, &[]).unwrap().0.ends_with("xtrabackup_info"));
        let (_tree, source) = tree(&[("srv/other", "x")]);
        assert!(newest(&source, &[]).is_err());
    }
}
