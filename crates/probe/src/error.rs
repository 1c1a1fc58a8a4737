//! Errors of probes.

use std::io;
use std::path::PathBuf;

use mydyno_host::HostError;
use mydyno_model::units::show_bytes;
use thiserror::Error;

/// The reason why a probe, or one of its measures, was not made.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The host does not let it: no space, the journal is held, the folder cannot be written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// As in `read a file past the page cache`.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A file or folder could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// As in `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Too little room on a disk.
    #[error(
        "{} has {} free, and this needs {}: choose a folder on a larger disk with --folder, or ask for less with --size",
        path.display(),
        show_bytes(*free as f64),
        show_bytes(*needed as f64)
    )]
    Space {
        /// The folder.
        path: PathBuf,
        /// Bytes.
        free: u64,
        /// Bytes, with what stays free for others.
        needed: u64,
    },
    /// A folder whose folders a server takes for schemas.
    #[error(
        "{} is a server's data directory, and MariaDB, and MySQL up to 5.7, would take mydyno's folder in it for a schema: {way_out}",
        path.display()
    )]
    DataDirectory {
        /// The folder.
        path: PathBuf,
        /// Which folder to name instead.
        way_out: String,
    },
    /// Taking that much could drive the host into swapping, or worse.
    #[error(
        "this needs {} of memory and {} are available: mydyno takes at most half; ask for less, or end what uses it",
        show_bytes(*needed as f64),
        show_bytes(*available as f64)
    )]
    Memory {
        /// Bytes.
        needed: u64,
        /// Bytes that programs, or this control group, can still take.
        available: u64,
    },
    /// An option makes no sense.
    #[error("--{option}: {problem}")]
    Option {
        /// Without dashes.
        option: &'static str,
        /// The defect, and the values that are taken.
        problem: String,
    },
    /// This machine or file system lacks something that one measure needs.
    #[error("{missing}: {way_out}")]
    Missing {
        /// The missing thing.
        missing: String,
        /// The way to get it.
        way_out: String,
    },
    /// The program that measures in a process of its own did not answer.
    #[error("the process that measures {what} said {said:?}: {status}")]
    Child {
        /// As in `jemalloc`.
        what: String,
        /// The end of what it wrote.
        said: String,
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
