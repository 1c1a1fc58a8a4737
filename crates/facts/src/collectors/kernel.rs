//! The kernel and the distribution.

use mydyno_linux::calls;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::{field, number};
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Kernel, distribution, boot.
pub static COLLECTOR: Collector = Collector {
    name: "kernel",
    cost: Cost { host_ms: 1, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Record,
    facts: &[
        fact("host.name", "", "name of the host, as the kernel knows it"),
        fact("host.architecture", "", "machine architecture, as in x86_64"),
        fact("host.kernel.release", "", "kernel release, as uname -r shows it"),
        fact("host.kernel.version", "", "build of the kernel, as uname -v shows it"),
        fact("host.kernel.command_line", "", "boot parameters that bear on performance; others are not kept"),
        fact("host.kernel.tainted", "", "taint flags of the kernel; 0 is untainted"),
        fact("host.distribution.id", "", "ID of os-release"),
        fact("host.distribution.version", "", "VERSION_ID of os-release"),
        fact("host.distribution.name", "", "PRETTY_NAME of os-release"),
        fact("host.boot_id", "", "identity of this boot"),
        fact("host.uptime_s", "s", "time since boot"),
    ],
    run: Run::Host(run),
};

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    for (id, path) in [
        ("host.name", "/proc/sys/kernel/hostname"),
        ("host.kernel.release", "/proc/sys/kernel/osrelease"),
        ("host.kernel.version", "/proc/sys/kernel/version"),
        ("host.boot_id", "/proc/sys/kernel/random/boot_id"),
    ] {
        readings.read(id, path, |p| line(source, p));
    }
    if source.is_live() {
        let machine = calls::machine().ok_or_else(|| Missing::Error("uname gave no machine".to_owned()));
        readings.put("host.architecture", "uname(2)", machine);
    } else {
        readings.read("host.architecture", "/proc/sys/kernel/arch", |p| line(source, p));
    }
    readings
        .read("host.kernel.command_line", "/proc/cmdline", |p| Ok(performance_parameters(&source.read(p)?)));
    readings.read("host.kernel.tainted", "/proc/sys/kernel/tainted", |p| number::<u64>(&source.read(p)?, p));
    readings.read("host.uptime_s", "/proc/uptime", |p| {
        let text = source.read(p)?;
        number::<f64>(text.split_ascii_whitespace().next().unwrap_or_default(), p)
    });
    distribution(source, readings);
}

/// A file of one line; an empty one is an error.
fn line(source: &Source, path: &str) -> Read<String> {
    let text = source.read(path)?;
    if text.is_empty() { Err(Missing::Error(format!("{path} is empty"))) } else { Ok(text) }
}

fn distribution(source: &Source, readings: &Readings) {
    // os-release(5): the file in /etc comes first.
    let paths = ["/etc/os-release", "/usr/lib/os-release"];
    let path = if source.exists(paths[0]) { paths[0] } else { paths[1] };
    let text = source.read(path);
    for (id, key) in [
        ("host.distribution.id", "ID"),
        ("host.distribution.version", "VERSION_ID"),
        ("host.distribution.name", "PRETTY_NAME"),
    ] {
        let value = text.clone().and_then(|text| {
            field(&text, key, '=')
                .map(|v| v.trim_matches(['"', '\'']).to_owned())
                .ok_or_else(|| Missing::Absent(format!("{path} has no {key}")))
        });
        readings.put(id, path, value);
    }
}

/// Kernel parameters that affect performance. Others are left out: a command line may contain credentials.
fn performance_parameters(line: &str) -> String {
    const KEPT: &[&str] = &[
        "audit",
        "cgroup_disable",
        "cgroup_enable",
        "cgroup_no_v1",
        "clocksource",
        "cpufreq.default_governor",
        "cpuidle.governor",
        "cpuidle.off",
        "default_hugepagesz",
        "elevator",
        "hugepages",
        "hugepagesz",
        "idle",
        "init_on_alloc",
        "init_on_free",
        "intel_idle.max_cstate",
        "intel_iommu",
        "intel_pstate",
        "amd_pstate",
        "iommu",
        "irqaffinity",
        "isolcpus",
        "l1tf",
        "lazy_rcu",
        "maxcpus",
        "mds",
        "mem",
        "mitigations",
        "movable_node",
        "nmi_watchdog",
        "nohz",
        "nohz_full",
        "nosmt",
        "nospectre_v1",
        "nospectre_v2",
        "nosoftlockup",
        "noswapaccount",
        "nowatchdog",
        "nr_cpus",
        "numa",
        "numa_balancing",
        "nvme.poll_queues",
        "nvme.write_queues",
        "nvme_core.default_ps_max_latency_us",
        "nvme_core.io_timeout",
        "nvme_core.multipath",
        "page_poison",
        "pcie_aspm",
        "preempt",
        "processor.max_cstate",
        "psi",
        "pti",
        "rcu_nocbs",
        "retbleed",
        "scsi_mod.use_blk_mq",
        "skew_tick",
        "slub_debug",
        "spec_store_bypass_disable",
        "spectre_v2",
        "swapaccount",
        "systemd.unified_cgroup_hierarchy",
        "threadirqs",
        "transparent_hugepage",
        "transparent_hugepage_shmem",
        "tsc",
        "tsx",
        "zswap.enabled",
    ];
    let kept: Vec<&str> = line
        .split_ascii_whitespace()
        .filter(|word| {
            let name = word.split('=').next().unwrap_or_default().replace('-', "_");
            KEPT.contains(&name.as_str())
        })
        .collect();
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::performance_parameters;

    #[test]
    fn only_parameters_about_performance_are_kept() {
        let line = "root=UUID=1 ro quiet transparent_hugepage=madvise systemd.set_credential=mysql.pw:hunter2 numa-balancing=disable mitigations=auto,nosmt iscsi_password=x";
        assert_eq!(
            performance_parameters(line),
            "transparent_hugepage=madvise numa-balancing=disable mitigations=auto,nosmt"
        );
    }
}
