//! Jobs that read or remove the server's files beside it: copies of the data directory, binary logs that are deleted, scanners.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::dumps::{MAKERS, WHOLE};
use super::jobs::Job;
use super::shell::Command;

/// Where the server's files are.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The data directory, without a slash at its end.
    pub datadir: String,
    /// Folder and beginning of the names of binary logs.
    pub binlogs: Option<(String, String)>,
}

/// A path as a folder: without slashes, dots and stars at its end.
fn folder(word: &str) -> &str {
    let mut word = word;
    for end in ["/*", "/.", "/"] {
        word = word.strip_suffix(end).unwrap_or(word);
    }
    word
}

/// Whether a path is a folder or one above it, below the root's own folders.
fn holds(word: &str, path: &str) -> bool {
    let word = folder(word);
    word == path || (word.matches('/').count() >= 2 && path.starts_with(&format!("{word}/")))
}

/// Arguments of a command that are no options, and not what `--exclude` and `-f` name.
fn plain(words: &[String]) -> Vec<&str> {
    const WITH_VALUE: [&str; 6] = ["--exclude", "-f", "-e", "--rsh", "--exclude-from", "-x"];
    let mut found = Vec::new();
    let mut skip = false;
    for word in Command::arguments(words) {
        // The last letter of a group as -czf takes the name of the archive.
        let archive = !word.starts_with("--") && word.starts_with('-') && word.ends_with('f');
        match word.starts_with('-') || skip {
            true => skip = !skip && (WITH_VALUE.contains(&word.as_str()) || archive),
            false => found.push(word.as_str()),
        }
    }
    found
}

/// Jobs that copy the files of the data directory while the server runs, where no job makes a backup that is consistent.
pub fn raw_copies(jobs: &[Job], places: &Places) -> Vec<Value> {
    const COPIERS: [&str; 8] = ["cp", "rsync", "tar", "scp", "cpio", "rclone", "zip", "7z"];
    const QUIET: [&str; 16] = [
        "systemctl stop",
        "service mysql stop",
        "service mariadb stop",
        "service mysqld stop",
        "init.d/mysql stop",
        "shutdown",
        "lvcreate",
        "snapshot",
        "fsfreeze",
        "xfs_freeze",
        "FLUSH TABLES",
        "flush tables",
        "LOCK INSTANCE",
        "BACKUP STAGE",
        "docker stop",
        "systemctl is-active",
    ];
    if jobs.iter().any(|job| job.calls(&MAKERS).next().is_some()) {
        return vec![];
    }
    let copies = |job: &&Job| {
        let copies = job.calls(&COPIERS).any(|(words, command)| {
            let own = plain(words);
            let is_tar = command.call(&["tar", "zip", "7z", "cpio"]).is_some();
            // The last argument of the others is where the copy goes.
            let sources = if is_tar { own.len() } else { own.len().saturating_sub(1) };
            let spared = words.iter().any(|word| word.contains("exclude") && word.contains("mysql"));
            let within = words.windows(2).find(|pair| pair[0] == "-C" || pair[0] == "--directory");
            let reads = own[..sources].iter().any(|word| match within {
                Some(pair) if !word.starts_with('/') => {
                    holds(&format!("{}/{word}", folder(&pair[1])), &places.datadir)
                }
                _ => holds(word, &places.datadir),
            });
            let unpacks =
                is_tar && words.first().is_some_and(|word| word.trim_start_matches('-').starts_with('x'));
            reads && !spared && !unpacks
        });
        copies && !QUIET.iter().any(|text| job.text.contains(text))
    };
    named(jobs.iter().filter(copies))
}

