//! Errors of private servers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mydyno_host::{HostError, JournalError};
use thiserror::Error;

/// The reason why a private server cannot be made, reached or ended.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// An error of the host or its journal.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A file or folder could not be accessed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, as in `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An invalid name for a server.
    #[error(
        "{name:?} is not a name for a private server: use 1 to 64 letters, digits, `_`, `-` and `.`, with a letter or digit first"
    )]
    Name {
        /// The rejected name.
        name: String,
    },
    /// The name is in use.
    #[error(
        "there is a private server {name} already{detail}: use another name, or take it down with `mydyno server down {name}`"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Its owner, as a continuation of the sentence.
        detail: String,
    },
    /// A command that has ended left a server of this name.
    #[error(
        "a command that died has left a private server {name} behind: run `mydyno host restore`, or use another name"
    )]
    NameAbandoned {
        /// The name.
        name: String,
    },
    /// There is no server with this name.
    #[error("there is no private server {name}{}", others(known))]
    NoSuchServer {
        /// The name.
        name: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// `--set` without a setting.
    #[error("--set {input:?} is not a setting like innodb_buffer_pool_size=256M: {why}")]
    Setting {
        /// The rejected text.
        input: String,
        /// The mistake.
        why: String,
    },
    /// `--engine` without an engine.
    #[error(
        "{input:?} is not an engine: use mariadb or mysql, with a series as in mariadb-10.11 or mysql-8.0 if it matters"
    )]
    EngineName {
        /// The rejected text.
        input: String,
    },
    /// An environment variable that is not on the list.
    #[error(
        "{name:?} is not a variable of the environment that mydyno gives to servers, or its value is not one line: it knows {known}"
    )]
    Environment {
        /// The rejected name.
        name: String,
        /// The accepted names.
        known: String,
    },
    /// An option file that the server program does not read.
    #[error("the server does not read the option file {}: {reported}", path.display())]
    OptionFile {
        /// The file.
        path: PathBuf,
        /// The program's message.
        reported: String,
    },
    /// A library or setting of the server had no effect.
    #[error("the server runs without {what}, so it was stopped{}", quoted(log))]
    NotGiven {
        /// As in `LD_PRELOAD=/usr/lib/libjemalloc.so.2`.
        what: String,
        /// The lines of its log about it.
        log: Vec<String>,
    },
    /// A delay of syncs that does not apply to all durable writes of the server.
    #[error(
        "{} {how}, so that the server waits for it without a sync that server.sync_delay could delay: start the server without \
         that (innodb_flush_method=O_DSYNC, MariaDB's innodb_log_file_write_through, a log on /dev/shm), or use disk.medium=emulated, which \
         delays whatever it waits for",
        path.display()
    )]
    NotDelayed {
        /// The file.
        path: PathBuf,
        /// As in `is open with O_DSYNC or O_SYNC`.
        how: &'static str,
    },
    /// More commits than a load can make within its time.
    #[error(
        "{commits} commits need {needed_s:.0} s at the best, since each acknowledgement is written down and synced, and a load \
         has {most_s} s: ask for fewer, or for more connections"
    )]
    TooManyCommits {
        /// The requested number.
        commits: u64,
        /// Seconds that these need at least.
        needed_s: f64,
        /// Seconds that a load may take.
        most_s: u64,
    },
    /// A load that ended with too few commits.
    #[error(
        "only {acknowledged} of {wanted} commits were acknowledged, so the server was not made to crash: {why}; mend that, or ask for \
         fewer commits"
    )]
    TooFewCommits {
        /// Commits that were acknowledged.
        acknowledged: u64,
        /// The requested number.
        wanted: u64,
        /// The last error of a connection, or the expired time.
        why: String,
    },
    /// A table that exists and cannot be read.
    #[error("table {table}: {source}")]
    Table {
        /// Its name.
        table: String,
        /// The error of the server or of the connection.
        source: mydyno_wire::WireError,
    },
    /// Data that are not on a block device.
    #[error("{} is not on one block device, so its I/O cannot be limited: give the server a disk of its own with disk.file_system", path.display())]
    NoDisk {
        /// The data directory.
        path: PathBuf,
    },
    /// A running server that does not answer.
    #[error("cannot connect to private server {name}: {source}")]
    Unreachable {
        /// Its name.
        name: String,
        /// The cause.
        source: mydyno_wire::WireError,
    },
    /// A server of the user that does not answer.
    #[error("cannot connect to the server at {address}: {why}")]
    UsersServer {
        /// Its address.
        address: String,
        /// The cause.
        why: String,
    },
    /// A variable that cannot be read or set.
    #[error("variable {name}: {source}")]
    Variable {
        /// The variable.
        name: String,
        /// The server's error.
        source: mydyno_wire::WireError,
    },
    /// A variable without a value, which cannot be restored.
    #[error("the value of variable {name} could not be put back: set it when the server starts")]
    VariableNull {
        /// The variable.
        name: String,
    },
    /// A value that the server adjusts.
    #[error(
        "the server changed {name}={value} to {shown}, so the value before was put back: give {shown} if that is intended"
    )]
    VariableRounded {
        /// The variable.
        name: String,
        /// The requested value.
        value: String,
        /// The value that the server stored.
        shown: String,
    },
    /// The server was not shut down cleanly, so its data are not kept.
    #[error(
        "the private server {name} was not shut down in good order, so its data are not at rest and not kept: prepare them in another \
         one; `mydyno server down {name}` removes it"
    )]
    NotStopped {
        /// Its name.
        name: String,
    },
    /// Kept data that have changed.
    #[error("{} has changed since its data were kept: remove them and prepare them again", path.display())]
    DataChanged {
        /// The file.
        path: PathBuf,
    },
    /// Kept data of another server.
    #[error(
        "the data were written by {engine:?}, and the server is {found:?}: name that one with --engine or --basedir, or prepare them \
         again with this one"
    )]
    DataOfAnother {
        /// The engine that wrote them.
        engine: String,
        /// The engine that was to start.
        found: String,
    },
    /// The name of kept data is in use.
    #[error(
        "there are kept data {name} already: use another name, or remove them with `mydyno server data remove {name}`"
    )]
    DataNameTaken {
        /// The name.
        name: String,
    },
    /// There are no kept data with this name.
    #[error("there are no kept data {name}{}", others(known))]
    NoSuchData {
        /// The name.
        name: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// Kept data whose list of files cannot be read.
    #[error("cannot read the list of kept data {}: {why}; `mydyno server data remove` removes them", path.display())]
    KeptData {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// Kept data that are in use.
    #[error("the kept data in {} are in use{}", path.display(), used_by(by))]
    DataInUse {
        /// Their folder.
        path: PathBuf,
        /// The servers that use their disk; empty when another command reads them.
        by: String,
    },
    /// A full disk of kept data.
    #[error(
        "the disk of these data has only {free} left: end the servers that use it (`mydyno server data list`), copy the data with \
         --copy-data, or keep them anew with a larger --room"
    )]
    DataDiskFull {
        /// Free space, formatted for display.
        free: String,
    },
    /// A mount point of mydyno's has a mount that is not in the journal.
    #[error(
        "{} is mounted, and the journal knows nothing of it: end what uses it and run `umount {}`", point.display(), point.display()
    )]
    MountUnknown {
        /// The mount point.
        point: PathBuf,
    },
    /// Another command is working on the server.
    #[error("another mydyno is at work with the private server {name}: try again when it is done")]
    ServerBusy {
        /// Its name.
        name: String,
    },
    /// An invalid value of a lever.
    #[error("{id} cannot be {value:?}: it takes {takes}")]
    LeverValue {
        /// The lever.
        id: String,
        /// The rejected value.
        value: String,
        /// The accepted values.
        takes: String,
    },
    /// A program that exceeded its time limit.
    #[error("{} took longer than {} s {doing} and was ended: try it by hand, or name another one with --basedir DIR", program.display(), waited.as_secs())]
    TooSlow {
        /// The program.
        program: PathBuf,
        /// The purpose, as in `to say its version`.
        doing: &'static str,
        /// The time limit.
        waited: Duration,
    },
    /// No server program was found.
    #[error("{wanted} was not found{}: {remedy}", found_instead(found))]
    NoServerProgram {
        /// The requested one, as in `mariadb-11.4`.
        wanted: String,
        /// Those that were found.
        found: Vec<String>,
        /// How to install it.
        remedy: String,
    },
    /// `--basedir` lacks files that a server needs.
    #[error("base directory {}: {problem}", path.display())]
    Basedir {
        /// The folder.
        path: PathBuf,
        /// The missing part.
        problem: String,
    },
    /// A server that is too old or unknown.
    #[error("{} says {reported:?}, which is neither MariaDB 10.1 or later nor MySQL 5.5 or later: name one of these with --basedir", program.display())]
    NotSupported {
        /// The program.
        program: PathBuf,
        /// Its output for `--version`.
        reported: String,
    },
    /// The socket's path is too long.
    #[error(
        "the socket {} has {length} bytes and the kernel takes 107: use a shorter name, or set MYDYNO_STATE to a folder with a shorter path",
        path.display()
    )]
    SocketPath {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
    /// Too little space on a file system.
    #[error("{} has {free} free and a private server needs {needed}: free some, or set {variable} to a folder on another disk", path.display())]
    NoRoom {
        /// A folder on the file system.
        path: PathBuf,
        /// Free space, formatted for display.
        free: String,
        /// Space that is needed, formatted for display.
        needed: String,
        /// The variable that moves the folder.
        variable: &'static str,
    },
    /// Initialising the data directory failed.
    #[error("{program} could not make its system tables ({how}){}", quoted(log))]
    Init {
        /// The program.
        program: String,
        /// Exit status or signal.
        how: String,
        /// The last relevant lines of its log.
        log: Vec<String>,
    },
    /// The server ended during its start.
    #[error("the server ended while it was starting ({how}){}", quoted(log))]
    Ended {
        /// Exit status or signal.
        how: String,
        /// The last relevant lines of its log.
        log: Vec<String>,
    },
    /// The server did not accept a connection in time.
    #[error("the server did not accept connections within {} s ({last}){}", waited.as_secs(), quoted(log))]
    NotReady {
        /// The time limit.
        waited: Duration,
        /// The error of the last attempt.
        last: String,
        /// The last relevant lines of its log.
        log: Vec<String>,
    },
    /// The server refuses the login of mydyno's account.
    #[error("the server runs and does not let its own account in: {source}{}", quoted(log))]
    Refused {
        /// Its error.
        source: mydyno_wire::WireError,
        /// The last relevant lines of its log.
        log: Vec<String>,
    },
    /// Other programs took every chosen port before the server could listen on it.
    #[error("{attempts} free ports on 127.0.0.1 were each taken before the server could listen: try again")]
    NoPort {
        /// Number of ports that were tried.
        attempts: usize,
    },
    /// The user interrupted the operation.
    #[error("interrupted; nothing is left of it")]
    Interrupted,
    /// The server's settings permit more memory than the host can spare.
    #[error(
        "{configured} would take {asked} more than a plain server, the host has {spare} of memory to spare, and {kept} have to stay \
         free: {remedy}"
    )]
    TooMuchMemory {
        /// The settings, as in `innodb_buffer_pool_size=64G`.
        configured: String,
        /// Memory that the settings add to that of a server with defaults.
        asked: String,
        /// Available memory of the host, and the part that is reserved for others.
        spare: String,
        /// Memory that has to stay free.
        kept: String,
        /// The next step for the user.
        remedy: &'static str,
    },
    /// A change could not be restored.
    #[error("{what} could not be put back: {why}")]
    NotPutBack {
        /// The change.
        what: String,
        /// The cause.
        why: String,
    },
    /// An operation failed, and so did undoing it.
    #[error("{error}\nand then {then}: `mydyno host restore` tries again")]
    NotUndone {
        /// The first failure.
        error: Box<SandboxError>,
        /// The error of undoing it.
        then: Box<SandboxError>,
    },
    /// The server runs on another machine or in another container.
    #[error(
        "the private server {name} was made on {host} or in another container, and may run there: take it down there, or run \
         `mydyno host restore --all` if that machine or container is gone"
    )]
    Elsewhere {
        /// Its name.
        name: String,
        /// The node name of the machine.
        host: String,
    },
    /// Other users can write to the folder of templates.
    #[error("{} can be written to by others, and servers run what is in it: set MYDYNO_CACHE to a folder of your own", path.display())]
    CacheFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The saved description of a server cannot be read.
    #[error("{} is not the description of a private server: {why}; `mydyno server down` removes it", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
}

impl From<JournalError> for SandboxError {
    fn from(error: JournalError) -> Self {
        Self::Host(HostError::Journal(error))
    }
}

impl SandboxError {
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source }
    }
}

fn quoted(log: &[String]) -> String {
    if log.is_empty() {
        return ", and its log is empty".to_owned();
    }
    log.iter().fold("; its log says:".to_owned(), |text, line| format!("{text}\n  {line}"))
}

fn others(known: &[String]) -> String {
    if known.is_empty() {
        "; there is none at all".to_owned()
    } else {
        format!("; there are: {}", known.join(", "))
    }
}

fn used_by(servers: &str) -> String {
    if servers.is_empty() {
        " by another mydyno: try again when it is done".to_owned()
    } else {
        format!(" by the private server {servers}: end it with `mydyno server down {servers}`")
    }
}

fn found_instead(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(" (found: {})", found.join(", ")) }
}
