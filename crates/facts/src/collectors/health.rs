//! Faults that the kernel has noticed: memory errors, overheating, its own faults, hung tasks, an unsynchronised clock.

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::number;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};
use mydyno_linux::calls::clock_state;

/// Faults of the host.
pub static COLLECTOR: Collector = Collector {
    name: "health",
    cost: Cost { host_ms: 3, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "host.kernel.faults",
            "",
            "faults that the kernel has had since boot, by its taint flags: machine-check, bad-page, oops, soft-lockup",
        ),
        fact(
            "host.kernel.hung_tasks",
            "count",
            "tasks that were found blocked for two minutes, since boot (Linux 6.13)",
        ),
        fact("host.memory.errors_corrected", "count", "memory errors that ECC corrected, since boot"),
        fact("host.memory.errors_uncorrected", "count", "memory errors that ECC could not correct"),
        fact(
            "host.cpu.thermal_throttles",
            "count",
            "times that a core was slowed down for its heat, since boot",
        ),
        fact("host.clock.synchronised", "", "whether something keeps the clock in step (ntp_adjtime(3))"),
        fact("host.clock.max_error_us", "us", "largest error of the clock, as the kernel estimates it"),
        fact("host.cpu.idle_latency_us", "us", "time to wake from the deepest sleep that CPUs may fall into"),
        fact("host.files.open", "count", "open files of the whole host (fs.file-nr)"),
        fact("host.files.limit", "count", "most that there may be (fs.file-max)"),
    ],
    run: Run::Host(run),
};

const CPUS: &str = "/sys/devices/system/cpu";
const CONTROLLERS: &str = "/sys/devices/system/edac/mc";

/// Taint flags that say that something went wrong (admin-guide/tainted-kernels.rst). The flag for warnings is not
/// included: drivers set it for trivial reasons.
const FAULTS: [(u32, &str); 4] = [(4, "machine-check"), (5, "bad-page"), (7, "oops"), (14, "soft-lockup")];

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    readings
        .read("host.kernel.faults", "/proc/sys/kernel/tainted", |p| Ok(faults(number(&source.read(p)?, p)?)));
    readings.read("host.kernel.hung_tasks", "/proc/sys/kernel/hung_task_detect_count", |p| {
        number::<u64>(&source.read(p)?, p)
    });
    for (id, file) in
        [("host.memory.errors_corrected", "ce_count"), ("host.memory.errors_uncorrected", "ue_count")]
    {
        readings.put(id, format!("{CONTROLLERS}/mc*/{file}"), memory_errors(source, file));
    }
    let heat = "thermal_throttle/core_throttle_count";
    readings.put("host.cpu.thermal_throttles", format!("{CPUS}/cpu*/{heat}"), throttles(source, heat));
    readings.put(
        "host.cpu.idle_latency_us",
        format!("{CPUS}/cpu0/cpuidle/state*/latency"),
        idle_latency(source),
    );
    files(source, readings);
    clock(source, readings);
}

fn faults(taint: u64) -> Vec<&'static str> {
    FAULTS.iter().filter(|(bit, _)| taint & (1 << bit) != 0).map(|(_, name)| *name).collect()
}

fn memory_errors(source: &Source, file: &str) -> Read<u64> {
    let none = || Missing::Absent("no driver watches the memory controllers (EDAC)".to_owned());
    let folders = source.list(CONTROLLERS).map_err(|missing| match missing {
        Missing::Absent(_) => none(),
        other => other,
    })?;
    let mut sum = None;
    for folder in folders.iter().filter(|name| name.starts_with("mc") && name.len() > 2) {
        let path = format!("{CONTROLLERS}/{folder}/{file}");
        let errors: u64 = number(&source.read(&path)?, &path)?;
        sum = Some(sum.unwrap_or(0_u64).saturating_add(errors));
    }
    sum.ok_or_else(none)
}

/// The sum over the CPUs. Threads of one core count the same event several times; only zero or non-zero matters.
fn throttles(source: &Source, file: &str) -> Read<u64> {
    let mut sum = None;
    for cpu in source.list(CPUS)?.iter().filter(|name| is_numbered(name, "cpu")) {
        let path = format!("{CPUS}/{cpu}/{file}");
        match source.read(&path) {
            Ok(text) => sum = Some(sum.unwrap_or(0_u64).saturating_add(number(&text, &path)?)),
            Err(Missing::Absent(_)) => {}
            Err(other) => return Err(other),
        }
    }
    sum.ok_or_else(|| Missing::Absent("this processor, or its hypervisor, does not count it".to_owned()))
}

