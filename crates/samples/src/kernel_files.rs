//! Counters of the kernel that are read after the files of the sampler: CPUs, interrupts by CPU, softirqs, network, and the server's threads.

use mydyno_facts::cgroup::Group;
use mydyno_facts::{Missing, Process, Source};

use crate::bus::Counters;
use crate::followed::ServerPid;
use crate::reader::{Reader, first};
use crate::values::{Scale, Values};

/// Interrupts by CPU, from /proc/interrupts: `host.interrupts.cpu3`, summed over all interrupts (proc_interrupts(5)).
#[derive(Debug)]
pub struct Interrupts(Reader);

impl Interrupts {
    /// Opens the file.
    pub fn open(source: &Source) -> Self {
        Self(Reader::open(source, "/proc/interrupts"))
    }
}

impl Counters for Interrupts {
    fn group(&self) -> &'static str {
        "interrupts"
    }

    fn read(&mut self, values: &mut Values) {
        let Some(text) = self.0.text() else { return };
        let mut lines = text.lines();
        let cpus: Vec<String> =
            lines.next().unwrap_or_default().split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        let mut sums = vec![0_u64; cpus.len()];
        for line in lines {
            let Some((_, columns)) = line.split_once(':') else { continue };
            // ERR and MIS have one column for all CPUs.
            let counts: Vec<u64> = columns
                .split_ascii_whitespace()
                .map_while(|column| column.parse().ok())
                .take(cpus.len())
                .collect();
            if counts.len() == cpus.len() {
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
            }
        }
        for (cpu, sum) in cpus.iter().zip(sums) {
            values.set(&format!("host.interrupts.{cpu}"), sum as f64);
        }
    }
}

/// Times of each CPU, from /proc/stat: `host.cpu.cpu3.{busy,idle,softirq}_s` since boot (proc_stat(5)). Busy is user, nice,
/// system, irq and softirq; idle includes iowait; stolen time is in neither.
#[derive(Debug)]
pub struct Cpus {
    stat: Reader,
    tick_s: f64,
}

impl Cpus {
    /// Opens the file.
    pub fn open(source: &Source) -> Self {
        Self { stat: Reader::open(source, "/proc/stat"), tick_s: Scale::of_this_machine().tick_s }
    }
}

impl Counters for Cpus {
    fn group(&self) -> &'static str {
        "cpus"
    }

    fn read(&mut self, values: &mut Values) {
        let tick_s = self.tick_s;
        let Some(text) = self.stat.text() else { return };
        for line in text.lines().filter_map(|line| line.strip_prefix("cpu")) {
            let Some((number, columns)) = line.split_once(' ').filter(|(n, _)| n.parse::<u32>().is_ok())
            else {
                continue;
            };
            let ticks: Option<Vec<u64>> =
                columns.split_ascii_whitespace().take(7).map(|column| column.parse().ok()).collect();
            let Some([user, nice, system, idle, iowait, irq, softirq]) =
                ticks.and_then(|ticks| <[u64; 7]>::try_from(ticks).ok())
            else {
                continue;
            };
            let sum =
                |ticks: &[u64]| ticks.iter().fold(0_u64, |sum, n| sum.saturating_add(*n)) as f64 * tick_s;
            values.set(&format!("host.cpu.cpu{number}.busy_s"), sum(&[user, nice, system, irq, softirq]));
            values.set(&format!("host.cpu.cpu{number}.idle_s"), sum(&[idle, iowait]));
            values.set(&format!("host.cpu.cpu{number}.softirq_s"), sum(&[irq, softirq]));
        }
    }
}

/// Several groups that are read together, one after the other.
pub struct Together(pub &'static str, pub Vec<Box<dyn Counters>>);

impl Counters for Together {
    fn group(&self) -> &'static str {
        self.0
    }

    fn read(&mut self, values: &mut Values) {
        self.1.iter_mut().for_each(|counters| counters.read(values));
    }
}

/// Softirqs by kind, from /proc/softirqs: `host.softirqs.net_rx`, summed over CPUs.
#[derive(Debug)]
pub struct Softirqs(Reader);

impl Softirqs {
    /// Opens the file.
    pub fn open(source: &Source) -> Self {
        Self(Reader::open(source, "/proc/softirqs"))
    }
}

