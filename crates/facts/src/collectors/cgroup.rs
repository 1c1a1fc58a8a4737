//! Limits of control groups: the server's and our own, and which group sets them.

use serde_json::{Value, json};

use crate::cgroup::{Group, Version, limit, limit_v1, quota, throttled};
use crate::collector::{Collector, Cost, FactInfo, Run, fact};
use crate::context::Context;
use crate::context::Depth;
use crate::parse::{flat_number, list, number};
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

const LIMIT: &str = "smallest limit of the group and those above it, and the file that sets it";

/// Control groups.
pub static COLLECTOR: Collector = Collector {
    name: "cgroup",
    cost: Cost { host_ms: 3, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Record,
    facts: &FACTS,
    run: Run::Host(run),
};

static FACTS: [FactInfo; 40] = {
    macro_rules! both {
        ($(($name:literal, $unit:literal, $what:expr),)*) => {[
            $(fact(concat!("server.cgroup.", $name), $unit, $what),)*
            $(fact(concat!("client.cgroup.", $name), $unit, $what),)*
        ]};
    }
    both![
        ("path", "", "the group that holds the memory of the process (the client is mydyno itself)"),
        ("unit", "", "systemd unit that the group belongs to"),
        ("version", "", "version of the hierarchy of the memory controller, 1 or 2"),
        ("memory.limit_bytes", "bytes", LIMIT),
        ("memory.limit_from", "", "the file that sets the memory limit"),
        ("memory.high_bytes", "bytes", "memory from which on the group is slowed down (version 2)"),
        (
            "memory.swap_limit_bytes",
            "bytes",
            "swap that the group may use; with version 1, memory and swap together"
        ),
        ("memory.used_bytes", "bytes", "memory of the group, page cache included"),
        ("memory.oom_kills", "count", "processes that were killed in the group for want of memory"),
        ("memory.swappiness", "", "swappiness of the group (version 1)"),
        ("cpu.quota_cpus", "CPUs", "smallest quota of the group and those above it, in CPUs"),
        ("cpu.quota_from", "", "the file that sets the CPU quota"),
        ("cpu.weight", "", "weight of the group; shares with version 1"),
        ("cpu.periods", "count", "periods in which the group with a quota had work"),
        ("cpu.throttled_periods", "count", "periods in which the group was throttled"),
        ("cpu.throttled_s", "s", "time that it was throttled, summed over CPUs"),
        ("cpuset.count", "count", "CPUs that the group may use"),
        ("cpuset.nodes", "", "NUMA nodes that the group may use"),
        ("pids.limit", "count", "smallest limit of tasks of the group and those above it"),
        ("io.limits", "", "limits of bytes or requests a second, by device"),
    ]
};

fn run(context: &Context, readings: &Readings) {
    group_facts(&context.source, "self", "client", readings);
    match &context.server {
        Ok(server) => group_facts(&context.source, &server.pid.to_string(), "server", readings),
        Err(missing) => readings.rest_is("/proc/PID/cgroup", missing),
    }
}

fn group_facts(source: &Source, process: &str, whose: &str, readings: &Readings) {
    let facts = Facts { source, process, whose, readings };
    facts.place();
    facts.memory();
    facts.cpu();
    facts.cpuset();
    facts.pids();
    facts.io();
}

struct Facts<'a> {
    source: &'a Source,
    process: &'a str,
    whose: &'a str,
    readings: &'a Readings,
}

