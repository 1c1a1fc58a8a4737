//! Loop devices: a file as a block device. Each is attached with a random label, so that another program's device that
//! later gets the same number is never detached.
//!
//! The kernel's flag for detaching on last close is not used: settings of a device's queue persist with its number and
//! are restored before it is detached.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_journal::{Change, Closing, Context, Journal, JournalError, Lease, Machine, Outcome};
use mydyno_linux::block;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HostError;
use crate::folder::random_mark;
use crate::mounts::Mounted;
use crate::privilege::check_admin;
use mydyno_linux::calls;
const CONTROL: &str = "/dev/loop-control";
/// Other programs attach devices too; each attempt takes another number.
const ATTEMPTS: usize = 16;
/// Time limit for the last user of a device to close it: a file system that is unmounted on a busy machine, another
/// program that reads the device. After it the kernel detaches the device on its last close.
const PATIENCE: Duration = Duration::from_secs(60);

/// An attached loop device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedLoop {
    /// As in `/dev/loop3`.
    pub device: PathBuf,
    /// The file behind it.
    pub backing: PathBuf,
    /// Inode of that file.
    pub inode: u64,
    /// The label of the device: 128 random bits in hex.
    pub label: String,
}

impl AttachedLoop {
    /// The name, as in `loop3`.
    pub fn name(&self) -> String {
        self.device.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Whether files can be attached here.
///
/// # Errors
/// They cannot; the error says why, and how to get it.
pub fn check(machine: &Machine) -> Result<(), HostError> {
    check_admin(machine, "a loop device")?;
    open_control().map(drop)
}

fn open_control() -> Result<File, HostError> {
    OpenOptions::new().read(true).write(true).open(CONTROL).map_err(|e| {
        let (missing, remedy) = match e.kind() {
            io::ErrorKind::NotFound => (
                format!("there is no {CONTROL}"),
                "run `modprobe loop`, or in a container give it /dev/loop-control and loop devices"
                    .to_owned(),
            ),
            _ => (format!("{CONTROL} cannot be opened: {e}"), "run as root".to_owned()),
        };
        HostError::Missing { what: "a loop device".to_owned(), missing, remedy }
    })
}

/// Attaches a file to a free device. Returns it with the number of the journal entry.
///
/// # Errors
/// There are no loop devices here, or the file cannot be opened.
pub fn attach(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    backing: &Path,
) -> Result<(u64, AttachedLoop), HostError> {
    let control = open_control()?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(backing)
        .map_err(|e| HostError::io("open", backing, e))?;
    let inode = file.metadata().map_err(|e| HostError::io("read", backing, e))?.ino();
    let mut last = io::Error::from(io::ErrorKind::ResourceBusy);
    for _ in 0..ATTEMPTS {
        let number = calls::loops::free_number(&control).map_err(|e| HostError::io("ask", CONTROL, e))?;
        let device = PathBuf::from(format!("/dev/loop{number}"));
        let handle = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&device)
            .map_err(|e| HostError::io("open", &device, e))?;
        let wanted = AttachedLoop { device, backing: backing.to_owned(), inode, label: random_mark()? };
        let id = journal.record(lease, purpose, wanted.clone())?;
        match calls::loops::attach(&handle, &file, &wanted.label) {
            Ok(()) => return Ok((id, wanted)),
            Err(e) => {
                journal.close(id, Closing::Released, "it was not attached")?;
                if e.raw_os_error() != Some(libc::EBUSY) {
                    return Err(HostError::io("attach", &wanted.device, e));
                }
                last = e;
            }
        }
    }
    Err(HostError::io("attach", backing, last))
}

/// The device that a file is attached to, by mydyno or another program.
///
/// # Errors
/// `/sys/block` cannot be read.
pub fn attached_to(machine: &Machine, backing: &Path) -> Result<Option<PathBuf>, HostError> {
    let devices =
        block::devices(machine.sys()).map_err(|e| HostError::io("read", machine.sys().join("block"), e))?;
    let device = devices
        .iter()
        .find(|device| block::backing_file(machine.sys(), device).is_some_and(|file| file == backing));
    Ok(device.map(|device| Path::new("/dev").join(device)))
}

impl AttachedLoop {
    /// Whether the device does direct I/O on its file. The kernel ignores the request silently where the file system
    /// below does not support it (`loop_update_dio` of drivers/block/loop.c).
    ///
    /// # Errors
    /// The device cannot be queried.
    pub fn direct_io(&self) -> Result<bool, HostError> {
        let device = File::open(&self.device).map_err(|e| HostError::io("open", &self.device, e))?;
        let found = calls::loops::attached(&device).map_err(|e| HostError::io("ask", &self.device, e))?;
        Ok(found.is_some_and(|found| found.direct_io))
    }

    /// Detaches the device if its label is still the recorded one.
    fn detach_if_ours(&self) -> Outcome {
        let opened = OpenOptions::new().read(true).write(true).open(&self.device);
        let device = match opened {
            Ok(device) => device,
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ENXIO | libc::ENODEV)) => {
                return Outcome::restored("it is not there");
            }
            Err(e) => return Outcome::failed(format!("cannot open it: {e}: run it as root")),
        };
        match self.is_attached(&device) {
            Ok(Attachment::Ours) => {}
            Ok(Attachment::Free) => return Outcome::restored("it is free"),
            Ok(Attachment::Another) => {
                return Outcome::left_alone(
                    "it was detached, and another program has attached another file to it",
                );
            }
            Err(e) => return Outcome::failed(format!("cannot read which file is attached to it: {e}")),
        }
        if let Err(e) = calls::loops::detach(&device) {
            return Outcome::failed(format!("cannot detach it: {e}"));
        }
        drop(device);
        self.wait_until_free()
    }

    /// Waits for the last close of a device that is in use.
    fn wait_until_free(&self) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let gone = match OpenOptions::new().read(true).open(&self.device) {
                Ok(device) => !matches!(self.is_attached(&device), Ok(Attachment::Ours)),
                Err(_) => true,
            };
            if gone {
                return Outcome::restored("detached");
            }
            if Instant::now() >= deadline {
                return Outcome::failed(format!(
                    "it is in use: list its users with `fuser -m {}`, end them, and run `mydyno host restore`",
                    self.device.display()
                ));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn is_attached(&self, device: &File) -> io::Result<Attachment> {
        Ok(match calls::loops::attached(device)? {
            None => Attachment::Free,
            Some(found) if found.label == self.label && found.inode == self.inode => Attachment::Ours,
            Some(_) => Attachment::Another,
        })
    }
}

impl Change for AttachedLoop {
    fn kind(&self) -> &str {
        "loop"
    }

    fn what(&self) -> String {
        format!("loop device {} ({})", self.device.display(), self.backing.display())
    }

    fn key(&self) -> String {
        format!("loop:{}:{}", self.device.display(), self.label)
    }

    fn was(&self) -> Value {
        Value::from("free")
    }

    fn now(&self) -> Value {
        Value::from("attached")
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.backing)
    }

    fn device(&self) -> Option<&Path> {
        Some(&self.device)
    }

    fn carries(&self, other: &dyn Change) -> bool {
        other.as_kind::<Mounted>().is_some_and(|mount| mount.device == self.device)
    }

    fn put_back(&self, _context: &Context) -> Result<Outcome, JournalError> {
        Ok(self.detach_if_ours())
    }
}

enum Attachment {
    Free,
    Ours,
    Another,
}
