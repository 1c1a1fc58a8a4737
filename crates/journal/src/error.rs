//! Errors of the journal and of restoring changes.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The reason why the journal cannot be used, or a change is refused or cannot be restored.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A file could not be read, written, locked or made.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, as in `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
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
    /// A newer mydyno wrote the journal in a format that this one would misread.
    #[error("{} was written in the form {found:?}, which this mydyno ({}) does not know: use the newer mydyno that wrote it", path.display(), env!("CARGO_PKG_VERSION"))]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The format that its first line names.
        found: String,
    },
    /// The journal contains NUL bytes only: its entries are lost.
    #[error("{} holds only NUL bytes, so what it said is lost: run `mydyno host restore`, which finds private servers, mounts and loop devices by their marks, and begins a new journal", path.display())]
    Lost {
        /// The journal.
        path: PathBuf,
    },
    /// A running command owns a change of the same thing.
    #[error("{what} is in use by `mydyno {command}` (pid {pid}): wait for it, or end it")]
    Held {
        /// The thing to be changed.
        what: String,
        /// The process of that command.
        pid: u32,
        /// The command of that process.
        command: String,
    },
    /// A command that has ended left the same thing changed.
    #[error(
        "{what} was left behind by `mydyno {command}` (pid {pid}), which died: run `mydyno host restore` first"
    )]
    Abandoned {
        /// The thing to be changed.
        what: String,
        /// The process of that command.
        pid: u32,
        /// The command of that process.
        command: String,
    },
    /// The same thing is changed and kept on purpose.
    #[error("{what} is kept in place until `{until}`")]
    Kept {
        /// The thing to be changed.
        what: String,
        /// The command that ends it.
        until: String,
    },
    /// A change that can only be restored from another namespace.
    #[error("{what} cannot be put back from here: {why}")]
    OutOfReach {
        /// The change.
        what: String,
        /// The reason, and where it can be restored.
        why: String,
    },
    /// `/proc` does not have the format of proc(5).
    #[error("{} is not readable as the kernel's proc(5) form: is /proc mounted?", path.display())]
    Proc {
        /// The file.
        path: PathBuf,
    },
    /// An error of the crate that makes the changes.
    #[error(transparent)]
    Change(Box<dyn Error + Send + Sync>),
}

impl JournalError {
    /// An I/O error with the operation that failed.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source }
    }
}
