//! The account by which the scripts of Debian's packages, logrotate's among them, log in to the server.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::option_files::LARGEST_FILE;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, quoted};

/// The packages' account.
pub static COLLECTOR: Collector = Collector {
    name: "package-account",
    cost: Cost { host_ms: 1, server_ms: 1 },
    deadline_ms: 1000,
    depth: Depth::Audit,
    facts: &[fact(
        "server.accounts.of_packages_gone",
        "",
        "accounts that /etc/mysql/debian.cnf names for this server's socket and that the server does not have: user, file",
    )],
    run: Run::Server(run),
};

const FILE: &str = "/etc/mysql/debian.cnf";

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    readings.put("server.accounts.of_packages_gone", FILE, gone(context, sql));
}

fn gone(context: &Context, sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let server = context.server.as_ref().map_err(Clone::clone)?;
    let view = mounts::view(&context.source, server)?;
    let text = match context.source.text_within(&format!("{view}{FILE}"), LARGEST_FILE) {
        Err(Missing::Absent(_)) => return Ok(vec![]),
        read => read?,
    };
    let users = users(&text, context.variable("socket").unwrap_or_default());
    let mut found = Vec::new();
    for user in users {
        let Some(name) = quoted(&user) else { continue };
        let statement = format!("SELECT User FROM mysql.user WHERE User = {name} LIMIT 1");
        let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on mysql.user"))?;
        if rows.is_empty() {
            found.push(json!({"user": user, "file": FILE}));
        }
    }
    Ok(found)
}

/// The users that a file names for a socket, which /var/run and /run are two names of the folder of. A group without a socket goes
/// to the packages' own.
fn users(text: &str, socket: &str) -> Vec<String> {
    const OF_PACKAGES: &str = "/run/mysqld/mysqld.sock";
    let short = |path: &str| path.strip_prefix("/var").unwrap_or(path).to_owned();
    let mut groups: Vec<(String, String)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if line.starts_with('[') {
            groups.push((String::new(), OF_PACKAGES.to_owned()));
        } else if let (Some((name, value)), Some(group)) = (line.split_once('='), groups.last_mut()) {
            let value = value.trim().trim_matches(['"', '\'']);
            match name.trim() {
                "user" => group.0 = value.to_owned(),
                "socket" => group.1 = short(value),
                _ => {}
            }
        }
    }
    let mut found: Vec<String> = groups
        .into_iter()
        .filter(|(user, at)| !user.is_empty() && *at == short(socket))
        .map(|(user, _)| user)
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_of_this_server_s_socket_are_read() {
        let text = "# made by the package\n[client]\nhost = localhost\nuser = debian-sys-maint\npassword = x\n\
                    socket = /var/run/mysqld/mysqld.sock\n[mysql_upgrade]\nuser = debian-sys-maint\n";
        assert_eq!(users(text, "/run/mysqld/mysqld.sock"), ["debian-sys-maint"]);
        assert_eq!(users(text, "/var/run/mysqld/mysqld.sock"), ["debian-sys-maint"]);
        assert_eq!(users(text, "/srv/two/s.sock"), [] as [String; 0]);
        assert_eq!(users("[client]\nuser=m\nsocket=/srv/two/s.sock\n", "/srv/two/s.sock"), ["m"]);
    }
}
