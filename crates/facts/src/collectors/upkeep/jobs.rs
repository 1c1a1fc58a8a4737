//! Files of cron and systemd, and the scripts that they call.

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde_json::{Value, json};

use super::cron_lines;
use super::makes::{is_backup, makes_backups};
use super::shell::{Command, Script};
use crate::source::{Missing, Read, Source};

/// Folders of jobs.
const FOLDERS: [&str; 10] = [
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/etc/cron.yearly",
    "/var/spool/cron",
    "/var/spool/cron/crontabs",
    "/var/spool/cron/tabs",
    SYSTEMD,
];

/// Folder of the units of systemd that a host has of its own.
const SYSTEMD: &str = "/etc/systemd/system";

/// Folders of the units of packages, of which those with a timer that is switched on are looked at.
const OF_UNITS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];

/// Files of jobs that are read at most.
const MOST_JOBS: usize = 2000;

/// Folders of programs that packages bring: scripts in them are not read.
const OF_PACKAGES: [&str; 8] =
    ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/libexec/", "/usr/share/", "/lib/"];

/// Largest file that is read.
const LARGEST: u64 = 256 << 10;

/// Scripts that are read at most.
const MOST_SCRIPTS: usize = 200;

/// A job's file, or a script that one calls.
#[derive(Debug, Default)]
pub struct Job {
    /// The file.
    pub path: String,
    /// Its text, with lines that go on joined.
    pub text: String,
    /// Its commands.
    pub script: Script,
    /// The file of the job.
    pub job: String,
    /// Seconds between two runs, where the job tells it.
    pub interval_s: Option<u64>,
}

impl Job {
    fn of(path: &str, job: &str, text: &str, interval_s: Option<u64>) -> Self {
        let text = match is_unit(path) {
            true => of_unit(text),
            false => text.to_owned(),
        };
        let script = Script::of(&text);
        Self {
            path: path.to_owned(),
            text: text.replace("\\\n", " "),
            script,
            job: job.to_owned(),
            interval_s,
        }
    }

    /// Whether this is a script that a job calls.
    pub fn is_called(&self) -> bool {
        self.path != self.job
    }

    /// Lines outside comments.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter(|line| !line.trim_start().starts_with('#'))
    }

    /// Whether it makes backups: a job by what its lines name, a script by the programs that it calls.
    pub fn makes_backups(&self) -> bool {
        match self.is_called() {
            false => self.script.commands.iter().any(is_backup),
            true => self.calls(&super::dumps::MAKERS).next().is_some(),
        }
    }

    /// Calls of some programs, with their arguments and the command.
    pub fn calls<'a>(&'a self, programs: &'a [&str]) -> impl Iterator<Item = (&'a [String], &'a Command)> {
        let commands = self.script.commands.iter();
        commands.filter_map(|command| {
            let (name, words) = command.call(programs)?;
            super::dumps::does_it(name, words).then_some((words, command))
        })
    }
}

/// Lines of a unit of systemd that are commands or variables.
fn of_unit(text: &str) -> String {
    let lines = text.replace("\\\n", " ");
    let commands = lines.lines().filter_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        match name.trim() {
            name if name.starts_with("Exec") => {
                Some(value.trim_start_matches(['-', '@', '+', '!', ':', ' ']).to_owned())
            }
            "Environment" => Some(value.trim().trim_matches('"').to_owned()),
            _ => None,
        }
    });
    commands.collect::<Vec<_>>().join("\n")
}

/// Jobs, entries of those that cron passes over, and why some files were not read.
pub type All = (Vec<Job>, Vec<Value>, Option<Missing>);

