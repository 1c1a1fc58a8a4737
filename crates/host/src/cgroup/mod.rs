//! Control groups that mydyno makes, version 1 and 2: limits, starting a process inside, removal.

mod resource;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_journal::{Change, Context, Journal, JournalError, Lease, Machine, Outcome};
use mydyno_linux::calls;
use mydyno_linux::cgroup::{inside, membership, mount_of};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HostError;
use crate::folder::random_mark;
use resource::Tree;
pub use resource::{RESOURCES, Resource};
/// Time limit for ended processes to leave their group.
const PATIENCE: Duration = Duration::from_secs(10);
/// The length of a period of CPU time, the kernel's default.
const CPU_PERIOD_US: u64 = 100_000;

/// Limits of a group; `None` is unlimited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Memory, page cache included.
    pub memory_bytes: Option<u64>,
    /// Swap in addition to memory. Needs a memory limit.
    pub swap_bytes: Option<u64>,
    /// CPUs' worth of time, as in 1.5.
    pub cpus: Option<f64>,
    /// The CPUs to run on, as in `0-1,3`.
    pub cpuset: Option<String>,
    /// Limits for one block device.
    pub io: Option<IoLimit>,
}

/// Limits of direct and written-back I/O on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoLimit {
    /// As in `7:3`.
    pub device: String,
    /// Reads a second.
    pub read_iops: Option<u64>,
    /// Writes a second.
    pub write_iops: Option<u64>,
    /// Bytes read a second.
    pub read_bytes: Option<u64>,
    /// Bytes written a second.
    pub write_bytes: Option<u64>,
}

/// A group: one folder on version 2, one in each controller's tree on version 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeGroup {
    /// As in `mydyno-2f…`: unique.
    pub name: String,
    /// Its folders, one per hierarchy.
    pub folders: Vec<PathBuf>,
}

/// A write to a control file of a group.
type Write = (PathBuf, String);

impl Limits {
    /// Whether no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The resources that are limited.
    pub fn resources(&self) -> Vec<Resource> {
        let wanted = [
            (Resource::Memory, self.memory_bytes.is_some()),
            (Resource::Swap, self.swap_bytes.is_some()),
            (Resource::Cpu, self.cpus.is_some()),
            (Resource::Cpuset, self.cpuset.is_some()),
            (Resource::Io, self.io.is_some()),
        ];
        wanted.iter().filter(|(_, wanted)| *wanted).map(|(resource, _)| *resource).collect()
    }

    /// The writes that limit one resource, in order. In version 1 the memory limit must precede that of memory and
    /// swap.
    fn writes(&self, resource: Resource, tree: &Tree, group: &str) -> Result<Vec<Write>, HostError> {
        let (folder, v2) = match tree {
            Tree::V1(root) => (root.join(group), false),
            Tree::V2(root) => (root.join(group), true),
        };
        let one = |file: &str, text: String| vec![(folder.join(file), text)];
        let (v1_file, v2_file) = resource.limit_files();
        let file = if v2 { v2_file } else { v1_file };
        Ok(match resource {
            Resource::Memory => one(file, self.memory_bytes.unwrap_or_default().to_string()),
            Resource::Swap if v2 => one(file, self.swap_bytes.unwrap_or_default().to_string()),
            Resource::Swap => {
                let memory = self.memory_bytes.ok_or_else(|| HostError::SettingValue {
                    name: "cgroup.swap".to_owned(),
                    value: self.swap_bytes.unwrap_or_default().to_string(),
                    form: "a size beside a limit of memory: set cgroup.memory too".to_owned(),
                })?;
                one(file, memory.saturating_add(self.swap_bytes.unwrap_or_default()).to_string())
            }
            Resource::Cpu => {
                let quota = (self.cpus.unwrap_or_default() * CPU_PERIOD_US as f64).round() as u64;
                if v2 {
                    one(file, format!("{quota} {CPU_PERIOD_US}"))
                } else {
                    vec![
                        (folder.join("cpu.cfs_period_us"), CPU_PERIOD_US.to_string()),
                        (folder.join(file), quota.to_string()),
                    ]
                }
            }
            Resource::Cpuset => {
                let cpus = (folder.join(file), self.cpuset.clone().unwrap_or_default());
                if v2 {
                    return Ok(vec![cpus]);
                }
                // A version 1 cpuset group accepts no process until it has memory nodes.
                let nodes = folder.with_file_name("cpuset.mems");
                let nodes = fs::read_to_string(&nodes).map_err(|e| HostError::io("read", &nodes, e))?;
                vec![cpus, (folder.join("cpuset.mems"), nodes.trim().to_owned())]
            }
            Resource::Io => {
                let Some(io) = &self.io else { return Ok(vec![]) };
                let fields = [
                    ("riops", "read_iops", io.read_iops),
                    ("wiops", "write_iops", io.write_iops),
                    ("rbps", "read_bps", io.read_bytes),
                    ("wbps", "write_bps", io.write_bytes),
                ];
                let set = fields.iter().filter_map(|(v2, v1, value)| Some((v2, v1, (*value)?)));
                if v2 {
                    let limits: Vec<String> = set.map(|(name, _, value)| format!("{name}={value}")).collect();
                    one(file, format!("{} {}", io.device, limits.join(" ")))
                } else {
                    set.map(|(_, name, value)| {
                        let file = folder.join(format!("blkio.throttle.{name}_device"));
                        (file, format!("{} {value}", io.device))
                    })
                    .collect()
                }
            }
        })
    }
}

