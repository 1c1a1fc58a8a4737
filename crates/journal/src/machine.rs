//! The running machine: its boot, its processes and their identities, its mounts.

use std::fs;
use std::path::{Path, PathBuf};

use mydyno_linux::text::kib_field;
use mydyno_linux::{Mount, Root, Stat};
use serde::{Deserialize, Serialize};

use crate::ending;
use crate::error::JournalError;

/// The scope of a process id: one boot of one machine, seen from one PID namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The machine's node name, for people: names are not unique and change.
    pub host: String,
    /// `/etc/machine-id`, machine-id(5): constant across boots and unique to a machine. Several machines may share
    /// state folders on a network file system. `None` where there is none.
    #[serde(default)]
    pub machine_id: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`: new with each boot.
    pub boot_id: String,
    /// The PID namespace, as in `pid:[4026531836]`. Containers of one machine share its boot, not its process ids.
    pub pid_namespace: String,
}

/// The unique identity of a process: ids are reused, but not within the clock tick in which their process started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Process id in its namespace.
    pub pid: u32,
    /// Start in clock ticks after boot: field 22 of `/proc/PID/stat`, proc_pid_stat(5).
    pub start_ticks: u64,
    /// The scope of the id.
    pub place: Place,
}

/// The state of a process that was identified earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It runs.
    Running,
    /// It ended: there is no such process, or a zombie that its parent has not collected.
    Ended,
    /// It ended, and its id was reused.
    Recycled,
    /// It ended with an earlier boot of this machine.
    OtherBoot,
    /// It belongs to another machine or container, whose processes are not visible here.
    Unseen,
}

/// The machine that mydyno runs on; tests simulate its `/proc`.
#[derive(Debug, Clone)]
pub struct Machine {
    root: Root,
    place: Place,
}

impl Machine {
    /// This machine.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn real() -> Result<Self, JournalError> {
        Self::at("/proc", "/sys", "/etc")
    }

    /// A machine whose `/proc`, `/sys` and `/etc` lie elsewhere.
    ///
    /// # Errors
    /// `boot_id`, `hostname` or the PID namespace cannot be read below it.
    pub fn at(
        proc: impl Into<PathBuf>,
        sys: impl Into<PathBuf>,
        etc: impl AsRef<Path>,
    ) -> Result<Self, JournalError> {
        let (proc, sys) = (proc.into(), sys.into());
        let line = |relative: &str| {
            let path = proc.join(relative);
            let text = fs::read_to_string(&path).map_err(|e| JournalError::io("read", &path, e))?;
            Ok::<_, JournalError>(text.trim().to_owned())
        };
        let namespace = proc.join("self/ns/pid");
        let pid_namespace = fs::read_link(&namespace).map_err(|e| JournalError::io("read", &namespace, e))?;
        let place = Place {
            host: line("sys/kernel/hostname")?,
            machine_id: machine_id(etc.as_ref()),
            boot_id: line("sys/kernel/random/boot_id")?,
            pid_namespace: pid_namespace.to_string_lossy().into_owned(),
        };
        Ok(Self { root: Root::at(proc, sys), place })
    }

    /// The root of proc(5).
    pub fn proc(&self) -> &Path {
        self.root.proc()
    }

    /// The root of sysfs(5).
    pub fn sys(&self) -> &Path {
        self.root.sys()
    }

    /// The scope of process ids on this machine.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The identity of a running process; `None` when it does not exist or is a zombie.
    ///
    /// # Errors
    /// `/proc/PID/stat` exists and cannot be read.
    pub fn identify(&self, pid: u32) -> Result<Option<ProcessIdentity>, JournalError> {
        let alive = self.stat(pid)?.filter(|(alive, _)| *alive);
        Ok(alive.map(|(_, start_ticks)| ProcessIdentity { pid, start_ticks, place: self.place.clone() }))
    }

    /// The state of a process that was identified earlier.
    ///
    /// # Errors
    /// `/proc/PID/stat` exists and cannot be read.
    pub fn presence(&self, process: &ProcessIdentity) -> Result<Presence, JournalError> {
        let (there, here) = (&process.place, &self.place);
        if there.boot_id != here.boot_id {
            // Without machine ids an earlier boot of this machine cannot be told from another machine.
            let same = here.machine_id.is_some() && there.machine_id == here.machine_id;
            return Ok(if same { Presence::OtherBoot } else { Presence::Unseen });
        }
        if there.pid_namespace != here.pid_namespace {
            return Ok(Presence::Unseen);
        }
        Ok(match self.stat(process.pid)? {
            None => Presence::Ended,
            Some((_, start_ticks)) if start_ticks != process.start_ticks => Presence::Recycled,
            Some((true, _)) => Presence::Running,
            Some((false, _)) => Presence::Ended,
        })
    }

    /// Waits while a process is being killed, ten seconds at most.
    pub(crate) fn wait_for_killed(&self, pid: u32) {
        ending::wait_for_killed(self.proc(), pid);
    }

    /// A namespace of this process, as in `net:[4026531840]`: namespaces(7). `None` where the kernel has none of the kind.
    pub fn namespace(&self, kind: &str) -> Option<String> {
        self.root.namespace(kind)
    }

    /// Mount points at or below a folder, in the order of `/proc/self/mountinfo`.
    ///
    /// # Errors
    /// `mountinfo` cannot be read.
    pub fn mounts_below(&self, folder: &Path) -> Result<Vec<PathBuf>, JournalError> {
        Ok(self
            .mounts()?
            .into_iter()
            .map(|line| line.point)
            .filter(|point| point.starts_with(folder))
            .collect())
    }

    /// All mounts of this mount namespace, oldest first.
    ///
    /// # Errors
    /// `mountinfo` cannot be read.
    pub fn mounts(&self) -> Result<Vec<Mount>, JournalError> {
        self.mounts_in("self")
    }

    /// All mounts of the calling thread's mount namespace, which may be another one than its process's.
    ///
    /// # Errors
    /// `mountinfo` cannot be read.
    pub fn mounts_of_this_thread(&self) -> Result<Vec<Mount>, JournalError> {
        self.mounts_in("thread-self")
    }

    fn mounts_in(&self, process: &str) -> Result<Vec<Mount>, JournalError> {
        let table = self.proc().join(process).join("mountinfo");
        self.root.mounts(process).map_err(|e| JournalError::io("read", table, e))
    }

    /// Whether the kernel supports a file system, or would load its module on the first mount.
    ///
    /// # Errors
    /// `/proc/filesystems` cannot be read.
    pub fn knows_file_system(&self, kind: &str) -> Result<bool, JournalError> {
        let path = self.proc().join("filesystems");
        let text = fs::read_to_string(&path).map_err(|e| JournalError::io("read", &path, e))?;
        let here = text.lines().any(|line| line.split_whitespace().next_back() == Some(kind));
        Ok(here || self.has_module(kind))
    }

    fn has_module(&self, name: &str) -> bool {
        let list = Path::new("/lib/modules").join(self.root.kernel_release()).join("modules.dep");
        let text = fs::read_to_string(list).unwrap_or_default();
        text.lines()
            .filter_map(|l| l.split(':').next()?.rsplit('/').next())
            .any(|file| file.split('.').next() == Some(name))
    }

    /// Whether this process has an effective capability: numbers of capabilities(7).
    pub fn has_capability(&self, number: u32) -> bool {
        self.root.has_capability(number)
    }

    /// Whether the user namespace maps all ids to themselves, as the initial one does: user_namespaces(7). So does a
    /// kernel without user namespaces.
    pub fn is_host_user_namespace(&self) -> bool {
        let Ok(map) = fs::read_to_string(self.proc().join("self/uid_map")) else { return true };
        map.split_whitespace().eq(["0", "0", "4294967295"])
    }

    /// `MemAvailable` of proc_meminfo(5), in bytes.
    ///
    /// # Errors
    /// `/proc/meminfo` cannot be read.
    pub fn available_bytes(&self) -> Result<u64, JournalError> {
        self.memory("MemAvailable")
    }

    /// `MemTotal` of proc_meminfo(5), in bytes.
    ///
    /// # Errors
    /// `/proc/meminfo` cannot be read.
    pub fn total_bytes(&self) -> Result<u64, JournalError> {
        self.memory("MemTotal")
    }

    fn memory(&self, field: &str) -> Result<u64, JournalError> {
        let path = self.proc().join("meminfo");
        let text = fs::read_to_string(&path).map_err(|e| JournalError::io("read", &path, e))?;
        kib_field(&text, field).ok_or(JournalError::Proc { path })
    }

    /// Whether a process with this number may still run, and its start in ticks. `None` when there is none.
    fn stat(&self, pid: u32) -> Result<Option<(bool, u64)>, JournalError> {
        let path = || self.proc().join(pid.to_string()).join("stat");
        let Some(text) = self.root.stat(pid).map_err(|e| JournalError::io("read", path(), e))? else {
            return Ok(None);
        };
        let stat = Stat::parse(&text).ok_or_else(|| JournalError::Proc { path: path() })?;
        Ok(Some((stat.is_alive(), stat.start_ticks)))
    }
}

/// The machine's id: 32 hexadecimal digits. Images that are not yet booted hold `uninitialized` or nothing.
fn machine_id(etc: &Path) -> Option<String> {
    let text = fs::read_to_string(etc.join("machine-id")).ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_has_the_same_identity_twice() {
        let machine = Machine::real().unwrap();
        let me = machine.identify(std::process::id()).unwrap().unwrap();
        assert_eq!(machine.presence(&me).unwrap(), Presence::Running);
        assert_eq!(machine.identify(std::process::id()).unwrap().unwrap(), me);
    }
}