/// All jobs and the scripts that they call, and files of jobs that cron passes over though they make backups: file, why;
/// and lines that it cuts, with their number.
pub fn all(source: &Source) -> Read<All> {
    let mut files =
        vec![("/etc".to_owned(), "crontab".to_owned()), ("/etc".to_owned(), "anacrontab".to_owned())];
    files.extend(of_timers(source));
    for folder in FOLDERS {
        match source.list(folder) {
            Ok(names) => files.extend(names.into_iter().map(|name| (folder.to_owned(), name))),
            Err(denied @ Missing::Denied(_)) => return Err(denied),
            Err(_) => {}
        }
    }
    let debian = is_debian(source);
    let mut jobs = Vec::new();
    let mut ignored: Vec<(String, String, Value)> = Vec::new();
    let mut cut: Vec<Value> = Vec::new();
    let mut unread = (files.len() > MOST_JOBS)
        .then(|| Missing::Error(format!("there are more than {MOST_JOBS} files of jobs")));
    for (folder, name) in files.into_iter().take(MOST_JOBS) {
        let path = format!("{folder}/{name}");
        // Names that somebody gave to switch the job off.
        let is_off = name.starts_with('.') || [".off", ".disabled"].iter().any(|end| name.ends_with(end));
        if is_off && debian {
            continue;
        }
        let text = match source.text_within(&path, LARGEST) {
            Ok(text) => text,
            Err(denied @ Missing::Denied(_)) => {
                unread.get_or_insert(denied);
                continue;
            }
            Err(_) => continue,
        };
        let job = Job::of(&path, &path, &text, interval(source, &folder, &name, &text));
        match passed_over(source, debian, &folder, &name) {
            Some(why) if job.makes_backups() => {
                ignored.push((folder, name, json!({"file": path, "why": why})))
            }
            Some(_) => {}
            None => {
                // anacron hands its commands to a shell as they are.
                if folder != SYSTEMD && !is_of_run_parts(&folder) && name != "anacrontab" {
                    cut.extend(cron_lines::cut(&path, &text, makes_backups));
                }
                jobs.push(job);
            }
        }
    }
    // A copy that was put aside beside the job itself is meant to be passed over.
    let stem = |name: &str| name.split(['.', '~']).next().unwrap_or(name).to_owned();
    ignored
        .retain(|(folder, name, _)| !jobs.iter().any(|job| job.path == format!("{folder}/{}", stem(name))));
    let called = scripts(source, &jobs, &mut unread);
    jobs.extend(called);
    let ignored = ignored.into_iter().map(|(_, _, entry)| entry);
    Ok((jobs, ignored.chain(cut).take(20).collect(), unread))
}

/// Services of packages whose timers are switched on.
fn of_timers(source: &Source) -> Vec<(String, String)> {
    let timers = source.list(&format!("{SYSTEMD}/timers.target.wants")).unwrap_or_default();
    let service = |name: String| {
        let service = format!("{}.service", name.strip_suffix(".timer")?);
        let is_there = |folder: &&&str| source.stat(&format!("{folder}/{service}")).is_ok();
        // One in the folder of the host's own stands before it, and is read there.
        let own = source.stat(&format!("{SYSTEMD}/{service}")).is_ok();
        let folder = OF_UNITS.iter().find(is_there).filter(|_| !own)?;
        Some(((*folder).to_owned(), service))
    };
    timers.into_iter().filter_map(service).collect()
}

fn is_unit(path: &str) -> bool {
    path.starts_with(SYSTEMD) || OF_UNITS.iter().any(|folder| path.starts_with(folder))
}

fn is_debian(source: &Source) -> bool {
    let text = source.text_within("/etc/os-release", 64 << 10).unwrap_or_default();
    let ids = text.lines().filter(|line| line.starts_with("ID=") || line.starts_with("ID_LIKE="));
    ids.into_iter().any(|line| line.contains("debian") || line.contains("ubuntu"))
}

/// Whether the files of a folder are scripts, as of /etc/cron.daily.
fn is_of_run_parts(folder: &str) -> bool {
    folder.starts_with("/etc/cron.") && folder != "/etc/cron.d"
}

/// Why cron passes a file over.
fn passed_over(source: &Source, debian: bool, folder: &str, name: &str) -> Option<&'static str> {
    let of_run_parts = is_of_run_parts(folder);
    if !of_run_parts && folder != "/etc/cron.d" {
        return None;
    }
    let path = format!("{folder}/{name}");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if debian && !name.bytes().all(plain) {
        return Some("its name has a character that cron does not take, as a dot");
    }
    if ["~", ".rpmsave", ".rpmorig", ".rpmnew"].iter().any(|end| name.ends_with(end)) {
        return Some("its name is that of a copy");
    }
    let file = source.stat(&path).ok()?;
    if of_run_parts {
        return (file.mode & 0o111 == 0).then_some("it is not executable");
    }
    if source.stat(folder).is_ok_and(|above| above.uid != file.uid) {
        return Some("it does not belong to root");
    }
    if file.mode & 0o022 != 0 {
        return Some("others may write to it");
    }
    let ends = last_byte(source, &path).is_none_or(|byte| byte == b'\n');
    (debian && !ends).then_some("its last line has no end")
}

fn last_byte(source: &Source, path: &str) -> Option<u8> {
    let mut file = source.open_file(path).ok()?;
    let mut last = [0];
    file.seek(SeekFrom::End(-1)).ok()?;
    file.read_exact(&mut last).ok()?;
    Some(last[0])
}

