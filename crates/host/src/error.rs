//! Errors of changes to a host.

use std::io;
use std::path::{Path, PathBuf};

use mydyno_journal::JournalError;
use thiserror::Error;
/// The reason why a host cannot be changed, or a change cannot be restored.
#[derive(Debug, Error)]
pub enum HostError {
    /// There is no folder for the journal.
    #[error("there is no home folder to keep mydyno's state in: set MYDYNO_STATE=/some/private/folder")]
    NoHome,
    /// The state folder is not private.
    #[error("state folder {}: {problem}: {remedy}", path.display())]
    StateFolder {
        /// The folder.
        path: PathBuf,
        /// The defect.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// A new folder of mydyno's would be inside a data directory, where a server takes it for a schema.
    #[error(
        "{} would lie in {}, the data directory of a server, which takes folders in it for schemas: set {variable} to a private \
         folder elsewhere", path.display(), data.display()
    )]
    InDataDirectory {
        /// The folder.
        path: PathBuf,
        /// The data directory, without symbolic links.
        data: PathBuf,
        /// The variable that selects another place.
        variable: &'static str,
    },
    /// A file or folder could not be read, written or made.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, as in `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The folder to be made exists.
    #[error("{} exists already and is not mydyno's: move it away", path.display())]
    FolderExists {
        /// The folder.
        path: PathBuf,
    },
    /// A program could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A process could not become another user.
    #[error(
        "a process could not be started as user {user}: {step}: {source}: run as the host's root, or all of mydyno as that user"
    )]
    Become {
        /// The user.
        user: String,
        /// The step that failed.
        step: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A setting that mydyno may not write.
    #[error("{name:?} is not a kernel setting that mydyno changes")]
    SettingUnknown {
        /// The given name.
        name: String,
    },
    /// A setting that this kernel does not have.
    #[error("this kernel has no {name}: there is no {}{}", path.display(), debugfs_hint(path))]
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
        /// The cause.
        source: io::Error,
    },
    /// A value that the setting does not accept.
    #[error("{name} cannot be {value:?}: it takes {form}")]
    SettingValue {
        /// The setting.
        name: String,
        /// The given value.
        value: String,
        /// The accepted values.
        form: String,
    },
    /// The kernel stored another value.
    #[error(
        "{name} was set to {value}, but the kernel changed it to {became}; the value before was put back"
    )]
    SettingKernel {
        /// The setting.
        name: String,
        /// The value that was written.
        value: String,
        /// The value that was read back.
        became: String,
    },
    /// A prerequisite that this machine lacks.
    #[error("{what} cannot be had here: {missing}: {remedy}")]
    Missing {
        /// The thing that was requested.
        what: String,
        /// The prerequisite.
        missing: String,
        /// How to get it.
        remedy: String,
    },
    /// Too little free space.
    #[error("{} has {free} free, and {needed} are needed: free some, or set MYDYNO_STATE to a folder on a larger disk", path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// The free space.
        free: String,
        /// The required space.
        needed: String,
    },
    /// Too little memory.
    #[error(
        "the host has {free} of memory to spare, and {needed} have to stay free: end something that uses memory"
    )]
    NoMemory {
        /// The free memory.
        free: String,
        /// The memory that must stay free.
        needed: String,
    },
    /// A mount option that is not on the list.
    #[error("{option:?} is not a mount option that mydyno gives to {file_system}: it knows {known}")]
    MountOption {
        /// The given option.
        option: String,
        /// As in `xfs`.
        file_system: &'static str,
        /// The accepted options.
        known: String,
    },
    /// A feature of a file system that is not on the list.
    #[error("{feature:?} is not a feature that mydyno chooses for {file_system}: it knows {known}")]
    Feature {
        /// The given feature.
        feature: String,
        /// As in `ext4`.
        file_system: &'static str,
        /// The accepted features.
        known: String,
    },
    /// A mount that the kernel refused.
    #[error("cannot mount {what} at {}: {source}: see the end of `dmesg`", point.display())]
    Mount {
        /// File system and options.
        what: String,
        /// The mount point.
        point: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A process whose scheduling cannot be read or set.
    #[error("cannot set the {attribute} of process {pid}: {why}")]
    Task {
        /// The process.
        pid: u32,
        /// The attribute, as in `nice`.
        attribute: &'static str,
        /// The cause.
        why: String,
    },
    /// A program that failed.
    #[error("{} failed: {why}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Its error message.
        why: String,
    },
    /// A change of the whole host that was not permitted.
    #[error("{what} concerns the whole host: give --allow-host-change if that is intended")]
    NotAllowed {
        /// The lever.
        what: String,
    },
    /// A setting that a command with another state folder has changed.
    #[error("{source}; it keeps its state in {}, where the value before is {was}: commands on that state need MYDYNO_STATE={}", state.display(), state.display())]
    OtherState {
        /// The other state folder.
        state: PathBuf,
        /// The value before its change.
        was: String,
        /// The command that holds it, or that left it.
        source: Box<JournalError>,
    },
    /// A setting that another process has reserved.
    #[error("kernel setting {name} is in use by the mydyno with pid {pid}, which keeps its state in {}: wait for it, or end it", state.display())]
    Reserved {
        /// The setting.
        name: String,
        /// The reserving process.
        pid: String,
        /// Its state folder.
        state: PathBuf,
    },
    /// There is no lever with this name.
    #[error("there is no lever {name:?}{}; `mydyno host levers` lists them", nearest.as_ref().map(|n| format!(" (did you mean {n}?)")).unwrap_or_default())]
    NoLever {
        /// The given name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// The journal refuses a change or cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl From<HostError> for JournalError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Journal(error) => error,
            other => Self::Change(Box::new(other)),
        }
    }
}

impl HostError {
    /// An I/O error with the operation and the path.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source }
    }
}

/// The remedy for a file of debugfs, which need not be mounted.
fn debugfs_hint(path: &Path) -> &'static str {
    let of_debugfs = path.starts_with("/sys/kernel/debug");
    if of_debugfs { ": run `mount -t debugfs none /sys/kernel/debug` if it is not mounted" } else { "" }
}
