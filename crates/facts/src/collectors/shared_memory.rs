//! Memory that the server shares with other programs: that of the control groups which hold both, and the host's.

use std::collections::BTreeMap;

use mydyno_linux::cgroup::membership;
use serde_json::{Value, json};

use crate::cgroup::{Group, Version, limit, limit_v1};
use crate::parse::kib_field;
use crate::source::{Missing, Read, Source};

/// Entries of a list.
const LISTED: usize = 20;

/// A control group with a limit that the server is in.
#[derive(Debug, Clone, PartialEq)]
struct Limited {
    /// Its path, as in /proc/PID/cgroup.
    path: String,
    /// The file that sets the limit.
    file: String,
    bytes: u64,
}

/// Where limits are: groups of the server, the innermost first, and the host.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Limits {
    groups: Vec<Limited>,
    host: Read<u64>,
}

/// Another program, with the place among the limits of the innermost one that it shares.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Other {
    pub place: usize,
    pub name: String,
    pub rss_bytes: u64,
    /// Bytes that it may grow to, where it tells it and that is more.
    pub takes_bytes: u64,
    pub is_server: bool,
}

/// Memory that is shared: the limit, where it stands, and the others below it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shared {
    pub limit_bytes: u64,
    pub from: String,
    pub others: Vec<Value>,
}

impl Limits {
    /// The limits of a server.
    pub fn of(source: &Source, server: Option<u32>) -> Self {
        const HOST: &str = "/proc/meminfo";
        let host = source.read(HOST).and_then(|text| kib_field(&text, "MemTotal", HOST));
        let group = server.and_then(|pid| Group::of(source, &pid.to_string(), "memory").ok());
        let groups = group.map(|group| limited(source, &group)).unwrap_or_default();
        Self { groups, host }
    }

    /// The place of the innermost limit that a process shares with the server.
    pub fn place(&self, source: &Source, pid: u32) -> usize {
        if self.groups.is_empty() {
            return 0;
        }
        let text = source.read(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let path = membership(&text, "memory").map_or("", |(_, path)| path);
        let holds = |group: &Limited| {
            path.strip_prefix(group.path.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.groups.iter().position(holds).unwrap_or(self.groups.len())
    }

    /// The limit that is the nearest to be reached by a pool together with others. `others` tells those that a limit holds.
    pub fn tightest(&self, pool: u64, others: impl Fn(usize) -> Vec<Other>) -> Read<Shared> {
        let mut found: Option<(f64, Shared)> = None;
        for place in 0..=self.groups.len() {
            let (bytes, from) = match self.groups.get(place) {
                Some(group) => (group.bytes, group.file.clone()),
                None => (self.host.clone()?, "host".to_owned()),
            };
            let others = merged(others(place));
            if others.is_empty() || bytes == 0 {
                continue;
            }
            let sum: u64 = others.iter().map(|other| other.takes_bytes).sum();
            let share = pool.saturating_add(sum) as f64 / bytes as f64;
            if found.as_ref().is_none_or(|(most, _)| share > *most) {
                let others = others.iter().take(LISTED).map(Other::entry).collect();
                found = Some((share, Shared { limit_bytes: bytes, from, others }));
            }
        }
        let none = || Missing::Absent("no other server and no program that takes much memory".to_owned());
        found.map(|(_, shared)| shared).ok_or_else(none)
    }
}

impl Other {
    fn entry(&self) -> Value {
        json!({
            "name": self.name,
            "rss_bytes": self.rss_bytes,
            "takes_bytes": self.takes_bytes,
            "is_server": self.is_server,
        })
    }
}

/// Programs of one name as one, the largest first; each database server stays one.
fn merged(others: Vec<Other>) -> Vec<Other> {
    let mut programs: BTreeMap<String, Other> = BTreeMap::new();
    let mut found = Vec::new();
    for other in others {
        match programs.get_mut(&other.name).filter(|_| !other.is_server) {
            Some(known) => {
                known.rss_bytes += other.rss_bytes;
                known.takes_bytes += other.takes_bytes;
            }
            None if other.is_server => found.push(other),
            None => _ = programs.insert(other.name.clone(), other),
        }
    }
    found.extend(programs.into_values());
    found.sort_by_key(|other| std::cmp::Reverse(other.takes_bytes));
    found
}

/// The levels of a group that have a limit.
fn limited(source: &Source, group: &Group) -> Vec<Limited> {
    let is_v1 = group.version == Version::V1;
    let (name, read) = if is_v1 {
        ("memory.limit_in_bytes", limit_v1 as fn(&str, &str) -> Read<Option<u64>>)
    } else {
        ("memory.max", limit as fn(&str, &str) -> Read<Option<u64>>)
    };
    let mut path = group.path.as_str();
    let mut found = Vec::new();
    for level in &group.levels {
        let file = format!("{level}/{name}");
        let bytes = source.read(&file).and_then(|text| read(&text, &file)).ok().flatten();
        found.extend(bytes.map(|bytes| Limited { path: path.to_owned(), file, bytes }));
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn other(place: usize, name: &str, takes_bytes: u64, is_server: bool) -> Other {
        Other { place, name: name.into(), rss_bytes: takes_bytes, takes_bytes, is_server }
    }

    #[test]
    fn the_limit_of_a_common_group_counts_before_the_host_s() {
        let tree = Tree::of(&[
            ("proc/meminfo", "MemTotal:       16777216 kB\n"),
            ("proc/self/mountinfo", "30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/9/cgroup", "0::/db.slice/a.service\n"),
            ("proc/10/cgroup", "0::/db.slice/b.service\n"),
            ("proc/11/cgroup", "0::/dbx.slice/c.service\n"),
            ("sys/fs/cgroup/db.slice/memory.max", "4294967296\n"),
            ("sys/fs/cgroup/db.slice/a.service/memory.max", "max\n"),
        ]);
        let source = tree.source();
        let limits = Limits::of(&source, Some(9));
        assert_eq!((limits.place(&source, 10), limits.place(&source, 11)), (0, 1));
        let all = [other(0, "mysqld", 2 << 30, true), other(1, "java", 1 << 30, false)];
        let below = |place: usize| all.iter().filter(|one| one.place <= place).cloned().collect();
        let shared = limits.tightest(3 << 30, below).unwrap();
        assert_eq!((shared.limit_bytes, shared.others.len()), (4 << 30, 1));
        assert_eq!(shared.from, "/sys/fs/cgroup/db.slice/memory.max");
        tree.file("sys/fs/cgroup/db.slice/memory.max", "max\n");
        let limits = Limits::of(&source, Some(9));
        let shared = limits.tightest(3 << 30, |_| all.to_vec()).unwrap();
        assert_eq!((shared.limit_bytes, shared.from.as_str(), shared.others.len()), (16 << 30, "host", 2));
        assert!(matches!(limits.tightest(1, |_| vec![]), Err(Missing::Absent(_))));
    }

    #[test]
    fn programs_of_one_name_are_one_and_servers_are_not() {
        let all = vec![
            other(0, "java", 1, false),
            other(0, "mysqld", 5, true),
            other(0, "java", 2, false),
            other(0, "mysqld", 4, true),
        ];
        let found: Vec<(String, u64)> =
            merged(all).into_iter().map(|one| (one.name, one.takes_bytes)).collect();
        assert_eq!(found, [("mysqld".into(), 5), ("mysqld".into(), 4), ("java".into(), 3)]);
    }
}
