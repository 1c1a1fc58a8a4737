//! Where private servers are made, and under whose lease.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_host::{Journal, Lease, StateDir};

use crate::error::SandboxError;
use crate::version::Engine;

/// What is going on while a server comes up.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The program that will run.
    Found {
        /// Family and version.
        engine: Engine,
        /// Its path.
        program: PathBuf,
    },
    /// The system tables are being made; once a version and set of options.
    BuildingTemplate,
    /// The data directory is being copied from the template.
    Copying,
    /// The server was started on this port and is waited for.
    Starting {
        /// Port on 127.0.0.1.
        port: u16,
    },
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// Everything that making and ending private servers rests on.
#[derive(Debug, Clone)]
pub struct Site<'a> {
    pub(crate) state: &'a StateDir,
    pub(crate) journal: &'a Journal,
    pub(crate) lease: &'a Lease,
    pub(crate) cache: PathBuf,
    pub(crate) cancelled: &'a AtomicBool,
}

impl<'a> Site<'a> {
    /// A site with the user's template cache.
    pub fn new(state: &'a StateDir, journal: &'a Journal, lease: &'a Lease) -> Self {
        Self { state, journal, lease, cache: default_cache(state), cancelled: &NEVER }
    }

    /// The same site with its templates elsewhere.
    #[must_use]
    pub fn with_cache(mut self, cache: impl Into<PathBuf>) -> Self {
        self.cache = cache.into();
        self
    }

    /// The same site, where setting the flag ends [`up`](crate::up) with everything put back.
    #[must_use]
    pub fn cancelled_by(mut self, flag: &'a AtomicBool) -> Self {
        self.cancelled = flag;
        self
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), SandboxError> {
        if self.cancelled.load(Ordering::Relaxed) { Err(SandboxError::Interrupted) } else { Ok(()) }
    }
}

/// `$MYDYNO_CACHE`, else `$XDG_CACHE_HOME/mydyno`, else for root `/var/cache/mydyno`, whatever `HOME` sudo has kept, else
/// `~/.cache/mydyno`, else a folder beside the servers.
fn default_cache(state: &StateDir) -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| set(name).filter(|p| p.is_absolute());
    let home = || match effective_uid() {
        0 => Some(PathBuf::from("/var/cache/mydyno")),
        _ => absolute("HOME").map(|p| p.join(".cache/mydyno")),
    };
    set("MYDYNO_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|p| p.join("mydyno")))
        .or_else(home)
        .unwrap_or_else(|| Path::join(state.path(), "cache"))
}

/// The user that files made now belong to.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}
