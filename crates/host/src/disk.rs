//! A disk that mydyno makes: an image file in a marked folder, attached as a loop device, formatted and mounted.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use mydyno_journal::Lease;
use mydyno_journal::{Closing, Journal, Open};
use mydyno_journal::{NoHooks, restore};
use mydyno_linux::calls::files;
use mydyno_model::change::RestoreState;

use crate::emulated::{self, DiskCommand, EmulatedDisk, Service};
use crate::error::HostError;
use crate::features::Features;
use crate::file_system::{FileSystem, Options};
use crate::loops::AttachedLoop;
use crate::mounts::Mounted;
use crate::process::Ended;
use crate::room::check_space;
use crate::setting::{self, AllowHostChange, ChangedSetting};
use crate::{loops, mounts, process};
/// Free space that stays on the file system of the image.
const SPACE_KEPT: u64 = 1 << 30;
/// Requests in the queue of one emulated drive, as in NCQ, and tags of the loop driver (drivers/block/loop.c), which are
/// shared by several drives. A scheduler reorders only the requests beyond them.
const REQUESTS: usize = 32;
const MOST_REQUESTS: usize = 128;
/// Time limit for making a file system, which takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// The medium of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Medium {
    /// A file: as fast as the disk below.
    #[default]
    File,
    /// A drive that is emulated.
    Emulated(emulated::Spec),
}

/// Prerequisites of an emulated drive: the program that serves it, and the user's permission, because a global `sync`
/// waits for the drive.
#[derive(Debug, Clone)]
pub struct Emulation {
    /// The program.
    pub service: Service,
    /// The permission.
    pub allowed: AllowHostChange,
}

/// The parameters of a disk.
#[derive(Debug, Clone)]
pub struct DiskSpec {
    /// Its medium.
    pub medium: Medium,
    /// Its file system.
    pub file_system: FileSystem,
    /// Features with which the file system is made.
    pub features: Features,
    /// Its size.
    pub bytes: u64,
    /// Mount options.
    pub options: Options,
}

/// The folder of a disk, with the lease and purpose of its journal entries.
#[derive(Debug, Clone, Copy)]
pub struct DiskFolder<'a> {
    /// The journal.
    pub journal: &'a Journal,
    /// The lease of the command that owns the changes.
    pub lease: &'a Lease,
    /// The purpose of its journal entries, the folder's included.
    pub purpose: &'a str,
    /// The folder. The disk is mounted at its subfolder `disk`.
    pub path: &'a Path,
}

/// A mounted disk.
#[derive(Debug, Clone)]
pub struct Disk {
    /// As in `/dev/loop3`.
    pub device: PathBuf,
    /// The mount point.
    pub point: PathBuf,
    /// Whether the loop device bypasses the host's page cache (direct I/O). The kernel falls back to buffered I/O where
    /// the file system below does not support it.
    pub direct_io: bool,
    /// Its journal entries, oldest first.
    pub ids: Vec<u64>,
}

