//! The NUMA memory policy of a process that mydyno starts: how its memory is placed on the nodes of the host.

use std::fmt;
use std::fs;
use std::io;

use mydyno_journal::Machine;
use mydyno_linux::calls::memory_policy::{PolicyMode, set_memory_policy};
use mydyno_linux::cpus;

use crate::error::HostError;
use crate::task::parse_cpus;

/// The lever.
pub const NAME: &str = "server.numa";
/// The accepted values, for people.
pub const FORM: &str =
    "interleave, local, bind:NODES or prefer:NODE, as in interleave, interleave:0-1 or bind:0";

/// A memory policy. Threads inherit it from the process, so it needs no journal: it ends with the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPolicy {
    mode: PolicyMode,
    /// Without nodes: all that have memory, for interleaving.
    nodes: Vec<usize>,
}

impl MemoryPolicy {
    /// Reads a value of the lever.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(value: &str) -> Result<Self, HostError> {
        let (mode, nodes) = value.split_once(':').map_or((value, None), |(mode, nodes)| (mode, Some(nodes)));
        // Lists of nodes have the form of lists of CPUs.
        let nodes = nodes.map(|text| parse_cpus(text).unwrap_or_default());
        let policy = |mode, nodes| Some(Self { mode, nodes });
        let parsed = match (mode, nodes) {
            ("interleave", None) => policy(PolicyMode::Interleave, vec![]),
            ("local", None) => policy(PolicyMode::Local, vec![]),
            (_, None) => None,
            ("interleave", Some(nodes)) if !nodes.is_empty() => policy(PolicyMode::Interleave, nodes),
            ("bind", Some(nodes)) if !nodes.is_empty() => policy(PolicyMode::Bind, nodes),
            ("prefer", Some(nodes)) if nodes.len() == 1 => policy(PolicyMode::Preferred, nodes),
            _ => None,
        };
        parsed.ok_or_else(|| wrong(value))
    }

    /// Whether a process can have it here.
    ///
    /// # Errors
    /// The host has one node, or not the named ones.
    pub fn check(&self, machine: &Machine) -> Result<(), HostError> {
        check(machine)?;
        let there = nodes(machine);
        match self.nodes.iter().all(|node| there.contains(node)) {
            true => Ok(()),
            false => Err(HostError::SettingValue {
                name: NAME.to_owned(),
                value: self.to_string(),
                form: format!("nodes of this host with memory, which are {}", cpus::show(&there)),
            }),
        }
    }

    /// Gives it to the calling thread, whose children inherit it.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn adopt(&self, machine: &Machine) -> io::Result<()> {
        match (self.mode, self.nodes.as_slice()) {
            (PolicyMode::Interleave, []) => set_memory_policy(self.mode, &nodes(machine)),
            (mode, nodes) => set_memory_policy(mode, nodes),
        }
    }
}

impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            PolicyMode::Interleave => "interleave",
            PolicyMode::Local => "local",
            PolicyMode::Bind => "bind",
            PolicyMode::Preferred => "prefer",
        };
        match self.nodes.as_slice() {
            [] => f.write_str(mode),
            nodes => write!(f, "{mode}:{}", cpus::show(nodes)),
        }
    }
}

/// Whether memory policies can differ here.
///
/// # Errors
/// The host has one NUMA node.
pub fn check(machine: &Machine) -> Result<(), HostError> {
    match nodes(machine).len() {
        0 | 1 => Err(HostError::Missing {
            what: NAME.to_owned(),
            missing: "this host has one NUMA node, on which all memory lies".to_owned(),
            remedy: "use a host with several nodes: `lscpu` shows them".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The nodes with memory: Documentation/ABI/stable/sysfs-devices-node. Node 0 where the kernel shows none.
fn nodes(machine: &Machine) -> Vec<usize> {
    let path = machine.sys().join("devices/system/node/has_memory");
    let text = fs::read_to_string(path).unwrap_or_default();
    parse_cpus(text.trim()).unwrap_or_else(|| vec![0])
}

fn wrong(value: &str) -> HostError {
    HostError::SettingValue { name: NAME.to_owned(), value: value.to_owned(), form: FORM.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_the_nodes_that_their_mode_takes() {
        for value in ["interleave", "local", "interleave:0-1", "bind:0", "bind:0,2-3", "prefer:1"] {
            assert_eq!(MemoryPolicy::parse(value).unwrap().to_string(), value);
        }
        for value in ["", "bind", "prefer", "prefer:0-1", "local:0", "interleave:", "bind:x", "spread:0"] {
            let error = MemoryPolicy::parse(value).unwrap_err().to_string();
            assert!(error.contains("interleave:0-1"), "{value}: {error}");
        }
    }

    #[test]
    fn the_policy_of_a_thread_shows_in_its_map() {
        // A thread of its own, since the policy stays with it; node 0 is there on every kernel with NUMA.
        let shown = std::thread::spawn(|| {
            let machine = Machine::real().unwrap();
            MemoryPolicy::parse("bind:0").unwrap().adopt(&machine).ok()?;
            fs::read_to_string("/proc/thread-self/numa_maps").ok()
        });
        match shown.join().unwrap() {
            Some(map) => assert!(map.contains(" bind:0 ") || map.contains(" bind=static:0 "), "{map}"),
            None => println!("not tested: this kernel has no NUMA policies"),
        }
    }
}