impl Counters for Softirqs {
    fn group(&self) -> &'static str {
        "softirqs"
    }

    fn read(&mut self, values: &mut Values) {
        let Some(text) = self.0.text() else { return };
        for line in text.lines().skip(1) {
            let Some((kind, columns)) = line.split_once(':') else { continue };
            let counts: Option<Vec<u64>> = columns.split_ascii_whitespace().map(|c| c.parse().ok()).collect();
            let sum = counts.map(|counts| counts.iter().fold(0_u64, |sum, n| sum.saturating_add(*n)) as f64);
            values.set_some(&format!("host.softirqs.{}", kind.trim().to_ascii_lowercase()), sum);
        }
    }
}

/// Columns of /proc/net/dev (proc_pid_net(5)).
const DEVICE: [(usize, &str); 8] = [
    (0, "rx_bytes"),
    (1, "rx_packets"),
    (2, "rx_errors"),
    (3, "rx_drops"),
    (8, "tx_bytes"),
    (9, "tx_packets"),
    (10, "tx_errors"),
    (11, "tx_drops"),
];

/// Counters of TCP: file, name there, name here (RFC 4022; `snmp_counter.rst` of the kernel).
const TCP: [(&str, &str); 4] = [
    ("RetransSegs", "host.tcp.retransmitted_segments"),
    ("OutSegs", "host.tcp.sent_segments"),
    ("ListenOverflows", "host.tcp.listen_overflows"),
    ("ListenDrops", "host.tcp.listen_drops"),
];

/// Network devices and TCP in mydyno's network namespace: `host.net.NAME.rx_bytes`, `host.tcp.listen_overflows`.
#[derive(Debug)]
pub struct Network {
    devices: Reader,
    tcp: [Reader; 2],
}

impl Network {
    /// Opens the files.
    pub fn open(source: &Source) -> Self {
        Self {
            devices: Reader::open(source, "/proc/net/dev"),
            tcp: ["/proc/net/snmp", "/proc/net/netstat"].map(|path| Reader::open(source, path)),
        }
    }
}

impl Counters for Network {
    fn group(&self) -> &'static str {
        "network"
    }

    fn read(&mut self, values: &mut Values) {
        if let Some(text) = self.devices.text() {
            for line in text.lines().skip(2) {
                // A name may contain a colon, as of an alias; the counters never do.
                let Some((name, columns)) = line.rsplit_once(':') else { continue };
                let columns: Vec<&str> = columns.split_ascii_whitespace().collect();
                for (place, what) in DEVICE {
                    let count = columns.get(place).and_then(|text| text.parse::<u64>().ok());
                    values.set_some(&format!("host.net.{}.{what}", name.trim()), count.map(|n| n as f64));
                }
            }
        }
        for reader in &mut self.tcp {
            if let Some(text) = reader.text() {
                tcp(text, values);
            }
        }
    }
}

/// Pairs of lines with the same prefix: names, then values.
fn tcp(text: &str, values: &mut Values) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((prefix, names)), Some((same, counts))) =
            (pair[0].split_once(':'), pair[1].split_once(':'))
        else {
            continue;
        };
        if prefix != same || !["Tcp", "TcpExt"].contains(&prefix) {
            continue;
        }
        for (name, count) in names.split_ascii_whitespace().zip(counts.split_ascii_whitespace()) {
            if let Some((_, ours)) = TCP.iter().find(|(theirs, _)| *theirs == name) {
                values.set_some(ours, count.parse::<u64>().ok().map(|n| n as f64));
            }
        }
    }
}

/// Time on CPUs and in run queues, summed over the live threads of a process: `server.threads.{run,wait}_s`, and
/// `server.threads.slices` (/proc/PID/task/TID/schedstat; sched-stats.rst of the kernel).
///
/// It reads a file for each thread. The sums fall when threads end.
#[derive(Debug)]
pub struct Threads {
    source: Source,
    followed: ServerPid,
    pid: Option<u32>,
    process: Option<Process>,
}

impl Threads {
    /// The threads of the server, also after it was restarted.
    pub fn of(source: &Source, server: &ServerPid) -> Self {
        let pid = server.get();
        let process = pid.and_then(|pid| Process::of(source, pid).ok());
        Self { source: source.clone(), followed: server.clone(), pid, process }
    }
}

