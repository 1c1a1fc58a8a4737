//! The machine that a probe runs on, and its available resources.

use std::fs;
use std::path::Path;

use mydyno_host::Machine;
use mydyno_linux::text::kib_field;
use mydyno_linux::{Root, cpus};
use mydyno_model::probe::ProbedMachine;

use crate::error::ProbeError;
use crate::{group, sys};

/// Describes this machine.
pub fn describe() -> ProbedMachine {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let clock = text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    ProbedMachine {
        kernel: Root::real().kernel_release(),
        cpu: cpus::model(&text("/proc/cpuinfo")).unwrap_or_else(|| "unknown".to_owned()),
        cpus: sys::allowed_cpus().len(),
        memory_bytes: kib_field(&text("/proc/meminfo"), "MemTotal").unwrap_or(0),
        clock_source: if clock.is_empty() { "unknown".to_owned() } else { clock.trim().to_owned() },
        stolen_share: None,
    }
}

/// Clock ticks of all CPUs so far: in total, and those that the hypervisor gave to other guests (`steal` of
/// proc_stat(5)).
pub fn ticks() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal; user and nice include guests.
    let fields: Vec<u64> = line.split_whitespace().take(8).filter_map(|f| f.parse().ok()).collect();
    Some((fields.iter().sum(), *fields.get(7)?))
}

/// Share of CPU time that was stolen between two readings of [`ticks`].
pub fn stolen(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Option<f64> {
    let ((all_before, steal_before), (all, steal)) = (before?, after?);
    let passed = all.checked_sub(all_before).filter(|ticks| *ticks > 0)?;
    Some(steal.saturating_sub(steal_before) as f64 / passed as f64)
}

/// Checks that a probe may allocate this much: at most half of the available memory of this host and of each control
/// group of this process, so that nothing starts to swap or is killed.
///
/// # Errors
/// The allocation would be larger.
pub fn check_memory(machine: &Machine, needed: u64) -> Result<(), ProbeError> {
    let host = machine.available_bytes()?;
    let available = group::available_bytes(Path::new("/proc")).map_or(host, |group| group.min(host));
    if needed <= available / 2 { Ok(()) } else { Err(ProbeError::Memory { needed, available }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_what_is_available_is_refused_with_both_figures() {
        let machine = Machine::real().unwrap();
        assert!(check_memory(&machine, 1).is_ok());
        let error = check_memory(&machine, u64::MAX / 4).unwrap_err().to_string();
        assert!(error.contains("at most half"), "{error}");
    }

    #[test]
    fn stolen_time_is_a_share_of_what_passed() {
        assert_eq!(stolen(Some((100, 10)), Some((300, 60))), Some(0.25));
        assert_eq!(stolen(Some((100, 10)), Some((100, 10))), None);
        assert_eq!(stolen(None, Some((1, 1))), None);
    }
}