/// Scripts of the host's own that the lines of jobs name by their path.
fn scripts(source: &Source, jobs: &[Job], unread: &mut Option<Missing>) -> Vec<Job> {
    let mut seen: BTreeSet<String> = jobs.iter().map(|job| job.path.clone()).collect();
    let mut found = Vec::new();
    for job in jobs {
        let mut folder = String::new();
        for word in job.script.commands.iter().flat_map(|command| {
            let cd = command.words.iter().position(|word| word == "cd");
            if let Some(to) = cd.and_then(|cd| command.words.get(cd + 1)) {
                folder.clone_from(to);
            }
            command.words.iter().map(|word| (word.clone(), folder.clone())).collect::<Vec<_>>()
        }) {
            let (word, folder) = word;
            let path = match word.strip_prefix("./") {
                Some(name) => format!("{folder}/{name}"),
                None => word,
            };
            let ours = path.starts_with('/') && !OF_PACKAGES.iter().any(|of| path.starts_with(of));
            if !ours || found.len() >= MOST_SCRIPTS || !seen.insert(path.clone()) {
                continue;
            }
            let text = match source.text_within(&path, LARGEST) {
                Ok(text) => text,
                Err(denied @ Missing::Denied(_)) => {
                    unread.get_or_insert(denied);
                    continue;
                }
                Err(_) => continue,
            };
            if text.starts_with("#!") || path.ends_with(".sh") {
                found.push(Job::of(&path, &job.path, &text, job.interval_s));
            }
        }
    }
    found
}