impl Counters for Threads {
    fn group(&self) -> &'static str {
        "threads"
    }

    fn read(&mut self, values: &mut Values) {
        if self.followed.get() != self.pid {
            *self = Self::of(&self.source, &self.followed);
        }
        let Some(process) = self.process.as_ref().filter(|process| process.lives(&self.source)) else {
            return;
        };
        let folder = process.file("task");
        let mut sums: Option<[u64; 3]> = None;
        for thread in self.source.list(&folder).unwrap_or_default() {
            // A thread may end between the two calls.
            let Ok(text) = self.source.read(&format!("{folder}/{thread}/schedstat")) else { continue };
            let columns: Vec<u64> = text.split_ascii_whitespace().filter_map(|c| c.parse().ok()).collect();
            if let [run, wait, slices] = columns[..] {
                let sum = sums.get_or_insert_default();
                for (sum, more) in sum.iter_mut().zip([run, wait, slices]) {
                    *sum = sum.saturating_add(more);
                }
            }
        }
        if let Some([run, wait, slices]) = sums {
            values.set("server.threads.run_s", run as f64 * 1e-9);
            values.set("server.threads.wait_s", wait as f64 * 1e-9);
            values.set("server.threads.slices", slices as f64);
        }
    }
}

/// Memory of the server's control group, version 2: `server.cgroup.memory.{current,anon,file}_bytes`,
/// `server.cgroup.memory.{oom_kills,limit_hits}` (cgroup-v2.rst of the kernel).
#[derive(Debug)]
pub struct GroupMemory {
    source: Source,
    followed: ServerPid,
    pid: Option<u32>,
    current: Reader,
    stat: Reader,
    events: Reader,
}

impl GroupMemory {
    /// Opens the files of the group of the server, also after it was restarted; reads nothing if the group is not visible.
    pub fn of(source: &Source, server: &ServerPid) -> Self {
        let pid = server.get();
        let unknown = || Missing::Absent("the server's process is not known".to_owned());
        let group = pid.ok_or_else(unknown).and_then(|pid| Group::of(source, &pid.to_string(), "memory"));
        let file = |name: &str| match &group {
            Ok(group) => Reader::open(source, &format!("{}/{name}", group.folder())),
            Err(missing) => Reader::missing(missing.clone()),
        };
        let [current, stat, events] = ["memory.current", "memory.stat", "memory.events"].map(file);
        Self { source: source.clone(), followed: server.clone(), pid, current, stat, events }
    }
}

