//! A separate state folder for a test, and the detection of everything that the test leaves on the host.

use std::fs;
use std::path::{Path, PathBuf};

use mydyno_host::file_system::FileSystem;
use mydyno_host::restore::{put_back, restore};
use mydyno_host::{Host, HostError, Machine, StateDir, loops};
use mydyno_model::change::RestoreState;
use mydyno_model::lever::{LeverInfo, LeverScope};
use mydyno_sandbox::data::Keeping;
use mydyno_sandbox::variable::PrivateServers;
use mydyno_sandbox::{ServerLevers, Site};
use tempfile::TempDir;

pub struct Scratch {
    temp: TempDir,
    pub host: Host,
}

impl Scratch {
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

    /// Restores everything in the journal.
    pub fn clean(&self) {
        if let Ok(left) = self.host.journal.take_over(&self.host.lease, |_| true) {
            let _ = put_back(&self.host.journal, self.host.machine(), &left, &PrivateServers);
        }
    }

    /// Remains of this test beside kept data: processes, mounts, loop devices, groups, swap, files, journal entries.
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
            traces.extend(
                (!empty && !["servers", "data"].contains(&name.as_str()))
                    .then(|| entry.display().to_string()),
            );
        }
        traces
    }
}

/// Removes the remains of a failed test.
impl Drop for Scratch {
    fn drop(&mut self) {
        self.clean();
    }
}

/// The host as another command opens it, with its state below a folder.
pub fn host_in(folder: &Path) -> Host {
    let state = StateDir::open(&folder.join("state")).unwrap();
    Host::of(state, &Machine::real().unwrap(), "test").unwrap()
}

/// Templates are shared by tests.
pub fn shared_cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("mydyno-cache")
}

pub use crate::crashes::service as disk_service;

pub fn lever_set(wanted: &[(String, String)]) -> ServerLevers {
    mydyno_levers::LeverSet::parse(wanted).unwrap().server
}

/// Whether kept data can have a disk here.
pub fn check_disk_of_data(machine: &Machine) -> Result<(), HostError> {
    loops::check(machine)?;
    FileSystem::Xfs.check(machine).or_else(|lack| FileSystem::Btrfs.check(machine).map_err(|_| lack))
}

/// Keeps data with little space where they can have a disk: elsewhere a requested size is refused.
pub fn keeping(machine: &Machine, small: u64) -> Keeping {
    Keeping { room: check_disk_of_data(machine).is_ok().then_some(small), plain: false, lent: false }
}

pub fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder);
    entries.map(|all| all.filter_map(|e| Some(e.ok()?.path())).collect()).unwrap_or_default()
}

/// Levers of servers and their disks, each with a value that is harmless beside production.
const OF_SERVERS: &[(&str, &str)] = &[
    ("swap.file", "16M"),
    ("swap.zram", "16M"),
    ("cgroup.memory", "700M"),
    ("cgroup.swap", "16M"),
    ("cgroup.cpu", "1.5"),
    ("cgroup.cpuset", "0"),
    ("cgroup.io", "write_iops=5000"),
    ("disk.file_system", "ext4"),
    ("disk.size", "256M"),
    ("disk.medium", "emulated"),
    ("disk.cache", "on"),
    ("disk.depth", "4"),
    ("disk.drive", "7200rpm"),
    ("disk.heads", "2"),
    ("disk.features", "^dir_index"),
    ("disk.mount_options", "noatime"),
    ("disk.queue.scheduler", "mq-deadline"),
    ("disk.queue.nr_requests", "64"),
    ("disk.queue.read_ahead_kb", "64"),
    ("disk.queue.rotational", "0"),
    ("disk.queue.max_sectors_kb", "512"),
    ("disk.queue.write_cache", "write through"),
    ("disk.queue.wbt_lat_usec", "1000"),
    ("disk.queue.nomerges", "1"),
    ("disk.queue.rq_affinity", "2"),
    ("disk.queue.iosched.read_expire", "400"),
    ("disk.queue.iosched.write_expire", "4000"),
    ("disk.queue.iosched.prio_aging_expire", "9000"),
    ("disk.queue.iosched.writes_starved", "3"),
    ("disk.queue.iosched.front_merges", "0"),
    ("disk.queue.iosched.fifo_batch", "8"),
    ("disk.queue.iosched.async_depth", "32"),
    ("disk.bdi.min_ratio", "2"),
    ("disk.bdi.max_ratio", "50"),
    ("disk.bdi.strict_limit", "1"),
    ("server.affinity", "0"),
    ("server.nice", "1"),
    ("server.class", "batch"),
    ("server.numa", "interleave"),
    ("server.oom_score_adj", "100"),
    ("server.sync_delay", "100us"),
    ("server.user", "nobody"),
    ("limit.nofile", "4096"),
    ("limit.memlock", "64K"),
    ("limit.core", "0"),
    ("limit.nproc", "4096"),
    ("env.MALLOC_ARENA_MAX", "2"),
    ("option.innodb_log_file_size", "8M"),
    ("option.innodb_buffer_pool_size", "32M"),
    ("variable.max_connections", "77"),
    ("variable.innodb_io_capacity", "300"),
];