/// Jobs that remove binary logs by rm or find.
pub fn deletes_binlogs(jobs: &[Job], places: &Places) -> Vec<Value> {
    let Some((folder_of, stem)) = &places.binlogs else { return vec![] };
    let start = format!("{stem}.");
    let deletes = |job: &&Job| {
        let by_rm = job.calls(&["rm"]).any(|(words, command)| {
            let there = command
                .words
                .iter()
                .chain(
                    &job.script
                        .commands
                        .iter()
                        .find(|c| c.words.first().is_some_and(|w| w == "cd"))
                        .map(|c| c.words.clone())
                        .unwrap_or_default(),
                )
                .any(|word| folder(word) == folder_of);
            words.iter().any(|word| {
                let (above, name) = word.rsplit_once('/').unwrap_or(("", word));
                name.starts_with(&start) && (above == folder_of || (above.is_empty() && there))
            })
        });
        let by_find = job.calls(&["find"]).any(|(words, _)| {
            let removes = words.iter().any(|word| word == "-delete" || word == "rm" || word.ends_with("/rm"));
            let here = words.first().is_some_and(|word| holds(word, folder_of));
            let pattern = words.windows(2).find(|pair| pair[0] == "-name" || pair[0] == "-iname");
            here && removes
                && pattern.is_some_and(|pair| {
                    pair[1].starts_with(&start) || pair[1].starts_with(&format!("{stem}*"))
                })
        });
        // find … | xargs rm
        let by_xargs = job.script.commands.windows(2).any(|pair| {
            let finds = pair[0].call(&["find", "ls"]).is_some_and(|(_, words)| {
                words.first().is_some_and(|word| word.starts_with(folder_of.as_str()))
                    && words.iter().any(|word| word.contains(&start))
            });
            finds && pair[0].piped && pair[1].call(&["rm"]).is_some()
        });
        by_rm || by_find || by_xargs
    };
    named(jobs.iter().filter(deletes))
}

/// Jobs that scan the data directory for viruses: file, moves (whether they move or remove what they take for one).
pub fn scanners(jobs: &[Job], places: &Places) -> Vec<Value> {
    const SCANNERS: [&str; 6] = ["clamscan", "clamdscan", "savscan", "uvscan", "maldet", "rkhunter-scan"];
    let mut found: Vec<Value> = Vec::new();
    for job in jobs {
        for (words, _) in job.calls(&SCANNERS) {
            let goes = plain(words).iter().any(|word| {
                *word == "/" || {
                    let word = folder(word);
                    !word.is_empty()
                        && (word == places.datadir || places.datadir.starts_with(&format!("{word}/")))
                }
            });
            let spared = words.iter().filter_map(|word| {
                let (name, value) = word.split_once('=')?;
                name.starts_with("--exclude").then(|| value.trim_matches(['^', '$', '(', ')', '/', '*', '.']))
            });
            let spared = spared.into_iter().any(|value| !value.is_empty() && places.datadir.contains(value));
            let listed = words.iter().any(|word| word.starts_with("--file-list") || word == "-f");
            if goes && !spared && !listed {
                let moves =
                    words.iter().any(|word| word.starts_with("--move") || word.starts_with("--remove"));
                let entry = json!({"file": job.path, "moves": moves});
                if !found.contains(&entry) && found.len() < 20 {
                    found.push(entry);
                }
            }
        }
    }
    found
}

/// Programs that carry files to another host or to a store.
pub const CARRIERS: [&str; 21] = [
    "rsync",
    "scp",
    "sftp",
    "rclone",
    "restic",
    "borg",
    "borgmatic",
    "duplicity",
    "s3cmd",
    "aws",
    "gsutil",
    "gcloud",
    "az",
    "azcopy",
    "mc",
    "lftp",
    "ssh",
    "kopia",
    "proxmox-backup-client",
    "rdiff-backup",
    "xbcloud",
];

/// Whether a job, or a program that runs, may carry backups to another place.
pub fn copies_away(jobs: &[Job], running: &[String]) -> bool {
    const AGENTS: [&str; 10] = [
        "bareos-fd",
        "bacula-fd",
        "veeamservice",
        "dsmcad",
        "bpcd",
        "urbackupclient",
        "cvd",
        "avagent",
        "proxmox-backup-",
        "rsync",
    ];
    // Without a host in an argument, these copy within this one.
    const LOCAL: [&str; 2] = ["rsync", "rdiff-backup"];
    let carries = |(words, command): (&[String], &Command)| {
        let is_local = command.call(&LOCAL).is_some();
        !is_local || words.iter().any(|word| word.contains(':') || word.contains("$"))
    };
    // A script that only carries is called by the job of one that makes the backup.
    let of_backups: BTreeSet<&str> =
        jobs.iter().filter(|job| job.makes_backups()).map(|job| job.job.as_str()).collect();
    let is_of_backups = |job: &&Job| of_backups.contains(job.job.as_str());
    running.iter().any(|name| AGENTS.contains(&name.as_str()))
        || jobs.iter().any(|job| is_of_backups(&job) && job.calls(&CARRIERS).any(carries))
}

/// Whether a job makes a backup of all files, which holds stored objects and all schemas.
pub fn physical(jobs: &[Job]) -> bool {
    jobs.iter().any(|job| job.calls(&WHOLE).next().is_some())
}

