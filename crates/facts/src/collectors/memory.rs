//! Memory and swap of the host.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::{kib_field, number_field, unescape, unexpected};
use crate::readings::Readings;
use crate::source::{Read, Source};

/// Memory and swap.
pub static COLLECTOR: Collector = Collector {
    name: "memory",
    cost: Cost { host_ms: 1, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Record,
    facts: &[
        fact("host.memory.total_bytes", "bytes", "usable memory (MemTotal)"),
        fact("host.memory.free_bytes", "bytes", "memory that holds nothing (MemFree)"),
        fact(
            "host.memory.available_bytes",
            "bytes",
            "what new work can have without swapping (MemAvailable)",
        ),
        fact("host.memory.buffers_bytes", "bytes", "block device cache (Buffers)"),
        fact("host.memory.cached_bytes", "bytes", "page cache without swap cache (Cached)"),
        fact("host.memory.dirty_bytes", "bytes", "page cache that waits to be written (Dirty)"),
        fact("host.memory.writeback_bytes", "bytes", "page cache that is being written (Writeback)"),
        fact("host.memory.anonymous_bytes", "bytes", "memory of programs (AnonPages)"),
        fact("host.memory.anonymous_huge_bytes", "bytes", "of it, in transparent huge pages (AnonHugePages)"),
        fact("host.memory.shared_bytes", "bytes", "shared memory and tmpfs (Shmem)"),
        fact(
            "host.memory.slab_unreclaimable_bytes",
            "bytes",
            "kernel objects that cannot be given back (SUnreclaim)",
        ),
        fact("host.memory.page_tables_bytes", "bytes", "page tables (PageTables)"),
        fact("host.memory.committed_bytes", "bytes", "memory promised to programs (Committed_AS)"),
        fact(
            "host.memory.commit_limit_bytes",
            "bytes",
            "most that may be promised when overcommit is forbidden (CommitLimit)",
        ),
        fact("host.memory.huge_page_bytes", "bytes", "size of a default huge page (Hugepagesize)"),
        fact("host.memory.huge_pages_total", "count", "reserved huge pages (HugePages_Total)"),
        fact("host.memory.huge_pages_free", "count", "reserved huge pages that nobody uses (HugePages_Free)"),
        fact(
            "host.memory.huge_pages_promised",
            "count",
            "of the free ones, those that are promised to somebody who has not touched them yet (HugePages_Rsvd)",
        ),
        fact("host.swap.total_bytes", "bytes", "swap space (SwapTotal)"),
        fact("host.swap.used_bytes", "bytes", "swap in use (SwapTotal less SwapFree)"),
        fact("host.swap.devices", "", "swap areas: path, type, size and use in bytes, priority"),
        fact("host.swap.zswap", "", "whether zswap compresses pages before they are swapped"),
    ],
    run: Run::Host(run),
};

const MEMINFO: &str = "/proc/meminfo";
const SWAPS: &str = "/proc/swaps";

/// Facts that are one line of meminfo in kB.
const LINES: &[(&str, &str)] = &[
    ("host.memory.total_bytes", "MemTotal"),
    ("host.memory.free_bytes", "MemFree"),
    ("host.memory.available_bytes", "MemAvailable"),
    ("host.memory.buffers_bytes", "Buffers"),
    ("host.memory.cached_bytes", "Cached"),
    ("host.memory.dirty_bytes", "Dirty"),
    ("host.memory.writeback_bytes", "Writeback"),
    ("host.memory.anonymous_bytes", "AnonPages"),
    ("host.memory.anonymous_huge_bytes", "AnonHugePages"),
    ("host.memory.shared_bytes", "Shmem"),
    ("host.memory.slab_unreclaimable_bytes", "SUnreclaim"),
    ("host.memory.page_tables_bytes", "PageTables"),
    ("host.memory.committed_bytes", "Committed_AS"),
    ("host.memory.commit_limit_bytes", "CommitLimit"),
    ("host.memory.huge_page_bytes", "Hugepagesize"),
    ("host.swap.total_bytes", "SwapTotal"),
];

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    let text = source.read(MEMINFO);
    let of = |key: &str| text.clone().and_then(|text| kib_field(&text, key, MEMINFO));
    for (id, key) in LINES {
        readings.put(id, MEMINFO, of(key));
    }
    let used = of("SwapTotal").and_then(|total| Ok(total.saturating_sub(of("SwapFree")?)));
    readings.put("host.swap.used_bytes", MEMINFO, used);
    for (id, key) in [
        ("host.memory.huge_pages_total", "HugePages_Total"),
        ("host.memory.huge_pages_free", "HugePages_Free"),
        ("host.memory.huge_pages_promised", "HugePages_Rsvd"),
    ] {
        readings.put(id, MEMINFO, text.clone().and_then(|text| number_field::<u64>(&text, key, MEMINFO)));
    }
    readings.put("host.swap.devices", SWAPS, swap_areas(source));
    readings.read("host.swap.zswap", "/sys/module/zswap/parameters/enabled", |p| Ok(source.read(p)? == "Y"));
}

/// The areas of /proc/swaps; sizes there are in kB.
fn swap_areas(source: &Source) -> Read<Vec<Value>> {
    let text = source.read(SWAPS)?;
    let lines = text.lines().skip(1).filter(|l| !l.trim().is_empty());
    lines
        .map(|line| {
            let wrong = || unexpected(SWAPS, "name, type, size, used, priority", line);
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [name, kind, size, used, priority] = fields[..] else { return Err(wrong()) };
            let bytes =
                |kib: &str| kib.parse::<u64>().ok().and_then(|k| k.checked_mul(1024)).ok_or_else(wrong);
            Ok(json!({
                "path": unescape(name),
                "type": kind,
                "size_bytes": bytes(size)?,
                "used_bytes": bytes(used)?,
                "priority": priority.parse::<i64>().map_err(|_| wrong())?,
            }))
        })
        .collect()
}
