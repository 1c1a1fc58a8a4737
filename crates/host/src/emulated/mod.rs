//! The emulated disk: a file whose reads, writes and flushes take the time that a rotating drive would need, and whose
//! power can be cut. Attached as a loop device it shows the effects of schedulers, queue sizes and write barriers.
//!
//! A separate process serves the file through FUSE. A global `sync` by any process waits for the dirty data on it, so
//! it counts as a change of the whole host. Every result measured on one is labelled *emulated disk*.

mod array;
#[cfg(test)]
mod array_tests;
pub(crate) mod control;
pub mod drive;
pub mod flash;
pub mod mechanism;
mod pace;
mod service;
mod store;
mod watch;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mydyno_journal::Lease;
use mydyno_journal::Machine;
use mydyno_journal::{Closing, Journal};
use mydyno_linux::block;
use mydyno_linux::mounts::holding;
use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::folder::random_mark;
use crate::mounts::Mounted;
use crate::privilege::check_admin;
use crate::process;
use crate::room::check_memory_for;
use crate::setting::AllowHostChange;
pub use control::DiskCommand;
use control::{KIND, SOURCE, send_command};
use drive::Drive;
use flash::Flash;
use mechanism::{CacheMode, Counters, Model};
use mydyno_linux::calls;
pub use pace::Pace;
pub use watch::serve;
/// The label of results from such a disk.
pub const LABEL: &str = "emulated disk";
/// Time limit until its process serves; it locks its memory first.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest volatile cache: the amount that a flush, and with it a global sync, may have to write.
const CACHE_BYTES: u64 = 16 << 20;
/// The cache of a controller with a battery, which no flush has to write.
const PROTECTED_BYTES: u64 = 64 << 20;
/// The stripe on each of several rotating drives, as RAID controllers have it.
const STRIPE_BYTES: u64 = 64 << 10;
/// The largest number of rotating drives.
const MOST_HEADS: usize = 16;
/// Dies of the solid-state drive: together they program 291 MB/s, about as much as its bus carries.
const DIES: usize = 16;
const LEAST_BYTES: u64 = 16 << 20;
const MOST_BYTES: u64 = 64 << 30;
/// The largest queue depth: 32, as in NCQ.
const MOST_DEPTH: usize = 32;

/// The kind of an emulated drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveKind {
    /// Rotating, with 7,200 rotations a minute.
    #[default]
    Rotating,
    /// Solid-state, with a SATA bus.
    Ssd,
}

fn one() -> usize {
    1
}

/// Parameters of an emulated disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Kind of the drives.
    #[serde(default)]
    pub kind: DriveKind,
    /// How many rotating drives, each with a head of its own, the bytes are spread over.
    #[serde(default = "one")]
    pub heads: usize,
    /// The write cache's treatment of data.
    pub cache: CacheMode,
    /// Queue depth: how many requests the drive reorders, nearest first; 1 serves them in order of arrival.
    pub depth: usize,
}

impl Default for Spec {
    /// A volatile cache that honours flushes; requests are served in the kernel's order.
    fn default() -> Self {
        Self { kind: DriveKind::Rotating, heads: 1, cache: CacheMode::On, depth: 1 }
    }
}

impl Spec {
    /// The model of a drive of this size.
    pub fn model(&self, bytes: u64) -> Model {
        let flash = (self.kind == DriveKind::Ssd).then(Flash::of_multi_level_cells);
        Model {
            drive: Drive::of_7200_rpm(bytes),
            flash,
            heads: if flash.is_some() { DIES } else { self.heads },
            stripe_bytes: flash.map_or(STRIPE_BYTES, |flash| flash.page_bytes),
            cache: self.cache,
            cache_bytes: self.cache_bytes(),
            depth: self.depth,
        }
    }

    fn cache_bytes(&self) -> u64 {
        if self.cache == CacheMode::Protected { PROTECTED_BYTES } else { CACHE_BYTES }
    }
}

/// A disk and the program that is to serve it.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// Its parameters.
    pub spec: &'a Spec,
    /// Its size.
    pub bytes: u64,
    /// The program that serves it.
    pub service: &'a Service,
}