/// Files of jobs, each once.
pub fn named<'a>(jobs: impl Iterator<Item = &'a Job>) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for job in jobs {
        let path = Value::from(job.path.as_str());
        if !found.contains(&path) && found.len() < 20 {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::upkeep::shell::Script;

    fn jobs(text: &str) -> [Job; 1] {
        let script = Script::of(text);
        [Job { path: "/x".into(), text: text.into(), script, job: "/x".into(), interval_s: None }]
    }

    fn places() -> Places {
        Places { datadir: "/var/lib/mysql".into(), binlogs: Some(("/var/lib/mysql".into(), "binlog".into())) }
    }

    #[test]
    fn copies_of_the_data_directory_under_a_server_that_runs_are_told() {
        for text in [
            "0 3 * * * root rsync -a /var/lib/mysql/ /var/lib/mysql_backup/",
            "cp -a /var/lib/mysql /backup/$(date +%F)",
            "D=/var/lib/mysql\ntar -czf /backup/x.tgz $D",
            "tar czf /backup/x.tgz /var/lib",
            "tar -C /var/lib -cf /backup/x.tar mysql",
            "rsync -a --delete /var/lib/mysql host:/backup/",
        ] {
            assert_eq!(raw_copies(&jobs(text), &places()), [Value::from("/x")], "{text}");
        }
        for text in [
            "rsync -a /backup/mysql/ /var/lib/mysql/",
            "systemctl stop mysql; cp -a /var/lib/mysql /backup/",
            "rsync -a /mnt/snap/mysql/ /backup/",
            "tar xzf /backup/x.tgz -C /var/lib mysql",
            "rsync -a --exclude=/mysql /var/lib /backup",
            "cp -a /var/lib/mysql /backup/; mysqldump -A > /x",
            "cp /etc/my.cnf /backup",
            "tar czf /x.tgz /",
        ] {
            assert!(raw_copies(&jobs(text), &places()).is_empty(), "{text}");
        }
    }

    #[test]
    fn jobs_that_remove_binary_logs_are_told() {
        for text in [
            "find /var/lib/mysql -name 'binlog.0*' -mtime +2 -delete",
            "find /var/lib/mysql/ -name \"binlog.*\" -exec rm {} +",
            "rm -f /var/lib/mysql/binlog.0*",
            "cd /var/lib/mysql && rm -f binlog.00*",
            "ls /var/lib/mysql/binlog.* | head -n -5 | xargs rm",
        ] {
            let told = !deletes_binlogs(&jobs(text), &places()).is_empty();
            assert_eq!(told, !text.starts_with("ls"), "{text}");
        }
        for text in [
            "find /backup/binlogs -name 'binlog.*' -delete",
            "rm /backup/binlog.000001",
            "find /var/lib/mysql -name '*.err' -delete",
        ] {
            assert!(deletes_binlogs(&jobs(text), &places()).is_empty(), "{text}");
        }
        assert!(deletes_binlogs(&jobs("rm /var/lib/mysql/binlog.1"), &Places::default()).is_empty());
    }

    #[test]
    fn scanners_that_go_through_the_data_directory_are_told() {
        let of = |text: &str| scanners(&jobs(text), &places());
        assert_eq!(of("clamscan -r / --move=/quarantine"), [json!({"file": "/x", "moves": true})]);
        assert_eq!(of("/usr/bin/clamscan -ri /var"), [json!({"file": "/x", "moves": false})]);
        for text in [
            "clamscan -r / --exclude-dir=^/var/lib/mysql",
            "clamscan -r /home",
            "clamscan --exclude-dir=/var/lib -r /",
            "clamscan -r /var/library",
        ] {
            assert!(of(text).is_empty(), "{text}");
        }
        assert!(copies_away(&jobs("rsync -a /backup host:/x"), &[]));
        assert!(!copies_away(&jobs("rsync -a /backup /x"), &[]));
        let [mut dump] = jobs("mysqldump shop > /srv/x.sql");
        let [mut carry] = jobs("rsync -a /srv/x.sql host:/x");
        (dump.path, carry.path) = ("/dump.sh".into(), "/carry.sh".into());
        assert!(copies_away(&[dump, carry], &[]), "both are called by one job");
        assert!(
            copies_away(&[], &["bareos-fd".to_owned()]) && !copies_away(&jobs("ls"), &["init".to_owned()])
        );
        assert!(physical(&jobs("mariabackup --backup")) && !physical(&jobs("mysqldump x")));
    }
}
