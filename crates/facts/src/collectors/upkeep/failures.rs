//! Backups that fail: the ends of their logs, units of systemd, and folders that stayed empty.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::dumps::MAKERS;
use super::jobs::Job;
use super::kept::{Kept, USUAL};
use super::others::CARRIERS;
use super::target::Target;
use super::{rebuilders, web_copies};
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Entries of a list.
const LISTED: usize = 20;

/// Logs that are looked at.
const MOST_LOGS: usize = 100;

/// Bytes that are read from the end of a log.
const TAIL: u64 = 4096;

/// Age of a log that nobody writes any more.
const OLDEST_S: u64 = 90 * 86_400;

const DAY_S: u64 = 86_400;

/// Puts what tells of backups that fail, of jobs that rebuild tables, and of copies that a web server shows.
pub fn put(
    source: &Source,
    (jobs, target): (&[Job], &Target),
    folders: &[String],
    all: &[Kept],
    readings: &Readings,
) {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    // A backup of today shows that a failure of a unit is over.
    let is_fresh = all.last().is_some_and(|kept| kept.written_s + DAY_S > now_s);
    for (id, list) in [
        ("backup_errors", logs(source, jobs, folders, all, now_s)),
        ("units_failed", if is_fresh { Ok(vec![]) } else { units(source, jobs) }),
        ("never_wrote", Ok(never_wrote(source, jobs, all, now_s))),
        ("rebuilders", Ok(rebuilders::frequent(source, jobs, target))),
        ("configs_shown", Ok(web_copies::all(source))),
    ] {
        readings.put(&format!("server.upkeep.{id}"), "jobs, logs and folders of backups", list);
    }
}

/// Logs of backups that end with an error and not with a success: file, what (the words by which the error is known; the line itself
/// may hold rows or passwords), age_s. `named` are folders that jobs name, `all` the backups that are there, the newest last: one that
/// was written later shows that the log is no longer in use. Where a log may not be read, none is told to be without an error.
fn logs(source: &Source, jobs: &[Job], named: &[String], all: &[Kept], now_s: u64) -> Read<Vec<Value>> {
    let mut found = Vec::new();
    let mut refused: Option<Missing> = None;
    let newest_s = all.last().map_or(0, |kept| kept.written_s);
    let written = written(jobs);
    for path in paths(source, &written, named, all).into_iter().take(MOST_LOGS) {
        let Ok(log) = source.stat(&path) else { continue };
        let age_s = now_s.saturating_sub(log.modified_s);
        let is_left = newest_s > log.modified_s + 3600 || age_s > OLDEST_S;
        let is_file = log.mode & 0o170_000 == 0o100_000;
        if is_left || !is_file || found.len() >= LISTED {
            continue;
        }
        let end = match source.end_of(&path, TAIL) {
            Ok((end, _)) => end,
            Err(missing) => {
                refused.get_or_insert(missing);
                continue;
            }
        };
        let is_ours = written.contains(&path) || names_a_program(&path);
        if let Some(what) = error(&end, is_ours) {
            found.push(json!({"file": path, "what": what, "age_s": age_s}));
        }
    }
    match refused {
        Some(missing) if found.is_empty() => Err(missing),
        _ => Ok(found),
    }
}

/// Whether a text names a program of the server or one that makes backups of it.
fn names_a_program(text: &str) -> bool {
    ["mysql", "mariadb", "mariabackup", "xtrabackup", "mydumper"].iter().any(|name| text.contains(name))
}

