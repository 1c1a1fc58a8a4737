//! Care for the server's data on the host: jobs that make backups, and permissions of the data directory.

mod cron_lines;
mod dumps;
mod exposed;
mod failures;
mod jobs;
mod kept;
mod logins;
mod makes;
mod others;
mod piped;
mod rebuilders;
mod schedule;
mod shell;
mod target;
mod web_copies;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use self::dumps::Dump;
use self::jobs::Job;
use self::kept::Found;
use self::others::Places;
use self::target::Target;
use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::schema::more::is_leftover_schema;
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};
use crate::table_files::of_file_name;

/// Backups and permissions.
pub static COLLECTOR: Collector = Collector {
    name: "upkeep",
    cost: Cost { host_ms: 20, server_ms: 0 },
    deadline_ms: 4000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.upkeep.backup_jobs",
            "",
            "files of cron and systemd on the server's host that name a program which makes backups of databases, or a script that calls one; 20 at most",
        ),
        fact(
            "server.upkeep.jobs_with_password",
            "",
            "files of cron and systemd, and scripts that they call, in which a program that logs in to this server has its password on its command line; the password is not kept",
        ),
        fact(
            "server.upkeep.jobs_without_snapshot",
            "",
            "such files and scripts in which a dump has no option that makes it of one instant, and none that names a file of options",
        ),
        fact(
            "server.upkeep.each_minute",
            "",
            "jobs of backups, or that read whole tables, which cron starts each minute of an hour: file, schedule, runs (a day); 20 at most",
        ),
        fact(
            "server.upkeep.jobs_unstarted",
            "",
            "files of cron with jobs of backups, where no daemon runs that would start them; 20 at most",
        ),
        fact("server.upkeep.backups_running", "", "programs for backups that run on the server's host now"),
        fact(
            "server.upkeep.newest_backup_age_s",
            "s",
            "age of the newest file of a backup in the folders that such jobs name, and in usual ones as /var/backups and /backup",
        ),
        fact("server.upkeep.newest_backup", "", "that file"),
        fact(
            "server.upkeep.jobs_ignored",
            "",
            "files of jobs that make backups and that cron passes over, and their lines that cron ends at a %: file, line, why; 20 at most",
        ),
        fact(
            "server.upkeep.status_lost",
            "",
            "scripts that send a dump through a pipe and do not look whether it failed; 20 at most",
        ),
        fact(
            "server.upkeep.piped_unseen",
            "",
            "files of cron with a line that sends a dump through a pipe, where what it says of its failure reaches nobody; 20 at most",
        ),
        fact(
            "server.upkeep.overwrites",
            "",
            "dumps that each run writes to a file of one name, which no job renames or carries away: job, file; 20 at most",
        ),
        fact(
            "server.upkeep.errors_passed",
            "",
            "jobs and scripts whose dumps go on after an error (--force); 20 at most",
        ),
        fact(
            "server.upkeep.without_routines",
            "",
            "jobs and scripts whose dumps leave stored routines out, where no dump has them: file, all (whether it takes all schemas); 20 at most",
        ),
        fact("server.upkeep.without_events", "", "the same of events"),
        fact(
            "server.upkeep.schemas_undumped",
            "",
            "schemas with tables that no dump names, where all jobs dump schemas by their names; 20 at most",
        ),
        fact(
            "server.upkeep.raw_copies",
            "",
            "jobs and scripts that copy the data directory while the server runs, where no job makes a backup that is consistent; 20 at most",
        ),
        fact(
            "server.upkeep.deletes_binlogs",
            "",
            "jobs and scripts that remove binary logs by rm or find; 20 at most",
        ),
        fact(
            "server.upkeep.scanners",
            "",
            "jobs and scripts that search the data directory for viruses: file, moves (whether they move or remove files); 20 at most",
        ),
        fact(
            "server.upkeep.scripts_exposed",
            "",
            "files of jobs and scripts with a password of a program that logs in, and that every user of the host may read: file, mode; 20 at most",
        ),
        fact(
            "server.upkeep.copies_away",
            "",
            "whether a job or a program on the host may carry backups to another host",
        ),
        fact(
            "server.upkeep.backup_interval_s",
            "s",
            "time between two backups: by the schedule of the jobs, else by the newest two files of a series",
        ),
        fact(
            "server.upkeep.backups_tiny",
            "",
            "newest backups that hold nothing, or less than a twentieth of what the earlier ones of their series hold: file, size_bytes, files (how many in a row), usual_bytes; 20 at most",
        ),
        fact(
            "server.upkeep.backups_incomplete",
            "",
            "newest dumps that lack the line which mysqldump writes last; 5 at most",
        ),
        fact(
            "server.upkeep.backups_exposed",
            "",
            "dumps in a folder that web servers show, and the newest backup where every user of the host may read it: file, mode, web; 20 at most",
        ),
        fact(
            "server.upkeep.backup_place",
            "",
            "where the newest backup lies: within the data directory, on its disk, or apart",
        ),
        fact(
            "server.upkeep.backup_errors",
            "",
            "logs of backups that end with an error, where no backup is newer: file, what (the words by which the error is known), age_s; 20 at most",
        ),
        fact(
            "server.upkeep.units_failed",
            "",
            "units of systemd that make backups and whose last run failed, by /var/log/syslog or messages: unit, result; 20 at most",
        ),
        fact(
            "server.upkeep.never_wrote",
            "",
            "jobs of backups that are older than two days and into whose folder none has written: file, folder; 20 at most",
        ),
        fact(
            "server.upkeep.rebuilders",
            "",
            "jobs and scripts that rebuild tables once a day or more often (OPTIMIZE TABLE): file, interval_s, all; 20 at most",
        ),
        fact(
            "server.upkeep.configs_shown",
            "",
            "copies of PHP files with settings below the roots of web servers, by their names: file, mode; 20 at most",
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

/// Entries of a list.
const LISTED: usize = 20;

/// Folders of the data directory that are looked at.
const MOST_FOLDERS: usize = 1000;

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/etc/cron.d", missing),
    };
    let source = &context.source;
    let datadir = context.datadir().map(str::to_owned);
    let seen = datadir.clone().and_then(|datadir| Ok(format!("{}{datadir}", mounts::view(source, server)?)));
    let mode = seen.clone().and_then(|seen| source.stat(&seen));
    let from = datadir.clone().unwrap_or_else(|_| "datadir".to_owned());
    let bits = mode.as_ref().map(|found| found.mode & 0o7777).map_err(Clone::clone);
    readings.put("server.upkeep.datadir_mode", from.clone(), bits.clone().map(|mode| format!("{mode:03o}")));
    readings.put("server.upkeep.datadir_open", from, bits.map(|mode| mode & 0o005 != 0));
    let names = programs(source);
    let target = Target {
        socket: context.variable("socket").map(|socket| context.within_datadir(socket)),
        port: context.variable("port").map(str::to_owned),
    };
    let backups = names.as_ref().map(|all| running(source, all, &target)).map_err(Clone::clone);
    readings.put("server.upkeep.backups_running", "/proc/*/comm", backups);
    let (jobs, ignored, unread) = match jobs::all(source) {
        Ok(found) => found,
        Err(missing) => return readings.rest_is("cron and systemd", &missing),
    };
    readings.put("server.upkeep.jobs_ignored", "cron", Ok(ignored));
    let jobs = target::of_this_server(source, jobs, &target);
    let places = Places { datadir: datadir.clone().unwrap_or_default(), binlogs: binlogs(context) };
    let dumps = of_jobs(source, (&jobs, unread.as_ref()), &places, &target, readings);
    readings.put("server.upkeep.each_minute", "cron", Ok(schedule::each_minute(&jobs)));
    readings.put("server.upkeep.jobs_unstarted", "cron", schedule::unstarted(source, &names, &jobs));
    let away = names.map(|all| {
        let names: Vec<String> = all.into_iter().map(|program| program.name).collect();
        others::copies_away(&jobs, &names)
    });
    readings.put("server.upkeep.copies_away", "cron and systemd", away);
    let no_list = || Missing::Absent("no job dumps schemas by names that can be judged".to_owned());
    let undumped = seen.and_then(|seen| {
        if dumps.is_empty() {
            return Err(unread.clone().unwrap_or_else(no_list));
        }
        dumps::undumped(&jobs, &dumps, &schemas(source, &seen)?).ok_or_else(no_list)
    });
    readings.put("server.upkeep.schemas_undumped", "cron and systemd", undumped);
    let folders: Vec<String> = jobs.iter().filter(|job| job.makes_backups()).flat_map(folders).collect();
    let all = kept::all(source, &folders, datadir.as_deref().ok());
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    of_files(source, &all, &jobs, now_s, readings);
    failures::put(source, (&jobs, &target), &folders, &all.files, readings);
    let place = mode.and_then(|mode| Ok(kept::place(all.newest(now_s)?, &places.datadir, mode.device)));
    readings.put("server.upkeep.backup_place", "folders of backups", place);
}