impl Counters for GroupMemory {
    fn group(&self) -> &'static str {
        "cgroup"
    }

    fn read(&mut self, values: &mut Values) {
        if self.followed.get() != self.pid {
            *self = Self::of(&self.source, &self.followed);
        }
        let current = self.current.text().and_then(first);
        values.set_some("server.cgroup.memory.current_bytes", current.map(|n| n as f64));
        for (reader, names) in [
            (
                &mut self.stat,
                [("anon", "server.cgroup.memory.anon_bytes"), ("file", "server.cgroup.memory.file_bytes")],
            ),
            (
                &mut self.events,
                [("oom_kill", "server.cgroup.memory.oom_kills"), ("max", "server.cgroup.memory.limit_hits")],
            ),
        ] {
            let Some(text) = reader.text() else { continue };
            for (key, name) in names {
                let count = text.lines().find_map(|line| first(line.strip_prefix(key)?.strip_prefix(' ')?));
                values.set_some(name, count.map(|n| n as f64));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn read(mut counters: impl Counters) -> Vec<(String, f64)> {
        let mut values = Values::default();
        counters.read(&mut values);
        values.numbers.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn expected(values: &[(&str, f64)]) -> Vec<(String, f64)> {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn interrupts_are_summed_by_cpu_and_those_of_no_cpu_left_out() {
        let text = "           CPU0       CPU2\n  0:         10          1   IO-APIC   2-edge      timer\n 24:          5        200   PCI-MSI 512000-edge      nvme0q1\nLOC:       1000       2000   Local timer interrupts\nERR:          7\nMIS:          0\n";
        let (_tree, source) = tree(&[("proc/interrupts", text)]);
        let found = read(Interrupts::open(&source));
        assert_eq!(found, expected(&[("host.interrupts.cpu0", 1015.0), ("host.interrupts.cpu2", 2201.0)]));
    }

    #[test]
    fn each_cpu_has_its_own_times() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 10 200 4000 50 1 4 7 0 0\ncpu11 1 1\nintr 5\n";
        let (_tree, source) = tree(&[("proc/stat", text)]);
        let found = read(Cpus { tick_s: 0.01, ..Cpus::open(&source) });
        let wanted = [
            ("host.cpu.cpu0.busy_s", 3.15),
            ("host.cpu.cpu0.idle_s", 40.5),
            ("host.cpu.cpu0.softirq_s", 0.05),
        ];
        assert_eq!(found.len(), wanted.len());
        for ((name, value), (wanted, expected)) in found.iter().zip(wanted) {
            assert!(name == wanted && (value - expected).abs() < 1e-9, "{name} {value}");
        }
    }

    #[test]
    fn softirqs_are_summed_over_cpus() {
        let text = "                    CPU0       CPU1\n          HI:          1          0\n      NET_RX:        300         45\n       BLOCK:          x          1\n";
        let (_tree, source) = tree(&[("proc/softirqs", text)]);
        let found = read(Softirqs::open(&source));
        assert_eq!(found, expected(&[("host.softirqs.hi", 1.0), ("host.softirqs.net_rx", 345.0)]));
    }

    #[test]
    fn devices_and_tcp_are_read_by_the_names_of_their_columns() {
        let devices = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n";
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 500 7\n";
        let netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 3 4\n";
        let (_tree, source) =
            tree(&[("proc/net/dev", devices), ("proc/net/snmp", snmp), ("proc/net/netstat", netstat)]);
        let found = read(Network::open(&source));
        let wanted = [
            ("host.net.eth0.rx_bytes", 1000.0),
            ("host.net.eth0.rx_packets", 10.0),
            ("host.net.eth0.rx_errors", 1.0),
            ("host.net.eth0.rx_drops", 2.0),
            ("host.net.eth0.tx_bytes", 2000.0),
            ("host.net.eth0.tx_packets", 20.0),
            ("host.net.eth0.tx_errors", 3.0),
            ("host.net.eth0.tx_drops", 4.0),
            ("host.tcp.sent_segments", 500.0),
            ("host.tcp.retransmitted_segments", 7.0),
            ("host.tcp.listen_overflows", 3.0),
            ("host.tcp.listen_drops", 4.0),
        ];
        assert_eq!(found, expected(&wanted));
    }

    const STAT: &str = "42 (mysqld) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 900 0 0\n";

    #[test]
    fn threads_are_summed_while_their_process_is_the_same_one() {
        let (tree, source) = tree(&[
            ("proc/42/stat", STAT),
            ("proc/42/task/42/schedstat", "1500000000 500000000 10\n"),
            ("proc/42/task/43/schedstat", "500000000 250000000 5\n"),
            ("proc/42/task/44/schedstat", "garbage\n"),
        ]);
        let mut threads = Threads::of(&source, &ServerPid::new(Some(42)));
        let mut values = Values::default();
        threads.read(&mut values);
        let found: Vec<(String, f64)> =
            values.numbers.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let wanted =
            [("server.threads.run_s", 2.0), ("server.threads.wait_s", 0.75), ("server.threads.slices", 15.0)];
        assert_eq!(found, expected(&wanted));
        tree.file("proc/42/stat", STAT.replace(" 900 ", " 901 "));
        assert!(read(threads).is_empty(), "a later process with the same number is another one");
    }

    #[test]
    fn the_memory_of_a_group_is_that_of_its_files() {
        let (_tree, source) = tree(&[
            ("proc/self/mountinfo", "30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/42/cgroup", "0::/db\n"),
            ("sys/fs/cgroup/db/memory.current", "4096\n"),
            ("sys/fs/cgroup/db/memory.stat", "anon 1024\nfile 2048\nanon_thp 9\n"),
            ("sys/fs/cgroup/db/memory.events", "low 0\nhigh 0\nmax 5\noom 1\noom_kill 2\n"),
        ]);
        let found = read(GroupMemory::of(&source, &ServerPid::new(Some(42))));
        let wanted = [
            ("server.cgroup.memory.current_bytes", 4096.0),
            ("server.cgroup.memory.anon_bytes", 1024.0),
            ("server.cgroup.memory.file_bytes", 2048.0),
            ("server.cgroup.memory.oom_kills", 2.0),
            ("server.cgroup.memory.limit_hits", 5.0),
        ];
        assert_eq!(found, expected(&wanted));
        assert!(read(GroupMemory::of(&source, &ServerPid::new(Some(43)))).is_empty());
    }
}
