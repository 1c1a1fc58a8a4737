//! Access to kept data for reading, or for starting a server from them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_host::disk::DiskSpec;
use mydyno_host::mounts::Mounted;
use mydyno_host::{Change, HostError, JournalError};

use super::home::Home;
use crate::cache::lock;
use crate::error::SandboxError;
use crate::purpose;
use crate::site::Site;

/// Time limit for the lock: mounting takes tens of milliseconds, recovering a file system after a power cut seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit for a lock held by a child of a killed command. Until the child sees that its parent has ended,
/// milliseconds on an idle machine, it has a copy of the descriptor.
const ORPHAN_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// A shared lock on kept data: while it is held, no command removes the data or unmounts their disk.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The data directory; read-only.
    pub(crate) data: PathBuf,
    home: Option<Home>,
    lock: File,
}

impl Reading {
    /// Opens data on the host's file system.
    pub(super) fn of_files(site: &Site, folder: &Path) -> Result<Self, SandboxError> {
        let lock = lock_file(folder)?;
        wait_for(site, &lock, false, folder)?;
        Ok(Self { data: folder.join("data"), home: None, lock })
    }

    /// Opens data on a disk, which is mounted if necessary.
    pub(super) fn of_disk(site: &Site, home: Home, spec: &DiskSpec) -> Result<Self, SandboxError> {
        let lock = lock_file(home.folder())?;
        loop {
            wait_for(site, &lock, false, home.folder())?;
            if home.is_open(site)? {
                return Ok(Self { data: home.point().join("data"), home: Some(home), lock });
            }
            wait_for(site, &lock, true, home.folder())?;
            // Another command may have held the exclusive lock in between.
            if !home.is_open(site)? {
                home.open(site, spec)?;
            }
        }
    }

    /// Makes the folder of a server where its data share their blocks, if that is a disk.
    pub(crate) fn make_folder(
        &self,
        site: &Site,
        purpose: &str,
        server: &str,
        folder: &Path,
    ) -> Result<(), SandboxError> {
        self.home.as_ref().map_or(Ok(()), |home| home.make_folder(site, purpose, server, folder))
    }

    /// The mount point of the disk, if there is one.
    pub(crate) fn disk(&self) -> Option<PathBuf> {
        self.home.as_ref().map(Home::point)
    }

    /// Ends the reading; a disk that no server uses is unmounted.
    pub(crate) fn leave(self, site: &Site) -> Result<(), SandboxError> {
        self.home.map_or(Ok(()), |home| leave(site, &home, &self.lock))
    }
}

/// Unmounts disks that no server uses and no command reads.
pub(crate) fn leave_unused(site: &Site) -> Result<(), SandboxError> {
    let all = Home::all(site)?.into_iter().filter(|home| home.folder().exists());
    let left: Vec<_> = all.map(|home| leave(site, &home, &lock_file(home.folder())?)).collect();
    // A disk mounted in another namespace says nothing about the others; `host restore` reports it.
    let elsewhere = |error: &SandboxError| {
        matches!(error, SandboxError::Host(HostError::Journal(JournalError::OutOfReach { .. })))
    };
    left.into_iter().find(|one| one.as_ref().is_err_and(|error| !elsewhere(error))).unwrap_or(Ok(()))
}

/// Claims the disk of kept data that a command that has ended had mounted. Commands that read it hold its lock and have
/// no entry in the journal.
///
/// # Errors
/// The disk is in use: a sentence that names its users.
pub(crate) fn claim(purpose: &str, change: &dyn Change) -> Result<Option<File>, String> {
    let Some(mount) = change.as_kind::<Mounted>() else { return Ok(None) };
    let folder = mount.point.parent().filter(|_| purpose::is_of_data(purpose));
    let Some(Ok(file)) = folder.filter(|folder| folder.exists()).map(lock_file) else { return Ok(None) };
    let deadline = Instant::now() + ORPHAN_LOCK_TIMEOUT;
    let mut locked = lock(&file, true);
    while locked.is_err() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
        locked = lock(&file, true);
    }
    match locked {
        Ok(()) => Ok(Some(file)),
        Err(_) => Err("another command reads the data on it, and unmounts it afterwards".to_owned()),
    }
}

fn leave(site: &Site, home: &Home, file: &File) -> Result<(), SandboxError> {
    match lock(file, true) {
        Ok(()) => home.close_if_unused(site),
        // Another command reads the data, and closes the disk when it ends.
        Err(_) => Ok(()),
    }
}

/// The exclusive lock of kept data.
pub(super) fn alone(folder: &Path) -> Result<File, SandboxError> {
    let file = lock_file(folder)?;
    match lock(&file, true) {
        Ok(()) => Ok(file),
        Err(_) => Err(SandboxError::DataInUse { path: folder.to_owned(), by: String::new() }),
    }
}

fn lock_file(folder: &Path) -> Result<File, SandboxError> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
    file.map_err(|e| SandboxError::io("open", path, e))
}

fn wait_for(site: &Site, file: &File, exclusive: bool, folder: &Path) -> Result<(), SandboxError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match lock(file, exclusive) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => {
                return Err(SandboxError::io("lock", folder, e));
            }
            Err(_) if Instant::now() >= deadline => {
                return Err(SandboxError::DataInUse { path: folder.to_owned(), by: String::new() });
            }
            Err(_) => site.check_cancelled()?,
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
