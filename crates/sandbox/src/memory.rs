//! Compares the memory that private servers may use by configuration with the memory that the host can spare.
//!
//! A buffer pool is reserved at the start and filled during use, so free memory right after a start is no guide. What
//! counts is the configured size of a server, and that of the other private servers minus their resident memory.

use std::collections::BTreeMap;
use std::fs;

use mydyno_host::Machine;
use mydyno_host::cgroup::MadeGroup;
use mydyno_host::journal::Open;
use mydyno_host::machine::{Presence, ProcessIdentity};
use mydyno_host::room::MEMORY_KEPT;
use mydyno_host::variable::ChangedVariable;
use mydyno_linux::process::resident_bytes;
use mydyno_model::units::{parse_size, show_bytes};

use crate::error::SandboxError;
use crate::lever_set::ServerLevers;
use crate::settings::{Setting, bare_name};
use crate::site::Site;

const MIB: u64 = 1 << 20;

/// Global buffers, independent of the number of connections, and their defaults: the largest of all series that can be
/// private servers.
const PARTS: [(&str, u64); 7] = [
    ("innodb_buffer_pool_size", 128 * MIB),
    ("innodb_log_buffer_size", 64 * MIB),
    ("innodb_additional_mem_pool_size", 8 * MIB),
    ("key_buffer_size", 128 * MIB),
    ("aria_pagecache_buffer_size", 128 * MIB),
    ("query_cache_size", MIB),
    ("rocksdb_block_cache_size", 0),
];
const POOL: &str = PARTS[0].0;

/// A configured size.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Configured {
    /// As in `innodb_buffer_pool_size=8G`.
    text: String,
    bytes: u64,
    /// Bytes of its default.
    plain_bytes: u64,
}

impl Configured {
    fn beyond_plain(&self) -> u64 {
        self.bytes.saturating_sub(self.plain_bytes)
    }
}

/// Checks that [`MEMORY_KEPT`] of memory stays available when a server uses all that its settings permit. A server that
/// may use no more than one with defaults is never refused.
///
/// # Errors
/// The host has too little memory, with figures and remedy; or the journal or `/proc` cannot be read.
pub(crate) fn check(site: &Site, lever_set: &ServerLevers, settings: &[Setting]) -> Result<(), SandboxError> {
    let machine = site.lease.machine();
    let sizes = match lever_set.arrangement.limits.memory_bytes {
        // The kernel enforces this limit.
        Some(bytes) => {
            vec![Configured { text: format!("cgroup.memory of {}", show(bytes)), bytes, plain_bytes: 0 }]
        }
        None => configured(
            settings.iter().map(|setting| (setting.name.as_str(), setting.value.as_str())),
            lever_set.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())),
            machine.total_bytes()?,
        ),
    };
    let asked = sum(sizes.iter().map(Configured::beyond_plain));
    if asked == 0 {
        return Ok(());
    }
    let (available, others) = (machine.available_bytes()?, others(machine, &site.journal.read()?.open)?);
    let spare = available.saturating_sub(others);
    if asked.saturating_add(MEMORY_KEPT) <= spare {
        return Ok(());
    }
    let texts = sizes.iter().filter(|one| one.beyond_plain() > 0).map(|one| one.text.as_str());
    Err(SandboxError::TooMuchMemory {
        configured: texts.collect::<Vec<_>>().join(", "),
        asked: show(asked),
        spare: match others {
            0 => show(available),
            _ => format!(
                "{} (of which other private servers may still take {})",
                show(available),
                show(others)
            ),
        },
        kept: show(MEMORY_KEPT),
        remedy: match lever_set.arrangement.limits.memory_bytes {
            Some(_) => "end one of them, or give it less",
            None => "give a smaller value, or bound the server with --lever cgroup.memory=SIZE",
        },
    })
}

/// The sizes of options, the last of a name, and of variables that are set at run time.
fn configured<'a>(
    options: impl Iterator<Item = (&'a str, &'a str)>,
    variables: impl Iterator<Item = (&'a str, &'a str)>,
    total_bytes: u64,
) -> Vec<Configured> {
    let options: BTreeMap<String, &str> = options.map(|(name, value)| (bare_name(name), value)).collect();
    let variables: BTreeMap<String, &str> = variables.map(|(name, value)| (bare_name(name), value)).collect();
    let mut largest: BTreeMap<&str, Configured> = BTreeMap::new();
    for (name, value) in options.iter().chain(&variables) {
        let Some((bytes, plain_bytes)) = size(value).zip(plain_bytes(name)) else { continue };
        let one = Configured { text: format!("{name}={value}"), bytes, plain_bytes };
        match largest.get(name.as_str()) {
            Some(before) if before.bytes >= bytes => {}
            _ => _ = largest.insert(name, one),
        }
    }
    let on = |value: &&str| matches!(value.to_ascii_lowercase().as_str(), "1" | "on" | "true" | "yes");
    if options.get("innodb_dedicated_server").is_some_and(on) && !options.contains_key(POOL) {
        // With more than 4 GB the server uses three quarters for the pool, with less a smaller share.
        let bytes = total_bytes / 4 * 3;
        let one =
            Configured { text: "innodb_dedicated_server=ON".to_owned(), bytes, plain_bytes: PARTS[0].1 };
        largest.insert("innodb_dedicated_server", one);
    }
    largest.into_values().collect()
}

