//! Facts of the server's process that are expensive to read: memory by mapping, and the flags of its open files.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::{field, kib_field, list};
use crate::process::Process;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Memory and open files. The kernel walks the page tables for these, which takes some milliseconds for each mapped
/// GiB.
pub static COLLECTOR: Collector = Collector {
    name: "process-memory",
    cost: Cost { host_ms: 30, server_ms: 0 },
    deadline_ms: 5000,
    depth: Depth::Audit,
    facts: &[
        fact("server.process.memory.rss_bytes", "bytes", "memory that it holds"),
        fact(
            "server.process.memory.pss_bytes",
            "bytes",
            "the same, with what is shared divided by those who share it",
        ),
        fact("server.process.memory.anonymous_bytes", "bytes", "of it, memory without a file"),
        fact("server.process.memory.anonymous_huge_bytes", "bytes", "of it, in transparent huge pages"),
        fact("server.process.memory.huge_page_bytes", "bytes", "reserved huge pages that it uses"),
        fact("server.process.memory.swap_bytes", "bytes", "memory that is swapped out"),
        fact("server.process.memory.locked_bytes", "bytes", "memory that cannot be swapped"),
        fact(
            "server.process.numa_policy",
            "",
            "policy of the mapping that holds most of its memory: default, bind:NODES, interleave:NODES, prefer:NODE",
        ),
        fact(
            "server.process.numa.NODE.bytes",
            "bytes",
            "memory on a NUMA node; only read where there are several",
        ),
        fact("server.process.direct_io.data", "", "whether its data files pass the page cache by"),
        fact("server.process.direct_io.redo", "", "whether its redo log passes the page cache by"),
        fact("server.process.direct_io.files", "count", "open files that pass the page cache by"),
    ],
    run: Run::Host(run),
};

/// Number of open files that are examined; more would not change the answer.
const FILES: usize = 4096;

/// O_DIRECT in the ABI of this processor.
const O_DIRECT: u64 = libc::O_DIRECT as u64;

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID/smaps_rollup", missing),
    };
    direct_io(&context.source, server, readings);
    memory(&context.source, server, readings);
    nodes(&context.source, server, readings);
}

fn memory(source: &Source, server: &Process, readings: &Readings) {
    let path = server.file("smaps_rollup");
    let text = source.read(&path);
    for (name, key) in [
        ("rss_bytes", "Rss"),
        ("pss_bytes", "Pss"),
        ("anonymous_bytes", "Anonymous"),
        ("anonymous_huge_bytes", "AnonHugePages"),
        ("swap_bytes", "Swap"),
        ("locked_bytes", "Locked"),
    ] {
        let value = text.clone().and_then(|text| kib_field(&text, key, &path));
        readings.put(&format!("server.process.memory.{name}"), path.as_str(), value);
    }
    let huge = text.and_then(|text| {
        let shared = kib_field(&text, "Shared_Hugetlb", &path)?;
        Ok(shared.saturating_add(kib_field(&text, "Private_Hugetlb", &path)?))
    });
    readings.put("server.process.memory.huge_page_bytes", path, huge);
}

/// The policy of the mappings that hold most memory, as `bind:0` or `interleave:0-1`.
fn policy(text: &str) -> Option<String> {
    let pages = |line: &str| -> u64 {
        let words = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        words.filter(|(name, _)| *name == "anon").filter_map(|(_, pages)| pages.parse::<u64>().ok()).sum()
    };
    let most = text.lines().max_by_key(|line| pages(line))?;
    most.split_ascii_whitespace().nth(1).map(str::to_owned)
}