/// The words of the last line that tells of an error, where none behind it tells of a success. Errors that any program may write count
/// where the line names a program of the server, or the log is that of a backup (`is_ours`).
fn error(text: &str, is_ours: bool) -> Option<String> {
    const ERRORS: [&str; 10] = [
        "FATAL ERROR",
        "Got error",
        "mysqldump: Error",
        "mysqldump: Couldn't",
        "mariadb-dump: Error",
        "mariadb-dump: Couldn't",
        "Access denied for user",
        "xtrabackup: error",
        "xtrabackup: Error",
        "CRITICAL **",
    ];
    const OF_ANY: [&str; 4] =
        ["No space left on device", "Can't connect to", "Permission denied", "Disk quota exceeded"];
    const SUCCESSES: [&str; 6] =
        ["completed OK", "Dump completed", "successful", "Successful", "SUCCESS", "backup completed"];
    // The dump goes on and is whole: since MySQL 5.7.31 and 8.0.21 an account without PROCESS is told so each time.
    const HARMLESS: &str = "when trying to dump tablespaces";
    for line in text.lines().rev() {
        if SUCCESSES.iter().any(|word| line.contains(word)) {
            return None;
        }
        if line.contains(HARMLESS) {
            continue;
        }
        if let Some(number) = of_client(line) {
            return Some(number);
        }
        let of_any = if is_ours || names_a_program(line) { &OF_ANY[..] } else { &[] };
        if let Some(word) = ERRORS.iter().chain(of_any).find(|word| line.contains(**word)) {
            return Some((*word).to_owned());
        }
    }
    None
}

/// `ERROR 1045 (28000)` of a line of the client.
fn of_client(line: &str) -> Option<String> {
    let (_, after) = line.split_once("ERROR ")?;
    let (number, after) = after.split_once(" (")?;
    let (state, _) = after.split_once(')')?;
    let is = !number.is_empty() && number.len() <= 5 && number.bytes().all(|byte| byte.is_ascii_digit());
    let known = state.len() == 5 && state.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is && known).then(|| format!("ERROR {number} ({state})"))
}

/// Logs beside backups, those that jobs of backups write, and those of /var/log with such a name.
fn paths(source: &Source, written: &[String], named: &[String], all: &[Kept]) -> Vec<String> {
    let of_backups = |name: &str| is_log(name) && ["backup", "dump"].iter().any(|part| name.contains(part));
    let above = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let newest = all.last().map(|kept| kept.path.as_str());
    let of_newest = newest.and_then(above);
    // A backup by copying is a folder, whose log lies in it or beside it.
    let is_folder =
        newest.is_some_and(|path| path.contains("/xtrabackup_") || path.contains("/mariadb_backup_"));
    let beside = of_newest.as_deref().filter(|_| is_folder).and_then(above).filter(|path| !path.is_empty());
    let own = USUAL.iter().map(|path| (*path).to_owned()).chain(of_newest).chain(beside);
    let mut found: Vec<String> = Vec::new();
    let mut add = |folder: &str, takes: &dyn Fn(&str) -> bool| {
        let names = source.list(folder).unwrap_or_default();
        found.extend(names.iter().filter(|name| takes(name)).map(|name| format!("{folder}/{name}")));
    };
    for folder in own.filter(|folder| folder != "/var/log") {
        add(&folder, &is_log);
    }
    // A job may name folders of other programs as well.
    for folder in named.iter().map(String::as_str).chain(["/var/log"]) {
        add(folder, &of_backups);
    }
    found.extend(written.iter().cloned());
    found.sort();
    found.dedup();
    found
}

fn is_log(name: &str) -> bool {
    name.ends_with(".log") || name.ends_with(".err")
}

/// Logs that jobs of backups write.
fn written(jobs: &[Job]) -> Vec<String> {
    let makers = jobs.iter().filter(|job| job.makes_backups());
    let written =
        makers.flat_map(|job| job.script.commands.iter().flat_map(|command| targets(&command.words)));
    written.filter(|path| is_log(path) && !path.contains('$')).collect()
}

/// Files that a command's output is sent to.
fn targets(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let bare = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        let Some(target) = bare.strip_prefix('>') else { continue };
        let target = match target.trim_start_matches('>') {
            "" => words.get(place + 1).map_or("", String::as_str),
            attached => attached,
        };
        if target.starts_with('/') {
            found.push(target.to_owned());
        }
    }
    found
}