/// Makes a group with limits. Returns it with the number of its journal entry.
///
/// # Errors
/// A limit is not available here, or the kernel refuses its value; the group is then removed again.
pub fn make(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    limits: &Limits,
) -> Result<(u64, MadeGroup), HostError> {
    let machine = lease.machine();
    let name = format!("mydyno-{}", random_mark()?);
    let mut folders = Vec::new();
    let mut writes = Vec::new();
    for resource in limits.resources() {
        resource.check(machine)?;
        let tree = resource.tree(machine)?;
        let (Tree::V1(root) | Tree::V2(root)) = &tree;
        let folder = root.join(&name);
        if !folders.contains(&folder) {
            folders.push(folder);
        }
        writes.extend(limits.writes(resource, &tree, &name)?);
    }
    let group = MadeGroup { name, folders };
    let id = journal.record(lease, purpose, group.clone())?;
    match group.fill(&writes) {
        Ok(()) => Ok((id, group)),
        Err(error) => {
            let outcome = group.remove();
            journal.close_with(id, &outcome)?;
            Err(error)
        }
    }
}

/// Moves this process into the memory group of another one, version 1 or 2: what it takes from then on counts there.
///
/// # Errors
/// The other process has ended, its group is not visible, or the kernel refuses the move.
pub fn join_memory_of(machine: &Machine, member: u32) -> Result<(), HostError> {
    let file = machine.proc().join(member.to_string()).join("cgroup");
    let text = fs::read_to_string(&file).map_err(|e| HostError::io("read", &file, e))?;
    let mounts = machine.mounts()?;
    let folder = membership(&text, "memory").and_then(|(version, path)| {
        let mount = mount_of(&mounts, version, "memory")?;
        Some(mount.point.join(inside(path, mount)?.trim_start_matches('/')))
    });
    let Some(folder) = folder else {
        let hidden = io::Error::new(io::ErrorKind::NotFound, "its memory group is not visible from here");
        return Err(HostError::io("find the group in", &file, hidden));
    };
    let procs = folder.join("cgroup.procs");
    fs::write(&procs, std::process::id().to_string()).map_err(|e| HostError::io("write", &procs, e))
}

impl MadeGroup {
    fn fill(&self, writes: &[Write]) -> Result<(), HostError> {
        for folder in &self.folders {
            fs::create_dir(folder).map_err(|e| HostError::io("create", folder, e))?;
        }
        for (file, text) in writes {
            fs::write(file, text).map_err(|source| HostError::SettingDenied {
                name: format!("{} to {text}", file.file_name().unwrap_or_default().to_string_lossy()),
                path: file.clone(),
                source,
            })?;
            self.read_back(file, text)?;
        }
        Ok(())
    }

    /// Compares each number that was written with the kernel's value; the kernel rounds sizes down to pages.
    fn read_back(&self, file: &Path, text: &str) -> Result<(), HostError> {
        let shown = fs::read_to_string(file).map_err(|e| HostError::io("read", file, e))?;
        let page = calls::page_bytes() as u64;
        let taken = |word: &str| {
            let rounded = word.parse::<u64>().map(|n| (n / page * page).to_string());
            shown.split_whitespace().any(|s| s == word || rounded.as_deref() == Ok(s))
        };
        if text.split_whitespace().all(taken) {
            return Ok(());
        }
        Err(HostError::SettingKernel {
            name: file.display().to_string(),
            value: text.to_owned(),
            became: shown.trim().to_owned(),
        })
    }

    /// Moves the process into the group.
    ///
    /// # Errors
    /// The kernel refuses the move.
    pub(crate) fn take_in(&self, pid: u32) -> io::Result<()> {
        for folder in &self.folders {
            fs::write(folder.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }

    /// Reads a file of the group, as in `memory.stat`, from the first folder that has it.
    pub fn read(&self, file: &str) -> Option<String> {
        self.folders.iter().find_map(|folder| fs::read_to_string(folder.join(file)).ok())
    }

    /// Removes the group. The name is unique, so its folders can only be mydyno's.
    fn remove(&self) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        let mut found = false;
        for folder in &self.folders {
            loop {
                match fs::remove_dir(folder) {
                    Ok(()) => found = true,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                        std::thread::sleep(Duration::from_millis(2));
                        continue;
                    }
                    Err(e) => {
                        let inside = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
                        let inside: Vec<&str> = inside.lines().collect();
                        return Outcome::failed(format!(
                            "cannot remove {}: {e}; processes in it: {}",
                            folder.display(),
                            if inside.is_empty() { "none".to_owned() } else { inside.join(" ") }
                        ));
                    }
                }
                break;
            }
        }
        Outcome::restored(if found { "removed" } else { "it is not there" })
    }
}

