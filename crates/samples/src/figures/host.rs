//! Figures of the host and of the server's process.

use super::{Figures, ratio};
use crate::rates::{DiskRates, Rates};

pub fn add(to: &mut Figures<'_>) {
    let rates = Rates::between(to.before, to.after);
    for (name, value) in [
        ("host.cpu.busy_share", rates.busy_share),
        ("host.cpu.user_share", rates.user_share),
        ("host.cpu.system_share", rates.system_share),
        ("host.cpu.iowait_share", rates.iowait_share),
        ("host.cpu.steal_share", rates.steal_share),
        ("host.cpu.count", rates.cpus),
    ] {
        to.set(name, value);
    }
    cpus(to);
    interrupts(to);
    // The sampler itself runs while it reads.
    to.set("host.load.running", to.now("host.load.running_now").map(|n| (n - 1.0).max(0.0)));
    to.gauges(&[("host.load.blocked", "host.load.blocked_now")]);
    to.rates(&[
        ("host.context_switches_per_s", "host.context_switches"),
        ("host.forks_per_s", "host.forks"),
        ("host.swap.in_pages_per_s", "host.swap.in_pages"),
        ("host.swap.out_pages_per_s", "host.swap.out_pages"),
        ("host.memory.major_faults_per_s", "host.memory.major_faults"),
        ("host.memory.allocation_stalls_per_s", "host.memory.allocation_stalls"),
        ("host.tcp.retransmits_per_s", "host.tcp.retransmitted_segments"),
        ("host.tcp.listen_overflows_per_s", "host.tcp.listen_overflows"),
    ]);
    to.set("host.memory.oom_kills", to.grown("host.memory.oom_kills"));
    for what in ["available", "cached", "dirty", "writeback", "dirty_limit", "dirty_background"] {
        let name = format!("host.memory.{what}_bytes");
        to.set(&name, to.now(&name));
    }
    for resource in ["cpu", "io", "memory"] {
        for (level, figure) in [("some", "share"), ("full", "full_share")] {
            let share = to.per_s(&format!("host.pressure.{resource}.{level}_s")).map(|share| share.min(1.0));
            to.set(&format!("host.pressure.{resource}_{figure}"), share);
        }
    }
    for (disk, rates) in &rates.disks {
        add_disk(to, disk, rates);
    }
    networks(to);
    for (name, value) in [
        ("server.cpus", rates.server_cpus),
        ("server.throttled_share", rates.server_throttled_share),
        ("client.throttled_share", rates.client_throttled_share),
        ("server.read_bytes_per_s", rates.server_read_bytes_per_s),
        ("server.write_bytes_per_s", rates.server_write_bytes_per_s),
        ("observe.cpu_share", rates.observe_cpu_share),
    ] {
        to.set(name, value);
    }
    to.gauges(&[("server.rss_bytes", "server.rss_bytes"), ("server.threads", "server.threads_now")]);
    to.rates(&[
        ("server.major_faults_per_s", "server.major_faults"),
        ("server.voluntary_switches_per_s", "server.voluntary_switches"),
        ("server.threads_on_cpu", "server.threads.run_s"),
        ("server.threads_waiting_for_cpu", "server.threads.wait_s"),
    ]);
    // Time from being able to run to running, for each time that a thread ran.
    let delay = ratio(to.grown("server.threads.wait_s"), to.grown("server.threads.slices"));
    to.set("server.run_queue_us", delay.map(|s| s * 1e6));
    for what in ["anon", "file", "shmem", "swap"] {
        let name = format!("server.memory.{what}_bytes");
        to.set(&name, to.now(&name));
    }
    to.gauges(&[
        ("server.memory.pss_bytes", "server.smaps.pss_bytes"),
        ("server.memory.huge_bytes", "server.smaps.huge_bytes"),
    ]);
}

/// Interrupts and softirqs of all CPUs.
fn interrupts(to: &mut Figures<'_>) {
    let all = |to: &Figures<'_>, start: &str| {
        let names: Vec<&str> = to.after.values.keys().map(|name| &**name).collect();
        let names: Vec<&str> = names.into_iter().filter(|name| name.starts_with(start)).collect();
        to.sum_per_s(&names)
    };
    to.set("host.interrupts_per_s", all(to, "host.interrupts.cpu"));
    to.set("host.softirqs_per_s", all(to, "host.softirqs."));
    to.rates(&[
        ("host.softirqs.net_rx_per_s", "host.softirqs.net_rx"),
        ("host.softirqs.net_tx_per_s", "host.softirqs.net_tx"),
        ("host.softirqs.block_per_s", "host.softirqs.block"),
        ("host.softirqs.timer_per_s", "host.softirqs.timer"),
        ("host.softirqs.sched_per_s", "host.softirqs.sched"),
        ("host.softirqs.rcu_per_s", "host.softirqs.rcu"),
    ]);
}

/// The busiest of the CPUs, and the share of interrupts on the one with most of them.
fn cpus(to: &mut Figures<'_>) {
    let numbers: Vec<String> = to
        .after
        .values
        .keys()
        .filter_map(|name| name.strip_prefix("host.cpu.cpu")?.strip_suffix(".busy_s"))
        .map(str::to_owned)
        .collect();
    let mut hottest: Option<(f64, f64)> = None;
    let mut softirq: Option<f64> = None;
    for number in numbers {
        let grown = |what: &str| to.grown(&format!("host.cpu.cpu{number}.{what}_s"));
        // The kernel permits idle time to decrease a little (proc_stat(5)).
        let (Some(busy), idle) = (grown("busy"), grown("idle").unwrap_or(0.0)) else { continue };
        let Some(share) = ratio(Some(busy), Some(busy + idle)) else { continue };
        if hottest.is_none_or(|(most, _)| share > most) {
            hottest = Some((share, number.parse().unwrap_or(-1.0)));
        }
        if let Some(interrupts) = ratio(grown("softirq"), Some(busy + idle)) {
            softirq = Some(softirq.unwrap_or(0.0).max(interrupts));
        }
        to.set(&format!("host.cpu.cpu{number}.busy_share"), Some(share));
    }
    to.set("host.cpu.hottest_share", hottest.map(|(share, _)| share));
    to.set("host.cpu.hottest", hottest.map(|(_, number)| number));
    to.set("host.cpu.hottest_interrupt_share", softirq);
}

fn add_disk(to: &mut Figures<'_>, disk: &str, rates: &DiskRates) {
    for (what, value) in [
        ("reads_per_s", rates.reads_per_s),
        ("writes_per_s", rates.writes_per_s),
        ("read_bytes_per_s", rates.read_bytes_per_s),
        ("write_bytes_per_s", rates.write_bytes_per_s),
        ("read_us", rates.read_us),
        ("write_us", rates.write_us),
        ("flushes_per_s", rates.flushes_per_s),
        ("flush_us", rates.flush_us),
        ("util_share", rates.util_share),
        ("queue", rates.queue),
    ] {
        to.set(&format!("host.disk.{disk}.{what}"), value);
    }
}

fn networks(to: &mut Figures<'_>) {
    let names: Vec<String> = to
        .after
        .values
        .keys()
        .filter_map(|name| name.strip_prefix("host.net.")?.strip_suffix(".rx_bytes"))
        .map(str::to_owned)
        .collect();
    for name in names {
        for what in ["rx_bytes", "tx_bytes", "rx_drops", "tx_drops"] {
            let counter = format!("host.net.{name}.{what}");
            to.set(&format!("{counter}_per_s"), to.per_s(&counter));
        }
    }
}
