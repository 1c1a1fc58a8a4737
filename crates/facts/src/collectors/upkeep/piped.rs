//! Dumps on lines of cron whose failure nobody sees, and dumps that each run writes over the last.

use serde_json::{Value, json};

use super::dumps::DUMPS;
use super::jobs::Job;
use super::shell::Command;
use crate::source::Source;

/// Entries of a list.
const LISTED: usize = 20;

/// Words of what keeps, carries away or renames a file.
const KEEPERS: [&str; 22] = [
    "mv",
    "cp",
    "ln",
    "rename",
    "rsync",
    "scp",
    "sftp",
    "rclone",
    "restic",
    "borg",
    "borgmatic",
    "rsnapshot",
    "duplicity",
    "logrotate",
    "savelog",
    "tar",
    "aws",
    "s3cmd",
    "gsutil",
    "git",
    "zfs",
    "btrfs",
];

/// Lines of cron that send a dump through a pipe, where what the dump says of its failure goes nowhere: to /dev/null, to nobody by
/// MAILTO, or to a mail that no program of the host can send.
pub fn unseen(source: &Source, jobs: &[Job]) -> Vec<Value> {
    let can_mail = ["/usr/sbin/sendmail", "/usr/lib/sendmail"].iter().any(|path| source.exists(path));
    let mut found: Vec<Value> = Vec::new();
    for job in jobs.iter().filter(|job| !job.is_called() && job.path.contains("cron")) {
        // Scripts in folders of cron, as cron.daily, are told with the other scripts.
        let is_table = job.path.starts_with("/etc/cron.d/") || job.path.contains("/spool/cron/");
        let piped = job.calls(&DUMPS).any(|(_, command)| command.piped);
        let to_nobody = job.lines().any(|line| {
            line.trim().strip_prefix("MAILTO").is_some_and(|rest| {
                rest.trim_start().trim_start_matches('=').trim().trim_matches(['"', '\'']).is_empty()
            })
        });
        let guarded = ["pipefail", "PIPESTATUS"].iter().any(|word| job.text.contains(word));
        let is_lost = |line: &str| {
            let Some((dump, rest)) = line.split_once('|') else { return false };
            DUMPS.iter().any(|name| dump.contains(name))
                && (dump.contains("2>/dev/null")
                    || dump.contains("2> /dev/null")
                    || ((to_nobody || !can_mail) && !dump.contains("2>") && !is_kept(rest)))
        };
        if is_table && piped && !guarded && job.lines().any(is_lost) && found.len() < LISTED {
            found.push(job.path.as_str().into());
        }
    }
    found
}

/// Whether a whole line's errors go to a file, as by brackets around the pipe.
fn is_kept(rest: &str) -> bool {
    rest.contains(")") && rest.contains("2>")
}

/// Dumps to one file of a fixed name that nothing renames or carries away: job, file.
pub fn overwrites(jobs: &[Job]) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for job in jobs {
        let commands = &job.script.commands;
        for at in (0..commands.len()).filter(|at| commands[*at].call(&DUMPS).is_some()) {
            let Some(file) = target(&commands[at..]) else { continue };
            let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            let entry = json!({"job": job.path, "file": file});
            let is_kept = jobs
                .iter()
                .any(|other| (other.job == job.job || other.text.contains(folder)) && keeps(other));
            if !is_kept && !found.contains(&entry) && found.len() < LISTED {
                found.push(entry);
            }
        }
    }
    found
}

/// Whether a job calls something that keeps files.
fn keeps(job: &Job) -> bool {
    job.lines().any(|line| {
        line.split(|c: char| c.is_whitespace() || ";|&()".contains(c))
            .any(|word| KEEPERS.contains(&word.rsplit('/').next().unwrap_or(word)))
    })
}

/// The file of a fixed name that a pipe ends in.
fn target(commands: &[Command]) -> Option<String> {
    for command in commands {
        let mut words = command.words.iter();
        while let Some(word) = words.next() {
            let file = match word.as_str() {
                ">" | "1>" | "-r" | "--result-file" => words.next()?.clone(),
                word => match word.strip_prefix("--result-file=").or_else(|| word.strip_prefix('>')) {
                    Some(file) if !file.starts_with(['>', '&']) => file.to_owned(),
                    _ => continue,
                },
            };
            let is_fixed = !file.contains(['$', '`', '%', '*', super::shell::OR]);
            return (file.starts_with('/') && !file.starts_with("/dev/") && is_fixed).then_some(file);
        }
        if !command.piped {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::upkeep::shell::Script;
    use crate::tree::Tree;

    fn job(path: &str, text: &str) -> Job {
        Job {
            path: path.to_owned(),
            text: text.to_owned(),
            script: Script::of(text),
            job: path.to_owned(),
            interval_s: None,
        }
    }

    #[test]
    fn a_piped_dump_whose_errors_go_nowhere_is_told() {
        let (without, with) = (Tree::of(&[]), Tree::of(&[("usr/sbin/sendmail", "")]));
        let of = |tree: &Tree, line: &str| unseen(&tree.source(), &[job("/etc/cron.d/dump", line)]).len();
        let plain = "5 1 * * * root mysqldump --databases lab | gzip > /backup/lab.sql.gz\n";
        assert_eq!((of(&without, plain), of(&with, plain)), (1, 0));
        for (line, number) in [
            ("5 1 * * * root mysqldump lab 2>/dev/null | gzip > /b/lab.sql.gz\n", 1),
            ("MAILTO=\"\"\n5 1 * * * root mysqldump lab | gzip > /b/lab.sql.gz\n", 1),
            ("MAILTO=dba\n5 1 * * * root mysqldump lab | gzip > /b/lab.sql.gz\n", 0),
            ("5 1 * * * root mysqldump lab > /b/lab.sql 2>/dev/null\n", 0),
            ("MAILTO=''\n5 1 * * * root mysqldump lab 2>>/var/log/dump.err | gzip > /b/lab.sql.gz\n", 0),
            ("MAILTO=''\n5 1 * * * root (mysqldump lab | gzip > /b/lab.sql.gz) 2>>/var/log/dump.err\n", 0),
            ("5 1 * * * root set -o pipefail; mysqldump lab 2>/dev/null | gzip > /b/lab.sql.gz\n", 0),
        ] {
            assert_eq!(of(&with, line), number, "{line}");
        }
    }

    #[test]
    fn a_dump_to_one_name_is_told_unless_something_keeps_it() {
        let of = |lines: &[&str]| {
            let jobs: Vec<Job> =
                lines.iter().enumerate().map(|(at, line)| job(&format!("/etc/cron.d/{at}"), line)).collect();
            overwrites(&jobs).len()
        };
        let plain = "5 1 * * * root mysqldump --databases lab | gzip > /backup/lab.sql.gz\n";
        assert_eq!(of(&[plain]), 1);
        assert_eq!(of(&["5 1 * * * root mysqldump lab -r /backup/lab.sql\n"]), 1);
        assert_eq!(of(&[plain, "0 5 * * * root rsync -a /backup/ nas:/lab/\n"]), 0);
        assert_eq!(of(&["5 1 * * * root mysqldump lab | gzip > /backup/lab-$(date +\\%F).sql.gz\n"]), 0);
        assert_eq!(of(&["5 1 * * * root mv /b/a /b/a.1; mysqldump lab > /b/a\n"]), 0);
        assert_eq!(of(&["5 1 * * * root mysqldump lab > /dev/null\n"]), 0);
    }
}
