//! The environment of private servers: their host and lease, the template cache, cancellation, progress.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mydyno_host::emulated::Service;
use mydyno_host::{Host, Journal, Lease, StateDir, effective_uid};

use crate::error::SandboxError;
use crate::version::Engine;

/// Progress of making a server.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The program that will run.
    Found {
        /// Family and version.
        engine: Engine,
        /// Its path.
        program: PathBuf,
    },
    /// An option file was read.
    OptionFile {
        /// The file.
        path: PathBuf,
        /// Number of its options that apply.
        taken: usize,
        /// Options that do not apply.
        left_out: Vec<String>,
        /// Prices in durability, one sentence each.
        ledger: Vec<String>,
    },
    /// The server shows another value of a variable than the one that it was started with.
    Became {
        /// The variable.
        name: String,
        /// The requested value.
        given: String,
        /// The value that the server shows.
        shown: String,
    },
    /// The data directory is being initialised; once per version and set of options.
    BuildingTemplate,
    /// The image of the server's disk is accessed through the page cache: the file system below does not support direct
    /// I/O.
    NoDirectIo,
    /// The load of a crash has begun.
    Loading {
        /// Number of acknowledged commits before the crash.
        commits: u64,
    },
    /// The server is crashed and recovers.
    Crashing,
    /// The data directory is being copied from the template.
    Copying,
    /// A server is being shut down to keep its data.
    ShuttingDown,
    /// Data are kept on a separate disk, because the host's file system cannot share blocks.
    DataDisk {
        /// Its file system.
        file_system: &'static str,
        /// Its size.
        bytes: u64,
    },
    /// Neither the host's file system nor a disk can share blocks.
    NoSharing {
        /// The reason.
        why: String,
    },
    /// The data directory was restored from kept data.
    Restored {
        /// Its files.
        files: usize,
        /// Files that share their blocks with the kept ones.
        shared: usize,
        /// Bytes of all files.
        bytes: u64,
        /// How long it took.
        took: Duration,
    },
    /// The server was started on this port and is not ready yet.
    Starting {
        /// Port on 127.0.0.1.
        port: u16,
    },
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// Everything that is needed to make and end private servers.
#[derive(Debug, Clone)]
pub struct Site<'a> {
    pub(crate) state: &'a StateDir,
    pub(crate) journal: &'a Journal,
    pub(crate) lease: &'a Lease,
    pub(crate) cache: PathBuf,
    pub(crate) cancelled: &'a AtomicBool,
    pub(crate) disk_service: Service,
}

impl<'a> Site<'a> {
    /// A site with the user's template cache.
    pub fn new(host: &'a Host) -> Self {
        let cache = choose_cache(|name| std::env::var_os(name), effective_uid() == 0)
            .unwrap_or_else(|| host.state.path().join("cache"));
        Self {
            state: &host.state,
            journal: &host.journal,
            lease: &host.lease,
            cache,
            cancelled: &NEVER,
            disk_service: Service::default(),
        }
    }

    /// As [`Self::new`], with another program that serves emulated disks.
    #[must_use]
    pub fn with_disk_service(mut self, service: Service) -> Self {
        self.disk_service = service;
        self
    }

    /// As [`Self::new`], with another template cache.
    #[must_use]
    pub fn with_cache(mut self, cache: impl Into<PathBuf>) -> Self {
        self.cache = cache.into();
        self
    }

    /// As [`Self::new`], with a flag that cancels [`up`](crate::up) and restores everything.
    #[must_use]
    pub fn cancelled_by(mut self, flag: &'a AtomicBool) -> Self {
        self.cancelled = flag;
        self
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), SandboxError> {
        if self.cancelled.load(Ordering::Relaxed) { Err(SandboxError::Interrupted) } else { Ok(()) }
    }
}

/// The template cache: `$MYDYNO_CACHE`, else for root `/var/cache/mydyno` (whatever `HOME` and `XDG_CACHE_HOME` sudo
/// has kept), else `$XDG_CACHE_HOME/mydyno`, else `~/.cache/mydyno`, else a folder beside the servers.
fn choose_cache(env: impl Fn(&str) -> Option<OsString>, root: bool) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| set(name).filter(|p| p.is_absolute());
    set("MYDYNO_CACHE")
        .or_else(|| root.then(|| PathBuf::from("/var/cache/mydyno")))
        .or_else(|| absolute("XDG_CACHE_HOME").map(|p| p.join("mydyno")))
        .or_else(|| absolute("HOME").map(|p| p.join(".cache/mydyno")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_follows_the_user_and_root_has_its_own() {
        let chosen = |variables: &[(&str, &str)], root| {
            let env = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
            choose_cache(env, root).map(|p| p.display().to_string())
        };
        let of_user = [("HOME", "/home/a"), ("XDG_CACHE_HOME", "/home/a/c")];
        assert_eq!(chosen(&of_user, false).as_deref(), Some("/home/a/c/mydyno"));
        assert_eq!(chosen(&of_user[..1], false).as_deref(), Some("/home/a/.cache/mydyno"));
        assert_eq!(chosen(&of_user, true).as_deref(), Some("/var/cache/mydyno"));
        assert_eq!(chosen(&[("MYDYNO_CACHE", "/c"), ("HOME", "/h")], true).as_deref(), Some("/c"));
        assert_eq!(chosen(&[("XDG_CACHE_HOME", "relative")], false), None);
    }
}