impl Change for MadeGroup {
    fn kind(&self) -> &str {
        "cgroup"
    }

    fn what(&self) -> String {
        format!("control group {}", self.name)
    }

    fn key(&self) -> String {
        format!("cgroup:{}", self.name)
    }

    fn was(&self) -> Value {
        Value::from("absent")
    }

    fn now(&self) -> Value {
        Value::from("present")
    }

    fn takes_processes(&self) -> bool {
        true
    }

    fn put_back(&self, _context: &Context) -> Result<Outcome, JournalError> {
        Ok(self.remove())
    }
}

#[cfg(test)]
mod tests {
    use mydyno_journal::Machine;

    use super::*;

    /// A machine with a version 2 hierarchy and, if `v1_memory`, the memory controller on version 1.
    fn machine(at: &Path, subtree: &str, v1_memory: bool) -> Machine {
        for folder in ["sys/kernel/random", "self/ns", "unified", "memory"] {
            fs::create_dir_all(at.join(folder)).unwrap();
        }
        let write = |file: &str, text: &str| fs::write(at.join(file), text).unwrap();
        write("sys/kernel/random/boot_id", "b1");
        write("sys/kernel/hostname", "db1");
        write("unified/cgroup.controllers", "cpu io memory");
        write("unified/cgroup.subtree_control", subtree);
        let _ = std::os::unix::fs::symlink("pid:[1]", at.join("self/ns/pid"));
        let at_text = at.display();
        let v1 = format!("30 24 0:26 / {at_text}/memory rw shared:1 - cgroup cgroup rw,memory\n");
        let v2 = format!("31 24 0:27 / {at_text}/unified rw shared:2 - cgroup2 cgroup2 rw,nsdelegate\n");
        write("self/mountinfo", &format!("{}{v2}", if v1_memory { v1 } else { String::new() }));
        Machine::at(at, at.join("sysfs"), at).unwrap()
    }

    fn limits() -> Limits {
        Limits {
            memory_bytes: Some(64 << 20),
            swap_bytes: Some(1 << 20),
            cpus: Some(1.5),
            cpuset: None,
            io: Some(IoLimit {
                device: "7:3".to_owned(),
                read_iops: Some(10),
                write_iops: None,
                read_bytes: None,
                write_bytes: Some(4096),
            }),
        }
    }

    fn written(machine: &Machine, resource: Resource) -> Vec<(String, String)> {
        let tree = resource.tree(machine).unwrap();
        let writes = limits().writes(resource, &tree, "g").unwrap();
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        writes.iter().map(|(path, text)| (name(path), text.clone())).collect()
    }

    #[test]
    fn limits_are_written_as_each_version_wants_them() {
        let temp = tempfile::tempdir().unwrap();
        let one = |file: &str, text: &str| vec![(file.to_owned(), text.to_owned())];
        let v2 = machine(temp.path(), "cpu io memory", false);
        assert_eq!(written(&v2, Resource::Memory), one("memory.max", "67108864"));
        assert_eq!(written(&v2, Resource::Swap), one("memory.swap.max", "1048576"));
        assert_eq!(written(&v2, Resource::Cpu), one("cpu.max", "150000 100000"));
        assert_eq!(written(&v2, Resource::Io), one("io.max", "7:3 riops=10 wbps=4096"));
        let v1 = machine(temp.path(), "cpu io memory", true);
        assert_eq!(written(&v1, Resource::Memory), one("memory.limit_in_bytes", "67108864"));
        assert_eq!(written(&v1, Resource::Swap), one("memory.memsw.limit_in_bytes", "68157440"));
        let io = limits().writes(Resource::Io, &Tree::V1("/c".into()), "g").unwrap();
        let io: Vec<String> = io.iter().map(|(path, text)| format!("{} {text}", path.display())).collect();
        let throttle = "/c/g/blkio.throttle";
        assert_eq!(
            io,
            [format!("{throttle}.read_iops_device 7:3 10"), format!("{throttle}.write_bps_device 7:3 4096")]
        );
    }

    #[test]
    fn a_controller_that_is_not_handed_down_is_named_with_the_command_that_does_it() {
        let temp = tempfile::tempdir().unwrap();
        let machine = machine(temp.path(), "memory", false);
        assert!(Resource::Memory.check(&machine).is_ok());
        let error = Resource::Cpu.check(&machine).unwrap_err().to_string();
        assert!(error.contains("echo +cpu >") && error.contains("cgroup.subtree_control"), "{error}");
        let error = Resource::Cpuset.check(&machine).unwrap_err().to_string();
        assert!(error.contains("cgroup.controllers"), "{error}");
    }
}
