//! The emulated disk: a file whose reads, writes and flushes take the time that a rotating drive needs for them, and whose
//! power can be cut. Attached as a loop device it is a disk on which schedulers, queue sizes and barriers show what they do.
//!
//! A process of its own serves the file through FUSE. A global `sync` by anyone waits for what is dirty on it, so it
//! counts as a change of the whole host. Every result that was measured on one says *emulated disk*.

pub(crate) mod control;
pub mod drive;
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
use mechanism::{CacheMode, Counters, Model};
use mydyno_linux::calls;
pub use pace::Pace;
pub use watch::serve;
/// The label of results on such a disk.
pub const LABEL: &str = "emulated disk";
/// Time limit for its process to serve: it locks its memory first.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest cache: what a flush, and with it a global sync, can have to write.
const CACHE_BYTES: u64 = 16 << 20;
const LEAST_BYTES: u64 = 16 << 20;
const MOST_BYTES: u64 = 64 << 30;
/// As many as drives take (NCQ has 32).
const MOST_DEPTH: usize = 32;

/// The emulated disk that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The treatment of data that are written.
    pub cache: CacheMode,
    /// Of so many requests the drive itself takes the nearest first; 1: in order of arrival.
    pub depth: usize,
}

impl Default for Spec {
    /// A volatile cache whose flushes are honoured; requests in the order in which the kernel sends them.
    fn default() -> Self {
        Self { cache: CacheMode::On, depth: 1 }
    }
}

impl Spec {
    /// Its model at a size.
    pub fn model(&self, bytes: u64) -> Model {
        Model {
            drive: Drive::of_7200_rpm(bytes),
            cache: self.cache,
            cache_bytes: CACHE_BYTES,
            depth: self.depth,
        }
    }
}

/// A disk that is to be served.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// Its properties.
    pub spec: &'a Spec,
    /// Its size.
    pub bytes: u64,
    /// The program that serves it.
    pub service: &'a Service,
}

/// The program that serves a disk: its last argument is the folder. It calls [`serve`].
#[derive(Debug, Clone)]
pub struct Service {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Service {
    /// This program with arguments.
    pub fn of_this_program<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        // Not a path, which an update can replace while it runs.
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

/// The state of a disk, as its process reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Its model.
    pub model: Model,
    /// Whether it has power.
    pub power: bool,
    /// Whether it serves without taking time.
    pub hurries: bool,
    /// Bytes that a power cut would lose now.
    pub dirty_bytes: u64,
    /// Its counters.
    pub counters: Counters,
}

/// The emulated disk that a file or folder lies on: a loop device whose file is on a FUSE mount of mydyno's.
pub fn below(machine: &Machine, path: &Path) -> Option<EmulatedDisk> {
    let mounts = machine.mounts().ok()?;
    let mount = holding(&mounts, &fs::canonicalize(path).ok()?)?;
    let device = mount.source.strip_prefix("/dev").ok()?.to_str()?;
    let served = holding(&mounts, &block::backing_file(machine.sys(), device)?)?;
    let ours = served.kind == KIND && control::is_source(&served.source);
    ours.then(|| EmulatedDisk { point: served.point.clone() })
}

/// The parameters of the serving process; a file in the folder.
#[derive(Debug, Serialize, Deserialize)]
struct Serving {
    model: Model,
    source: String,
    journal: PathBuf,
}

/// A disk that is served: its file in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmulatedDisk {
    point: PathBuf,
}

/// Whether such a disk can be had here.
///
/// # Errors
/// Something is missing; the error says what, and how to get it.
pub fn check(machine: &Machine) -> Result<(), HostError> {
    const CAP_IPC_LOCK: u32 = 14;
    let missing_error = |missing: String, way_out: &str| HostError::Missing {
        what: "an emulated disk".to_owned(),
        missing,
        way_out: way_out.to_owned(),
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

/// Whether one of a size and kind can be had here now.
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
    check(machine)?;
    check_memory_for(machine, bytes + CACHE_BYTES)
}

/// Starts to serve a disk in a folder that is journalled for the same purpose. It does not take the time of its model
/// until it is ordered to, so that it can be formatted first.
///
/// # Errors
/// Something is missing here, or the process does not serve; then nothing is left of it.
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
    // The process makes the mount: so the mount is written down first.
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

    /// The file to attach.
    pub fn image(&self) -> PathBuf {
        self.point.join("disk")
    }

    /// Sends a command. The disk has carried it out when this returns.
    ///
    /// # Errors
    /// The disk is not served.
    pub fn send(&self, command: DiskCommand) -> Result<(), HostError> {
        send_command(&self.point, command)
    }

    /// Writes all dirty data of its file system to the platter, without delays and even where barriers and flushes are ignored: a
    /// crash then concerns later writes only.
    ///
    /// # Errors
    /// The disk is not served, or its file system cannot be written out.
    pub fn settle(&self, mount: &Path) -> Result<(), HostError> {
        self.send(DiskCommand::SkipDelays)?;
        File::open(mount)
            .and_then(|folder| calls::files::sync_file_system(&folder))
            .map_err(|e| HostError::io("sync", mount, e))?;
        self.send(DiskCommand::Settle)?;
        self.send(DiskCommand::KeepDelays)
    }

    /// Its state, as its process reports it.
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
