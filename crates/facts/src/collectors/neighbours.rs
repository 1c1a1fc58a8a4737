//! Programs beside the server on its host: other database servers with what they may grow to, and those that take much memory.

use std::collections::BTreeMap;

use mydyno_model::units::whole_bytes;
use serde_json::{Value, json};

use crate::collectors::shared_memory::{Limits, Other};
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

/// Memory of programs by name and by the limit that they share, where it is theirs alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Programs(BTreeMap<(String, usize), (u64, u64)>);

impl Programs {
    /// Adds a process: its anonymous memory, as that of shared files would count for each.
    pub fn add(&mut self, source: &Source, pid: u32, name: &str, limits: &Limits) {
        let path = format!("/proc/{pid}/status");
        let Ok(bytes) = source.read(&path).and_then(|text| kib_field(&text, "RssAnon", &path)) else {
            return;
        };
        // Workers of PHP have the version in their name.
        let name = if name.starts_with("php-fpm") { "php-fpm" } else { name };
        let (rss, takes) = self.0.entry((name.to_owned(), limits.place(source, pid))).or_default();
        *rss += bytes;
        *takes = takes.saturating_add(may_take(source, pid, name).unwrap_or(0).max(bytes));
    }

    /// Those that take much: name, rss_bytes.
    pub fn large(&self) -> Vec<Value> {
        let mut found = self.within(usize::MAX);
        found.sort_by_key(|other| std::cmp::Reverse(other.rss_bytes));
        found
            .into_iter()
            .take(LISTED)
            .map(|other| json!({"name": other.name, "rss_bytes": other.rss_bytes}))
            .collect()
    }

    /// Those that take much, of what a limit holds.
    pub fn within(&self, place: usize) -> Vec<Other> {
        let mut found: BTreeMap<&str, Other> = BTreeMap::new();
        for ((name, shared), (rss, takes)) in self.0.iter().filter(|((_, shared), _)| *shared <= place) {
            let none = || Other {
                place: *shared,
                name: name.clone(),
                rss_bytes: 0,
                takes_bytes: 0,
                is_server: false,
            };
            let other = found.entry(name).or_insert_with(none);
            other.rss_bytes += rss;
            other.takes_bytes += takes;
        }
        let is_large = |other: &Other| {
            let known = OTHERS.contains(&other.name.as_str()) || other.name == "php-fpm";
            other.rss_bytes >= LARGE || (other.rss_bytes >= SMALL && known)
        };
        found.into_values().filter(is_large).collect()
    }
}

/// Bytes that a program may grow to by its command line: the heap of Java (-Xmx4g), the cache of memcached (-m 4096, in MiB).
fn may_take(source: &Source, pid: u32, name: &str) -> Option<u64> {
    if !["java", "memcached"].contains(&name) {
        return None;
    }
    let arguments = source.bytes(&format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&arguments).into_owned();
    let words: Vec<&str> = text.split('\0').collect();
    if name == "java" {
        // The last one counts.
        return words.iter().rev().find_map(|word| word.strip_prefix("-Xmx")).and_then(whole_bytes);
    }
    let place = words.iter().position(|word| word.starts_with("-m"))?;
    let megabytes = words[place].strip_prefix("-m").filter(|value| !value.is_empty());
    megabytes.or_else(|| words.get(place + 1).copied())?.parse::<u64>().ok()?.checked_mul(1 << 20)
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
        let limits = Limits::of(&tree.source(), None);
        for (pid, name) in [(1, "php-fpm8.2"), (2, "php-fpm: pool"), (3, "bash"), (4, "build")] {
            programs.add(&tree.source(), pid, name, &limits);
        }
        let names: Vec<Value> = programs.large().into_iter().map(|entry| entry["name"].clone()).collect();
        assert_eq!(names, ["build", "php-fpm"]);
    }

    #[test]
    fn programs_with_a_heap_or_a_cache_of_their_own_may_grow_to_it() {
        let tree = Tree::of(&[
            ("proc/1/cmdline", "/usr/bin/java\0-Xms1g\0-Xmx4g\0-jar\0app.jar\0"),
            ("proc/2/cmdline", "/usr/bin/memcached\0-m\x002048\0-u\0memcache\0"),
            ("proc/3/cmdline", "/usr/bin/java\0-jar\0app.jar\0"),
        ]);
        let of = |pid: u32, name: &str| may_take(&tree.source(), pid, name);
        assert_eq!((of(1, "java"), of(2, "memcached")), (Some(4 << 30), Some(2 << 30)));
        assert_eq!((of(3, "java"), of(1, "bash")), (None, None));
    }
}
