//! Passwords that jobs hold: on the command lines of programs that log in, and in variables.

use serde_json::Value;

use super::jobs::Job;
use super::shell::{Command, assignment};
use super::target::Target;
use crate::collectors::exposure::Place;
use crate::source::Source;

/// Programs that log in to a server and whose names are those of nothing else.
const PROGRAMS: [&str; 36] = [
    "mysqldump",
    "mariadb-dump",
    "mysqlpump",
    "mydumper",
    "myloader",
    "xtrabackup",
    "innobackupex",
    "mariabackup",
    "mariadb-backup",
    "mysqlbackup",
    "mysqlhotcopy",
    "mysqlsh",
    "mysqladmin",
    "mariadb-admin",
    "mysqlcheck",
    "mariadb-check",
    "mysqloptimize",
    "mysqlanalyze",
    "mysqlrepair",
    "mysqlimport",
    "mariadb-import",
    "mysqlshow",
    "mariadb-show",
    "mysqlslap",
    "mysqlbinlog",
    "mariadb-binlog",
    "mysqltuner",
    "mysqltuner.pl",
    "pt-archiver",
    "pt-heartbeat",
    "pt-kill",
    "pt-online-schema-change",
    "pt-query-digest",
    "pt-stalk",
    "pt-table-checksum",
    "pt-table-sync",
];

/// The client itself, whose name is also that of a user, a service and a folder.
const CLIENTS: [&str; 2] = ["mysql", "mariadb"];

/// Files of jobs and scripts in which a program gets its password on its command line, which `ps` shows to everybody.
pub fn with_password(source: &Source, jobs: &[Job], target: &Target) -> Vec<Value> {
    let shows = |job: &&Job| job.script.commands.iter().any(|command| shows(source, command, target));
    super::others::named(jobs.iter().filter(shows))
}

/// Files of jobs and scripts that hold a password and that every user of the host may read: file, mode.
pub fn exposed(source: &Source, jobs: &[Job], target: &Target) -> Vec<Value> {
    let place = Place { source, view: "" };
    let is_plain = |value: &str| !value.is_empty() && !value.contains('$');
    let holds = |job: &&Job| {
        let set = job.script.variables.get("MYSQL_PWD").is_some_and(|value| is_plain(value));
        let before = |command: &Command| {
            let mut set = command.words.iter().filter_map(|word| assignment(word));
            set.any(|(name, value)| name == "MYSQL_PWD" && is_plain(value))
                && arguments(command).is_some_and(|words| target.may_be_of(source, words))
        };
        let commands = &job.script.commands;
        set || commands.iter().any(|command| shows(source, command, target) || before(command))
    };
    let found = jobs.iter().filter(holds).filter_map(|job| place.open_to_all(&job.path, 0o004));
    found.take(20).collect()
}

/// Whether a command gives a password of this server to a program.
fn shows(source: &Source, command: &Command, target: &Target) -> bool {
    arguments(command).is_some_and(|words| is_password(words) && target.may_be_of(source, words))
}

/// Arguments of the program that logs in.
fn arguments(command: &Command) -> Option<&[String]> {
    if let Some((_, words)) = command.call(&PROGRAMS) {
        return Some(Command::arguments(words));
    }
    command.call(&CLIENTS)?;
    let place = (0..command.words.len()).find(|place| is_client(&command.words, *place))?;
    Some(Command::arguments(&command.words[place + 1..]))
}

/// Whether a word is the client, and not a user, a service or a folder by its name.
fn is_client(words: &[String], place: usize) -> bool {
    const NAMED: [&str; 4] = ["-u", "-g", "-o", "service"];
    const OF_FILES: [&str; 13] = [
        "cp",
        "mv",
        "rm",
        "ls",
        "du",
        "tar",
        "find",
        "rsync",
        "chown",
        "mkdir",
        "scp",
        "systemctl",
        "install",
    ];
    let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let word = &words[place];
    let is_program = !word.contains('/') || word.contains("/bin/");
    let before = &words[..place];
    CLIENTS.contains(&name(word).as_str())
        && is_program
        && !before.last().is_some_and(|word| NAMED.contains(&word.as_str()))
        && !before.iter().any(|word| OF_FILES.contains(&name(word).as_str()))
}

