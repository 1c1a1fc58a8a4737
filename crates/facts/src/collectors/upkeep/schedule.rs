//! When cron starts jobs: those that it starts each minute of an hour, and those that nothing starts.

use serde_json::{Value, json};

use super::Program;
use super::jobs::Job;
use super::makes::makes_backups;
use crate::source::{Missing, Read, Source};

/// Programs that start the jobs of cron's files.
const DAEMONS: [&str; 9] =
    ["cron", "crond", "cronie", "fcron", "dcron", "mcron", "bcron-sched", "supercronic", "busybox"];

/// Programs that make cron's files into timers of systemd.
const GENERATORS: [&str; 2] = [
    "/lib/systemd/system-generators/systemd-crontab-generator",
    "/usr/lib/systemd/system-generators/systemd-crontab-generator",
];

/// Parts of lines of jobs that read or write whole tables, beside backups.
const HEAVY: [&str; 7] = [
    "mysqlcheck",
    "mariadb-check",
    "mysqloptimize",
    "OPTIMIZE TABLE",
    "pt-archiver",
    "pt-table-checksum",
    "pt-online-schema-change",
];

/// Entries of a list.
const LISTED: usize = 20;

/// Whether a file is one that cron reads itself. anacron or a timer may start those of /etc/cron.daily and its neighbours.
fn of_cron(path: &str) -> bool {
    path == "/etc/crontab" || path.starts_with("/etc/cron.d/") || path.starts_with("/var/spool/cron/")
}

/// Jobs of backups, and others that read whole tables, that cron starts each minute of an hour: the minute is `*` and the hour a
/// number. A job that takes a lock starts once. File, schedule, runs (a day).
pub(super) fn each_minute(jobs: &[Job]) -> Vec<Value> {
    let mut found = Vec::new();
    for job in jobs.iter().filter(|job| !job.is_called() && of_cron(&job.path)) {
        let of_script = |line: &str| {
            jobs.iter().any(|other| {
                let heavy = || HEAVY.iter().any(|part| other.text.contains(part));
                other.is_called()
                    && other.job == job.path
                    && line.contains(&other.path)
                    && !other.text.contains("flock")
                    && (other.makes_backups() || heavy())
            })
        };
        for line in job.lines() {
            let Some((schedule, runs)) = hammers(line) else { continue };
            let heavy = makes_backups(line) || HEAVY.iter().any(|part| line.contains(part));
            if found.len() < LISTED && !line.contains("flock") && (heavy || of_script(line)) {
                found.push(json!({"file": job.path, "schedule": schedule, "runs": runs}));
            }
        }
    }
    found
}

/// The schedule of a line whose minute is `*` and whose hours are numbers, with how often that is a day. A range of hours is
/// meant: each minute of the working day.
fn hammers(line: &str) -> Option<(String, usize)> {
    let fields: Vec<&str> = line.split_whitespace().take(6).collect();
    let [minute, hour, day, month, weekday, _] = fields[..] else { return None };
    let hours: Vec<&str> = hour.split(',').collect();
    let numbers = hours.iter().all(|hour| hour.parse::<u8>().is_ok_and(|hour| hour < 24));
    (minute == "*" && numbers).then(|| (format!("{minute} {hour} {day} {month} {weekday}"), 60 * hours.len()))
}

/// Files of cron with jobs of backups, where no daemon runs that would start them.
pub(super) fn unstarted(source: &Source, programs: &Read<Vec<Program>>, jobs: &[Job]) -> Read<Vec<Value>> {
    let programs = programs.as_ref().map_err(Clone::clone)?;
    if programs.iter().all(|program| program.pid != "1") {
        return Err(Missing::Denied(
            "not all processes may be seen (hidepid): run mydyno as root".to_owned(),
        ));
    }
    let runs = programs.iter().any(|program| DAEMONS.contains(&program.name.as_str()));
    if runs || GENERATORS.iter().any(|path| source.exists(path)) {
        return Ok(vec![]);
    }
    let mut files: Vec<Value> = Vec::new();
    for job in jobs.iter().filter(|job| of_cron(&job.job) && job.makes_backups()) {
        let file = Value::from(job.job.as_str());
        if !files.contains(&file) && files.len() < LISTED {
            files.push(file);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::super::jobs;
    use super::*;
    use crate::tree::tree;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_backup_that_starts_each_minute_of_an_hour_is_told() {
        let (tree, source) = tree(&[
            (
                "etc/cron.d/db",
                "* 2 * * * root /opt/x.sh\n* 3,15 * * * root mysqldump -A > /srv/a.sql\n* 4 * * * root /usr/bin/true\n\
                 * 8-18 * * * root mysqldump shop\n*/5 2 * * * root mysqldump shop\n* 5 * * * root flock -n /l mysqldump a\n",
            ),
            ("opt/x.sh", "#!/bin/sh\nmysqldump shop > /srv/b.sql\n"),
        ]);
        set_permissions(tree.at("etc/cron.d/db"), Permissions::from_mode(0o644)).unwrap();
        let (jobs, _, _) = jobs::all(&source).unwrap();
        assert_eq!(
            each_minute(&jobs),
            [
                json!({"file": "/etc/cron.d/db", "schedule": "* 2 * * *", "runs": 60}),
                json!({"file": "/etc/cron.d/db", "schedule": "* 3,15 * * *", "runs": 120}),
            ]
        );
        let program = |pid: &str, name: &str| Program { pid: pid.to_owned(), name: name.to_owned() };
        let init = || program("1", "systemd");
        let of = |programs: Vec<Program>| unstarted(&source, &Ok(programs), &jobs);
        assert_eq!(of(vec![init()]), Ok(vec![json!("/etc/cron.d/db")]));
        assert_eq!(of(vec![init(), program("7", "cron")]), Ok(vec![]));
        assert!(matches!(of(vec![program("9", "bash")]), Err(Missing::Denied(_))));
    }
}
