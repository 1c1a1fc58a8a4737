//! Which server a job is for, where a host has several.

use super::dumps::MAKERS;
use super::jobs::Job;
use super::shell::Command;
use crate::source::Source;

/// Where clients of this host reach the audited server.
#[derive(Debug, Default)]
pub struct Target {
    /// Its socket, as an absolute path.
    pub socket: Option<String>,
    /// Its port.
    pub port: Option<String>,
}

/// A server that a call names, by its socket or its port.
#[derive(Debug, PartialEq)]
enum Named {
    Socket(String),
    Port(String),
    Elsewhere,
}

/// Without the jobs that name other servers alone, and those that call nothing but such scripts.
pub fn of_this_server(source: &Source, jobs: Vec<Job>, target: &Target) -> Vec<Job> {
    let calls_others = |job: &Job| {
        let mut of_others = false;
        for (words, _) in job.calls(&MAKERS) {
            match named(source, Command::arguments(words)) {
                Some(server) if !target.is(&server) => of_others = true,
                // One that names no server is for the usual one.
                _ => return false,
            }
        }
        of_others
    };
    let scripts: Vec<(String, String, bool)> = jobs
        .iter()
        .filter(|job| job.is_called())
        .map(|job| (job.job.clone(), job.path.clone(), calls_others(job)))
        .collect();
    let keeps = |job: &Job| {
        if calls_others(job) {
            return false;
        }
        let mut called =
            scripts.iter().filter(|(by, path, _)| *by == job.path && *path != job.path).peekable();
        let makes_none = job.calls(&MAKERS).next().is_none();
        !(makes_none && called.peek().is_some() && called.all(|(.., of_others)| *of_others))
    };
    jobs.into_iter().filter(keeps).collect()
}

impl Target {
    /// Whether a call with these options may be for this server.
    pub fn may_be_of(&self, source: &Source, words: &[String]) -> bool {
        named(source, words).is_none_or(|server| self.is(&server))
    }

    fn is(&self, server: &Named) -> bool {
        match server {
            Named::Socket(path) => self.socket.as_ref().is_none_or(|own| own == path),
            Named::Port(port) => self.port.as_ref().is_none_or(|own| own == port),
            Named::Elsewhere => false,
        }
    }
}

/// The server that options name, themselves or in the file of options that they name.
fn named(source: &Source, words: &[String]) -> Option<Named> {
    let value = |long: &str, short: &str| {
        words.iter().enumerate().find_map(|(place, word)| {
            let following = || words.get(place + 1).cloned();
            match word.strip_prefix(long) {
                Some("") => following(),
                Some(rest) => rest.strip_prefix('=').map(str::to_owned),
                None if !short.is_empty() && word == short => following(),
                None if short.is_empty() => None,
                None => word.strip_prefix(short).filter(|rest| !rest.starts_with('-')).map(str::to_owned),
            }
        })
    };
    let plain = |text: &String| !text.is_empty() && !text.contains('$');
    let elsewhere = |host: &str| !["localhost", "127.0.0.1", "::1"].contains(&host);
    if value("--host", "-h").filter(plain).is_some_and(|host| elsewhere(&host)) {
        return Some(Named::Elsewhere);
    }
    if let Some(socket) = value("--socket", "-S").filter(plain) {
        return Some(Named::Socket(socket));
    }
    if let Some(port) = value("--port", "-P").filter(plain) {
        return Some(Named::Port(port));
    }
    let file = value("--defaults-file", "").or_else(|| value("--defaults-extra-file", "")).filter(plain)?;
    let text = source.text_within(&file, 256 << 10).ok()?;
    let mut of_clients = false;
    let mut port = None;
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[') {
            of_clients = group.starts_with("client")
                || group.starts_with("mysqldump")
                || group.starts_with("mariadb-dump");
        } else if let Some((name, value)) = line.split_once('=').filter(|_| of_clients) {
            match name.trim() {
                "host" if elsewhere(value.trim()) => return Some(Named::Elsewhere),
                "socket" => return Some(Named::Socket(value.trim().to_owned())),
                "port" => port = Some(Named::Port(value.trim().to_owned())),
                _ => {}
            }
        }
    }
    port
}

#[cfg(test)]
mod tests {
    use super::super::jobs;
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_job_that_names_another_server_is_none_of_this_one() {
        let dump = "#!/bin/sh\nmysqldump";
        let scripts = [
            ("opt/other.sh", format!("{dump} -S /run/b.sock shop > /srv/b.sql\n")),
            ("opt/own.sh", format!("{dump} --socket=/run/a.sock shop > /srv/a.sql\n")),
            ("opt/plain.sh", format!("{dump} shop > /srv/c.sql\n")),
            ("opt/file.sh", format!("{dump} --defaults-extra-file=/opt/b.cnf shop > /srv/d.sql\n")),
            ("opt/port.sh", format!("{dump} -P3307 -h 127.0.0.1 shop > /srv/e.sql\n")),
            ("opt/b.cnf", "[client]\nuser=backup\nsocket = /run/b.sock\n".to_owned()),
        ];
        let mut files: Vec<(&str, &str)> =
            scripts.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let lines: String = ["other", "own", "plain", "file", "port"]
            .map(|name| format!("0 3 * * * root /opt/{name}.sh\n"))
            .concat();
        files.push(("etc/crontab", &lines));
        files.push(("var/spool/cron/b", "0 4 * * * /opt/only-b.sh\n"));
        files.push(("opt/only-b.sh", "#!/bin/sh\nmysqldump -S /run/b.sock crm > /srv/backup-b.sql\n"));
        let (_tree, source) = tree(&files);
        let (all, ..) = jobs::all(&source).unwrap();
        let target = Target { socket: Some("/run/a.sock".to_owned()), port: Some("3306".to_owned()) };
        let kept = of_this_server(&source, all, &target);
        let paths: Vec<&str> = kept.iter().map(|job| job.path.as_str()).collect();
        assert_eq!(paths, ["/etc/crontab", "/opt/own.sh", "/opt/plain.sh"]);
    }
}