/// Whether a password stands among the words, and not a variable or a command that gives it.
pub fn is_password(words: &[String]) -> bool {
    let is_plain = |value: &str| {
        // `%s` of another language, `{password}` of a template, `<password>` and stars of a text about it.
        let is_place = value.starts_with(['-', '$', '%', '{', '<', '*']);
        let is_port = value.contains(':') && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        !value.is_empty() && !is_place && !is_port
    };
    let value = |word: &String| {
        is_plain(word.strip_prefix("-p").or_else(|| word.strip_prefix("--password=")).unwrap_or_default())
    };
    words.iter().any(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::upkeep::shell::Script;
    use crate::tree::tree;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    fn job(path: &str, text: &str) -> Job {
        let script = Script::of(text);
        Job { path: path.into(), text: text.into(), script, job: path.into(), interval_s: None }
    }

    #[test]
    fn passwords_of_all_programs_that_log_in_are_told_and_prompts_are_not() {
        let (_tree, source) = tree(&[]);
        let target = Target { socket: Some("/run/a.sock".to_owned()), port: Some("3306".to_owned()) };
        let told = |text: &str| !with_password(&source, &[job("/x", text)], &target).is_empty();
        for text in [
            "0 4 * * * root mysql -uapp -pGeheim shop -e 'DELETE FROM sessions'",
            "*/5 * * * * root /usr/bin/mysqladmin -u root --password=Geheim ping > /dev/null",
            "0 4 * * * mysql mysql -pGeheim shop",
            "sudo -u mysql mysql -pGeheim shop",
            "docker exec db mysqldump -uroot -pGeheim shop > /x",
            "docker exec mysql mysql -uroot -pGeheim shop",
            "ssh db1 \"mysql -uroot -pGeheim shop\"",
            "PW=Geheim\nmysql -uapp -p$PW shop",
            "mariadb-backup --backup --password=Geheim",
            "mysql -h 127.0.0.1 -P3306 -p123456 shop",
        ] {
            assert!(told(text), "{text}");
        }
        for text in [
            "mysql -p shop",
            "mysql -p$PW shop",
            "mysql -p\"$(cat /root/.pw)\" shop",
            "mysql -P3306 shop",
            "mysql --defaults-extra-file=/root/x.cnf shop",
            "mysql -S /run/b.sock -pGeheim shop",
            "mysql -h db2 -pGeheim shop",
            "cp -a /var/lib/mysql -pr /backup",
            "mkdir -p /var/lib/mysql -pv",
            "docker run --name mysql -p3306:3306 mysql:8",
            "echo mysql -pGeheim",
            "cmd = 'mysql -u%s -p%s' % (user, password)",
            "zfs send -pR tank/mysql",
        ] {
            assert!(!told(text), "{text}");
        }
    }

    #[test]
    fn files_with_a_password_are_told_where_all_may_read_them() {
        let (tree, source) = tree(&[("etc/cron.d/a", ""), ("etc/cron.d/b", ""), ("opt/c.sh", "")]);
        for (path, mode) in
            [("etc", 0o755), ("etc/cron.d", 0o755), ("etc/cron.d/a", 0o644), ("etc/cron.d/b", 0o600)]
        {
            set_permissions(tree.at(path), Permissions::from_mode(mode)).unwrap();
        }
        for (path, mode) in [("opt", 0o755), ("opt/c.sh", 0o755)] {
            set_permissions(tree.at(path), Permissions::from_mode(mode)).unwrap();
        }
        let jobs = [
            job("/etc/cron.d/a", "0 4 * * * root mysql -pGeheim shop"),
            job("/etc/cron.d/b", "0 4 * * * root mysql -pGeheim shop"),
            job("/opt/c.sh", "MYSQL_PWD=Geheim mysql shop"),
        ];
        let found = exposed(&source, &jobs, &Target::default());
        let files: Vec<&str> = found.iter().map(|entry| entry["file"].as_str().unwrap()).collect();
        assert_eq!(files, ["/etc/cron.d/a", "/opt/c.sh"]);
        for (value, count) in [("Geheim", 1), ("$1", 0)] {
            let job = job("/opt/c.sh", &format!("export MYSQL_PWD={value}\nmysql shop"));
            assert_eq!(exposed(&source, &[job], &Target::default()).len(), count, "{value}");
        }
    }
}
