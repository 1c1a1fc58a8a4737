//! The server's process.

use crate::cgroup::Throttling;
use crate::reader::{Reader, first, line_value};
use crate::values::{Scale, Values};
use mydyno_facts::process::Process;
use mydyno_facts::{Source, reason};
use mydyno_linux::Stat;
use mydyno_linux::calls::cpu_clocks::process_cpu_s;
use mydyno_linux::calls::taskstats::Taskstats;

/// Memory of the process in /proc/PID/status, in KiB there (proc_pid_status(5)): resident anonymous memory, pages of files and
/// of shared memory, and what is in swap.
const MEMORY: [(&str, &str); 4] = [
    ("RssAnon", "server.memory.anon_bytes"),
    ("RssFile", "server.memory.file_bytes"),
    ("RssShmem", "server.memory.shmem_bytes"),
    ("VmSwap", "server.memory.swap_bytes"),
];

/// Open files of the server's process. They refer to that process, never to a later one with the same number.
#[derive(Debug)]
pub struct Server {
    scale: Scale,
    /// The process whose CPU clock is read; absent for a tree of files and for a process that does not exist.
    live: Option<Process>,
    start_ticks: Option<u64>,
    stat: Reader,
    statm: Reader,
    status: Reader,
    io: Reader,
    taskstats: Result<Taskstats, String>,
    throttling: Throttling,
}

impl Server {
    pub fn open(source: &Source, pid: u32, scale: Scale) -> Self {
        let process = Process::of(source, pid);
        let file = |name: &str| match &process {
            Ok(process) => Reader::open(source, &process.file(name)),
            Err(missing) => Reader::missing(missing.clone()),
        };
        Self {
            scale,
            stat: file("stat"),
            statm: file("statm"),
            status: file("status"),
            io: file("io"),
            taskstats: if source.is_live() {
                taskstats(pid)
            } else {
                Err("taskstats: read from a copy".to_owned())
            },
            throttling: Throttling::open(source, &pid.to_string(), "server"),
            start_ticks: process.as_ref().ok().map(|p| p.start_ticks),
            live: process.ok().filter(|_| source.is_live()),
        }
    }

    pub fn gaps(&self) -> Vec<String> {
        let files = [&self.stat, &self.statm, &self.io].into_iter().filter_map(Reader::gap);
        files.chain(self.taskstats.as_ref().err().cloned()).collect()
    }

    /// Whether the original process still runs.
    pub fn lives(&mut self) -> bool {
        let stat = self.stat.text().and_then(Stat::parse);
        // Z and X: it has ended, but its parent has not yet collected its status.
        stat.is_some_and(|s| Some(s.start_ticks) == self.start_ticks && s.is_alive())
    }

    pub fn read(&mut self, values: &mut Values) {
        let Some(stat) = self.stat.text().and_then(Stat::parse) else { return };
        if Some(stat.start_ticks) != self.start_ticks {
            return;
        }
        for (name, value) in [
            ("server.cpu.user_s", stat.user_ticks as f64 * self.scale.tick_s),
            ("server.cpu.system_s", stat.system_ticks as f64 * self.scale.tick_s),
            ("server.threads_now", stat.threads as f64),
            ("server.minor_faults", stat.minor_faults as f64),
            ("server.major_faults", stat.major_faults as f64),
        ] {
            values.set(name, value);
        }
        // The process existed a moment ago, so its number is not reused yet.
        let total = self.live.as_ref().and_then(|p| process_cpu_s(p.pid));
        values.set_some("server.cpu.total_s", total);
        if let (Ok(taskstats), Some(process)) = (&mut self.taskstats, &self.live)
            && let Ok(switches) = taskstats.switches(process.pid)
        {
            values.set("server.voluntary_switches", switches.voluntary as f64);
            values.set("server.involuntary_switches", switches.involuntary as f64);
        }
        if let Some(text) = self.statm.text() {
            // The second column is resident memory (proc_pid_statm(5)).
            let pages = text.split_ascii_whitespace().nth(1).and_then(first);
            values.set_some("server.rss_bytes", pages.map(|n| n as f64 * self.scale.page_bytes));
        }
        if let Some(text) = self.status.text() {
            for line in text.lines() {
                for (key, name) in MEMORY {
                    let kib = line_value(line, key).and_then(first);
                    values.set_some(name, kib.map(|n| n as f64 * 1024.0));
                }
            }
        }
        if let Some(text) = self.io.text() {
            for line in text.lines() {
                for (key, name) in
                    [("read_bytes", "server.io.read_bytes"), ("write_bytes", "server.io.write_bytes")]
                {
                    values.set_some(name, line_value(line, key).and_then(first).map(|n| n as f64));
                }
            }
        }
        self.throttling.read(values);
    }
}

/// Opens the taskstats interface, and checks that the kernel answers a request for context switches.
fn taskstats(pid: u32) -> Result<Taskstats, String> {
    let mut taskstats =
        Taskstats::open().map_err(|e| format!("context switches by taskstats: {}", reason(&e)))?;
    match taskstats.switches(pid) {
        Ok(_) => Ok(taskstats),
        Err(e) => {
            let why = reason(&e);
            Err(format!("context switches by taskstats: {why}; run mydyno as root or with CAP_NET_ADMIN"))
        }
    }
}
