//! A disk of mydyno's own: a file in a folder of its own, attached as a loop device, with a file system, mounted.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::error::HostError;
use crate::file_system::{FileSystem, Options};
use crate::journal::{Closing, Journal};
use crate::lease::Lease;
use crate::process::Ended;
use crate::room::check_space;
use crate::{loops, mounts, process, sys};

/// Kept free on the disk below.
const SPACE_KEPT: u64 = 1 << 30;
/// Making a file system takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// The disk that is wanted.
#[derive(Debug, Clone)]
pub struct DiskSpec {
    /// Its file system.
    pub file_system: FileSystem,
    /// Its size.
    pub bytes: u64,
    /// Mount options.
    pub options: Options,
}

/// A disk that is there.
#[derive(Debug, Clone)]
pub struct Disk {
    /// As in `/dev/loop3`.
    pub device: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Whether its file is read and written past the page cache of the host. The kernel does without where the file system
    /// below cannot.
    pub direct_io: bool,
    /// Its journal entries, oldest first.
    pub ids: Vec<u64>,
}

/// Whether such a disk can be made here.
///
/// # Errors
/// What is missing, and how to get it.
pub fn check(lease: &Lease, folder: &Path, spec: &DiskSpec) -> Result<(), HostError> {
    loops::check(lease.machine())?;
    spec.file_system.check(lease.machine())?;
    let least = spec.file_system.least_bytes();
    if spec.bytes < least {
        return Err(HostError::SettingValue {
            name: "disk.size".to_owned(),
            value: spec.bytes.to_string(),
            form: format!("at least {least} bytes for {}", spec.file_system),
        });
    }
    check_space(folder, spec.bytes + SPACE_KEPT)
}

/// Makes a disk in a folder that is journalled for the same purpose: `disk.img`, mounted at `disk`. All of it is put back
/// with the purpose; after an error, what was made so far too.
///
/// # Errors
/// Something is missing here, or a step failed.
pub fn make(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    folder: &Path,
    spec: &DiskSpec,
) -> Result<Disk, HostError> {
    check(lease, folder, spec)?;
    let (image, point) = (folder.join("disk.img"), folder.join("disk"));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&image)
        .map_err(|e| HostError::io("create", &image, e))?;
    // All its blocks, so that the disk below is never full in the middle.
    sys::allocate(&file, spec.bytes).map_err(|e| HostError::io("write", &image, e))?;
    drop(file);
    fs::create_dir(&point).map_err(|e| HostError::io("create", &point, e))?;
    format(journal, lease, purpose, &image, spec)?;
    let (loop_id, attached) = loops::attach(journal, lease, purpose, &image)?;
    let direct_io = attached.direct_io()?;
    let (mount_id, _) =
        mounts::mount(journal, lease, purpose, &attached.device, &point, spec.file_system, &spec.options)?;
    Ok(Disk { device: attached.device, point, direct_io, ids: vec![loop_id, mount_id] })
}

fn format(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    image: &Path,
    spec: &DiskSpec,
) -> Result<(), HostError> {
    let log = image.with_file_name("mkfs.log");
    let output = fs::File::create_new(&log).map_err(|e| HostError::io("create", &log, e))?;
    let errors = output.try_clone().map_err(|e| HostError::io("open", &log, e))?;
    let mut command = spec.file_system.make_command(image)?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors).env("LC_ALL", "C");
    let program = PathBuf::from(command.get_program());
    let mut started = process::start(journal, lease, purpose, command)?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match started.child.try_wait().map_err(|e| HostError::io("wait for", &program, e))? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                let why = format!("it took longer than {} s", PATIENCE.as_secs());
                if let Ended::Not(still) = process::end(lease.machine(), &started.identity)? {
                    // Its entry stays open: a restore tries again.
                    return Err(HostError::Program { program, why: format!("{why}, and {still}") });
                }
                let _ = started.child.wait();
                journal.close(started.id, Closing::Restored, "ended")?;
                return Err(HostError::Program { program, why });
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    journal.close(started.id, Closing::Restored, "it ended")?;
    if !status.success() {
        let said = fs::read_to_string(&log).unwrap_or_default();
        return Err(HostError::Program { program, why: said.trim().to_owned() });
    }
    fs::remove_file(&log).map_err(|e| HostError::io("remove", &log, e))
}
