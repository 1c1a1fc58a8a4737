//! The mount points of procfs and sysfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::mounts::{self, Mount};
use crate::process;

/// The mount points of procfs and sysfs; tests use a simulated tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    proc: PathBuf,
    sys: PathBuf,
}

impl Root {
    /// This machine's: `/proc` and `/sys`.
    pub fn real() -> Self {
        Self::at("/proc", "/sys")
    }

    /// Others.
    pub fn at(proc: impl Into<PathBuf>, sys: impl Into<PathBuf>) -> Self {
        Self { proc: proc.into(), sys: sys.into() }
    }

    /// The root of proc(5).
    pub fn proc(&self) -> &Path {
        &self.proc
    }

    /// The root of sysfs(5).
    pub fn sys(&self) -> &Path {
        &self.sys
    }

    /// The mounts that a process sees, oldest first: `self`, `thread-self` or a number.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn mounts(&self, process: &str) -> io::Result<Vec<Mount>> {
        let text = fs::read(self.proc.join(process).join("mountinfo"))?;
        Ok(mounts::parse(&String::from_utf8_lossy(&text)))
    }

    /// The text of `/proc/PID/stat`; `None` when there is no such process, or `/proc` hides it (hidepid).
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn stat(&self, pid: u32) -> io::Result<Option<String>> {
        match fs::read(self.proc.join(pid.to_string()).join("stat")) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            // ESRCH: the process ended between open and read.
            Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Whether this process has a capability in force: numbers of capabilities(7).
    pub fn has_capability(&self, number: u32) -> bool {
        let status = fs::read_to_string(self.proc.join("self/status")).unwrap_or_default();
        process::has_capability(&status, number)
    }

    /// The kernel's release, as `uname -r` shows it; empty where it cannot be read.
    pub fn kernel_release(&self) -> String {
        let text = fs::read_to_string(self.proc.join("sys/kernel/osrelease"));
        text.unwrap_or_default().trim().to_owned()
    }

    /// Whether the kernel schedules sessions as groups: `kernel.sched_autogroup_enabled`, sched(7). `false` where the kernel
    /// has no such groups.
    pub fn schedules_sessions(&self) -> bool {
        let enabled = fs::read_to_string(self.proc.join("sys/kernel/sched_autogroup_enabled"));
        enabled.is_ok_and(|text| text.trim() == "1")
    }

    /// A namespace of this process, as in `net:[4026531840]`: namespaces(7). `None` where the kernel has none of the kind.
    pub fn namespace(&self, kind: &str) -> Option<String> {
        let link = fs::read_link(self.proc.join("self/ns").join(kind)).ok()?;
        Some(link.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Stat;

    #[test]
    fn this_process_is_seen() {
        let root = Root::real();
        let text = root.stat(std::process::id()).unwrap().unwrap();
        assert!(Stat::parse(&text).unwrap().is_alive());
        assert!(root.mounts("self").unwrap().iter().any(|mount| mount.kind == "proc"));
        assert!(root.namespace("pid").unwrap().starts_with("pid:["));
    }

    #[test]
    fn a_process_that_is_hidden_or_gone_has_no_stat() {
        let temp = tempfile::tempdir().unwrap();
        let root = Root::at(temp.path(), temp.path());
        assert_eq!(root.stat(7).unwrap(), None);
        assert!(root.mounts("self").is_err() && !root.has_capability(21) && root.namespace("pid").is_none());
    }
}
