//! Transparent huge pages of the host.

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::{choice, number};
use crate::readings::Readings;
use crate::source::Missing;

/// Transparent huge pages.
pub static COLLECTOR: Collector = Collector {
    name: "thp",
    cost: Cost { host_ms: 1, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Record,
    facts: &[
        fact("host.thp.enabled", "", "for whom: always, madvise or never"),
        fact(
            "host.thp.defrag",
            "",
            "who waits for memory to be compacted: always, defer, defer+madvise, madvise, never",
        ),
        fact("host.thp.shmem_enabled", "", "for shared memory"),
        fact("host.thp.shrink_underused", "", "whether huge pages that are mostly zero are split again"),
        fact("host.thp.khugepaged_defrag", "", "whether khugepaged compacts memory"),
        fact(
            "host.thp.khugepaged_max_ptes_none",
            "count",
            "empty small pages that khugepaged accepts in a huge one",
        ),
        fact("host.thp.huge_page_bytes", "bytes", "size of a transparent huge page"),
        fact("host.thp.size.SIZE", "", "choice for one page size, as in 64kB"),
    ],
    run: Run::Host(run),
};

const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    if !source.exists(FOLDER) {
        let why =
            Missing::Absent(format!("{FOLDER} is not there: this kernel has no transparent huge pages"));
        readings.rest_is(FOLDER, &why);
        return;
    }
    for (id, name) in [
        ("host.thp.enabled", "enabled"),
        ("host.thp.defrag", "defrag"),
        ("host.thp.shmem_enabled", "shmem_enabled"),
    ] {
        readings.read(id, &format!("{FOLDER}/{name}"), |p| choice(&source.read(p)?, p));
    }
    for (id, name) in [
        ("host.thp.shrink_underused", "shrink_underused"),
        ("host.thp.khugepaged_defrag", "khugepaged/defrag"),
    ] {
        readings.read(id, &format!("{FOLDER}/{name}"), |p| Ok(number::<u64>(&source.read(p)?, p)? != 0));
    }
    for (id, name) in [
        ("host.thp.khugepaged_max_ptes_none", "khugepaged/max_ptes_none"),
        ("host.thp.huge_page_bytes", "hpage_pmd_size"),
    ] {
        readings.read(id, &format!("{FOLDER}/{name}"), |p| number::<u64>(&source.read(p)?, p));
    }
    for name in source.list(FOLDER).unwrap_or_default() {
        let Some(size) = name.strip_prefix("hugepages-") else { continue };
        let path = format!("{FOLDER}/{name}/enabled");
        if source.exists(&path) {
            readings.read(&format!("host.thp.size.{size}"), &path, |p| choice(&source.read(p)?, p));
        }
    }
}
