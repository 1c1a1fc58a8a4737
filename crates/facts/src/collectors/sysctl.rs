//! Kernel settings below /proc/sys, by the names that sysctl(8) uses.

use mydyno_settings::table;
use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::{Missing, Read};

/// Kernel settings.
pub static COLLECTOR: Collector = Collector {
    name: "sysctl",
    cost: Cost { host_ms: 2, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Record,
    facts: &[fact(
        "host.sysctl.NAME",
        "",
        "a kernel setting by its sysctl name, as in host.sysctl.vm.swappiness",
    )],
    run: Run::Host(run),
};

/// The settings that are read besides those of the table of settings, with their units, and the units of some of the table's.
/// Values of several numbers are lists.
const SETTINGS: &[(&str, &str)] = &[
    ("fs.aio-max-nr", "count"),
    ("fs.aio-nr", "count"),
    ("fs.file-max", "count"),
    ("fs.nr_open", "count"),
    ("kernel.core_pattern", ""),
    ("kernel.io_uring_disabled", ""),
    ("kernel.nmi_watchdog", ""),
    ("kernel.numa_balancing", ""),
    ("kernel.perf_event_paranoid", ""),
    ("kernel.pid_max", "count"),
    ("kernel.sched_autogroup_enabled", ""),
    ("kernel.sched_cfs_bandwidth_slice_us", "us"),
    ("kernel.sched_rt_runtime_us", "us"),
    ("kernel.sched_schedstats", ""),
    ("kernel.threads-max", "count"),
    ("kernel.timer_migration", ""),
    ("kernel.unprivileged_bpf_disabled", ""),
    ("net.core.netdev_max_backlog", "count"),
    ("net.core.rmem_max", "bytes"),
    ("net.core.somaxconn", "count"),
    ("net.core.wmem_max", "bytes"),
    ("net.ipv4.ip_local_port_range", ""),
    ("net.ipv4.tcp_abort_on_overflow", ""),
    ("net.ipv4.tcp_congestion_control", ""),
    ("net.ipv4.tcp_fin_timeout", "s"),
    ("net.ipv4.tcp_keepalive_intvl", "s"),
    ("net.ipv4.tcp_keepalive_probes", "count"),
    ("net.ipv4.tcp_keepalive_time", "s"),
    ("net.ipv4.tcp_max_syn_backlog", "count"),
    ("net.ipv4.tcp_max_tw_buckets", "count"),
    ("net.ipv4.tcp_retries2", "count"),
    ("net.ipv4.tcp_sack", ""),
    ("net.ipv4.tcp_slow_start_after_idle", ""),
    ("net.ipv4.tcp_syncookies", ""),
    ("net.ipv4.tcp_timestamps", ""),
    ("net.ipv4.tcp_tw_reuse", ""),
    ("net.ipv4.tcp_window_scaling", ""),
    ("net.netfilter.nf_conntrack_count", "count"),
    ("net.netfilter.nf_conntrack_max", "count"),
    ("vm.compaction_proactiveness", "percent"),
    ("vm.dirty_background_bytes", "bytes"),
    ("vm.dirty_background_ratio", "percent"),
    ("vm.dirty_bytes", "bytes"),
    ("vm.dirty_expire_centisecs", "centiseconds"),
    ("vm.dirty_ratio", "percent"),
    ("vm.dirty_writeback_centisecs", "centiseconds"),
    ("vm.extfrag_threshold", ""),
    ("vm.laptop_mode", ""),
    ("vm.max_map_count", "count"),
    ("vm.min_free_kbytes", "KiB"),
    ("vm.nr_hugepages", "count"),
    ("vm.nr_overcommit_hugepages", "count"),
    ("vm.numa_stat", ""),
    ("vm.oom_kill_allocating_task", ""),
    ("vm.overcommit_kbytes", "KiB"),
    ("vm.overcommit_memory", ""),
    ("vm.overcommit_ratio", "percent"),
    ("vm.page-cluster", "log2 pages"),
    ("vm.panic_on_oom", ""),
    ("vm.swappiness", ""),
    ("vm.vfs_cache_pressure", "percent"),
    ("vm.watermark_boost_factor", "1/10000"),
    ("vm.watermark_scale_factor", "1/10000"),
    ("vm.zone_reclaim_mode", ""),
];

/// The settings that are read, with their units: those listed here, and those whose fact the table of settings names.
pub fn settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let listed = |name: &str| SETTINGS.iter().any(|(known, _)| *known == name);
    let of_table = table().rows().filter_map(|row| row.fact.as_deref()?.strip_prefix("host.sysctl."));
    SETTINGS.iter().copied().chain(of_table.filter(move |name| !listed(name)).map(|name| (name, "")))
}

/// Where a setting is found. Only the first dots separate folders; none of the settings read here has one in its name.
pub fn path_of(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

fn run(context: &Context, readings: &Readings) {
    for (name, unit) in settings() {
        let path = path_of(name);
        let value = context.source.read(&path).and_then(|text| value_of(&text, unit, &path));
        readings.put_with_unit(&format!("host.sysctl.{name}"), unit, &path, value);
    }
}

/// One number, several numbers as a list, or text; a setting with a unit must be a number.
fn value_of(text: &str, unit: &str, path: &str) -> Read<Value> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let numbers: Option<Vec<Value>> = words
        .iter()
        .map(|w| w.parse::<i64>().map(Value::from).or_else(|_| w.parse::<u64>().map(Value::from)).ok())
        .collect();
    match (numbers, unit) {
        (Some(mut numbers), _) if numbers.len() == 1 => Ok(numbers.swap_remove(0)),
        (Some(numbers), "") if !numbers.is_empty() => Ok(Value::from(numbers)),
        (_, "") if !text.contains('\0') => Ok(Value::from(text)),
        _ => Err(Missing::Error(format!(
            "{path}: expected a number, found {:?}",
            text.chars().take(60).collect::<String>()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_numbers_lists_or_text() {
        assert_eq!(value_of("60", "", "/p"), Ok(json!(60)));
        assert_eq!(value_of("-1", "us", "/p"), Ok(json!(-1)));
        assert_eq!(value_of("18446744073709551615", "count", "/p"), Ok(json!(u64::MAX)));
        assert_eq!(value_of("32768\t60999", "", "/p"), Ok(json!([32768, 60999])));
        assert_eq!(value_of("|/usr/lib/x %P", "", "/p"), Ok(json!("|/usr/lib/x %P")));
        for text in ["", "x", "99999999999999999999", "1 2"] {
            assert!(value_of(text, "bytes", "/p").is_err(), "{text}");
        }
    }

    #[test]
    fn settings_of_the_table_are_read_once() {
        let all: Vec<&str> = settings().map(|(name, _)| name).collect();
        let distinct: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), distinct.len());
        let facts = table().rows().filter_map(|row| row.fact.as_deref()?.strip_prefix("host.sysctl."));
        let of_table: Vec<&str> = facts.collect();
        assert!(of_table.len() > 10 && of_table.iter().all(|name| distinct.contains(name)));
    }

    #[test]
    fn a_setting_is_found_where_sysctl_finds_it() {
        assert_eq!(path_of("net.ipv4.tcp_fin_timeout"), "/proc/sys/net/ipv4/tcp_fin_timeout");
    }
}
