//! Mounts of mydyno's block devices on its own folders.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_journal::{Change, Context, Journal, JournalError, Lease, Machine, Outcome, Preparation};
use mydyno_linux::Mount;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::emulated::control;
use crate::error::HostError;
use crate::file_system::{FileSystem, Options};
use crate::folder::MarkedFolder;
use mydyno_linux::calls;
/// Time limit for an ended process to release a mount.
const PATIENCE: Duration = Duration::from_secs(10);

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    /// The mount point: absolute, without symbolic links, below a folder of mydyno's.
    pub point: PathBuf,
    /// The device, as in `/dev/loop3`.
    pub device: PathBuf,
    /// The file system, as in `ext4`.
    pub file_system: String,
    /// The requested options.
    pub options: String,
    /// The mount namespace; the mount is not visible in others.
    pub namespace: Option<String>,
}

/// Mounts a device. Returns it with the number of the journal entry.
///
/// # Errors
/// The kernel does not support the file system, or refuses the options; nothing is then mounted.
pub fn mount(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    device: &Path,
    point: &Path,
    file_system: FileSystem,
    options: &Options,
) -> Result<(u64, Mounted), HostError> {
    let machine = lease.machine();
    let mounted = Mounted {
        point: point.to_owned(),
        device: device.to_owned(),
        file_system: file_system.kind().to_owned(),
        options: options.to_string(),
        namespace: machine.namespace("mnt"),
    };
    let id = journal.record(lease, purpose, mounted.clone())?;
    let (flags, data) = options.for_mount();
    let done = calls::mounts::mount(device, point, file_system.kind(), flags, &data);
    // Verified in the kernel's mount table.
    let problem = match done {
        Ok(()) if mounted.line(machine)?.is_some() => return Ok((id, mounted)),
        Ok(()) => io::Error::other("it is not in /proc/self/mountinfo"),
        Err(e) => e,
    };
    let outcome = mounted.unmount_if_ours(machine)?;
    journal.close_with(id, &outcome)?;
    Err(HostError::Mount {
        what: format!(
            "{} with {}",
            file_system,
            if options.is_empty() { "no options" } else { &mounted.options }
        ),
        point: point.to_owned(),
        source: problem,
    })
}

impl Mounted {
    /// An existing mount, as the value that [`mount`] would have returned.
    pub(crate) fn found(machine: &Machine, line: &Mount) -> Self {
        Self {
            point: line.point.clone(),
            device: line.source.clone(),
            file_system: line.kind.clone(),
            options: line.options.clone(),
            namespace: machine.namespace("mnt"),
        }
    }

    /// Whether it is the topmost mount at its mount point.
    pub(crate) fn is_there(&self, machine: &Machine) -> Result<bool, HostError> {
        Ok(self.line(machine)?.is_some())
    }

    /// The topmost mount at the mount point, if it is this one.
    fn line(&self, machine: &Machine) -> Result<Option<Mount>, HostError> {
        Ok(self.stack(machine)?.pop().filter(|line| self.is(line)))
    }

    /// All mounts at the mount point, the topmost last.
    fn stack(&self, machine: &Machine) -> Result<Vec<Mount>, HostError> {
        Ok(machine.mounts()?.into_iter().filter(|line| line.point == self.point).collect())
    }

    fn is(&self, line: &Mount) -> bool {
        line.kind == self.file_system && line.source == self.device
    }

    /// Unmounts it if it is still the mount that was made.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub(crate) fn unmount_if_ours(&self, machine: &Machine) -> Result<Outcome, HostError> {
        if let Some(why) = self.out_of_reach(machine) {
            return Ok(Outcome::left_alone(why));
        }
        let stack = self.stack(machine)?;
        let depth = stack.iter().rev().position(|line| self.is(line));
        match (depth, stack.last()) {
            (Some(0), _) => {}
            (Some(_), _) => {
                return Ok(Outcome::failed(format!(
                    "something else is mounted over it: run `umount {}` and then `mydyno host restore`",
                    self.point.display()
                )));
            }
            (None, Some(_)) => {
                return Ok(Outcome::left_alone(
                    "another program has since mounted another file system there",
                ));
            }
            (None, None) => return Ok(Outcome::restored("it is not mounted")),
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match calls::mounts::unmount(&self.point) {
                Ok(()) => return Ok(Outcome::restored("unmounted")),
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                    return Ok(Outcome::failed(format!(
                        "it is in use: list its users with `fuser -vm {}`, end them, and run `mydyno host restore`",
                        self.point.display()
                    )));
                }
                Err(e) => return Ok(Outcome::failed(format!("cannot unmount it: {e}: run it as root"))),
            }
        }
    }
}

impl Change for Mounted {
    fn kind(&self) -> &str {
        "mount"
    }

    fn what(&self) -> String {
        format!("mount of {} at {}", self.device.display(), self.point.display())
    }

    fn key(&self) -> String {
        format!("mount:{}", self.point.display())
    }

    fn was(&self) -> Value {
        Value::from("not mounted")
    }

    fn now(&self) -> Value {
        Value::from(format!("{} {}", self.file_system, self.options).trim_end())
    }

    fn out_of_reach(&self, machine: &Machine) -> Option<String> {
        let here = machine.namespace("mnt");
        (self.namespace.is_some() && self.namespace != here).then(|| {
            format!(
                "it was mounted in mount namespace {}: run `mydyno host restore` there, or with --all if that namespace is \
                 gone",
                self.namespace.clone().unwrap_or_default()
            )
        })
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.point)
    }

    fn tree(&self) -> Option<&Path> {
        Some(&self.point)
    }

    fn rests_on(&self, earlier: &dyn Change) -> bool {
        earlier.tree().is_some_and(|tree| self.point.starts_with(tree))
            || earlier.device() == Some(&self.device)
    }

    /// Folders of other purposes on it: several servers can use one disk of kept data.
    fn carries(&self, other: &dyn Change) -> bool {
        other.as_kind::<MarkedFolder>().is_some_and(|folder| folder.path.starts_with(&self.point))
    }

    fn may_be_shared(&self) -> bool {
        true
    }

    /// Prepares the disk below for umount(2), which waits for dirty data at the speed of an emulated disk, and for ever
    /// where its process does not answer. Such a process is ended first: all requests then fail at once.
    fn prepare(&self) -> Preparation {
        match control::skip_delays(&self.file_system, &self.device, &self.point) {
            true => Preparation::Ready,
            false => Preparation::AfterItsProcess,
        }
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(self.unmount_if_ours(context.machine)?)
    }
}