/// The largest exit latency of the states of CPU 0 that are not switched off; all CPUs have the same states.
fn idle_latency(source: &Source) -> Read<u64> {
    let folder = format!("{CPUS}/cpu0/cpuidle");
    let mut largest = None;
    for state in source.list(&folder)?.iter().filter(|name| is_numbered(name, "state")) {
        let of = |file: &str| -> Read<u64> {
            let path = format!("{folder}/{state}/{file}");
            number(&source.read(&path)?, &path)
        };
        if of("disable")? == 0 {
            largest = largest.max(Some(of("latency")?));
        }
    }
    largest.ok_or_else(|| Missing::Absent(format!("{folder} has no state that may be used")))
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

/// `open  free  limit`; the second has been 0 since Linux 2.6 (admin-guide/sysctl/fs.rst).
fn files(source: &Source, readings: &Readings) {
    let path = "/proc/sys/fs/file-nr";
    let text = source.read(path);
    for (id, place) in [("host.files.open", 0), ("host.files.limit", 2)] {
        readings.read(id, path, |p| {
            let text = text.clone()?;
            number::<u64>(text.split_ascii_whitespace().nth(place).unwrap_or_default(), p)
        });
    }
}

fn clock(source: &Source, readings: &Readings) {
    let state = if source.is_live() {
        clock_state::clock_state()
            .map_err(|e| Missing::Error(format!("ntp_adjtime: {}", crate::source::reason(&e))))
    } else {
        Err(Missing::Absent("read from a copy, not from a live host".to_owned()))
    };
    readings.put("host.clock.synchronised", "ntp_adjtime(3)", state.clone().map(|s| s.synchronised));
    readings.put("host.clock.max_error_us", "ntp_adjtime(3)", state.map(|s| s.max_error_us));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn taint_flags_of_faults_are_told_from_those_of_modules() {
        assert_eq!(faults(1 | (1 << 9) | (1 << 12)), [""; 0]);
        assert_eq!(faults((1 << 4) | (1 << 14)), ["machine-check", "soft-lockup"]);
    }

    #[test]
    fn errors_of_all_controllers_are_counted_together() {
        let (tree, source) = tree(&[]);
        assert!(matches!(memory_errors(&source, "ce_count"), Err(Missing::Absent(_))));
        tree.file(&format!("{CONTROLLERS}/power/control"), "auto");
        assert!(matches!(memory_errors(&source, "ce_count"), Err(Missing::Absent(_))));
        tree.file(&format!("{CONTROLLERS}/mc0/ce_count"), "3\n");
        tree.file(&format!("{CONTROLLERS}/mc1/ce_count"), "4\n");
        assert_eq!(memory_errors(&source, "ce_count"), Ok(7));
    }

    #[test]
    fn the_deepest_sleep_is_that_of_the_states_that_are_not_switched_off() {
        let (tree, source) = tree(&[]);
        assert!(matches!(idle_latency(&source), Err(Missing::Absent(_))));
        for (state, latency, disable) in [(0, 0, 0), (1, 10, 0), (2, 170, 1)] {
            let folder = format!("{CPUS}/cpu0/cpuidle/state{state}");
            tree.file(&format!("{folder}/latency"), format!("{latency}\n"));
            tree.file(&format!("{folder}/disable"), format!("{disable}\n"));
        }
        assert_eq!(idle_latency(&source), Ok(10));
    }

    #[test]
    fn cores_without_a_counter_of_their_heat_do_not_count_as_cool() {
        let (tree, source) = tree(&[]);
        let name = "thermal_throttle/core_throttle_count";
        tree.file(&format!("{CPUS}/cpu0/topology/core_id"), "0");
        assert!(matches!(throttles(&source, name), Err(Missing::Absent(_))));
        tree.file(&format!("{CPUS}/cpu1/{name}"), "12\n");
        assert_eq!(throttles(&source, name), Ok(12));
    }
}