/// The program that serves a disk; its last argument is the folder. It must call [`serve`].
#[derive(Debug, Clone)]
pub struct Service {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Service {
    /// This program with arguments.
    pub fn of_this_program<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        // A descriptor's path, because an update can replace the file while the program runs.
        Self { program: "/proc/self/exe".into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(folder);
        command
    }
}

impl Default for Service {
    /// `mydyno host disk serve FOLDER`.
    fn default() -> Self {
        Self::of_this_program(["host", "disk", "serve"])
    }
}

/// The state of a disk as reported by its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Its model.
    pub model: Model,
    /// Whether it is switched on.
    pub power: bool,
    /// Whether it serves without delays.
    pub hurries: bool,
    /// Unflushed bytes that a power cut would lose now.
    pub dirty_bytes: u64,
    /// Its counters.
    pub counters: Counters,
}

/// The emulated disk below a file or folder: a loop device whose backing file is on a FUSE mount of mydyno's.
pub fn below(machine: &Machine, path: &Path) -> Option<EmulatedDisk> {
    let mounts = machine.mounts().ok()?;
    let mount = holding(&mounts, &fs::canonicalize(path).ok()?)?;
    let device = mount.source.strip_prefix("/dev").ok()?.to_str()?;
    let served = holding(&mounts, &block::backing_file(machine.sys(), device)?)?;
    let ours = served.kind == KIND && control::is_source(&served.source);
    ours.then(|| EmulatedDisk { point: served.point.clone() })
}

/// The parameters of the serving process, stored as a file in the folder.
#[derive(Debug, Serialize, Deserialize)]
struct Serving {
    model: Model,
    source: String,
    journal: PathBuf,
}

/// A disk that is being served: its file and its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmulatedDisk {
    point: PathBuf,
}

/// Whether emulated disks are possible here.
///
/// # Errors
/// A prerequisite is missing; the error names it and how to get it.
pub fn check(machine: &Machine) -> Result<(), HostError> {
    const CAP_IPC_LOCK: u32 = 14;
    let missing_error = |missing: String, remedy: &str| HostError::Missing {
        what: "an emulated disk".to_owned(),
        missing,
        remedy: remedy.to_owned(),
    };
    check_admin(machine, "an emulated disk")?;
    if !machine.has_capability(CAP_IPC_LOCK) {
        let missing =
            "this process does not have CAP_IPC_LOCK, and the disk's memory has to be locked".to_owned();
        return Err(missing_error(missing, "run as root, in a container with that capability"));
    }
    OpenOptions::new().read(true).write(true).open("/dev/fuse").map(drop).map_err(|e| {
        missing_error(
            format!("/dev/fuse cannot be opened: {e}"),
            "run `modprobe fuse`, or in a container give it /dev/fuse",
        )
    })
}

/// Whether one with these parameters and this size is possible here now.
///
/// # Errors
/// As [`check`]; there is too little memory; the size or depth is out of range.
pub fn check_spec(machine: &Machine, spec: &Spec, bytes: u64) -> Result<(), HostError> {
    let wrong = |name: &str, value: String, form: String| HostError::SettingValue {
        name: name.to_owned(),
        value,
        form,
    };
    if !(LEAST_BYTES..=MOST_BYTES).contains(&bytes) || !bytes.is_multiple_of(4096) {
        let form =
            format!("for an emulated disk, a multiple of 4096 from {LEAST_BYTES} to {MOST_BYTES} bytes");
        return Err(wrong("disk.size", bytes.to_string(), form));
    }
    if !(1..=MOST_DEPTH).contains(&spec.depth) {
        let form = format!("a whole number from 1 to {MOST_DEPTH}");
        return Err(wrong("disk.depth", spec.depth.to_string(), form));
    }
    if !(1..=MOST_HEADS).contains(&spec.heads) || (spec.kind == DriveKind::Ssd && spec.heads > 1) {
        let form = format!("a whole number from 1 to {MOST_HEADS}, and 1 for a solid-state drive");
        return Err(wrong("disk.heads", spec.heads.to_string(), form));
    }
    check(machine)?;
    check_memory_for(machine, bytes + spec.cache_bytes())
}