/// Seconds between two runs of a job.
fn interval(source: &Source, folder: &str, name: &str, text: &str) -> Option<u64> {
    const DAY: u64 = 86_400;
    let of = |span: &str| match span {
        "hourly" => Some(3600),
        "daily" | "midnight" => Some(DAY),
        "weekly" => Some(7 * DAY),
        "monthly" => Some(30 * DAY),
        _ => None,
    };
    if let Some(span) = folder.strip_prefix("/etc/cron.").filter(|span| *span != "d") {
        return of(span);
    }
    if is_unit(folder) {
        let timer = format!("{folder}/{}.timer", name.strip_suffix(".service")?);
        let text = source.text_within(&timer, LARGEST).ok()?;
        let when = text.lines().find_map(|line| line.trim().strip_prefix("OnCalendar="))?;
        return of(when).or(match when.split(' ').next() {
            Some("Mon" | "Tue" | "Wed" | "Thu" | "Fri" | "Sat" | "Sun") => Some(7 * DAY),
            _ => None,
        });
    }
    let line = text.lines().find(|line| !line.trim_start().starts_with('#') && makes_backups(line));
    // A line that calls a script by a name of its own counts where it is the only one.
    let line = line.or_else(|| {
        let mut lines =
            text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit() || c == '*'));
        lines.next().filter(|_| lines.next().is_none())
    })?;
    if let Some(span) = line.trim().strip_prefix('@') {
        return of(span.split_whitespace().next().unwrap_or_default());
    }
    let fields: Vec<&str> = line.split_whitespace().take(5).collect();
    let single = |field: &str| !field.contains(['*', ',', '-', '/']);
    match fields[..] {
        [minute, hour, day, _, weekday] if single(minute) && single(hour) => match (day, weekday) {
            ("*", "*") => Some(DAY),
            ("*", one) if single(one) => Some(7 * DAY),
            (one, "*") if single(one) => Some(30 * DAY),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Tree, tree};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    fn modes(tree: &Tree, modes: &[(&str, u32)]) {
        for (path, bits) in modes {
            set_permissions(tree.at(path), Permissions::from_mode(*bits)).unwrap();
        }
    }

    #[test]
    fn one_level_of_scripts_is_read_and_programs_of_packages_are_not() {
        let (tree, source) = tree(&[
            ("etc/cron.d/nightly", "0 3 * * 0 root /opt/db/nightly.sh\n"),
            (
                "opt/db/nightly.sh",
                "#!/bin/bash\nmysqldump shop | gzip > /srv/dumps/shop.sql.gz\n/opt/db/second.sh\n",
            ),
            ("opt/db/second.sh", "#!/bin/sh\nmysqldump crm\n"),
            ("usr/bin/tool", "#!/bin/sh\nmysqldump crm\n"),
            ("etc/cron.daily/local", "#!/bin/sh\ncd /opt/x && ./y.sh\n/usr/bin/tool\n"),
            ("opt/x/y.sh", "#!/bin/sh\ntrue\n"),
        ]);
        modes(&tree, &[("etc/cron.d/nightly", 0o644), ("etc/cron.daily/local", 0o755)]);
        let (jobs, ignored, _) = all(&source).unwrap();
        let paths: Vec<(&str, bool)> =
            jobs.iter().map(|job| (job.path.as_str(), job.makes_backups())).collect();
        assert_eq!(
            paths,
            [
                ("/etc/cron.d/nightly", false),
                ("/etc/cron.daily/local", false),
                ("/opt/db/nightly.sh", true),
                ("/opt/x/y.sh", false)
            ]
        );
        assert_eq!((jobs[2].interval_s, jobs[2].job.as_str()), (Some(7 * 86_400), "/etc/cron.d/nightly"));
        assert_eq!(ignored, Vec::<Value>::new());
    }

    #[test]
    fn services_of_packages_with_a_timer_that_is_on_are_jobs() {
        let (tree, source) = tree(&[
            ("usr/lib/systemd/system/dump.service", "[Service]\nExecStart=/usr/bin/mysqldump -A\n"),
            ("usr/lib/systemd/system/off.service", "[Service]\nExecStart=/usr/bin/mysqldump -A\n"),
        ]);
        tree.file("etc/systemd/system/timers.target.wants/dump.timer", "");
        let (jobs, _, unread) = all(&source).unwrap();
        assert_eq!((jobs.len(), jobs[0].makes_backups(), unread), (1, true, None));
    }

    #[test]
    fn files_that_cron_passes_over_are_told_with_the_reason() {
        let (tree, source) = tree(&[
            ("etc/os-release", "ID=ubuntu\nID_LIKE=debian\n"),
            ("etc/cron.d/db-backup.sh", "0 3 * * * root mysqldump -A > /srv/x.sql\n"),
            ("etc/cron.d/fine", "#\n0 3 * * * root mysqldump -A > /srv/$(date +%F).sql\n"),
            ("etc/cron.d/fine.bak", "0 3 * * * root mysqldump -A > /srv/x.sql\n"),
            ("etc/cron.d/was.off", "0 3 * * * root mysqldump -A > /srv/x.sql\n"),
            ("etc/cron.d/cut", "0 3 * * * root mysqldump -A > /srv/x.sql"),
            ("etc/cron.d/open", "0 3 * * * root mysqldump -A > /srv/x.sql\n"),
            ("etc/cron.daily/dump", "#!/bin/sh\nmysqldump -A > /srv/x.sql\n"),
        ]);
        let plain =
            ["db-backup.sh", "fine", "fine.bak", "cut", "was.off"].map(|name| format!("etc/cron.d/{name}"));
        modes(&tree, &plain.each_ref().map(|path| (path.as_str(), 0o644)));
        modes(&tree, &[("etc/cron.d/open", 0o664), ("etc/cron.daily/dump", 0o644)]);
        let (jobs, ignored, _) = all(&source).unwrap();
        assert_eq!(jobs.len(), 1);
        let told: Vec<(&str, &str)> = ignored
            .iter()
            .map(|entry| (entry["file"].as_str().unwrap(), entry["why"].as_str().unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                ("/etc/cron.d/cut", "its last line has no end"),
                ("/etc/cron.d/db-backup.sh", "its name has a character that cron does not take, as a dot"),
                ("/etc/cron.d/open", "others may write to it"),
                ("/etc/cron.daily/dump", "it is not executable"),
                ("/etc/cron.d/fine", "cron ends the command at the %, which no backslash precedes"),
            ]
        );
        tree.file("etc/os-release", "ID=rocky\nID_LIKE=\"rhel fedora\"\n");
        assert_eq!(all(&source).unwrap().1.len(), 3, "cronie takes names with a dot");
    }

    #[test]
    fn the_interval_is_told_by_the_fields_of_cron_and_by_timers() {
        let (_tree, source) =
            tree(&[("etc/systemd/system/x.timer", "[Timer]\nOnCalendar=Sun *-*-* 02:00\n")]);
        let of = |folder: &str, text: &str| interval(&source, folder, "x.service", text);
        let day = 86_400;
        for (line, expected) in [
            ("0 3 * * * root mysqldump x\n", Some(day)),
            ("0 3 * * 0 root mysqldump x\n", Some(7 * day)),
            ("0 3 1 * * root mysqldump x\n", Some(30 * day)),
            ("@weekly root mysqldump x\n", Some(7 * day)),
            ("0 */4 * * * root mysqldump x\n", None),
            ("0 3 * * 0 root /opt/x.sh\n", Some(7 * day)),
            ("0 3 * * 0 root /opt/x.sh\n0 4 * * * root /opt/y.sh\n", None),
        ] {
            assert_eq!(of("/etc/cron.d", line), expected, "{line}");
        }
        assert_eq!(of("/etc/cron.weekly", ""), Some(7 * day));
        assert_eq!(of(SYSTEMD, ""), Some(7 * day));
    }
}
