//! The memory of a private server at the end of a slice, as figures under the names of responses.

use std::collections::BTreeMap;
use std::fs;

use mydyno_linux::text::kib_field;

/// Bytes of a page: the least that a figure of huge pages has, since a ratio needs a value above 0.
const PAGE: f64 = 4096.0;

/// Resident memory and its peak since the start (`VmRSS` and `VmHWM` of proc_pid_status(5)), swapped-out memory, and with
/// `huge` the anonymous memory in huge pages (`AnonHugePages` of `smaps_rollup`), for which the kernel walks all pages. A
/// process that has ended has none.
pub(crate) fn of(pid: u32, huge: bool) -> BTreeMap<String, f64> {
    let text = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let status = text("status");
    let rollup = if huge { text("smaps_rollup") } else { String::new() };
    let fields = [
        ("server_resident_bytes", kib_field(&status, "VmRSS")),
        ("server_peak_bytes", kib_field(&status, "VmHWM")),
        ("server_swap_bytes", kib_field(&status, "VmSwap")),
        ("server_huge_bytes", kib_field(&rollup, "AnonHugePages")),
    ];
    let least = |name: &str| if name == "server_huge_bytes" { PAGE } else { 0.0 };
    let figures =
        fields.into_iter().filter_map(|(name, bytes)| Some((name, (bytes? as f64).max(least(name)))));
    figures.filter(|(_, bytes)| *bytes > 0.0).map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_resident_memory_below_its_peak_and_one_that_has_ended_none() {
        let own = of(std::process::id(), true);
        assert!(own["server_resident_bytes"] > 1e6, "{own:?}");
        assert!(own["server_peak_bytes"] >= own["server_resident_bytes"] * 0.99, "{own:?}");
        assert!(own["server_huge_bytes"] >= PAGE, "{own:?}");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(of(pid, true).is_empty());
    }
}
