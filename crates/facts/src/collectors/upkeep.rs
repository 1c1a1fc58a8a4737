//! What on the host takes care of the server's data: jobs that make backups, and permissions of the data directory.

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
    readings.put("server.upkeep.backup_jobs", "cron and systemd", backup_jobs(&context.source));
    let mode = || -> Read<(String, u32)> {
        let datadir = context
            .variable("datadir")
            .ok_or_else(|| Missing::Absent("the data directory is not known".to_owned()))?;
        let seen = format!("{}{datadir}", mounts::view(&context.source, server)?);
        Ok((datadir.to_owned(), context.source.stat(&seen)?.mode & 0o7777))
    };
    let mode = mode();
    let from = mode.as_ref().map_or("datadir", |(path, _)| path.as_str()).to_owned();
    let mode = mode.map(|(_, mode)| mode);
    readings.put("server.upkeep.datadir_mode", from.clone(), mode.clone().map(|mode| format!("{mode:03o}")));
    readings.put("server.upkeep.datadir_open", from, mode.map(|mode| mode & 0o005 != 0));
}

/// Files that name such a program outside comments. Files of other users' jobs are read by root only.
fn backup_jobs(source: &Source) -> Read<Vec<Value>> {
    let mut files = vec!["/etc/crontab".to_owned()];
    for folder in FOLDERS {
        match source.list(folder) {
            Ok(names) => files.extend(names.iter().map(|name| format!("{folder}/{name}"))),
            Err(denied @ Missing::Denied(_)) => return Err(denied),
            Err(_) => {}
        }
    }
    let names_one = |path: &String| {
        let text = source.text_within(path, LARGEST).unwrap_or_default();
        text.lines().filter(|line| !line.trim_start().starts_with('#')).any(makes_backups)
    };
    Ok(files.into_iter().filter(names_one).take(20).map(Value::from).collect())
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
        let found = backup_jobs(&source).unwrap();
        let expected = ["/etc/cron.d/dump", "/var/spool/cron/crontabs/dba", "/etc/systemd/system/x.service"];
        assert_eq!(found, expected.map(Value::from));
    }

    #[test]
    fn a_host_without_jobs_has_no_backups() {
        let (_tree, source) =
            tree(&[("etc/cron.daily/dpkg", "#!/bin/sh\nexec /usr/libexec/dpkg/dpkg-db-backup\n")]);
        assert_eq!(backup_jobs(&source), Ok(Vec::new()));
    }
}