/// Starts the process that serves a disk in a folder that is journalled for the same purpose. It serves without delays
/// until [`DiskCommand::KeepDelays`], so that it can be formatted first.
///
/// # Errors
/// A prerequisite is missing, or the process does not serve; it is then removed again.
pub fn start(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    folder: &Path,
    new: &New,
    _allowed: AllowHostChange,
) -> Result<EmulatedDisk, HostError> {
    let machine = lease.machine();
    check_spec(machine, new.spec, new.bytes)?;
    let point = folder.join("emulated");
    fs::create_dir(&point).map_err(|e| HostError::io("create", &point, e))?;
    let source = format!("{SOURCE}{}", random_mark()?);
    let serving = Serving {
        model: new.spec.model(new.bytes),
        source: source.clone(),
        journal: journal.path().to_owned(),
    };
    let description = description(folder);
    let text = serde_json::to_vec(&serving).unwrap_or_default();
    fs::write(&description, text).map_err(|e| HostError::io("write", &description, e))?;
    let mounted = Mounted {
        point: point.clone(),
        device: source.into(),
        file_system: KIND.to_owned(),
        options: String::new(),
        namespace: machine.namespace("mnt"),
    };
    // The process makes the mount, so the journal gets its entry before the process starts.
    let mount_id = journal.record(lease, purpose, mounted.clone())?;
    let log = folder.join("emulated.log");
    let output = File::create(&log).map_err(|e| HostError::io("create", &log, e))?;
    let mut command = new.service.command(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).current_dir("/");
    let started = process::start(journal, lease, purpose, command);
    let mut started = match started {
        Ok(started) => started,
        Err(error) => {
            journal.close(mount_id, Closing::Released, "it was not mounted")?;
            return Err(error);
        }
    };
    let disk = EmulatedDisk { point };
    let deadline = Instant::now() + PATIENCE;
    let why = loop {
        if mounted.is_there(machine)? && disk.state().is_ok() {
            disk.send(DiskCommand::SkipDelays)?;
            return Ok(disk);
        }
        if started.child.try_wait().map_err(|e| HostError::io("wait for", &log, e))?.is_some() {
            break fs::read_to_string(&log).unwrap_or_default().trim().to_owned();
        }
        if Instant::now() >= deadline {
            break format!("it did not serve within {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    if let process::Ended::Not(still) = process::end(machine, &started.identity)? {
        return Err(HostError::Program {
            program: "the emulated disk".into(),
            why: format!("{why}, and {still}"),
        });
    }
    journal.close(started.id, Closing::Restored, "ended")?;
    journal.close_with(mount_id, &mounted.unmount_if_ours(machine)?)?;
    Err(HostError::Program { program: "the emulated disk".into(), why })
}

fn description(folder: &Path) -> PathBuf {
    folder.join("emulated.json")
}

impl EmulatedDisk {
    /// The disk of a folder, if it is served.
    pub fn of(folder: &Path) -> Option<Self> {
        let disk = Self { point: folder.join("emulated") };
        disk.image().exists().then_some(disk)
    }

    /// The file to attach as a loop device.
    pub fn image(&self) -> PathBuf {
        self.point.join("disk")
    }

    /// Sends a command. The disk has executed it when this returns.
    ///
    /// # Errors
    /// The disk is not served.
    pub fn send(&self, command: DiskCommand) -> Result<(), HostError> {
        send_command(&self.point, command)
    }

    /// Writes all dirty data of its file system to the platter without delays, even where barriers and flushes are
    /// ignored: a later crash then affects later writes only.
    ///
    /// # Errors
    /// The disk is not served, or its file system cannot be synced.
    pub fn settle(&self, mount: &Path) -> Result<(), HostError> {
        self.send(DiskCommand::SkipDelays)?;
        File::open(mount)
            .and_then(|folder| calls::files::sync_file_system(&folder))
            .map_err(|e| HostError::io("sync", mount, e))?;
        self.send(DiskCommand::Settle)?;
        self.send(DiskCommand::KeepDelays)
    }

    /// Its state as reported by its process.
    ///
    /// # Errors
    /// The disk is not served.
    pub fn state(&self) -> Result<State, HostError> {
        let path = self.point.join("control");
        let mut text = String::new();
        File::open(&path)
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|e| HostError::io("read", &path, e))?;
        serde_json::from_str(&text).map_err(|e| HostError::io("read", &path, e.into()))
    }
}
