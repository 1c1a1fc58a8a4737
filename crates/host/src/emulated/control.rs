//! Commands to the process that serves an emulated disk, and how its mount is recognised.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::error::HostError;

/// The source of its mount in mountinfo begins with this; a random mark follows.
pub(super) const SOURCE: &str = "mydyno-disk-";
/// The file system of its mount.
pub(super) const KIND: &str = "fuse";
/// Time limit for a serving process to answer.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// A command to the process that serves a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskCommand {
    /// Cut the power: unflushed data are lost, and all requests fail.
    Cut,
    /// Switch it on again.
    On,
    /// Serve without the delays of the model.
    SkipDelays,
    /// Serve with the delays of the model again.
    KeepDelays,
    /// Write the cache back, even where flushes are ignored: everything written so far is on the platter.
    Settle,
}

const COMMANDS: [(DiskCommand, &str); 5] = [
    (DiskCommand::Cut, "cut"),
    (DiskCommand::On, "on"),
    (DiskCommand::SkipDelays, "hurry"),
    (DiskCommand::KeepDelays, "time"),
    (DiskCommand::Settle, "settle"),
];

impl DiskCommand {
    pub(super) fn named(name: &str) -> Option<Self> {
        COMMANDS.iter().find(|(_, n)| *n == name).map(|(command, _)| *command)
    }

    fn name(self) -> &'static str {
        COMMANDS.iter().find(|(command, _)| *command == self).map_or("", |(_, name)| name)
    }
}

/// Sends a command to the disk that is served at a mount point. The disk has carried it out when this returns.
///
/// # Errors
/// The disk is not served.
pub(super) fn send_command(point: &Path, command: DiskCommand) -> Result<(), HostError> {
    let path = point.join("control");
    let done =
        OpenOptions::new().write(true).open(&path).and_then(|mut f| f.write_all(command.name().as_bytes()));
    done.map_err(|e| HostError::io("send a command to", &path, e))
}

/// Whether the source of a mount is that of an emulated disk.
pub(crate) fn is_source(source: &Path) -> bool {
    source.to_str().is_some_and(|source| source.starts_with(SOURCE))
}

/// Makes the disk behind a mount serve without delays before it is unmounted: umount(2) waits until all dirty data of
/// the file system on it are written. `false` where the disk does not answer. `true` for any other mount, which needs
/// no command.
pub(crate) fn skip_delays(file_system: &str, source: &Path, point: &Path) -> bool {
    if file_system != KIND || !is_source(source) {
        return true;
    }
    let point = point.to_owned();
    with_timeout(move || send_command(&point, DiskCommand::SkipDelays)).is_some()
}

/// The answer of a disk's process; `None` after the time limit.
pub(super) fn with_timeout<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(ask());
    });
    answer.recv_timeout(COMMAND_TIMEOUT).ok()
}