/// Units of backup jobs whose last run failed, by the system's log: unit, result.
fn units(source: &Source, jobs: &[Job]) -> Read<Vec<Value>> {
    const MOST: u64 = 1 << 20;
    let mut units: Vec<&str> = jobs
        .iter()
        .filter(|job| job.makes_backups())
        .filter_map(|job| job.job.rsplit('/').next())
        .filter(|name| name.ends_with(".service"))
        .collect();
    units.sort_unstable();
    units.dedup();
    if units.is_empty() {
        return Ok(vec![]);
    }
    let (text, _) =
        source.end_of("/var/log/syslog", MOST).or_else(|_| source.end_of("/var/log/messages", MOST))?;
    Ok(units.into_iter().filter_map(|unit| failed(&text, unit)).take(LISTED).collect())
}

/// The result of a unit's last run, where it failed.
fn failed(text: &str, unit: &str) -> Option<Value> {
    let of_unit = format!(" {unit}: ");
    let line = text.lines().rev().find_map(|line| {
        let (_, said) = line.split_once(&of_unit)?;
        let tells = ["Failed with result", "Succeeded", "Deactivated successfully", "Finished"];
        tells.iter().any(|word| said.contains(word)).then_some(said)
    })?;
    let result = line.strip_prefix("Failed with result ")?;
    Some(json!({"unit": unit, "result": result.trim_matches(['\'', '"', '.', ' '])}))
}

