//! What can go wrong with a host, a change or the journal.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a host cannot be changed, or a change cannot be put back.
#[derive(Debug, Error)]
pub enum HostError {
    /// No folder to keep the journal in.
    #[error("there is no home folder to keep mydyno's state in: set MYDYNO_STATE=/some/private/folder")]
    NoHome,
    /// The state folder is not private.
    #[error("state folder {}: {problem}: {way_out}", path.display())]
    StateFolder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What the user can do.
        way_out: String,
    },
    /// A file or folder could not be read, written or made.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// As in `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another mydyno does not let go of the journal.
    #[error("another mydyno has held the lock of {} for {waited_s} s: see who with `fuser {}`", path.display(), path.display())]
    JournalBusy {
        /// The journal.
        path: PathBuf,
        /// How long this process waited.
        waited_s: u64,
    },
    /// A newer mydyno wrote the journal in a form that this one would misread.
    #[error("{} was written in the form {found:?}, which this mydyno ({}) does not know: use the newer mydyno that wrote it", path.display(), env!("CARGO_PKG_VERSION"))]
    JournalNewer {
        /// The journal.
        path: PathBuf,
        /// What its first line says.
        found: String,
    },
    /// A living command answers for the same thing.
    #[error("{what} is in use by `mydyno {command}` (pid {pid}): wait for it, or end it")]
    Held {
        /// What was to be changed.
        what: String,
        /// The process that holds it.
        pid: u32,
        /// What that process does.
        command: String,
    },
    /// A command that died has left the same thing changed.
    #[error(
        "{what} was left behind by `mydyno {command}` (pid {pid}), which died: run `mydyno host restore` first"
    )]
    Abandoned {
        /// What was to be changed.
        what: String,
        /// The process that held it.
        pid: u32,
        /// What that process did.
        command: String,
    },
    /// The same thing is kept on purpose.
    #[error("{what} is kept in place until `{until}`")]
    Kept {
        /// What was to be changed.
        what: String,
        /// The command that ends it.
        until: String,
    },
    /// The folder that was to be made exists.
    #[error("{} exists already and is not mydyno's: move it away", path.display())]
    FolderExists {
        /// The folder.
        path: PathBuf,
    },
    /// A program did not start.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A setting that mydyno may not write to.
    #[error("{name:?} is not a kernel setting that mydyno changes")]
    SettingUnknown {
        /// What was given.
        name: String,
    },
    /// A setting that this kernel does not have.
    #[error("this kernel has no {name}: there is no {}", path.display())]
    SettingAbsent {
        /// The setting.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// A setting that cannot be written here.
    #[error("{name} cannot be changed here: {}: {source}: run as root, outside a container that keeps it read-only", path.display())]
    SettingDenied {
        /// The setting.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A value that a setting does not take.
    #[error("{name} cannot be {value:?}: it takes {form}")]
    SettingValue {
        /// The setting.
        name: String,
        /// What was given.
        value: String,
        /// What it takes.
        form: String,
    },
    /// The kernel made another value of it.
    #[error("{name} was set to {value}, and the kernel made {became} of it; it is as before")]
    SettingKernel {
        /// The setting.
        name: String,
        /// What was written.
        value: String,
        /// What was read back.
        became: String,
    },
    /// `/proc` does not say what it should.
    #[error("{} is not readable as the kernel's proc(5) form: is /proc mounted?", path.display())]
    Proc {
        /// The file.
        path: PathBuf,
    },
}

impl HostError {
    /// An I/O error with what was tried.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source }
    }
}
