//! Processors: how many, which, how fast, and what slows them down.

use std::collections::BTreeSet;

use mydyno_linux::cpus;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::{distinct, kib_field, list, number, required};
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Processors and NUMA nodes.
pub static COLLECTOR: Collector = Collector {
    name: "cpu",
    cost: Cost { host_ms: 5, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Record,
    facts: &[
        fact("host.cpu.count", "count", "CPUs that are online"),
        fact("host.cpu.possible", "count", "CPUs that could be brought online"),
        fact("host.cpu.allowed", "count", "CPUs that mydyno itself may run on"),
        fact("host.cpu.sockets", "count", "processor packages"),
        fact("host.cpu.cores", "count", "physical cores with an online CPU"),
        fact("host.cpu.smt", "", "whether cores run more than one thread"),
        fact("host.cpu.model", "", "name of the processor"),
        fact("host.cpu.hypervisor", "", "whether the processor says that it is a virtual one"),
        fact("host.cpu.governor", "", "frequency governor; several are joined by commas"),
        fact("host.cpu.frequency_driver", "", "driver that sets the frequency"),
        fact("host.cpu.energy_preference", "", "energy_performance_preference; several are joined by commas"),
        fact("host.cpu.boost", "", "whether frequencies above the base are allowed"),
        fact("host.cpu.frequency_max_khz", "kHz", "highest frequency of the fastest CPU"),
        fact("host.cpu.idle_driver", "", "driver that puts idle CPUs to sleep"),
        fact("host.cpu.idle_governor", "", "governor that chooses how deep they sleep"),
        fact("host.cpu.clock_source", "", "what the kernel reads the time from"),
        fact("host.cpu.clock_sources", "", "what it could read the time from"),
        fact("host.cpu.isolated", "", "CPUs kept from the scheduler (isolcpus)"),
        fact("host.cpu.nohz_full", "", "CPUs without a regular tick"),
        fact("host.cpu.vulnerability.NAME", "", "a processor flaw and its mitigation"),
        fact("host.numa.nodes", "count", "NUMA nodes that are online"),
        fact("host.numa.node.NODE.total_bytes", "bytes", "memory of a node"),
        fact("host.numa.node.NODE.free_bytes", "bytes", "free memory of a node"),
        fact("host.numa.node.NODE.cpus", "", "CPUs of a node"),
    ],
    run: Run::Host(run),
};

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    let online = online(source);
    readings.put("host.cpu.count", format!("{CPUS}/online"), online.clone().map(|cpus| cpus.len()));
    readings.read("host.cpu.possible", &format!("{CPUS}/possible"), |p| Ok(list(&source.read(p)?, p)?.len()));
    readings.read("host.cpu.allowed", "/proc/self/status", |p| {
        let text = source.read(p)?;
        Ok(list(required(&text, "Cpus_allowed_list", p)?, p)?.len())
    });
    let online = online.unwrap_or_default();
    topology(source, &online, readings);
    identity(source, readings);
    frequency(source, &online, readings);
    for (id, path) in [
        ("host.cpu.idle_driver", "cpuidle/current_driver"),
        ("host.cpu.idle_governor", "cpuidle/current_governor"),
        ("host.cpu.isolated", "isolated"),
        ("host.cpu.nohz_full", "nohz_full"),
    ] {
        readings
            .read(id, &format!("{CPUS}/{path}"), |p| source.read(p).map(|text| text.replace("(null)", "")));
    }
    let clocks = "/sys/devices/system/clocksource/clocksource0";
    for (id, name) in [
        ("host.cpu.clock_source", "current_clocksource"),
        ("host.cpu.clock_sources", "available_clocksource"),
    ] {
        readings.read(id, &format!("{clocks}/{name}"), |p| source.read(p));
    }
    let folder = format!("{CPUS}/vulnerabilities");
    for name in source.list(&folder).unwrap_or_default() {
        readings
            .read(&format!("host.cpu.vulnerability.{name}"), &format!("{folder}/{name}"), |p| source.read(p));
    }
    nodes(source, readings);
}

/// Online CPUs; from /proc/stat where sysfs is not there, as in some containers.
fn online(source: &Source) -> Read<Vec<u32>> {
    let path = format!("{CPUS}/online");
    let from_sysfs = source.read(&path).and_then(|text| list(&text, &path));
    match from_sysfs {
        Ok(cpus) if !cpus.is_empty() => Ok(cpus),
        _ => {
            let text = source.read("/proc/stat")?;
            let names = text.lines().filter_map(|l| l.split(' ').next());
            let cpus: Vec<u32> = names.filter_map(|n| n.strip_prefix("cpu")?.parse().ok()).collect();
            if cpus.is_empty() {
                return Err(Missing::Error("/proc/stat names no CPU".to_owned()));
            }
            Ok(cpus)
        }
    }
}

