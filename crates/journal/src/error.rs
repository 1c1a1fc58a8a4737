//! Errors of the journal and of putting changes back.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The reason why the journal cannot be used, a change is refused, or a change cannot be put back.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A file could not be read, written, locked or made.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// As in `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another mydyno keeps the journal locked.
    #[error("another mydyno has held the lock of {} for {waited_s} s: see who with `fuser {}`", path.display(), path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
        /// Seconds for which this process waited.
        waited_s: u64,
    },
    /// A newer mydyno wrote the journal in a form that this one would misread.
    #[error("{} was written in the form {found:?}, which this mydyno ({}) does not know: use the newer mydyno that wrote it", path.display(), env!("CARGO_PKG_VERSION"))]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The form that its first line names.
        found: String,
    },
    /// The journal holds NUL bytes only: its entries are lost.
    #[error("{} holds only NUL bytes, so what it said is lost: run `mydyno host restore`, which finds private servers, mounts and loop devices by their marks, and begins a new journal", path.display())]
    Lost {
        /// The journal.
        path: PathBuf,
    },
    /// A living command answers for the same thing.
    #[error("{what} is in use by `mydyno {command}` (pid {pid}): wait for it, or end it")]
    Held {
        /// The thing that was to be changed.
        what: String,
        /// The process that holds it.
        pid: u32,
        /// The command of that process.
        command: String,
    },
    /// A command that died has left the same thing changed.
    #[error(
        "{what} was left behind by `mydyno {command}` (pid {pid}), which died: run `mydyno host restore` first"
    )]
    Abandoned {
        /// The thing that was to be changed.
        what: String,
        /// The process that held it.
        pid: u32,
        /// The command of that process.
        command: String,
    },
    /// The same thing is kept on purpose.
    #[error("{what} is kept in place until `{until}`")]
    Kept {
        /// The thing that was to be changed.
        what: String,
        /// The command that ends it.
        until: String,
    },
    /// A change that can only be put back from elsewhere.
    #[error("{what} cannot be put back from here: {why}")]
    OutOfReach {
        /// The change.
        what: String,
        /// Why, and where it can.
        why: String,
    },
    /// `/proc` is not in the form of proc(5).
    #[error("{} is not readable as the kernel's proc(5) form: is /proc mounted?", path.display())]
    Proc {
        /// The file.
        path: PathBuf,
    },
    /// The crate that makes the changes has failed.
    #[error(transparent)]
    Change(Box<dyn Error + Send + Sync>),
}

impl JournalError {
    /// An I/O error with the action that failed.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source }
    }
}
