//! Programs beside the server on its host: other database servers with what they may grow to, and those that take much memory.

use std::collections::BTreeMap;

use mydyno_model::units::whole_bytes;
use serde_json::{Value, json};

use crate::mounts;
use crate::option_files::{Start, groups, normal, read};
use crate::parse::kib_field;
use crate::source::Source;

/// Programs that are told from 64 MiB on: beside a server that takes the machine for its own, each is one too many.
const OTHERS: [&str; 10] = [
    "apache2",
    "httpd",
    "nginx",
    "redis-server",
    "java",
    "postgres",
    "node",
    "memcached",
    "beam.smp",
    "clickhouse-serv",
];

/// Sizes from which a program is told, in bytes.
const SMALL: u64 = 64 << 20;
const LARGE: u64 = 512 << 20;

/// Entries of a list.
const LISTED: usize = 20;

/// Memory of programs by name, where it is theirs alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Programs(BTreeMap<String, u64>);

impl Programs {
    /// Adds a process: its anonymous memory, as that of shared files would count for each.
    pub fn add(&mut self, source: &Source, pid: u32, name: &str) {
        let path = format!("/proc/{pid}/status");
        let Ok(bytes) = source.read(&path).and_then(|text| kib_field(&text, "RssAnon", &path)) else {
            return;
        };
        // Workers of PHP have the version in their name.
        let name = if name.starts_with("php-fpm") { "php-fpm" } else { name };
        *self.0.entry(name.to_owned()).or_default() += bytes;
    }

    /// Those that take much: name, rss_bytes.
    pub fn large(&self) -> Vec<Value> {
        let is_large = |(name, bytes): &(&String, &u64)| {
            **bytes >= LARGE || (**bytes >= SMALL && (OTHERS.contains(&name.as_str()) || *name == "php-fpm"))
        };
        let mut found: Vec<(&String, &u64)> = self.0.iter().filter(is_large).collect();
        found.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        found
            .into_iter()
            .take(LISTED)
            .map(|(name, bytes)| json!({"name": name, "rss_bytes": bytes}))
            .collect()
    }
}

/// Another database server: name, pid, rss_bytes, takes_bytes (its configured pool, where that is more); and, where no service of its
/// own starts it, who it is: pid, program, datadir, port, unit.
pub(super) fn server(source: &Source, pid: u32, name: &str, rss_bytes: u64) -> (Value, Option<Value>) {
    let arguments = source.bytes(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = String::from_utf8_lossy(&arguments).into_owned();
    let arguments: Vec<String> = arguments.split('\0').map(str::to_owned).collect();
    let here = match (mounts::of(source, &pid.to_string()), mounts::of(source, "self")) {
        (Ok(theirs), Ok(ours)) => theirs == ours,
        _ => false,
    };
    let argument = |name: &str| {
        let options = arguments.iter().filter_map(|argument| argument.split_once('='));
        let mut named = options.filter(|(written, _)| normal(written) == name);
        named.next_back().map(|(_, value)| value.to_owned())
    };
    let of_files = if here { of_files(source, &arguments) } else { BTreeMap::new() };
    let option = |name: &str| argument(name).or_else(|| of_files.get(name).cloned());
    let pool = option("innodb_buffer_pool_size").and_then(|text| whole_bytes(text.trim())).unwrap_or(0);
    let group = source.read(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let unit = group.lines().flat_map(|line| line.rsplit('/')).find(|part| part.ends_with(".service"));
    let unit = unit.unwrap_or_default().to_owned();
    let is_own = ["mysql", "maria", "percona", "mongo"].iter().any(|part| unit.contains(part));
    let takes_bytes = rss_bytes.max(pool);
    let known = json!({"name": name, "pid": pid, "rss_bytes": rss_bytes, "takes_bytes": takes_bytes});
    let stray = (here && !is_own).then(|| {
        let program = source.link(&format!("/proc/{pid}/exe")).unwrap_or_default();
        let mut found = json!({"pid": pid, "program": program.trim_end_matches(" (deleted)")});
        for name in ["datadir", "port"] {
            if let Some(value) = option(name) {
                found[name] = value.into();
            }
        }
        if !unit.is_empty() {
            found["unit"] = unit.into();
        }
        found
    });
    (known, stray)
}

/// Options of a server in the files that its command line selects.
fn of_files(source: &Source, arguments: &[String]) -> BTreeMap<String, String> {
    let start = Start::of(arguments);
    let mut groups: Vec<String> = groups("mariadb", 0, start.suffix.as_deref());
    groups.extend(["mariadbd".to_owned()]);
    let reading = read(source, "", &start.files(None, &[], None), &groups);
    reading.options.into_iter().filter_map(|option| Some((option.name, option.value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn another_server_takes_what_its_pool_may_grow_to() {
        let mounts = "21 1 254:0 / / rw - ext4 /dev/root rw\n";
        let tree = Tree::of(&[
            ("proc/7/cmdline", "/opt/mysqld-5.7\0--defaults-file=/etc/second.cnf\0--port=3307\0"),
            ("proc/7/mountinfo", mounts),
            ("proc/self/mountinfo", mounts),
            ("proc/7/cgroup", "0::/system.slice/rc-local.service\n"),
            ("etc/second.cnf", "[mysqld]\ninnodb-buffer-pool-size = 18G\ndatadir=/var/lib/mysql57\n"),
        ]);
        let (found, stray) = server(&tree.source(), 7, "mysqld", 300 << 20);
        assert_eq!(found["takes_bytes"], 18_u64 << 30);
        let stray = stray.unwrap();
        assert_eq!((&stray["port"], &stray["datadir"]), (&json!("3307"), &json!("/var/lib/mysql57")));
        assert_eq!(stray["unit"], "rc-local.service");
        tree.file("proc/7/mountinfo", "22 1 254:0 /x / rw - ext4 /dev/root rw\n");
        let (found, stray) = server(&tree.source(), 7, "mysqld", 300 << 20);
        assert_eq!((&found["takes_bytes"], stray), (&json!(300 << 20), None));
    }

    #[test]
    fn programs_that_take_much_are_told_by_their_sum() {
        let tree = Tree::of(&[]);
        for (pid, kib) in [(1, 40 << 10), (2, 40 << 10), (3, 40 << 10), (4, 600 << 10)] {
            tree.file(&format!("proc/{pid}/status"), format!("RssAnon:\t{kib} kB\n"));
        }
        let mut programs = Programs::default();
        for (pid, name) in [(1, "php-fpm8.2"), (2, "php-fpm: pool"), (3, "bash"), (4, "build")] {
            programs.add(&tree.source(), pid, name);
        }
        let names: Vec<Value> = programs.large().into_iter().map(|entry| entry["name"].clone()).collect();
        assert_eq!(names, ["build", "php-fpm"]);
    }
}
