//! The running machine: its boot, its processes and their identities, its mounts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ending;
use crate::error::JournalError;

/// Where process ids mean something: one boot of one machine, seen from one PID namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The machine's node name, for people: names are given twice and change.
    pub host: String,
    /// `/etc/machine-id`, machine-id(5): the same from boot to boot, and another on each machine. State folders may lie on
    /// a network file system that several machines see. `None` where there is none.
    #[serde(default)]
    pub machine_id: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`: new with each boot.
    pub boot_id: String,
    /// The PID namespace, as in `pid:[4026531836]`. Containers of one machine share its boot, not its process ids.
    pub pid_namespace: String,
}

/// A process beyond doubt: ids are used again, but not within the clock tick in which their process started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Process id in its namespace.
    pub pid: u32,
    /// Start in clock ticks after boot: field 22 of `/proc/PID/stat`, proc_pid_stat(5).
    pub start_ticks: u64,
    /// Where the id means something.
    pub place: Place,
}

/// The state of a process that was identified earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It runs.
    Running,
    /// It ended: there is no such process, or a zombie that its parent has not collected.
    Ended,
    /// It ended, and another process has its id now.
    Recycled,
    /// It ended with an earlier boot of this machine.
    OtherBoot,
    /// It belongs to another machine or container, whose processes cannot be seen from here.
    Unseen,
}

/// One line of `/proc/PID/stat`, as far as identities need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: char,
    start_ticks: u64,
}

/// The machine that mydyno runs on; tests give it a made-up `/proc`.
#[derive(Debug, Clone)]
pub struct Machine {
    proc: PathBuf,
    sys: PathBuf,
    place: Place,
}

/// A line of mountinfo: proc_pid_mountinfo(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountLine {
    /// Where.
    pub point: PathBuf,
    /// As in `ext4`.
    pub kind: String,
    /// As in `/dev/loop3`.
    pub source: PathBuf,
    /// Options of the mount, as in `rw,noatime`.
    pub options: String,
    /// Options of the file system, as in `rw,nobarrier`.
    pub super_options: String,
}

impl MountLine {
    /// Fields before the dash vary in number.
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(4);
        let mut file_system = file_system.split(' ');
        Some(Self {
            point: unescape_octal(mount.next()?).into(),
            options: mount.next().unwrap_or_default().to_owned(),
            kind: file_system.next()?.to_owned(),
            source: unescape_octal(file_system.next()?).into(),
            super_options: file_system.next().unwrap_or_default().to_owned(),
        })
    }
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
        Ok(Self { proc, sys, place })
    }

    /// The root of proc(5).
    pub fn proc(&self) -> &Path {
        &self.proc
    }

    /// The root of sysfs(5).
    pub fn sys(&self) -> &Path {
        &self.sys
    }

    /// Where this machine's process ids mean something.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The identity of a process that runs now; `None` when there is none or only its zombie.
    ///
    /// # Errors
    /// `/proc/PID/stat` is there and not readable.
    pub fn identify(&self, pid: u32) -> Result<Option<ProcessIdentity>, JournalError> {
        Ok(self.stat(pid)?.filter(|stat| is_alive(stat.state)).map(|stat| ProcessIdentity {
            pid,
            start_ticks: stat.start_ticks,
            place: self.place.clone(),
        }))
    }

    /// The state of a process that was identified earlier.
    ///
    /// # Errors
    /// `/proc/PID/stat` is there and not readable.
    pub fn presence(&self, process: &ProcessIdentity) -> Result<Presence, JournalError> {
        let (there, here) = (&process.place, &self.place);
        if there.boot_id != here.boot_id {
            // Without ids nothing tells an earlier boot of this machine from another machine.
            let same = here.machine_id.is_some() && there.machine_id == here.machine_id;
            return Ok(if same { Presence::OtherBoot } else { Presence::Unseen });
        }
        if there.pid_namespace != here.pid_namespace {
            return Ok(Presence::Unseen);
        }
        Ok(match self.stat(process.pid)? {
            None => Presence::Ended,
            Some(stat) if stat.start_ticks != process.start_ticks => Presence::Recycled,
            Some(stat) if is_alive(stat.state) => Presence::Running,
            Some(_) => Presence::Ended,
        })
    }

    /// Waits while a process is being killed, ten seconds at most.
    pub(crate) fn wait_for_killed(&self, pid: u32) {
        ending::wait_for_killed(&self.proc, pid);
    }

    /// A namespace of this process, as in `net:[4026531840]`: namespaces(7). `None` where the kernel has none of the kind.
    pub fn namespace(&self, kind: &str) -> Option<String> {
        let link = fs::read_link(self.proc.join("self/ns").join(kind)).ok()?;
        Some(link.to_string_lossy().into_owned())
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
    pub fn mounts(&self) -> Result<Vec<MountLine>, JournalError> {
        self.mounts_in("self/mountinfo")
    }

    /// All mounts of the calling thread's mount namespace, which may be another one than its process's.
    ///
    /// # Errors
    /// `mountinfo` cannot be read.
    pub fn mounts_of_this_thread(&self) -> Result<Vec<MountLine>, JournalError> {
        self.mounts_in("thread-self/mountinfo")
    }

    fn mounts_in(&self, table: &str) -> Result<Vec<MountLine>, JournalError> {
        let path = self.proc.join(table);
        let text = fs::read(&path).map_err(|e| JournalError::io("read", &path, e))?;
        Ok(String::from_utf8_lossy(&text).lines().filter_map(MountLine::parse).collect())
    }

    /// Whether the kernel has a file system now, or would load its module on the first mount.
    ///
    /// # Errors
    /// `/proc/filesystems` cannot be read.
    pub fn knows_file_system(&self, kind: &str) -> Result<bool, JournalError> {
        let path = self.proc.join("filesystems");
        let text = fs::read_to_string(&path).map_err(|e| JournalError::io("read", &path, e))?;
        let here = text.lines().any(|line| line.split_whitespace().next_back() == Some(kind));
        Ok(here || self.has_module(kind))
    }

    fn has_module(&self, name: &str) -> bool {
        let release = fs::read_to_string(self.proc.join("sys/kernel/osrelease")).unwrap_or_default();
        let list = Path::new("/lib/modules").join(release.trim()).join("modules.dep");
        let text = fs::read_to_string(list).unwrap_or_default();
        text.lines()
            .filter_map(|l| l.split(':').next()?.rsplit('/').next())
            .any(|file| file.split('.').next() == Some(name))
    }

    /// Whether this process has a capability in force: `CapEff` of proc_pid_status(5), numbers of capabilities(7).
    pub fn has_capability(&self, number: u32) -> bool {
        let text = fs::read_to_string(self.proc.join("self/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
        line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
            .is_some_and(|set| set >> number & 1 == 1)
    }

    /// Whether all users are themselves, user_namespaces(7): what a kernel without that shows is the host's, too.
    pub fn is_host_user_namespace(&self) -> bool {
        let Ok(map) = fs::read_to_string(self.proc.join("self/uid_map")) else { return true };
        map.split_whitespace().eq(["0", "0", "4294967295"])
    }

    /// `MemAvailable` of proc_meminfo(5), in bytes.
    ///
    /// # Errors
    /// `/proc/meminfo` cannot be read.
    pub fn available_bytes(&self) -> Result<u64, JournalError> {
        self.memory("MemAvailable:")
    }

    /// `MemTotal` of proc_meminfo(5), in bytes.
    ///
    /// # Errors
    /// `/proc/meminfo` cannot be read.
    pub fn total_bytes(&self) -> Result<u64, JournalError> {
        self.memory("MemTotal:")
    }

    fn memory(&self, field: &str) -> Result<u64, JournalError> {
        let path = self.proc.join("meminfo");
        let text = fs::read_to_string(&path).map_err(|e| JournalError::io("read", &path, e))?;
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let kib: Option<u64> = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
        kib.map(|kib| kib * 1024).ok_or(JournalError::Proc { path })
    }

    fn stat(&self, pid: u32) -> Result<Option<Stat>, JournalError> {
        let path = self.proc.join(pid.to_string()).join("stat");
        match fs::read(&path) {
            Ok(bytes) => {
                parse_stat(&String::from_utf8_lossy(&bytes)).map(Some).ok_or(JournalError::Proc { path })
            }
            // ESRCH: the process ended between open and read.
            Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => {
                Ok(None)
            }
            Err(e) => Err(JournalError::io("read", &path, e)),
        }
    }
}

/// The machine's id: 32 hexadecimal digits. Images that are not yet booted hold `uninitialized` or nothing.
fn machine_id(etc: &Path) -> Option<String> {
    let text = fs::read_to_string(etc.join("machine-id")).ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_owned())
}

/// Zombies (Z) and the dead (X, x) have ended; all other states of proc_pid_stat(5) may still run.
fn is_alive(state: char) -> bool {
    !matches!(state, 'Z' | 'X' | 'x')
}

/// The command name in parentheses may hold spaces and parentheses itself, so fields count from the last one.
fn parse_stat(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // State is field 3; the start time is field 22.
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some(Stat { state, start_ticks })
}

/// mountinfo writes space, tab, newline and backslash as three octal digits.
pub fn unescape_octal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|d| u8::from_str_radix(d, 8).ok());
        match code {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 100 200";
        assert_eq!(parse_stat(line), Some(Stat { state: 'S', start_ticks: 987_654 }));
        assert_eq!(parse_stat("7 (short) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn this_process_runs_and_has_the_same_identity_twice() {
        let machine = Machine::real().unwrap();
        let me = machine.identify(std::process::id()).unwrap().unwrap();
        assert_eq!(machine.presence(&me).unwrap(), Presence::Running);
        assert_eq!(machine.identify(std::process::id()).unwrap().unwrap(), me);
    }

    #[test]
    fn octal_escapes_of_mount_points_are_read() {
        assert_eq!(unescape_octal(r"/a\040b\134c\q"), r"/a b\c\q");
    }
}
