//! Reads counters and gauges of host and server from files that stay open.

use std::time::Instant;

use indexmap::IndexMap;
use mydyno_model::sample::Sample;

use mydyno_facts::Source;

use crate::followed::ServerPid;
use crate::values::{Scale, Values};
use crate::{cgroup, disk, host, server};
use mydyno_linux::calls::cpu_clocks::thread_cpu_s;

/// Reads samples. Its files stay open; one sample is a few dozen system calls, however many threads the server has.
///
/// | value | what it is |
/// |---|---|
/// | `host.cpu.{user,nice,system,idle,iowait,irq,softirq,steal,guest,guest_nice}_s` | CPU seconds since boot, all CPUs; as in the kernel's account, user holds guest and nice holds guest_nice |
/// | `host.cpu.count` | CPUs that are online |
/// | `host.context_switches`, `host.forks` | since boot |
/// | `host.load.running_now`, `host.load.blocked_now` | tasks that run or wait for a CPU, this sampler included; tasks that wait for a disk |
/// | `host.swap.{in,out}_pages` | pages read from and written to swap |
/// | `host.memory.{major_faults,allocation_stalls,compaction_stalls,oom_kills}` | since boot |
/// | `host.memory.{available,dirty,writeback,cached}_bytes` | now |
/// | `host.memory.dirty_{limit,background}_bytes` | dirty pages beyond which the kernel stops writers, and from which it writes; now |
/// | `host.pressure.{cpu,io,memory}.{some,full}_s` | time in which some task, or all of them, waited for it (PSI) |
/// | `host.disk.NAME.{reads,writes}`, `.{read,write}_bytes`, `.{read,write}_s` | completed; time is summed over requests |
/// | `host.disk.NAME.{io,queue}_s`, `.in_flight_now` | time with a request in flight; the same summed over requests; requests in flight |
/// | `host.disk.NAME.{flushes,flush_s}` | cache flushes (Linux 5.5) |
/// | `server.cpu.{user,system}_s`, `server.cpu.total_s` | CPU of all its threads in clock ticks; the total to the nanosecond |
/// | `server.rss_bytes`, `server.threads_now` | now |
/// | `server.memory.{anon,file,shmem,swap}_bytes` | resident memory by kind, and what is in swap; now |
/// | `server.{minor,major}_faults` | page faults of all its threads |
/// | `server.{voluntary,involuntary}_switches` | context switches of its threads, where the kernel's taskstats may be read (CAP_NET_ADMIN); of its live threads only |
/// | `server.io.{read,write}_bytes` | to and from storage (needs the server's user or root) |
/// | `server.cgroup.cpu.{throttled_s,throttled_periods}` | its group and the groups above it, where one has a quota; summed over CPUs |
/// | `client.cgroup.cpu.{throttled_s,throttled_periods}` | the same for mydyno's own group |
/// | `observe.cpu_s` | CPU that sampling has used so far |
pub struct Sampler {
    source: Source,
    host: Option<host::Host>,
    disks: Vec<disk::Disk>,
    server: Option<server::Server>,
    followed: ServerPid,
    server_pid: Option<u32>,
    client_cgroup: cgroup::Throttling,
    used_cpu_s: f64,
    last_size: usize,
}

impl Sampler {
    /// Opens the files. `disks` are kernel names of block devices, as in `sda` or `nvme0n1p2`.
    ///
    /// Values that cannot be read are left out of the samples; [`Sampler::gaps`] lists them.
    pub fn new(source: &Source, server_pid: Option<u32>, disks: &[String]) -> Self {
        let scale = Scale::of_this_machine();
        Self {
            source: source.clone(),
            host: Some(host::Host::open(source, scale)),
            disks: disks.iter().map(|name| disk::Disk::open(source, name)).collect(),
            server: server_pid.map(|pid| server::Server::open(source, pid, scale)),
            followed: ServerPid::new(server_pid),
            server_pid,
            client_cgroup: cgroup::Throttling::open(source, "self", "client"),
            used_cpu_s: 0.0,
            last_size: 0,
        }
    }

    /// The same for a server that may be restarted: its files are opened anew when `server` names another process.
    pub fn following(source: &Source, server: &ServerPid, disks: &[String]) -> Self {
        Self { followed: server.clone(), ..Self::new(source, server.get(), disks) }
    }

    /// A sampler for a server on another host: it reads nothing of this one but mydyno's own throttling.
    pub fn without_host(source: &Source) -> Self {
        Self { host: None, ..Self::new(source, None, &[]) }
    }

    /// Reads everything now. `at_s` is the caller's clock at this instant, in seconds since the run began.
    pub fn sample(&mut self, at_s: f64) -> Sample {
        let started = Instant::now();
        let cpu_before = thread_cpu_s();
        let mut values = Values { numbers: IndexMap::with_capacity(self.last_size), ..Values::default() };
        if self.followed.get() != self.server_pid {
            self.server_pid = self.followed.get();
            let open = |pid| server::Server::open(&self.source, pid, Scale::of_this_machine());
            self.server = self.server_pid.map(open);
        }
        // The server and the CPUs come first and next to each other, because CPU figures use their ratio.
        if let Some(server) = &mut self.server {
            server.read(&mut values);
        }
        if let Some(host) = &mut self.host {
            host.read(&mut values);
        }
        for disk in &mut self.disks {
            disk.read(&mut values);
        }
        self.client_cgroup.read(&mut values);
        if let (Some(before), Some(after)) = (cpu_before, thread_cpu_s()) {
            self.used_cpu_s += after - before;
        }
        values.set("observe.cpu_s", self.used_cpu_s);
        self.last_size = values.numbers.len();
        Sample {
            at_s,
            took_s: started.elapsed().as_secs_f64(),
            key: true,
            values: values.numbers,
            ..Sample::default()
        }
    }

    /// Whether the server's process is still the one that this sampler was opened for; `true` without a process.
    pub fn server_lives(&mut self) -> bool {
        self.server.as_mut().is_none_or(server::Server::lives)
    }

    /// The files that cannot be read, with the reason.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = self.host.as_ref().map(host::Host::gaps).unwrap_or_default();
        gaps.extend(self.disks.iter().filter_map(disk::Disk::gap));
        if let Some(server) = &self.server {
            gaps.extend(server.gaps());
        }
        gaps
    }
}