fn topology(source: &Source, online: &[u32], readings: &Readings) {
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    let mut why = None;
    for cpu in online {
        let id = |name: &str| {
            let path = format!("{CPUS}/cpu{cpu}/topology/{name}");
            source.read(&path).and_then(|text| number::<i64>(&text, &path))
        };
        match (id("physical_package_id"), id("core_id")) {
            (Ok(socket), Ok(core)) => {
                sockets.insert(socket);
                cores.insert((socket, core));
            }
            (Err(missing), _) | (_, Err(missing)) => why = Some(missing),
        }
    }
    // A count that misses a CPU would be wrong rather than incomplete.
    let no_cpus = || Missing::Absent("no online CPU is known".to_owned());
    let count = |n: usize| match &why {
        Some(missing) => Err(missing.clone()),
        None if n == 0 => Err(no_cpus()),
        None => Ok(n),
    };
    let from = format!("{CPUS}/cpu*/topology");
    readings.put("host.cpu.sockets", from.as_str(), count(sockets.len()));
    readings.put("host.cpu.cores", from.as_str(), count(cores.len()));
    readings.read("host.cpu.smt", &format!("{CPUS}/smt/active"), |p| {
        Ok(number::<u64>(&source.read(p)?, p)? != 0)
    });
}

fn identity(source: &Source, readings: &Readings) {
    let path = "/proc/cpuinfo";
    let text = source.read(path);
    let model = text.clone().and_then(|text| {
        cpus::model(&text).ok_or_else(|| Missing::Absent(format!("{path} names no processor")))
    });
    readings.put("host.cpu.model", path, model);
    let hypervisor = text.and_then(|text| {
        let flags = required(&text, "flags", path)?;
        Ok(flags.split_ascii_whitespace().any(|f| f == "hypervisor"))
    });
    readings.put("host.cpu.hypervisor", path, hypervisor);
}

fn frequency(source: &Source, online: &[u32], readings: &Readings) {
    let each = |name: &str| -> Read<Vec<String>> {
        let path = |cpu: &u32| format!("{CPUS}/cpu{cpu}/cpufreq/{name}");
        let values: Vec<String> = online.iter().filter_map(|cpu| source.read(&path(cpu)).ok()).collect();
        if values.is_empty() {
            let first = online.first().map_or_else(|| path(&0), path);
            return Err(match source.read(&first) {
                Err(missing) => missing,
                Ok(_) => Missing::Absent(format!("{first} is gone")),
            });
        }
        Ok(values)
    };
    for (id, name) in [
        ("host.cpu.governor", "scaling_governor"),
        ("host.cpu.frequency_driver", "scaling_driver"),
        ("host.cpu.energy_preference", "energy_performance_preference"),
    ] {
        readings.put(id, format!("{CPUS}/cpu*/cpufreq/{name}"), each(name).map(distinct));
    }
    let name = "cpuinfo_max_freq";
    let fastest = each(name).and_then(|values| {
        let speeds: Read<Vec<u64>> = values.iter().map(|v| number(v, name)).collect();
        Ok(speeds?.into_iter().max().unwrap_or_default())
    });
    readings.put("host.cpu.frequency_max_khz", format!("{CPUS}/cpu*/cpufreq/{name}"), fastest);
    // The two drivers have different files, with opposite meanings.
    let no_turbo = format!("{CPUS}/intel_pstate/no_turbo");
    if source.exists(&no_turbo) {
        readings.read("host.cpu.boost", &no_turbo, |p| Ok(number::<u64>(&source.read(p)?, p)? == 0));
    } else {
        readings.read("host.cpu.boost", &format!("{CPUS}/cpufreq/boost"), |p| {
            Ok(number::<u64>(&source.read(p)?, p)? != 0)
        });
    }
}

fn nodes(source: &Source, readings: &Readings) {
    let path = format!("{NODES}/online");
    let online = match source.read(&path).and_then(|text| list(&text, &path)) {
        // A kernel without NUMA shows no nodes; all memory is in one place.
        Err(Missing::Absent(_)) => {
            readings.put("host.numa.nodes", path, Ok(1));
            return;
        }
        other => other,
    };
    readings.put("host.numa.nodes", path.as_str(), online.clone().map(|nodes| nodes.len()));
    for node in online.unwrap_or_default() {
        let path = format!("{NODES}/node{node}/meminfo");
        let text = source.read(&path);
        // Lines begin with `Node N`.
        let of =
            |key: &str| text.clone().and_then(|text| kib_field(&text, &format!("Node {node} {key}"), &path));
        readings.put(&format!("host.numa.node.{node}.total_bytes"), path.as_str(), of("MemTotal"));
        readings.put(&format!("host.numa.node.{node}.free_bytes"), path.as_str(), of("MemFree"));
        readings.read(&format!("host.numa.node.{node}.cpus"), &format!("{NODES}/node{node}/cpulist"), |p| {
            source.read(p)
        });
    }
}
