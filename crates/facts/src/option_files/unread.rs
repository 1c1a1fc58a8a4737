//! Options of the server where it does not read them: in groups of clients, and in files that no reading comes to.

use serde_json::{Value, json};

use super::line::Line;
use super::reader::LARGEST_FILE;
use super::{Reading, normal};
use crate::source::Source;

/// Groups that only clients read.
const CLIENTS: [&str; 9] = [
    "client",
    "client-mariadb",
    "mysql",
    "mariadb-client",
    "mysqldump",
    "mariadb-dump",
    "mysqladmin",
    "mariadb-admin",
    "mysqlcheck",
];

/// Options of servers that no client has; beside them all that begin with `innodb_` or `binlog_`.
const OF_SERVERS: [&str; 21] = [
    "datadir",
    "event_scheduler",
    "expire_logs_days",
    "general_log",
    "general_log_file",
    "key_buffer_size",
    "log_bin",
    "long_query_time",
    "max_connections",
    "open_files_limit",
    "query_cache_size",
    "query_cache_type",
    "read_only",
    "server_id",
    "skip_name_resolve",
    "slow_query_log",
    "slow_query_log_file",
    "sync_binlog",
    "table_open_cache",
    "thread_cache_size",
    "tmp_table_size",
];

/// Folders from which distributions have their option files include.
const FOLDERS: [&str; 4] =
    ["/etc/my.cnf.d", "/etc/mysql/conf.d", "/etc/mysql/mysql.conf.d", "/etc/mysql/mariadb.conf.d"];

/// Ends of the names of files that somebody put aside, or that a package keeps.
const ASIDE: [&str; 20] = [
    "~",
    ".bak",
    ".backup",
    ".old",
    ".orig",
    ".off",
    ".disabled",
    ".save",
    ".saved",
    ".swp",
    ".tmp",
    ".dist",
    ".sample",
    ".example",
    ".template",
    ".rpmnew",
    ".rpmsave",
    ".rpmorig",
    ".md",
    ".sh",
];

/// Whether an option in this group of a client is one that only servers have.
pub(super) fn is_misplaced(group: &str, name: &str) -> bool {
    let lower = group.to_ascii_lowercase();
    CLIENTS.contains(&lower.as_str())
        && (OF_SERVERS.contains(&name) || name.starts_with("innodb_") || name.starts_with("binlog_"))
}

/// Files that hold options of the server's groups and that it does not read: in included folders those whose names do
/// not end in `.cnf`, and, if the server reads its usual files (`usual`), those of folders that no file includes.
pub fn passed_over(
    source: &Source,
    prefix: &str,
    reading: &Reading,
    groups: &[String],
    usual: bool,
) -> Vec<Value> {
    let mut found = Vec::new();
    let mut tell = |folder: &str, takes: &dyn Fn(&str) -> bool, why: &str| {
        let folder = folder.trim_end_matches('/');
        let names = source.list(&format!("{prefix}{folder}")).unwrap_or_default();
        for name in names.iter().filter(|name| takes(name)) {
            let file = format!("{folder}/{name}");
            if holds_options(source, &format!("{prefix}{file}"), groups) {
                found.push(json!({"file": file, "why": why}));
            }
        }
    };
    let is_aside = |name: &str| {
        ASIDE.iter().any(|end| name.to_ascii_lowercase().ends_with(end))
            || name.starts_with(['.', '#'])
            || name.contains(".dpkg-")
            || name.contains(".ucf-")
            || name.contains(".cnf.")
    };
    let mut seen = std::collections::BTreeSet::new();
    for folder in reading.folders.iter().filter(|folder| seen.insert(folder.path.trim_end_matches('/'))) {
        let others = |name: &str| !name.ends_with(".cnf") && !is_aside(name);
        tell(&folder.path, &others, "its name does not end in .cnf");
    }
    for folder in FOLDERS.iter().filter(|folder| usual && seen.insert(folder)) {
        tell(folder, &|name| name.ends_with(".cnf"), "no file that the server reads includes its folder");
    }
    found.truncate(20);
    found
}

/// Whether a file holds an option below one of these groups.
fn holds_options(source: &Source, path: &str, groups: &[String]) -> bool {
    let is_file = source.stat(path).is_ok_and(|found| found.mode & libc::S_IFMT == libc::S_IFREG);
    let text =
        if is_file { source.text_within(path, LARGEST_FILE).unwrap_or_default() } else { String::new() };
    let mut read = false;
    text.split('\n').any(|line| match Line::of(line) {
        Line::Group(name) => {
            read = groups.iter().any(|group| group.eq_ignore_ascii_case(&name));
            false
        }
        Line::Option(name, _) => read && !normal(&name).is_empty(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option_files::read;
    use crate::tree::tree;

    #[test]
    fn options_of_servers_in_groups_of_clients_and_files_that_nobody_reads_are_told() {
        let (_tree, source) = tree(&[
            (
                "etc/my.cnf",
                "[mysqld]\n!includedir /etc/conf.d\n[mysqldump]\nquick\nmax-connections = 5\n[myisamchk]\nkey_buffer_size = 1M\n",
            ),
            ("etc/conf.d/a.conf", "[mysqld]\nmax_connections = 9\n"),
            ("etc/conf.d/b.cnf.bak", "[mysqld]\nmax_connections = 9\n"),
            ("etc/conf.d/c.cnf", "[mysql]\ninnodb_buffer_pool_size = 1G\n"),
            ("etc/conf.d/README", "[mysqld]\n# nothing\n[client]\nuser = x\n"),
            ("etc/my.cnf.d/server.cnf", "[mysqld]\nsync_binlog = 1\n"),
            ("etc/my.cnf.d/client.cnf", "[client]\nport = 1\n"),
        ]);
        let groups = ["mysqld".to_owned()];
        let reading = read(&source, "", &["/etc/my.cnf".to_owned()], &groups);
        let misplaced: Vec<(&str, usize, &str)> =
            reading.misplaced.iter().map(|o| (o.group.as_str(), o.line, o.name.as_str())).collect();
        assert_eq!(misplaced, [("mysql", 2, "innodb_buffer_pool_size"), ("mysqldump", 5, "max_connections")]);
        let files = |usual| {
            let found = passed_over(&source, "", &reading, &groups, usual);
            found.iter().map(|file| file["file"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(files(false), ["/etc/conf.d/a.conf"]);
        assert_eq!(files(true), ["/etc/conf.d/a.conf", "/etc/my.cnf.d/server.cnf"]);
    }
}
