//! Files of clients on the server's host: option files of users, and the sockets that clients take.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::collectors::exposure::with_password;
use crate::option_files::LARGEST_FILE;
use crate::source::{Missing, Source};

/// Users that are looked at.
const MOST_USERS: usize = 500;

/// Entries of a list.
const LISTED: usize = 20;

/// Files of programs that keep an account of the server, beside those of users.
const OF_PROGRAMS: [&str; 4] =
    ["/etc/mysql/debian.cnf", "/etc/zabbix/.my.cnf", "/var/www/.my.cnf", "/etc/zabbix/my.cnf"];

/// Option files with a password that every user of the host may read, among those of the host's users: file, mode, user (the
/// account that they name). `known` are files that the server reads.
pub(super) fn exposed(source: &Source, known: &[&str]) -> Vec<Value> {
    let users = source.text_within("/etc/passwd", 1 << 20).unwrap_or_default();
    let homes = users.lines().take(MOST_USERS).filter_map(|line| line.split(':').nth(5));
    let homes = homes.filter(|home| home.starts_with('/') && home.len() > 1);
    let files: BTreeSet<String> =
        homes.map(|home| format!("{home}/.my.cnf")).chain(OF_PROGRAMS.map(str::to_owned)).collect();
    let entry = |file: &String| {
        let mut found = with_password(source, "", file)?;
        found["user"] = user(&source.text_within(file, LARGEST_FILE).ok()?).into();
        Some(found)
    };
    let files = files.iter().filter(|file| !known.contains(&file.as_str()));
    files.filter_map(entry).take(LISTED).collect()
}

/// The account that an option file names first.
fn user(text: &str) -> String {
    let options = text.lines().filter_map(|line| line.split_once('='));
    let mut named = options.filter(|(name, _)| name.trim() == "user");
    named.next().map_or(String::new(), |(_, user)| user.trim().trim_matches(['"', '\'']).to_owned())
}

/// Groups of option files that clients read.
const GROUPS: [&str; 9] = [
    "client",
    "client-server",
    "client-mariadb",
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mariadb-client",
    "mariadb-dump",
    "mariadb-admin",
];

/// Option files by which clients do not verify the server: file, line.
pub(super) fn unverified(source: &Source, files: &[String]) -> Vec<Value> {
    let mut found = Vec::new();
    for file in files {
        let text = source.text_within(file, LARGEST_FILE).unwrap_or_default();
        let mut inside = false;
        for (at, line) in text.lines().map(str::trim).enumerate() {
            if let Some(group) = line.strip_prefix('[') {
                inside = GROUPS.contains(&group.split(']').next().unwrap_or_default());
            } else if inside && does_not_verify(line) && found.len() < LISTED {
                found.push(json!({"file": file, "line": at + 1}));
            }
        }
    }
    found
}

/// Whether a line switches the verification of the server's certificate off.
fn does_not_verify(line: &str) -> bool {
    let line = line.split('#').next().unwrap_or_default();
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    let name = name.trim().to_ascii_lowercase().replace('_', "-");
    let value = value.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    match name.trim_start_matches("loose-") {
        "ssl-verify-server-cert" => ["0", "off", "false", "no"].contains(&value.as_str()),
        "skip-ssl-verify-server-cert" | "disable-ssl-verify-server-cert" => value.is_empty() || value == "1",
        _ => false,
    }
}

/// Sockets that clients take by option files and by PHP's, where these are not there: file, socket.
pub(super) fn sockets(source: &Source, files: &[String], server: &str) -> Vec<Value> {
    let mut found: Vec<(String, String)> = Vec::new();
    for file in files {
        let text = source.text_within(file, LARGEST_FILE).unwrap_or_default();
        let mut inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(group) = line.strip_prefix('[') {
                inside = GROUPS.contains(&group.split(']').next().unwrap_or_default());
            } else if let Some((name, value)) = line.split_once('=').filter(|_| inside)
                && name.trim() == "socket"
            {
                let value = value.split('#').next().unwrap_or_default();
                found.push((file.clone(), value.trim().trim_matches(['"', '\'']).to_owned()));
            }
        }
    }
    for file in of_php(source) {
        let text = source.text_within(&file, LARGEST_FILE).unwrap_or_default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            if ["mysqli.default_socket", "pdo_mysql.default_socket"].contains(&name.trim()) {
                found.push((file.clone(), value.trim().trim_matches('"').to_owned()));
            }
        }
    }
    // A socket that is there belongs to another server, or is a link to this one's.
    let is_gone = |socket: &str| matches!(source.stat(socket), Err(Missing::Absent(_)));
    found.retain(|(_, socket)| socket.starts_with('/') && socket != server && is_gone(socket));
    found.dedup();
    found.into_iter().take(LISTED).map(|(file, socket)| json!({"file": file, "socket": socket})).collect()
}