/// The default of a part in bytes; `None` where the option is not such a part. Servers accept any unambiguous prefix of
/// an option's name, and named key caches (`hot.key_buffer_size`), of which the default is none.
fn plain_bytes(name: &str) -> Option<u64> {
    let (cache, name) = match name.split_once('.') {
        Some((_, name)) => (true, name),
        None => (false, name),
    };
    let known = PARTS.iter().find(|(part, _)| name.len() > 3 && part.starts_with(name))?;
    Some(if cache { 0 } else { known.1 })
}

/// Bytes of a size as servers read it: `eval_num_suffix` of mysys/my_getopt.c knows K, M and G, newer ones also T, P and E.
fn size(value: &str) -> Option<u64> {
    let value = value.trim();
    match parse_size(value) {
        Ok(bytes) => Some(bytes),
        // More than any host has.
        Err(_) if value.starts_with(|c: char| c.is_ascii_digit()) => Some(u64::MAX),
        Err(_) => None,
    }
}

/// Memory that other private servers of this journal may still use, in bytes: the rest of their groups' limits, or
/// their configured sizes minus their resident memory.
fn others(machine: &Machine, open: &[Open]) -> Result<u64, SandboxError> {
    let (mut bytes, mut bounded) = (0_u64, vec![]);
    for one in open {
        if let Some(group) = one.as_kind::<MadeGroup>()
            && let Some(left) = left_of(group)
        {
            bytes = bytes.saturating_add(left);
            bounded.push(&one.entry.purpose);
        }
    }
    for one in open.iter().filter(|one| !bounded.contains(&&one.entry.purpose)) {
        if let Some(process) = one.entry.change.process()
            && machine.presence(process)? == Presence::Running
        {
            let permitted = settings_memory(process, open, machine.total_bytes()?);
            bytes = bytes.saturating_add(permitted.saturating_sub(held_by(process.pid)));
        }
    }
    Ok(bytes)
}

/// The rest of a group's memory limit: from the files of version 2, else of version 1.
fn left_of(group: &MadeGroup) -> Option<u64> {
    let number = |file: &str| group.read(file)?.trim().parse::<u64>().ok();
    let pair = |limit, usage| Some(number(limit)?.saturating_sub(number(usage)?));
    pair("memory.max", "memory.current").or_else(|| pair("memory.limit_in_bytes", "memory.usage_in_bytes"))
}

/// Configured sizes of a running server: from its command line, and from levers set since. A process that is not a
/// server has none.
fn settings_memory(process: &ProcessIdentity, open: &[Open], total_bytes: u64) -> u64 {
    let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let options = line.split('\0').filter_map(|one| one.strip_prefix("--")?.split_once('='));
    let variables = open.iter().filter_map(|one| one.as_kind::<ChangedVariable>());
    let variables = variables.filter(|set| set.process == *process);
    let variables = variables.map(|set| (set.name.as_str(), set.now.as_str()));
    sum(configured(options, variables, total_bytes).iter().map(|one| one.bytes))
}

/// Resident memory of a process: `VmRSS` of proc_pid_status(5).
fn held_by(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    resident_bytes(&text).unwrap_or(0)
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

fn show(bytes: u64) -> String {
    show_bytes(bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// Bytes that servers with these settings use beyond one with defaults.
    fn beyond(options: &[(&str, &str)], variables: &[(&str, &str)]) -> u64 {
        let sizes = configured(options.iter().copied(), variables.iter().copied(), 64 * GIB);
        sum(sizes.iter().map(Configured::beyond_plain))
    }

    #[test]
    fn sizes_count_beyond_those_of_a_plain_server_in_every_spelling() {
        for (name, value, bytes) in [
            ("innodb_buffer_pool_size", "1G", GIB - 128 * MIB),
            ("innodb_buffer_pool_size", "1024m", GIB - 128 * MIB),
            ("innodb-buffer-pool-size", "1073741824", GIB - 128 * MIB),
            ("loose_innodb_buffer_pool_size", "1G", GIB - 128 * MIB),
            ("innodb_buffer_pool_s", "1G", GIB - 128 * MIB),
            ("innodb_buffer_pool_size", "64M", 0),
            ("innodb_buffer_pool_size", "16E", u64::MAX - 128 * MIB),
            ("aria_pagecache_buffer_size", "129M", MIB),
            ("hot.key_buffer_size", "1M", MIB),
            ("innodb_dedicated_server", "ON", 48 * GIB - 128 * MIB),
            ("innodb_dedicated_server", "OFF", 0),
            ("sort_buffer_size", "64G", 0),
            ("innodb_buffer_pool_instances", "8", 0),
            ("innodb_buffer_pool_filename", "9G", 0),
        ] {
            assert_eq!(beyond(&[(name, value)], &[]), bytes, "{name}={value}");
        }
    }

    #[test]
    fn the_last_of_a_name_counts_and_the_larger_of_start_and_run() {
        let pool = |value| ("innodb_buffer_pool_size", value);
        assert_eq!(beyond(&[pool("64G"), pool("1G")], &[]), GIB - 128 * MIB);
        assert_eq!(beyond(&[pool("1G")], &[pool("2G")]), 2 * GIB - 128 * MIB);
        assert_eq!(beyond(&[pool("2G")], &[pool("1G")]), 2 * GIB - 128 * MIB);
        assert_eq!(beyond(&[pool("1G"), ("key_buffer_size", "1G")], &[]), 2 * GIB - 256 * MIB);
        assert_eq!(beyond(&[pool("1G"), ("innodb_dedicated_server", "1")], &[]), GIB - 128 * MIB);
    }
}
