//! Care for the server's data on the host: jobs that make backups, and permissions of the data directory.

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
        fact(
            "server.upkeep.jobs_with_password",
            "",
            "such files in which a dump has its password on its command line; the password is not kept",
        ),
        fact(
            "server.upkeep.jobs_without_snapshot",
            "",
            "such files in which a dump has no option that makes it of one instant, and none that names a file of options",
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
        Ok(jobs) => newest(&context.source, &jobs.folders),
        Err(missing) => Err(missing.clone()),
    };
    for (id, list) in [
        ("server.upkeep.backup_jobs", (|jobs| &jobs.files) as fn(&Jobs) -> &Vec<Value>),
        ("server.upkeep.jobs_with_password", |jobs| &jobs.with_password),
        ("server.upkeep.jobs_without_snapshot", |jobs| &jobs.without_snapshot),
    ] {
        readings.put(
            id,
            "cron and systemd",
            jobs.as_ref().map(|jobs| list(jobs).clone()).map_err(Clone::clone),
        );
    }
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

/// Files of jobs, 20 of each kind at most.
#[derive(Debug, Default, PartialEq)]
struct Jobs {
    /// Those that make backups.
    files: Vec<Value>,
    /// The folders that their lines name.
    folders: Vec<String>,
    with_password: Vec<Value>,
    without_snapshot: Vec<Value>,
}

/// Files that name such a program outside comments. Files of other users' jobs are read by root only.
fn backup_jobs(source: &Source) -> Read<Jobs> {
    let mut files = vec!["/etc/crontab".to_owned()];
    for folder in FOLDERS {
        match source.list(folder) {
            Ok(names) => files.extend(names.iter().map(|name| format!("{folder}/{name}"))),
            Err(denied @ Missing::Denied(_)) => return Err(denied),
            Err(_) => {}
        }
    }
    let mut jobs = Jobs::default();
    for path in files {
        // A line that ends in a backslash goes on.
        let text = source.text_within(&path, LARGEST).unwrap_or_default().replace("\\\n", " ");
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let calls: Vec<&str> = lines.filter(|line| makes_backups(line)).collect();
        for (list, is) in [
            (&mut jobs.files, (|_| true) as fn(&str) -> bool),
            (&mut jobs.with_password, shows_password),
            (&mut jobs.without_snapshot, is_torn),
        ] {
            if calls.iter().any(|line| is(line)) && list.len() < 20 {
                list.push(Value::from(path.as_str()));
            }
        }
        jobs.folders.extend(calls.into_iter().flat_map(folders_of));
    }
    Ok(jobs)
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
            } else if !is_folder && !of_debian(&path) && PARTS.iter().any(|part| name.contains(part)) {
                let newer = found.as_ref().is_none_or(|(_, written_s)| file.modified_s > *written_s);
                found = if newer { Some((path, file.modified_s)) } else { found };
            }
        }
    }
    found.ok_or_else(|| Missing::Absent("no file of a backup was found on this host".to_owned()))
}

/// Whether a file is one of the lists that Debian keeps in /var/backups.
fn of_debian(path: &str) -> bool {
    let name = path.strip_prefix("/var/backups/").unwrap_or_default();
    ["alternatives", "apt.", "dpkg."].iter().any(|start| name.starts_with(start))
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
    !of_system && line.contains("backup") || PROGRAMS.iter().any(|program| line.contains(program))
}

/// Programs that write a dump by SELECT.
const DUMPS: [&str; 3] = ["mysqldump", "mariadb-dump", "mysqlpump"];

/// The words of a dump in a line: from the program's name to the end of its command.
fn dump_words(line: &str) -> Option<Vec<&str>> {
    let at = DUMPS.iter().filter_map(|program| line.find(program)).min()?;
    let words = line[at..].split_whitespace();
    Some(words.take_while(|word| !["|", ">", ">>", ";", "&&", "||"].contains(word)).collect())
}

/// Whether a dump gets its password as a word of its command line, which `ps` shows to everybody.
fn shows_password(line: &str) -> bool {
    let is_password = |word: &&str| {
        let short = word.strip_prefix("-p").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('-'));
        short || word.strip_prefix("--password=").is_some_and(|rest| !rest.is_empty())
    };
    dump_words(line).is_some_and(|words| words.iter().any(is_password))
}

/// Whether a dump is of no single instant. A variable may hold the option.
fn is_torn(line: &str) -> bool {
    const WHOLE: [&str; 5] = ["--single-transaction", "--lock-all-tables", "-x", "--no-data", "-d"];
    dump_words(line).is_some_and(|words| {
        !words
            .iter()
            .any(|word| WHOLE.contains(word) || word.starts_with('$') || word.starts_with("--defaults"))
    })
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
        let jobs = backup_jobs(&source).unwrap();
        assert!(jobs.folders.contains(&"/srv".to_owned()), "{:?}", jobs.folders);
        let expected = ["/etc/cron.d/dump", "/var/spool/cron/crontabs/dba", "/etc/systemd/system/x.service"];
        assert_eq!(jobs.files, expected.map(Value::from));
        assert_eq!(jobs.without_snapshot, [Value::from("/etc/cron.d/dump")]);
        assert_eq!(jobs.with_password, Vec::<Value>::new());
    }

    #[test]
    fn a_host_without_jobs_has_no_backups() {
        let (_tree, source) =
            tree(&[("etc/cron.daily/dpkg", "#!/bin/sh\nexec /usr/libexec/dpkg/dpkg-db-backup\n")]);
        assert_eq!(backup_jobs(&source), Ok(Jobs::default()));
    }

    #[test]
    fn a_dump_s_password_and_its_want_of_a_snapshot_are_told_by_its_words() {
        for (line, password, torn) in [
            ("0 3 * * * root mysqldump -uroot -pGeheim --all-databases > /var/backups/x.sql", true, true),
            (
                "0 3 * * * root mariadb-dump --password=x --single-transaction shop | gzip > /srv/x",
                true,
                false,
            ),
            ("0 3 * * * root mysqldump --defaults-file=/root/.my.cnf shop > /srv/x", false, false),
            ("0 3 * * * root mysqldump $OPTIONS shop > /srv/x", false, false),
            ("0 3 * * * root mysqldump -p --all-databases > /srv/x", false, true),
            ("0 3 * * * root mariadb-backup --backup --password=x", false, false),
        ] {
            assert!(makes_backups(line), "{line}");
            assert_eq!((shows_password(line), is_torn(line)), (password, torn), "{line}");
        }
        assert!(of_debian("/var/backups/alternatives.tar.0") && !of_debian("/var/backups/shop.sql"));
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