/// Facts that the text of jobs tells, where an empty list says nothing while a file of a job could not be read.
fn of_jobs<'a>(
    source: &Source,
    (jobs, unread): (&'a [Job], Option<&Missing>),
    places: &Places,
    target: &Target,
    readings: &Readings,
) -> Vec<Dump<'a>> {
    let put = |id: &str, list: Vec<Value>| {
        let told = match unread {
            Some(missing) if list.is_empty() => Err(missing.clone()),
            _ => Ok(list),
        };
        readings.put(&format!("server.upkeep.{id}"), "cron and systemd", told);
    };
    let dumps = dumps::of(source, jobs);
    let mut makers: Vec<Value> = Vec::new();
    for job in jobs.iter().filter(|job| job.makes_backups()) {
        let file = Value::from(job.job.as_str());
        if !makers.contains(&file) && makers.len() < LISTED {
            makers.push(file);
        }
    }
    put("backup_jobs", makers);
    for (id, is) in [
        ("jobs_without_snapshot", (|dump| dump.is_torn()) as fn(&Dump<'_>) -> bool),
        ("status_lost", |dump| dump.status_is_lost()),
        ("errors_passed", |dump| dump.passes_errors()),
    ] {
        let mut files: Vec<Value> =
            dumps.iter().filter(|dump| is(dump)).map(|dump| dump.file.into()).collect();
        files.dedup();
        files.truncate(LISTED);
        put(id, files);
    }
    for (id, long, short) in [("without_routines", "routines", "-R"), ("without_events", "events", "-E")] {
        let holds = others::physical(jobs);
        put(id, if holds { vec![] } else { dumps::without(&dumps, long, short) });
    }
    put("piped_unseen", piped::unseen(source, jobs));
    put("overwrites", piped::overwrites(jobs));
    put("raw_copies", others::raw_copies(jobs, places));
    put("deletes_binlogs", others::deletes_binlogs(jobs, places));
    put("scanners", others::scanners(jobs, places));
    put("jobs_with_password", logins::with_password(source, jobs, target));
    put("scripts_exposed", logins::exposed(source, jobs, target));
    dumps
}

/// Facts that files of backups tell.
fn of_files(source: &Source, found: &Found, jobs: &[Job], now_s: u64, readings: &Readings) {
    let from = "folders of backups";
    let all = &found.files;
    let tiny = kept::tiny(all);
    let newest = found.newest_whole(now_s, &tiny);
    let age = newest.clone().map(|kept| now_s.saturating_sub(kept.written_s));
    readings.put("server.upkeep.newest_backup_age_s", from, age);
    readings.put("server.upkeep.newest_backup", from, newest.map(|kept| kept.path.as_str()));
    // Other jobs may have `backup` in their names and keep something else.
    let of_databases = |job: &&Job| job.calls(&dumps::MAKERS).next().is_some();
    let shortest = |some: Vec<&Job>| some.into_iter().filter_map(|job| job.interval_s).min();
    let by_jobs = shortest(jobs.iter().filter(of_databases).collect())
        .or_else(|| shortest(jobs.iter().filter(|job| job.makes_backups()).collect()));
    let interval = by_jobs.or_else(|| kept::interval(all));
    let interval = interval.ok_or_else(|| Missing::Absent("neither jobs nor files tell it".to_owned()));
    readings.put("server.upkeep.backup_interval_s", from, interval);
    readings.put("server.upkeep.backups_tiny", from, found.listed(tiny));
    readings.put(
        "server.upkeep.backups_incomplete",
        from,
        found.listed(kept::incomplete(source, all, now_s)),
    );
    readings.put("server.upkeep.backups_exposed", from, found.listed(exposed::exposed(source, all)));
}

/// Folder of the binary logs, and the beginning of their names.
fn binlogs(context: &Context) -> Option<(String, String)> {
    let base = context.variable("log_bin_basename")?;
    let (folder, stem) = base.rsplit_once('/')?;
    Some((folder.to_owned(), stem.to_owned()))
}

/// Schemas of users that have files of tables, by the folders of the data directory; without those whose names speak of a copy or
/// of a test.
fn schemas(source: &Source, datadir: &str) -> Read<Vec<String>> {
    const OURS: [&str; 6] =
        ["mysql", "sys", "performance_schema", "information_schema", "test", "lost+found"];
    const ENDS: [&str; 4] = [".ibd", ".frm", ".MYD", ".MAD"];
    let is_ours = |name: &String| {
        OURS.contains(&name.as_str()) || name.contains(['.', '#']) || is_leftover_schema(name)
    };
    let names: Vec<String> = source.list(datadir)?.into_iter().filter(|name| !is_ours(name)).collect();
    if names.len() > MOST_FOLDERS {
        return Err(Missing::Error(format!("there are more than {MOST_FOLDERS} folders of schemas")));
    }
    let mut found = Vec::new();
    for name in names {
        // Some of the files are enough: nearly all of them are tables.
        let files = source.list_some(&format!("{datadir}/{name}"), 100).unwrap_or_default().0;
        if files.iter().any(|file| ENDS.iter().any(|end| file.ends_with(end))) {
            found.push(of_file_name(&name));
        }
    }
    Ok(found)
}

/// Folders that a job names.
fn folders(job: &Job) -> Vec<String> {
    let lines = job.lines().filter(|line| !job.is_called() && makes::makes_backups(line));
    let texts =
        job.script.variables.values().chain(job.script.commands.iter().flat_map(|command| &command.words));
    lines.flat_map(folders_of).chain(texts.flat_map(|text| folders_of(text))).collect()
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
    const NONE: [&str; 11] = [
        "",
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/usr/sbin",
        "/etc",
        "/dev",
        "/tmp",
        "/var/log",
        "/var/lib",
        "/run",
    ];
    parts.filter(|path| !NONE.contains(&path.as_str()) && !path.starts_with("/etc/")).collect()
}

/// A process of the host.
#[derive(Debug)]
struct Program {
    pid: String,
    name: String,
}

/// The processes of the host with their names, which the kernel cuts after 15 bytes.
fn programs(source: &Source) -> Read<Vec<Program>> {
    let pids = source.list("/proc")?.into_iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
    let of = |pid: String| Some(Program { name: source.read(&format!("/proc/{pid}/comm")).ok()?, pid });
    Ok(pids.filter_map(of).collect())
}

/// Programs that make a backup of this server now, as far as their command lines tell which server they are for.
fn running(source: &Source, programs: &[Program], target: &Target) -> Vec<Value> {
    const NAMES: [&str; 7] =
        ["mysqldump", "mariadb-dump", "mysqlpump", "mydumper", "xtrabackup", "mariabackup", "mariadb-backup"];
    let mut found = Vec::new();
    for program in programs.iter().filter(|program| NAMES.contains(&program.name.as_str())) {
        let words = source.read(&format!("/proc/{}/cmdline", program.pid)).unwrap_or_default();
        let words: Vec<String> = words.split('\0').skip(1).map(str::to_owned).collect();
        if target.may_be_of(source, &words) && !found.contains(&json!(program.name)) {
            found.push(json!(program.name));
        }
    }
    found
}

#[cfg(test)]
mod tests;