/// Queue attributes of an emulated drive that the kernel cannot detect: whether it rotates, the largest request of FUSE,
/// and its own queue, which can be set only without a scheduler.
fn emulated_queue(spec: &emulated::Spec) -> [(&'static str, String); 3] {
    let rotates = spec.kind == emulated::DriveKind::Rotating;
    let requests = (REQUESTS * spec.heads).min(MOST_REQUESTS);
    [
        ("rotational", u8::from(rotates).to_string()),
        ("max_sectors_kb", "1024".to_owned()),
        ("nr_requests", requests.to_string()),
    ]
}

/// Whether such a disk can be made here.
///
/// # Errors
/// A prerequisite is missing; the error names it and how to get it.
pub fn check(lease: &Lease, folder: &Path, spec: &DiskSpec) -> Result<(), HostError> {
    loops::check(lease.machine())?;
    spec.file_system.check(lease.machine())?;
    if let Medium::Emulated(drive) = &spec.medium {
        emulated::check_spec(lease.machine(), drive, spec.bytes)?;
        setting::check_disks(lease.machine())?;
    }
    let least = spec.file_system.least_bytes();
    if spec.bytes < least {
        return Err(HostError::SettingValue {
            name: "disk.size".to_owned(),
            value: spec.bytes.to_string(),
            form: format!("at least {least} bytes for {}", spec.file_system),
        });
    }
    match spec.medium {
        Medium::File => check_space(folder, spec.bytes.saturating_add(SPACE_KEPT)),
        // The backing file is in memory (tmpfs).
        Medium::Emulated(_) => Ok(()),
    }
}

impl DiskFolder<'_> {
    /// Makes a disk and mounts it. Restoring the purpose removes all of it, also after an error half-way. An emulated
    /// disk needs the permission and the program in `emulation`.
    ///
    /// # Errors
    /// A prerequisite is missing or not permitted, or a step failed.
    pub fn make(&self, spec: &DiskSpec, emulation: Option<&Emulation>) -> Result<Disk, HostError> {
        check(self.lease, self.path, spec)?;
        let image = match &spec.medium {
            Medium::File => self.make_file(spec.bytes)?,
            Medium::Emulated(drive) => {
                let means =
                    emulation.ok_or_else(|| HostError::NotAllowed { what: emulated::LABEL.to_owned() })?;
                let new = emulated::New { spec: drive, bytes: spec.bytes, service: &means.service };
                emulated::start(self.journal, self.lease, self.purpose, self.path, &new, means.allowed)?
                    .image()
            }
        };
        self.format(&image, spec)?;
        let point = self.point();
        fs::create_dir(&point).map_err(|e| HostError::io("create", &point, e))?;
        self.open(spec)
    }

    /// The mount point.
    pub fn point(&self) -> PathBuf {
        self.path.join("disk")
    }

    fn file(&self) -> PathBuf {
        self.path.join("disk.img")
    }

    fn make_file(&self, bytes: u64) -> Result<PathBuf, HostError> {
        let image = self.file();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&image)
            .map_err(|e| HostError::io("create", &image, e))?;
        // All blocks are allocated at once, so that the file system below cannot run full later.
        files::allocate(&file, bytes).map_err(|e| HostError::io("write", &image, e))?;
        Ok(image)
    }

    /// Attaches and mounts an existing disk of this folder; an emulated one is served with the delays of its model from
    /// then on.
    ///
    /// # Errors
    /// It is attached already, or a step failed.
    pub fn open(&self, spec: &DiskSpec) -> Result<Disk, HostError> {
        let Self { journal, lease, purpose, path } = *self;
        let point = self.point();
        let drive = match spec.medium {
            Medium::File => None,
            Medium::Emulated(_) => EmulatedDisk::of(path),
        };
        let image = drive.as_ref().map_or_else(|| self.file(), EmulatedDisk::image);
        self.check_detached(&image)?;
        let (loop_id, attached) = loops::attach(journal, lease, purpose, &image)?;
        let direct_io = attached.direct_io()?;
        if let Medium::Emulated(spec) = &spec.medium
            && drive.is_some()
        {
            for (file, value) in emulated_queue(spec) {
                let name = format!("queue.{}.{file}", attached.name());
                setting::set_of_own_disk(journal, lease, purpose, &name, &value)?;
            }
        }
        let device = &attached.device;
        let (mount_id, _) =
            mounts::mount(journal, lease, purpose, device, &point, spec.file_system, &spec.options)?;
        if let Some(drive) = drive {
            drive.send(DiskCommand::KeepDelays)?;
        }
        Ok(Disk { device: attached.device, point, direct_io, ids: vec![loop_id, mount_id] })
    }

    /// Cuts the power of the emulated disk, then unmounts its file system and detaches its device. [`Self::power_on`]
    /// attaches them again with the content that survived the cut.
    ///
    /// # Errors
    /// The disk is not emulated, or it is in use: processes that use it must be ended first.
    pub fn cut_power(&self) -> Result<(), HostError> {
        let Some(drive) = EmulatedDisk::of(self.path) else {
            return Err(HostError::Missing {
                what: "a power cut".to_owned(),
                missing: format!("{} has no emulated disk", self.path.display()),
                remedy: "use disk.medium=emulated".to_owned(),
            });
        };
        drive.send(DiskCommand::Cut)?;
        self.detach(&drive.image(), false)
    }

    /// Unmounts a disk that is a file and detaches its device; the data stay in the file.
    ///
    /// # Errors
    /// It is in use, or a running command owns it.
    pub fn close(&self) -> Result<(), HostError> {
        self.detach(&self.file(), false)
    }

    /// As [`Self::close`], but also where a running command owns the mount: the caller knows that no command needs it
    /// any more.
    ///
    /// # Errors
    /// It is in use.
    pub fn close_for_all(&self) -> Result<(), HostError> {
        self.detach(&self.file(), true)
    }

    fn detach(&self, image: &Path, for_all: bool) -> Result<(), HostError> {
        let point = self.point();
        let device = self.attached_to(image)?.map(|device| device.name());
        restore::check_in_reach(self.journal, self.lease.machine(), |open| {
            open.entry.purpose == self.purpose
        })?;
        let of_device = |open: &Open| {
            let disk = open.as_kind::<ChangedSetting>().and_then(|setting| setting::disk_of(&setting.name));
            disk.is_some() && disk == device.as_deref()
        };
        let wanted = |open: &Open| {
            open.entry.purpose == self.purpose
                && (open.as_kind::<AttachedLoop>().is_some_and(|attached| attached.backing == *image)
                    || open.as_kind::<Mounted>().is_some_and(|mounted| mounted.point == point)
                    || of_device(open))
        };
        let taken = match for_all {
            true => self.journal.take_from_all(self.lease, wanted)?,
            false => self.journal.take_over(self.lease, wanted)?,
        };
        let outcomes = restore::put_back(self.journal, self.lease.machine(), &taken, &NoHooks)?;
        match outcomes.into_iter().find(|(_, outcome)| outcome.state != RestoreState::Restored) {
            None => Ok(()),
            Some((open, outcome)) => {
                Err(HostError::Program { program: open.entry.change.what().into(), why: outcome.why })
            }
        }
    }

    /// Switches the emulated disk on again after [`Self::cut_power`], attaches and mounts it; the file system recovers
    /// as after a crash.
    ///
    /// # Errors
    /// It is on, its process is gone, or a step failed.
    pub fn power_on(&self, spec: &DiskSpec) -> Result<Disk, HostError> {
        if let Some(drive) = EmulatedDisk::of(self.path) {
            self.check_detached(&drive.image())?;
            drive.send(DiskCommand::On)?;
        }
        self.open(spec)
    }

    /// Two loop devices over one image would each have a cache of their own.
    fn check_detached(&self, image: &Path) -> Result<(), HostError> {
        let known = self.attached_to(image)?.map(|device| device.device);
        match known
            .map_or_else(|| loops::attached_to(self.lease.machine(), image), |known| Ok(Some(known)))?
        {
            None => Ok(()),
            Some(device) => Err(HostError::Missing {
                what: format!("attaching {}", image.display()),
                missing: format!("it is attached to {}", device.display()),
                remedy: format!(
                    "cut the power of an emulated disk first; a device that `mydyno host status` does not show was attached by \
                     another program: `losetup -d {}`",
                    device.display()
                ),
            }),
        }
    }

    /// The loop device of an image, from the journal.
    fn attached_to(&self, image: &Path) -> Result<Option<AttachedLoop>, HostError> {
        let of_image = |open: &Open| {
            open.as_kind::<AttachedLoop>().filter(|attached| attached.backing == image).cloned()
        };
        Ok(self.journal.read()?.open.iter().find_map(of_image))
    }

    fn format(&self, image: &Path, spec: &DiskSpec) -> Result<(), HostError> {
        let log = self.path.join("mkfs.log");
        let output = fs::File::create_new(&log).map_err(|e| HostError::io("create", &log, e))?;
        let errors = output.try_clone().map_err(|e| HostError::io("open", &log, e))?;
        let mut command = spec.file_system.make_command(image, &spec.features)?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors).env("LC_ALL", "C");
        let program = PathBuf::from(command.get_program());
        let mut started = process::start(self.journal, self.lease, self.purpose, command)?;
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match started.child.try_wait().map_err(|e| HostError::io("wait for", &program, e))? {
                Some(status) => break status,
                None if Instant::now() >= deadline => {
                    let why = format!("it took longer than {} s", PATIENCE.as_secs());
                    if let Ended::Not(still) = process::end(self.lease.machine(), &started.identity)? {
                        // The journal entry stays open, so a restore tries again.
                        return Err(HostError::Program { program, why: format!("{why}, and {still}") });
                    }
                    let _ = started.child.wait();
                    self.journal.close(started.id, Closing::Restored, "ended")?;
                    return Err(HostError::Program { program, why });
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        self.journal.close(started.id, Closing::Restored, "it ended")?;
        if !status.success() {
            let reported = fs::read_to_string(&log).unwrap_or_default();
            return Err(HostError::Program { program, why: reported.trim().to_owned() });
        }
        fs::remove_file(&log).map_err(|e| HostError::io("remove", &log, e))
    }
}
