//! Checks the requirements of an experiment on this host.

use std::fs;
use std::path::Path;

use mydyno_host::{Machine, effective_uid, room};
use mydyno_model::experiment::definition::Needs;
use mydyno_model::units::{parse_size, show_bytes};

/// A folder `nodeN` for each NUMA node.
const NODES: &str = "/sys/devices/system/node";

/// Requirements that the host does not meet, one sentence each. `folder` is on the file system that will hold the servers' data.
pub fn unmet(needs: &Needs, machine: &Machine, folder: &Path) -> Vec<String> {
    let mut unmet = Vec::new();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if let Some(wanted) = needs.cpus.filter(|wanted| *wanted as usize > cpus) {
        unmet.push(format!("it takes {wanted} CPUs, and there are {cpus}"));
    }
    if needs.root && effective_uid() != 0 {
        unmet.push("it takes root".to_owned());
    }
    let size = |text: &Option<String>| text.as_deref().and_then(|text| parse_size(text).ok());
    if let (Some(wanted), Ok(there)) = (size(&needs.memory), machine.available_bytes())
        && there < wanted
    {
        let (wanted, there) = (show_bytes(wanted as f64), show_bytes(there as f64));
        unmet.push(format!("it takes {wanted} of available memory, and there are {there}"));
    }
    if let (Some(wanted), Ok(there)) = (size(&needs.disk), room::free_bytes(folder))
        && there < wanted
    {
        let (wanted, there) = (show_bytes(wanted as f64), show_bytes(there as f64));
        unmet.push(format!("it takes {wanted} of free space for the servers' data, and there are {there}"));
    }
    let nodes = numa_nodes(Path::new(NODES));
    if let Some(wanted) = needs.numa_nodes.filter(|wanted| *wanted as usize > nodes) {
        unmet.push(format!("it takes {wanted} NUMA nodes, and there is {nodes}"));
    }
    unmet
}

/// NUMA nodes by their folders; one where the kernel shows none.
fn numa_nodes(nodes: &Path) -> usize {
    let entries = fs::read_dir(nodes).into_iter().flatten().filter_map(Result::ok);
    let is_node = |name: &str| {
        name.strip_prefix("node").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_node)).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_thing_is_named() {
        let needs = Needs {
            cpus: Some(100_000),
            memory: Some("900000G".to_owned()),
            disk: Some("900000G".to_owned()),
            root: false,
            numa_nodes: Some(4000),
        };
        let machine = Machine::real().unwrap();
        let unmet = unmet(&needs, &machine, Path::new("/"));
        assert_eq!(unmet.len(), 4, "{unmet:?}");
        assert_eq!(super::unmet(&Needs::default(), &machine, Path::new("/")), [""; 0]);
    }
}
