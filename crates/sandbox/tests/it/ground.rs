//! A state folder of a test's own, and what of it is left on the host.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mydyno_host::restore::{put_back, restore};
use mydyno_host::{Host, Machine, StateDir};
use mydyno_model::change::RestoreState;
use mydyno_sandbox::variable::PrivateServers;
use mydyno_sandbox::{Site, Turns};
use tempfile::TempDir;

pub struct Ground {
    temp: TempDir,
    pub host: Host,
}

/// Tests that turn levers of the whole host do so one at a time, also those of another run: their state folders do not
/// know of each other.
pub fn whole_host() -> (MutexGuard<'static, ()>, File) {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let lock = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("whole-host.lock")).unwrap();
    // SAFETY: flock(2) takes an open descriptor and flags; it waits until the other run is over.
    assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) }, 0);
    (one, lock)
}

impl Ground {
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let host = host_in(temp.path());
        Self { temp, host }
    }

    pub fn path(&self) -> &Path {
        self.temp.path()
    }

    pub fn site(&self) -> Site<'_> {
        Site::new(&self.host).with_cache(shared_cache()).with_disk_service(disk_service())
    }

    /// Restores as `mydyno host restore --all` does.
    pub fn restore(&self, all: bool) -> Vec<(String, RestoreState, String)> {
        restore(&self.host.journal, &self.host.lease, all, &PrivateServers)
            .unwrap()
            .into_iter()
            .map(|done| (done.change.what, done.outcome, done.why))
            .collect()
    }

    /// Puts back all that is in the journal.
    pub fn clean(&self) {
        if let Ok(left) = self.host.journal.take_over(&self.host.lease, |_| true) {
            let _ = put_back(&self.host.journal, self.host.machine(), &left, &PrivateServers);
        }
    }

    /// What of this ground is left: processes, mounts, loop devices, groups, swap, files, journal entries.
    pub fn traces(&self) -> Vec<String> {
        let mark = self.path().to_str().unwrap();
        let mut traces = Vec::new();
        for table in ["/proc/self/mountinfo", "/proc/swaps"] {
            let text = fs::read_to_string(table).unwrap();
            traces.extend(text.lines().filter(|l| l.contains(mark)).map(str::to_owned));
        }
        for entry in entries("/sys/block") {
            let backing = fs::read_to_string(entry.join("loop/backing_file")).unwrap_or_default();
            traces.extend(backing.contains(mark).then(|| format!("{}: {backing}", entry.display())));
        }
        for entry in entries("/proc") {
            let words = fs::read(entry.join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            let child = words.contains("kills::") && words.contains("--exact");
            traces.extend((words.contains(mark) && !child).then(|| format!("{}: {words}", entry.display())));
        }
        let state = self.host.state.path();
        for entry in entries(state).into_iter().chain(entries(self.host.state.servers())) {
            let name = entry.file_name().unwrap().to_str().unwrap().to_owned();
            let empty = name == "journal.jsonl" && fs::metadata(&entry).unwrap().len() == 0;
            traces.extend((!empty && name != "servers").then(|| entry.display().to_string()));
        }
        traces
    }
}

/// What a failed test leaves.
impl Drop for Ground {
    fn drop(&mut self) {
        self.clean();
    }
}

/// The host as a command of its own sees it, with its state below a folder.
pub fn host_in(folder: &Path) -> Host {
    let state = StateDir::open(&folder.join("state")).unwrap();
    Host::of(state, &Machine::real().unwrap(), "test").unwrap()
}

/// Templates are shared by tests.
pub fn shared_cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("mydyno-cache")
}

pub use crate::crashes::service as disk_service;

pub fn turns(wanted: &[(String, String)]) -> Turns {
    Turns::parse(wanted).unwrap()
}

pub fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder);
    entries.map(|all| all.filter_map(|e| Some(e.ok()?.path())).collect()).unwrap_or_default()
}

/// The levers that this machine can turn, each with a value that does no harm beside production.
pub fn levers_of_this_machine(machine: &Machine) -> Vec<(String, String)> {
    let wanted = [
        ("vm.vfs_cache_pressure", "101"),
        ("vm.swappiness", "61"),
        ("thp.khugepaged_max_ptes_none", "510"),
        ("swap.file", "16M"),
        ("swap.zram", "16M"),
        ("cgroup.memory", "700M"),
        ("cgroup.cpu", "1.5"),
        ("cgroup.cpuset", "0"),
        ("cgroup.io", "write_iops=5000"),
        ("disk.file_system", "ext4"),
        ("disk.size", "256M"),
        ("disk.medium", "emulated"),
        ("disk.mount_options", "noatime"),
        ("disk.queue.nr_requests", "64"),
        ("disk.queue.read_ahead_kb", "64"),
        ("disk.queue.write_cache", "write through"),
        ("server.nice", "1"),
        ("server.class", "batch"),
        ("limit.nofile", "4096"),
        ("env.MALLOC_ARENA_MAX", "2"),
        ("option.innodb_log_file_size", "8M"),
        ("option.innodb_buffer_pool_size", "32M"),
        ("variable.max_connections", "77"),
        ("variable.innodb_io_capacity", "300"),
    ];
    let levers = mydyno_sandbox::levers::list(machine);
    let can = |id: &str| match levers.iter().find(|lever| lever.id == id) {
        Some(lever) => {
            lever.lacks.is_none() && lever.values.iter().all(|v| v.value != "ext4" || v.lacks.is_none())
        }
        None => true,
    };
    let disk = can("disk.file_system");
    let swap = mydyno_host::cgroup::Resource::Memory.check(machine).is_ok();
    wanted
        .iter()
        .filter(|(id, _)| can(id) && (disk || !id.starts_with("disk.")) && (swap || !id.starts_with("swap.")))
        .map(|(id, value)| ((*id).to_owned(), (*value).to_owned()))
        .collect()
}
