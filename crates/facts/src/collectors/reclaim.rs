//! Other users of memory: the devices of swap, same-page merging, the ARC of ZFS.

use std::collections::BTreeSet;

use serde_json::Value;

use mydyno_linux::calls;

use crate::block;
use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::parse::{number, unescape, unexpected};
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Swap's disks, same-page merging, ZFS.
pub static COLLECTOR: Collector = Collector {
    name: "reclaim",
    cost: Cost { host_ms: 2, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Audit,
    facts: &[
        fact("host.swap.disks", "", "disks that swap areas lie on, by the names of block devices"),
        fact("host.swap.compressed_only", "", "whether all swap is compressed memory (zram)"),
        fact("host.ksm.running", "", "whether the kernel looks for equal pages to merge (KSM)"),
        fact("host.ksm.saved_bytes", "bytes", "memory that merging saves"),
        fact("host.zfs.cache_bytes", "bytes", "size of the cache of ZFS (ARC)"),
        fact("host.zfs.cache_limit_bytes", "bytes", "size that it may grow to"),
    ],
    run: Run::Host(run),
};

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    let areas = areas(source);
    readings.put::<Value>(
        "host.swap.disks",
        "/proc/swaps",
        areas.clone().and_then(|a| Ok(disks(source, &a)?.into())),
    );
    let compressed = areas.map(|all| !all.is_empty() && all.iter().all(|path| path.starts_with("/dev/zram")));
    readings.put("host.swap.compressed_only", "/proc/swaps", compressed);
    // 2 means stopped, with all merged pages unmerged.
    readings
        .read("host.ksm.running", "/sys/kernel/mm/ksm/run", |p| Ok(number::<u64>(&source.read(p)?, p)? == 1));
    readings.read("host.ksm.saved_bytes", "/sys/kernel/mm/ksm/pages_sharing", |p| {
        Ok(number::<u64>(&source.read(p)?, p)?.saturating_mul(calls::page_bytes() as u64))
    });
    let path = "/proc/spl/kstat/zfs/arcstats";
    let text = source.read(path);
    for (id, key) in [("host.zfs.cache_bytes", "size"), ("host.zfs.cache_limit_bytes", "c_max")] {
        readings.read(id, path, |p| kstat(&text.clone()?, key, p));
    }
}

/// Paths of the areas in use.
fn areas(source: &Source) -> Read<Vec<String>> {
    let text = source.read("/proc/swaps")?;
    Ok(text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next()).map(unescape).collect())
}

fn disks(source: &Source, areas: &[String]) -> Read<Vec<String>> {
    let mut disks = BTreeSet::new();
    for area in areas {
        let device = if area.starts_with("/dev/") {
            block::name_of_path(source, area)?
        } else {
            let ours = mounts::of(source, "self")?;
            let mount = mounts::holding(&ours, area);
            let mount =
                mount.ok_or_else(|| Missing::Error(format!("no mount holds the swap file {area}")))?;
            if mount.device.0 == 0 {
                block::name_of_path(source, &mount.from)?
            } else {
                block::name_of(source, mount.device)?
            }
        };
        disks.extend(block::stack(source, &device)?.physical);
    }
    Ok(disks.into_iter().collect())
}

/// `name  type  value` of ZFS.
fn kstat(text: &str, key: &str, path: &str) -> Read<u64> {
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(key));
    let value = line.and_then(|line| line.split_ascii_whitespace().nth(2)?.parse().ok());
    value.ok_or_else(|| unexpected(path, &format!("a line {key}"), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn values_of_zfs_stand_in_the_third_column() {
        let text = "13 1 0x01 123 33456 1 2\nname                            type data\nhits                            4    7\nc_max                           4    16655175680\nsize                            4    1024\n";
        assert_eq!(kstat(text, "c_max", "/k"), Ok(16_655_175_680));
        assert_eq!(kstat(text, "size", "/k"), Ok(1024));
        assert!(kstat(text, "c_min", "/k").is_err());
    }

    #[test]
    fn a_swap_file_lies_on_the_disk_of_its_file_system() {
        let (tree, source) = tree(&[
            ("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/swap\\040file file 1024 0 -2\n"),
            ("proc/self/mountinfo", "31 1 8:1 / / rw - ext4 /dev/sda1 rw\n"),
        ]);
        tree.folder("sys/devices/sda/slaves");
        for link in ["sys/class/block/sda", "sys/dev/block/8:1"] {
            tree.link(link, "../../devices/sda");
        }
        let areas = areas(&source).unwrap();
        assert_eq!(areas, ["/swap file"]);
        assert_eq!(disks(&source, &areas), Ok(vec!["sda".to_owned()]));
    }
}
