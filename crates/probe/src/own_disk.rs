//! Temporary disks below a probe's folder, to compare the effect of file systems on syncs, with and without flushes.

use std::path::{Path, PathBuf};

use mydyno_host::disk::{DiskFolder, DiskSpec, Medium};
use mydyno_host::features::Features;
use mydyno_host::file_system::{FileSystem, Options};
use mydyno_host::{Host, folder, loops, setting};

use crate::error::ProbeError;
use crate::scratch::Scratch;

/// The treatment of the flushes that a file system sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushes {
    /// They reach the device.
    Sent,
    /// The kernel sends none, because the queue is declared write-through
    /// (Documentation/block/writeback_cache_control.rst of the kernel). `nobarrier` had this effect, and so has a
    /// controller that answers from its own memory.
    Suppressed,
}

/// Both.
pub const FLUSHES: [Flushes; 2] = [Flushes::Sent, Flushes::Suppressed];

/// A file system, and the treatment of its flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskVariant {
    /// The file system.
    pub file_system: FileSystem,
    /// Its flushes.
    pub flushes: Flushes,
}

/// A temporary disk.
#[derive(Debug)]
pub struct OwnDisk {
    /// Its folder, below that of the probe.
    pub below: PathBuf,
    /// The name of its device, as in `loop3`.
    pub device: String,
}

impl Flushes {
    /// Its name, as in `sent`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Suppressed => "suppressed",
        }
    }

    /// The treatment with a name.
    pub fn named(name: &str) -> Option<Self> {
        FLUSHES.into_iter().find(|flushes| flushes.name() == name)
    }
}

impl DiskVariant {
    /// Its name, as in `xfs.sent`.
    pub fn name(self) -> String {
        format!("{}.{}", self.file_system, self.flushes.name())
    }

    /// Size of a disk that holds files of this many bytes.
    pub fn disk_bytes(self, files: u64) -> u64 {
        // Journals, inode tables and blocks reserved for root.
        let whole = files.saturating_add(files / 4).saturating_add(64 << 20);
        whole.next_multiple_of(1 << 20).max(self.file_system.least_bytes())
    }

    /// Makes the disk in a probe's folder; it is removed together with the folder.
    ///
    /// # Errors
    /// A requirement is missing on this host, or there is too little space.
    pub(crate) fn make(self, host: &Host, scratch: &Scratch, files: u64) -> Result<OwnDisk, ProbeError> {
        loops::check(host.machine())?;
        let (purpose, below) = (scratch.purpose(), PathBuf::from(self.name()));
        let path = scratch.path().join(&below);
        folder::create(&host.journal, &host.lease, purpose, &path)?;
        let spec = DiskSpec {
            medium: Medium::File,
            file_system: self.file_system,
            features: Features::default(),
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