/// The reason why an available lever is not in [`levers_of_this_machine`].
pub fn why_not(id: &str) -> Option<&'static str> {
    let (room, rest) = id.split_once('.')?;
    match room {
        "queue" if rest.ends_with(".write_cache") => Some("a power cut of this host would lose its data"),
        "queue" if rest.ends_with(".scheduler") => Some("it takes the tunables away that are turned"),
        "queue" if !takes_its_own_value(rest) => Some("the driver of this disk refuses what it has"),
        "disk" if rest.starts_with("queue.iosched.") => Some("it is of another scheduler"),
        "server" if matches!(rest, "engine" | "basedir" | "option_file" | "allocator") => {
            Some("it changes what the server is, and nothing outside of it")
        }
        "env" => Some("one variable stands for all"),
        "bundle" => Some("it stands for levers that are turned"),
        "schema" | "workload" => Some("a load turns it, in the server"),
        "client" => Some("it is of the load generator's own threads and sessions"),
        _ => None,
    }
}

/// The levers that this machine supports, each with a value that is harmless beside production: settings of the whole
/// host change by one step.
pub fn levers_of_this_machine(machine: &Machine) -> Vec<(String, String)> {
    let levers = mydyno_levers::list(machine);
    let of_the_host = levers.iter().filter(|lever| {
        lever.scope == LeverScope::Host && lever.lacks.is_none() && !lever.id.starts_with("swap.")
    });
    let takes = |lever: &LeverInfo| why_not(&lever.id).is_none();
    let settings = of_the_host.filter(|l| takes(l)).filter_map(|l| Some((l.id.clone(), another(l)?)));
    let can = |id: &str| match levers.iter().find(|lever| lever.id == id) {
        Some(lever) => {
            lever.lacks.is_none() && lever.values.iter().all(|v| v.value != "ext4" || v.lacks.is_none())
        }
        None => true,
    };
    let disk = can("disk.file_system");
    let swap = mydyno_host::cgroup::Resource::Memory.check(machine).is_ok();
    let of_servers = OF_SERVERS
        .iter()
        .filter(|(id, _)| can(id) && (disk || !id.starts_with("disk.")) && (swap || !id.starts_with("swap.")))
        .map(|(id, value)| ((*id).to_owned(), (*value).to_owned()));
    settings.chain(of_servers).collect()
}

/// Drivers without a request queue, such as those of mapped devices, refuse every value of some settings.
fn takes_its_own_value(setting: &str) -> bool {
    let (device, file) = setting.split_once('.').unwrap();
    let path = format!("/sys/block/{device}/queue/{}", file.replace('.', "/"));
    fs::read_to_string(&path).and_then(|now| fs::write(&path, now)).is_ok()
}

/// A value next to the current one.
fn another(lever: &LeverInfo) -> Option<String> {
    let now = lever.now.as_deref()?;
    if let Some(words) = lever.takes.strip_prefix("one of ") {
        return words.split(' ').find(|word| *word != now).map(str::to_owned);
    }
    if let Some(share) = now.strip_suffix('%') {
        return Some(format!("{}%", share.parse::<u64>().ok()? - 1));
    }
    if lever.takes.contains("list of CPUs") {
        return ["0", "1"].iter().find(|cpus| **cpus != now).map(|cpus| (*cpus).to_owned());
    }
    let now: u64 = now.parse().ok()?;
    // As in `a multiple of 64 from 0 to 1048576`.
    let numbers: Vec<u64> = lever.takes.split(' ').filter_map(|word| word.parse().ok()).collect();
    let (step, low) = match numbers.as_slice() {
        [step, low, _] => (*step, *low),
        [low, _] => (1, *low),
        _ => (1, 0),
    };
    let below = now.checked_sub(step).filter(|below| *below >= low);
    Some(below.unwrap_or(now + step).to_string())
}
