//! Disks of mydyno's own below a probe's folder, to compare what file systems make of syncs, with flushes and without.

use std::path::{Path, PathBuf};

use mydyno_host::disk::{DiskFolder, DiskSpec, Medium};
use mydyno_host::file_system::{FileSystem, Options};
use mydyno_host::{Host, folder, loops, setting};

use crate::error::ProbeError;
use crate::scratch::Scratch;

/// The treatment of the flushes that a file system sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushes {
    /// They reach the device below.
    Sent,
    /// The kernel sends none: the queue is said to write through (Documentation/block/writeback_cache_control.rst of the kernel).
    /// That is what `nobarrier` did, and what a controller does that answers out of its own memory.
    Suppressed,
}

/// Both.
pub const FLUSHES: [Flushes; 2] = [Flushes::Sent, Flushes::Suppressed];

/// A file system, and what becomes of its flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground {
    /// The file system.
    pub file_system: FileSystem,
    /// Its flushes.
    pub flushes: Flushes,
}

/// A disk that was made.
#[derive(Debug)]
pub struct OwnDisk {
    /// Its folder, below that of the probe.
    pub below: PathBuf,
    /// The name of its device, as in `loop3`.
    pub device: String,
}

impl Flushes {
    /// As in `sent`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Suppressed => "suppressed",
        }
    }

    /// The one with a name.
    pub fn named(name: &str) -> Option<Self> {
        FLUSHES.into_iter().find(|flushes| flushes.name() == name)
    }
}

impl Ground {
    /// As in `xfs.sent`.
    pub fn name(self) -> String {
        format!("{}.{}", self.file_system, self.flushes.name())
    }

    /// Bytes of a disk that takes files of so many.
    pub fn disk_bytes(self, files: u64) -> u64 {
        // Journals, tables of inodes, reserves for root.
        let whole = files.saturating_add(files / 4).saturating_add(64 << 20);
        whole.next_multiple_of(1 << 20).max(self.file_system.least_bytes())
    }

    /// Makes its disk in a probe's folder; it goes with that.
    ///
    /// # Errors
    /// Something is missing here, or there is no room.
    pub(crate) fn make(self, host: &Host, scratch: &Scratch, files: u64) -> Result<OwnDisk, ProbeError> {
        loops::check(host.machine())?;
        let (purpose, below) = (scratch.purpose(), PathBuf::from(self.name()));
        let path = scratch.path().join(&below);
        folder::create(&host.journal, &host.lease, purpose, &path)?;
        let spec = DiskSpec {
            medium: Medium::File,
            file_system: self.file_system,
            bytes: self.disk_bytes(files),
            options: Options::default(),
        };
        let (journal, lease) = (&host.journal, &host.lease);
        let disk = DiskFolder { journal, lease, purpose, path: &path }.make(&spec, None)?;
        let device = disk.device.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let cache = match self.flushes {
            Flushes::Sent => "write back",
            Flushes::Suppressed => "write through",
        };
        let name = format!("queue.{device}.write_cache");
        setting::set_of_own_disk(journal, lease, purpose, &name, cache)?;
        Ok(OwnDisk { below: below.join(disk.point.strip_prefix(&path).unwrap_or(Path::new("disk"))), device })
    }
}