fn nodes(source: &Source, server: &Process, readings: &Readings) {
    let online = "/sys/devices/system/node/online";
    let several = source.read(online).and_then(|text| list(&text, online)).is_ok_and(|nodes| nodes.len() > 1);
    let path = server.file("numa_maps");
    if !several {
        let one = Missing::Absent("the host has one NUMA node".to_owned());
        return readings.put::<Value>("server.process.numa_policy", path, Err(one));
    }
    let text = source.read(&path);
    let told = text
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|text| policy(text).ok_or_else(|| Missing::Absent("it has no mapping".to_owned())));
    readings.put("server.process.numa_policy", path.as_str(), told);
    match text {
        Ok(text) => {
            for (node, bytes) in by_node(&text) {
                readings.put(&format!("server.process.numa.{node}.bytes"), path.as_str(), Ok(bytes));
            }
        }
        Err(missing) => readings.put::<Value>("server.process.numa.all.bytes", path, Err(missing)),
    }
}

/// Sums of `N0=512 … kernelpagesize_kB=4` over all lines.
fn by_node(text: &str) -> BTreeMap<u32, u64> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for line in text.lines() {
        let words = || line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        let size = words()
            .find(|(name, _)| *name == "kernelpagesize_kB")
            .and_then(|(_, kib)| kib.parse::<u64>().ok());
        let page_bytes = size.unwrap_or(4).saturating_mul(1024);
        for (name, pages) in words() {
            let node = name.strip_prefix('N').and_then(|digits| digits.parse::<u32>().ok());
            if let (Some(node), Ok(pages)) = (node, pages.parse::<u64>()) {
                let sum = sums.entry(node).or_default();
                *sum = sum.saturating_add(pages.saturating_mul(page_bytes));
            }
        }
    }
    sums
}

fn direct_io(source: &Source, server: &Process, readings: &Readings) {
    let folder = server.file("fd");
    let files = source.list(&folder).map(|fds| {
        fds.iter().take(FILES).filter_map(|fd| open_file(source, server, fd)).collect::<Vec<(Kind, bool)>>()
    });
    let direct = |kind: Kind| -> Read<bool> {
        let files = files.as_ref().map_err(Clone::clone)?;
        let mut all = files.iter().filter(|(k, _)| *k == kind).map(|(_, direct)| *direct).peekable();
        if all.peek().is_none() {
            return Err(Missing::Absent(format!("{folder}: no such file is open")));
        }
        Ok(all.all(|direct| direct))
    };
    readings.put("server.process.direct_io.data", folder.as_str(), direct(Kind::Data));
    readings.put("server.process.direct_io.redo", folder.as_str(), direct(Kind::Redo));
    let count =
        files.as_ref().map(|all| all.iter().filter(|(_, direct)| *direct).count()).map_err(Clone::clone);
    readings.put("server.process.direct_io.files", folder.as_str(), count);
}

/// The role of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Redo,
    Other,
}

fn open_file(source: &Source, server: &Process, fd: &str) -> Option<(Kind, bool)> {
    let target = source.link(&server.file(&format!("fd/{fd}"))).ok()?;
    let name = target.strip_prefix('/').map(|path| path.rsplit('/').next().unwrap_or(path))?;
    // Temporary tablespaces are buffered on purpose in some versions.
    let kind = if name.starts_with("ib_logfile") || name.starts_with("#ib_redo") {
        Kind::Redo
    } else if name.ends_with(".ibd") || name.starts_with("ibdata") {
        Kind::Data
    } else {
        Kind::Other
    };
    let info = source.read(&server.file(&format!("fdinfo/{fd}"))).ok()?;
    let flags = u64::from_str_radix(field(&info, "flags", ':')?, 8).ok()?;
    Some((kind, flags & O_DIRECT != 0))
}

#[cfg(test)]
mod tests {
    use super::{by_node, policy};

    #[test]
    fn pages_of_a_node_are_counted_in_their_size() {
        let text = "7f00 default anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4\n7f10 interleave:0-1 huge N0=1 kernelpagesize_kB=2048\nbad N1=x Nx=3\n";
        let sums = by_node(text);
        assert_eq!(policy(text).as_deref(), Some("default"));
        assert_eq!(sums[&0], 2 * 4096 + 2048 * 1024);
        assert_eq!(sums[&1], 4096);
        assert_eq!(sums.len(), 2);
    }
}