/// Jobs that are older than two days and the folder of whose backups is empty: file, folder.
fn never_wrote(source: &Source, jobs: &[Job], all: &[Kept], now_s: u64) -> Vec<Value> {
    if !all.is_empty() || jobs.iter().any(|job| job.calls(&CARRIERS).next().is_some()) {
        return vec![];
    }
    let mut found: Vec<Value> = Vec::new();
    for job in jobs.iter().filter(|job| job.calls(&MAKERS).next().is_some()) {
        let oldest_s = 2 * DAY_S + job.interval_s.unwrap_or(DAY_S);
        let is_old = |path: &str| source.stat(path).is_ok_and(|file| file.modified_s + oldest_s < now_s);
        if !is_old(&job.path) || !is_old(&job.job) {
            continue;
        }
        let written = job.script.commands.iter().flat_map(|command| targets(&command.words));
        for target in written {
            let Some((folder, _)) = target.split(['$', '`']).next().unwrap_or_default().rsplit_once('/')
            else {
                continue;
            };
            let is_empty =
                source.list(folder).is_ok_and(|names| names.iter().all(|name| name == "lost+found"));
            let entry = json!({"file": job.path, "folder": folder});
            if is_empty && !folder.is_empty() && !found.contains(&entry) && found.len() < LISTED {
                found.push(entry);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::upkeep::shell::Script;
    use crate::tree::Tree;

    fn job(path: &str, text: &str) -> Job {
        let script = Script::of(text);
        Job { path: path.into(), text: text.into(), script, job: path.into(), interval_s: Some(86_400) }
    }

    #[test]
    fn a_log_that_ends_with_an_error_is_told_unless_a_backup_is_newer() {
        let denied = "[00] FATAL ERROR: failed to connect: Access denied for user 'backup'@'localhost'\n";
        let tree = Tree::of(&[
            ("backup/2026-11-01/xtrabackup_info", ""),
            ("backup/backup.log", &format!("2026-11-01 completed OK!\n{denied}")),
            ("backup/fine.log", &format!("{denied}2026-11-02 completed OK!\n")),
            ("var/log/mysqldump.log", "mysqldump: Got error: 1045: Access denied\n"),
            ("var/log/other.log", "mysqldump: Got error: 1045: Access denied\n"),
            ("srv/dump.err", "ERROR 2002 (HY000): Can't connect to local server\n"),
        ]);
        let source = tree.source();
        let written_s = source.stat("/backup/backup.log").unwrap().modified_s;
        let kept = |written_s: u64| Kept {
            path: "/backup/2026-11-01/xtrabackup_info".into(),
            bytes: 1,
            written_s,
            device: (1, 1),
        };
        let jobs = [job("/etc/cron.d/x", "0 3 * * * root mysqldump -A > /srv/a.sql 2>> /srv/dump.err")];
        let told = |newest_s: u64, now_s: u64| -> Vec<String> {
            let found = logs(&source, &jobs, &[], &[kept(newest_s)], now_s).unwrap();
            found.iter().map(|entry| entry["file"].as_str().unwrap().to_owned()).collect()
        };
        let expected = ["/backup/backup.log", "/srv/dump.err", "/var/log/mysqldump.log"];
        assert_eq!(told(written_s, written_s + 60), expected);
        assert!(told(written_s + 3601, written_s + 3700).is_empty());
        assert!(told(written_s, written_s + OLDEST_S + 1).is_empty());
    }

    #[test]
    fn an_error_is_told_by_its_words_alone() {
        let told = |line: &str, is_ours: bool| error(line, is_ours);
        let row = "ERROR 1062 (23000) at line 9: Duplicate entry 'x@y.z' for key 'email'";
        assert_eq!(told(row, false).as_deref(), Some("ERROR 1062 (23000)"));
        assert_eq!(told("+ mysqldump -psecret: Got error: 1045", true).as_deref(), Some("Got error"));
        let harmless = "mysqldump: Error: 'Access denied; you need (at least one of) the PROCESS privilege(s)' when trying to dump tablespaces";
        assert_eq!(told(harmless, true), None);
        let rsync = "rsync: opendir \"/backup/lost+found\" failed: Permission denied (13)";
        assert_eq!(told(rsync, false), None);
        assert_eq!(told(rsync, true).as_deref(), Some("Permission denied"));
        assert_eq!(
            told("mariadb-backup: No space left on device", false).as_deref(),
            Some("No space left on device")
        );
    }

    #[test]
    fn the_last_run_of_a_unit_counts() {
        let log = "Nov 28 02:00:09 db1 systemd[1]: mariadb-backup.service: Failed with result 'exit-code'.\n\
            Nov 28 02:00:09 db1 systemd[1]: Failed to start MariaDB backup.\n";
        let tree = Tree::of(&[("var/log/syslog", log)]);
        let jobs = [job("/etc/systemd/system/mariadb-backup.service", "/usr/bin/mariadb-backup --backup")];
        let expected = json!({"unit": "mariadb-backup.service", "result": "exit-code"});
        assert_eq!(units(&tree.source(), &jobs).unwrap(), [expected]);
        let later = format!(
            "{log}Nov 29 02:00:09 db1 systemd[1]: mariadb-backup.service: Deactivated successfully.\n"
        );
        tree.file("var/log/syslog", later);
        assert!(units(&tree.source(), &jobs).unwrap().is_empty());
        assert!(units(&tree.source(), &[]).unwrap().is_empty());
        assert!(units(&Tree::of(&[("etc/x", "")]).source(), &jobs).is_err());
    }

    #[test]
    fn a_job_whose_folder_stays_empty_is_told_once_it_is_old() {
        let tree = Tree::of(&[("etc/cron.d/x", ""), ("full/notes", "")]);
        tree.folder("srv/dumps");
        let source = tree.source();
        let written_s = source.stat("/etc/cron.d/x").unwrap().modified_s;
        let told = |text: &str, age_s: u64| {
            never_wrote(&source, &[job("/etc/cron.d/x", text)], &[], written_s + age_s).len()
        };
        let line = "0 3 * * * root mysqldump -A > /srv/dumps/all-$(date +%F).sql";
        assert_eq!((told(line, 3 * DAY_S + 1), told(line, 3 * DAY_S)), (1, 0));
        assert_eq!(told("0 3 * * * root mysqldump -A > /full/all.sql", 9 * DAY_S), 0);
        assert_eq!(told("0 3 * * * root mysqldump -A | ssh b 'cat > /srv/dumps/a.sql'", 9 * DAY_S), 0);
    }
}
