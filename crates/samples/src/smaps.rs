//! Memory of the server's process that the kernel has to count page by page.

use std::time::Duration;

use mydyno_facts::Source;
use mydyno_facts::process::Process;

use crate::bus::Counters;
use crate::followed::ServerPid;
use crate::reader::{first, line_value};
use crate::schedule::Interval;
use crate::values::Values;

/// Time between readings: for a process of 100 GB the kernel looks at millions of entries of page tables.
const EVERY: Duration = Duration::from_secs(60);

/// Lines of /proc/PID/smaps_rollup, in KiB (proc.rst of the kernel).
const LINES: [(&str, &str); 4] = [
    ("Pss", "server.smaps.pss_bytes"),
    ("AnonHugePages", "server.smaps.huge_bytes"),
    ("SwapPss", "server.smaps.swap_pss_bytes"),
    ("Locked", "server.smaps.locked_bytes"),
];

/// Sums over the mappings of the server (/proc/PID/smaps_rollup): `server.smaps.{pss,huge,swap_pss,locked}_bytes`: memory with
/// what is shared divided among its users, transparent huge pages, the part of swap, locked memory. It needs root or the
/// server's user. Reading it holds up changes to the mappings of the process.
#[derive(Debug)]
pub struct Smaps {
    source: Source,
    followed: ServerPid,
}

impl Smaps {
    /// Of the server, also after it was restarted.
    pub fn of(source: &Source, server: &ServerPid) -> Self {
        Self { source: source.clone(), followed: server.clone() }
    }

    /// How often it is read.
    pub fn interval() -> Interval {
        Interval::new(EVERY).unwrap_or(Interval::SECOND)
    }
}

impl Counters for Smaps {
    fn group(&self) -> &'static str {
        "smaps"
    }

    fn read(&mut self, values: &mut Values) {
        let process = self.followed.get().and_then(|pid| Process::of(&self.source, pid).ok());
        let text = process.and_then(|process| self.source.read(&process.file("smaps_rollup")).ok());
        for line in text.unwrap_or_default().lines() {
            for (key, name) in LINES {
                values.set_some(name, line_value(line, key).and_then(first).map(|kib| kib as f64 * 1024.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn memory_is_in_bytes_and_lines_are_known_by_their_whole_name() {
        let stat = "42 (mysqld) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 900 0 0\n";
        let rollup = "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: 800 kB\nPss_Anon: 700 kB\nAnonHugePages: 64 kB\nSwap: 9 kB\nSwapPss: 8 kB\nLocked: 0 kB\n";
        let (_tree, source) = tree(&[("proc/42/stat", stat), ("proc/42/smaps_rollup", rollup)]);
        let mut values = Values::default();
        Smaps::of(&source, &ServerPid::new(Some(42))).read(&mut values);
        for (name, kib) in [("pss", 800.0), ("huge", 64.0), ("swap_pss", 8.0), ("locked", 0.0)] {
            assert_eq!(values.get(&format!("server.smaps.{name}_bytes")), Some(kib * 1024.0), "{name}");
        }
        assert_eq!(values.numbers.len(), 4);
        let mut none = Values::default();
        Smaps::of(&source, &ServerPid::new(None)).read(&mut none);
        assert!(none.numbers.is_empty());
    }
}