impl Facts<'_> {
    fn id(&self, name: &str) -> String {
        format!("{}.cgroup.{name}", self.whose)
    }

    fn membership(&self) -> String {
        format!("/proc/{}/cgroup", self.process)
    }

    fn group(&self, controller: &str) -> Read<Group> {
        Group::of(self.source, self.process, controller)
    }

    /// Puts a limit and, where there is a second name, the file that sets it.
    fn limit<T: Into<Value>>(
        &self,
        names: (&str, Option<&str>),
        file: &str,
        found: Read<Option<(T, String)>>,
    ) {
        let none = || Missing::Absent(format!("no group of the process sets {file}"));
        let found = found.and_then(|limit| limit.ok_or_else(none));
        let (value, from) = match found {
            Ok((value, from)) => (Ok(value.into()), Ok(from)),
            Err(missing) => (Err(missing.clone()), Err(missing)),
        };
        let source = from.clone().unwrap_or_else(|_| self.membership());
        self.readings.put::<Value>(&self.id(names.0), source.as_str(), value);
        if let Some(name) = names.1 {
            self.readings.put(&self.id(name), source, from);
        }
    }

    /// Puts one file of a group's own folder; `None` for a file that this version does not have.
    fn own<T: Into<Value>>(
        &self,
        name: &str,
        group: &Read<Group>,
        file: Option<&str>,
        read: impl Fn(&str, &str) -> Read<T>,
    ) {
        let (source, value) = match (group, file) {
            (Ok(group), Some(file)) => {
                let path = format!("{}/{file}", group.folder());
                let value = self.source.read(&path).and_then(|text| read(&text, &path));
                (path, value)
            }
            (Ok(group), None) => {
                let why = format!("version {} has nothing like it", number_of(group.version));
                (group.folder().to_owned(), Err(Missing::Absent(why)))
            }
            (Err(missing), _) => (self.membership(), Err(missing.clone())),
        };
        self.readings.put(&self.id(name), source, value);
    }

    fn place(&self) {
        let group = self.group("memory");
        let path = group.clone().map(|g| g.path);
        self.readings.put(&self.id("path"), self.membership(), path);
        self.readings.put(&self.id("version"), self.membership(), group.map(|g| number_of(g.version)));
        let unit = self.source.read(&self.membership()).and_then(|text| {
            unit_of(&text).ok_or_else(|| Missing::Absent("the process belongs to no systemd unit".to_owned()))
        });
        self.readings.put(&self.id("unit"), self.membership(), unit);
    }

    fn memory(&self) {
        let group = self.group("memory");
        let v1 = matches!(&group, Ok(g) if g.version == Version::V1);
        let (max, swap, used) = if v1 {
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.usage_in_bytes")
        } else {
            ("memory.max", "memory.swap.max", "memory.current")
        };
        let read = if v1 { limit_v1 } else { limit };
        let smallest = |file: &str| group.clone().and_then(|g| g.smallest(self.source, file, read));
        self.limit(("memory.limit_bytes", Some("memory.limit_from")), max, smallest(max));
        self.limit(("memory.swap_limit_bytes", None), swap, smallest(swap));
        self.limit(("memory.high_bytes", None), "memory.high", smallest("memory.high"));
        self.own("memory.used_bytes", &group, Some(used), number::<u64>);
        let (events, key) =
            if v1 { ("memory.oom_control", "oom_kill") } else { ("memory.events", "oom_kill") };
        self.own("memory.oom_kills", &group, Some(events), |text, path| {
            flat_number::<u64>(text, key).ok_or_else(|| Missing::Absent(format!("{path} has no line {key}")))
        });
        self.own("memory.swappiness", &group, v1.then_some("memory.swappiness"), |text, path| {
            number::<u64>(text, path)
        });
    }

    fn cpu(&self) {
        let group = self.group("cpu");
        let v1 = matches!(&group, Ok(g) if g.version == Version::V1);
        let file = if v1 { "cpu.cfs_quota_us" } else { "cpu.max" };
        let found =
            group.clone().and_then(|group| {
                group.smallest(self.source, file, |text, path| {
                    if v1 { self.quota_v1(text, path) } else { quota(text, path) }
                })
            });
        self.limit(("cpu.quota_cpus", Some("cpu.quota_from")), file, found);
        let weight = if v1 { "cpu.shares" } else { "cpu.weight" };
        self.own("cpu.weight", &group, Some(weight), number::<u64>);
        let version = group.as_ref().map_or(Version::V2, |g| g.version);
        let not_counted =
            |path: &str| Missing::Absent(format!("{path} counts no throttling: the group has no quota"));
        self.own("cpu.periods", &group, Some("cpu.stat"), |text, path| {
            flat_number::<u64>(text, "nr_periods").ok_or_else(|| not_counted(path))
        });
        self.own("cpu.throttled_periods", &group, Some("cpu.stat"), |text, path| {
            throttled(text, version).map(|(times, _)| times).ok_or_else(|| not_counted(path))
        });
        self.own("cpu.throttled_s", &group, Some("cpu.stat"), |text, path| {
            throttled(text, version).map(|(_, seconds)| seconds).ok_or_else(|| not_counted(path))
        });
    }

    /// Version 1 keeps the period in a second file.
    fn quota_v1(&self, text: &str, path: &str) -> Read<Option<f64>> {
        let Some(quota) = limit(text, path)? else { return Ok(None) };
        let path = path.replace("cpu.cfs_quota_us", "cpu.cfs_period_us");
        let period: u64 = number(&self.source.read(&path)?, &path)?;
        if period == 0 {
            return Err(Missing::Error(format!("{path} is 0")));
        }
        Ok(Some(quota as f64 / period as f64))
    }

    fn cpuset(&self) {
        let group = self.group("cpuset");
        // The root of version 1 has the plain names only; where both are there, the effective one counts.
        let named = |base: &str| {
            let group = group.as_ref().ok()?;
            let effective = match group.version {
                Version::V1 => format!("cpuset.effective_{base}"),
                Version::V2 => format!("cpuset.{base}.effective"),
            };
            let there = self.source.exists(&format!("{}/{effective}", group.folder()));
            Some(if there { effective } else { format!("cpuset.{base}") })
        };
        let (cpus, nodes) = (named("cpus"), named("mems"));
        self.own("cpuset.count", &group, cpus.as_deref(), |text, path| Ok(list(text, path)?.len()));
        self.own("cpuset.nodes", &group, nodes.as_deref(), |text, _| Ok(text.to_owned()));
    }

    fn pids(&self) {
        let found = self.group("pids").and_then(|g| g.smallest(self.source, "pids.max", limit));
        self.limit(("pids.limit", None), "pids.max", found);
    }

    fn io(&self) {
        let v2 = |group: &Group| group.version == Version::V2;
        // The controller has another name in each version.
        let group = self.group("blkio").ok().filter(|g| !v2(g)).map_or_else(|| self.group("io"), Ok);
        let files: &[&str] = match &group {
            Ok(group) if v2(group) => &["io.max"],
            _ => &[
                "blkio.throttle.read_bps_device",
                "blkio.throttle.write_bps_device",
                "blkio.throttle.read_iops_device",
                "blkio.throttle.write_iops_device",
            ],
        };
        let limits = group.clone().map(|group| {
            let mut limits = Vec::new();
            for level in &group.levels {
                for file in files {
                    let path = format!("{level}/{file}");
                    let text = self.source.read(&path).unwrap_or_default();
                    limits.extend(text.lines().map(|line| json!({"from": path, "limit": line})));
                }
            }
            Value::from(limits)
        });
        let source = group.map_or_else(|_| self.membership(), |g| g.folder().to_owned());
        self.readings.put(&self.id("io.limits"), source, limits);
    }
}

fn number_of(version: Version) -> u64 {
    match version {
        Version::V1 => 1,
        Version::V2 => 2,
    }
}

/// The innermost part of a group's path that is a service or a scope.
fn unit_of(text: &str) -> Option<String> {
    let paths = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        (names.is_empty() || names == "name=systemd").then_some(path)
    });
    paths
        .flat_map(|path| path.rsplit('/'))
        .find(|p| p.ends_with(".service") || p.ends_with(".scope"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::unit_of;

    #[test]
    fn the_unit_is_the_innermost_service_or_scope() {
        assert_eq!(
            unit_of("0::/system.slice/system-mysql.slice/mysql@a.service/sub\n"),
            Some("mysql@a.service".to_owned())
        );
        assert_eq!(
            unit_of("4:memory:/x.service\n1:name=systemd:/a/docker-1.scope\n"),
            Some("docker-1.scope".to_owned())
        );
        assert_eq!(unit_of("0::/\n"), None);
        assert_eq!(unit_of("garbage"), None);
    }
}