/// Configuration files of PHP.
fn of_php(source: &Source) -> Vec<String> {
    let mut found = vec!["/etc/php.ini".to_owned()];
    for version in source.list("/etc/php").unwrap_or_default() {
        let kinds = source.list(&format!("/etc/php/{version}")).unwrap_or_default();
        found.extend(kinds.into_iter().map(|kind| format!("/etc/php/{version}/{kind}/php.ini")));
    }
    found.truncate(LISTED);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn users_files_with_a_password_that_all_may_read_are_told_with_the_account() {
        let text = "[client]\nuser = root\npassword=\"secret\"\n";
        let tree = Tree::of(&[
            (
                "etc/passwd",
                "root:x:0:0::/root:/bin/sh\ndeploy:x:1000:1000::/home/deploy:/bin/sh\nb:x:1:1::/home/b:/x\n",
            ),
            ("home/deploy/.my.cnf", text),
            ("home/b/.my.cnf", text),
            ("root/.my.cnf", "[client]\nuser=root\n"),
        ]);
        for (path, mode) in [
            ("home", 0o755),
            ("home/deploy", 0o755),
            ("home/b", 0o700),
            ("root", 0o755),
            ("home/deploy/.my.cnf", 0o644),
            ("home/b/.my.cnf", 0o644),
            ("root/.my.cnf", 0o644),
        ] {
            set_permissions(tree.at(path), Permissions::from_mode(mode)).unwrap();
        }
        let found = exposed(&tree.source(), &[]);
        assert_eq!(found, [json!({"file": "/home/deploy/.my.cnf", "mode": "0644", "user": "root"})]);
        assert!(exposed(&tree.source(), &["/home/deploy/.my.cnf"]).is_empty());
    }

    #[test]
    fn lines_that_keep_clients_from_verifying_the_server_are_told() {
        let text = "[mysqld]\nssl-verify-server-cert=0\n[client]\nssl_verify_server_cert = OFF # old name\n\
                    ssl-verify-server-cert\n# ssl-verify-server-cert=0\nskip-ssl-verify-server-cert\n";
        let tree = Tree::of(&[("etc/mysql/conf.d/client.cnf", text)]);
        let file = "/etc/mysql/conf.d/client.cnf".to_owned();
        let found = unverified(&tree.source(), std::slice::from_ref(&file));
        assert_eq!(found, [json!({"file": file, "line": 4}), json!({"file": file, "line": 7})]);
    }

    #[test]
    fn sockets_of_clients_that_are_not_there_are_told() {
        let tree = Tree::of(&[
            (
                "etc/my.cnf",
                "[client]\nsocket = /run/gone.sock # x\n[mysqld]\nsocket=/run/other.sock\n[mysql]\nsocket=/run/there.sock\n",
            ),
            (
                "etc/php/8.2/fpm/php.ini",
                "mysqli.default_socket = \"/run/php.sock\"\npdo_mysql.default_socket=\n; x = 1\n",
            ),
            ("run/there.sock", ""),
        ]);
        let found = sockets(&tree.source(), &["/etc/my.cnf".to_owned()], "/tmp/mysql.sock");
        assert_eq!(
            found,
            [
                json!({"file": "/etc/my.cnf", "socket": "/run/gone.sock"}),
                json!({"file": "/etc/php/8.2/fpm/php.ini", "socket": "/run/php.sock"}),
            ]
        );
        assert_eq!(sockets(&tree.source(), &["/etc/my.cnf".to_owned()], "/run/gone.sock").len(), 1);
    }
}
