//! Errors of probes.

use std::io;
use std::path::PathBuf;

use mydyno_host::HostError;
use mydyno_model::units::show_bytes;
use thiserror::Error;

/// Why a probe, or one of its measures, could not be run.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The host does not permit it: no space, the journal is locked, the folder is not writable.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// The action, as in `read a file past the page cache`.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A file or folder could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action, as in `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Too little space on a disk.
    #[error(
        "{} has {} free, and this needs {}: choose a folder on a larger disk with --folder, or ask for less with --size",
        path.display(),
        show_bytes(*free as f64),
        show_bytes(*needed as f64)
    )]
    Space {
        /// The folder.
        path: PathBuf,
        /// Free space in bytes.
        free: u64,
        /// Required space in bytes, including the reserve for other programs.
        needed: u64,
    },
    /// The folder is in a data directory, where a server takes folders for schemas.
    #[error(
        "{} is a server's data directory, and MariaDB, and MySQL up to 5.7, would take mydyno's folder in it for a schema: {remedy}",
        path.display()
    )]
    DataDirectory {
        /// The folder.
        path: PathBuf,
        /// The folder to give instead.
        remedy: String,
    },
    /// The allocation could make the host swap, or invoke the OOM killer.
    #[error(
        "this needs {} of memory and {} are available: mydyno takes at most half; ask for less, or end what uses it",
        show_bytes(*needed as f64),
        show_bytes(*available as f64)
    )]
    Memory {
        /// Required memory in bytes.
        needed: u64,
        /// Memory in bytes that this host or control group can still provide.
        available: u64,
    },
    /// An option is invalid.
    #[error("--{option}: {problem}")]
    Option {
        /// Its name, without dashes.
        option: &'static str,
        /// The problem, and the valid values.
        problem: String,
    },
    /// This machine or file system lacks a requirement of one measure.
    #[error("{missing}: {remedy}")]
    Missing {
        /// The requirement.
        missing: String,
        /// How to meet it.
        remedy: String,
    },
    /// The child process that measures did not answer.
    #[error("the process that measures {what} said {reported:?}: {status}")]
    Child {
        /// Its subject, as in `jemalloc`.
        what: String,
        /// The end of its output.
        reported: String,
        /// Its exit status.
        status: String,
    },
}

impl From<mydyno_host::JournalError> for ProbeError {
    fn from(error: mydyno_host::JournalError) -> Self {
        Self::Host(error.into())
    }
}

impl ProbeError {
    pub(crate) fn system(action: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { action, source }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
