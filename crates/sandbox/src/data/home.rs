//! The disk of kept data: where the host's file system cannot share blocks, mydyno makes a disk with one that can.
//!
//! It is mounted while a command reads the data or a server uses it. A server that uses it has a folder below the mount
//! and an entry in the journal. The process that mounted it need not be the one that unmounts it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mydyno_host::disk::{self, DiskFolder, DiskSpec, Medium};
use mydyno_host::features::Features;
use mydyno_host::file_system::FileSystem;
use mydyno_host::folder::MarkedFolder;
use mydyno_host::journal::Open;
use mydyno_host::loops::AttachedLoop;
use mydyno_host::mounts::Mounted;
use mydyno_host::{JournalError, Liveness, folder};
use sha2::{Digest, Sha256};

use crate::error::SandboxError;
use crate::purpose;
use crate::site::{Progress, Site};

/// Space that a file system needs itself: a log of 64 MiB (mkfs.xfs(8)), allocation groups, reserves.
const OVERHEAD: u64 = 192 << 20;
/// Minimum space for files that servers write beside the shared data, unless the user gives one.
const LEAST_ROOM: u64 = 1 << 30;

/// The folder of kept data on a disk, with the purpose of its journal entries.
#[derive(Debug, Clone)]
pub(super) struct Home {
    folder: PathBuf,
    purpose: String,
}

/// The disk for this many bytes of data.
///
/// # Errors
/// The reason why none is possible.
pub(super) fn choose(
    site: &Site,
    folder: &Path,
    bytes: u64,
    room: Option<u64>,
) -> Result<DiskSpec, SandboxError> {
    let room = room.unwrap_or(bytes.max(LEAST_ROOM));
    // Tables of extents and checksums grow with the data.
    let needed = bytes.saturating_add(room);
    let whole = needed.saturating_add(needed / 20).saturating_add(OVERHEAD).next_multiple_of(1 << 20);
    let with = |file_system: FileSystem| {
        let options = file_system.options("noatime")?;
        let bytes = whole.max(file_system.least_bytes());
        let spec =
            DiskSpec { medium: Medium::File, file_system, features: Features::default(), bytes, options };
        disk::check(site.lease, folder, &spec).map(|()| spec)
    };
    // The error names the prerequisites of the first choice.
    Ok(with(FileSystem::Xfs).or_else(|lack| with(FileSystem::Btrfs).map_err(|_| lack))?)
}

/// Makes the disk, lets `fill` write to it, then closes it. After an error, restoring the purpose removes it.
pub(super) fn make<T>(
    site: &Site,
    folder: &Path,
    purpose: &str,
    spec: &DiskSpec,
    progress: &mut dyn FnMut(Progress),
    fill: impl FnOnce(&Path, &mut dyn FnMut(Progress)) -> Result<T, SandboxError>,
) -> Result<T, SandboxError> {
    let disk = DiskFolder { journal: site.journal, lease: site.lease, purpose, path: folder };
    let made = disk.make(spec, None)?;
    if !made.direct_io {
        progress(Progress::NoDirectIo);
    }
    let servers = servers(&made.point);
    fs::create_dir(&servers).map_err(|e| SandboxError::io("create", &servers, e))?;
    let filled = fill(&made.point, progress)?;
    disk.close()?;
    Ok(filled)
}

/// The folder on it that contains the folders of servers.
fn servers(point: &Path) -> PathBuf {
    point.join("servers")
}

/// Suffix of the names of folders of this state folder's servers: several state folders can use one disk.
fn ours(site: &Site) -> String {
    let machine = site.lease.machine().place().machine_id.clone().unwrap_or_default();
    let digest = Sha256::digest(format!("{machine} {}", site.state.path().display()));
    digest.iter().take(4).fold("-".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

impl Home {
    pub(super) fn of(folder: &Path, name: &str) -> Self {
        Self { folder: folder.to_owned(), purpose: purpose::of_data(name) }
    }

    /// All mounted ones, from the journal.
    pub(super) fn all(site: &Site) -> Result<Vec<Self>, SandboxError> {
        let open = site.journal.read()?.open;
        let mounted =
            open.iter().filter(|open| purpose::is_of_data(&open.entry.purpose)).filter_map(|open| {
                let folder = open.as_kind::<Mounted>()?.point.parent()?.to_owned();
                Some(Self { folder, purpose: open.entry.purpose.clone() })
            });
        Ok(mounted.collect())
    }

    /// The one that a server uses, from the link in its folder.
    pub(super) fn of_server(server: &Path) -> Option<(Self, String)> {
        let place = fs::read_link(server.join("disk")).ok()?;
        let folder = place.parent()?.parent()?.parent()?;
        let name = folder.file_name()?.to_str()?.to_owned();
        Some((Self::of(folder, &name), name))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn disk<'a>(&'a self, site: &'a Site) -> DiskFolder<'a> {
        DiskFolder { journal: site.journal, lease: site.lease, purpose: &self.purpose, path: &self.folder }
    }

    pub(super) fn point(&self) -> PathBuf {
        self.folder.join("disk")
    }

    /// Whether this entry is its device or its mount. Other entries of the same data are for a folder that was being
    /// filled.
    fn is_own(&self, open: &Open) -> bool {
        open.as_kind::<Mounted>().is_some_and(|mount| mount.point == self.point())
            || open
                .as_kind::<AttachedLoop>()
                .is_some_and(|device| device.backing.parent() == Some(&self.folder))
    }

    /// Whether it is mounted and in the journal. This command then becomes its owner too, unless the one that mounted
    /// it still runs.
    pub(super) fn is_open(&self, site: &Site) -> Result<bool, SandboxError> {
        let own = self.own(site)?;
        if !self.is_mounted()? {
            return Ok(false);
        }
        if !own.iter().any(|open| open.as_kind::<Mounted>().is_some()) {
            return Err(SandboxError::MountUnknown { point: self.point() });
        }
        match site.journal.take_over(site.lease, |open| self.is_own(open)) {
            Ok(_) | Err(JournalError::Held { .. }) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Its entries. Those of another machine, container or mount namespace are not visible here.
    fn own(&self, site: &Site) -> Result<Vec<Open>, SandboxError> {
        let machine = site.lease.machine();
        let open = site.journal.read()?.open;
        let own: Vec<Open> = open.into_iter().filter(|open| self.is_own(open)).collect();
        for open in &own {
            let unseen = open.lease.liveness(machine)? == Liveness::Unseen;
            let elsewhere =
                || "it was made on another machine or in another container: do this there".to_owned();
            if let Some(why) = open.entry.out_of_reach(machine).or_else(|| unseen.then(elsewhere)) {
                return Err(JournalError::OutOfReach { what: open.entry.change.what(), why }.into());
            }
        }
        Ok(own)
    }

    /// Whether it can be mounted and unmounted from here.
    pub(super) fn check_in_reach(&self, site: &Site) -> Result<(), SandboxError> {
        self.own(site).map(drop)
    }

    fn is_mounted(&self) -> Result<bool, SandboxError> {
        let device = |path: &Path| {
            fs::metadata(path).map(|meta| meta.dev()).map_err(|e| SandboxError::io("look at", path, e))
        };
        Ok(device(&self.point())? != device(&self.folder)?)
    }

    /// Mounts it. The caller holds its exclusive lock. It is not mounted after an error.
    pub(super) fn open(&self, site: &Site, spec: &DiskSpec) -> Result<(), SandboxError> {
        if !self.own(site)?.is_empty() {
            // Left by a command that has ended, by an earlier boot, or because another program unmounted it.
            self.disk(site).close_for_all()?;
        }
        let opened = self.disk(site).open(spec).map_err(SandboxError::from).and_then(|_| self.tidy(site));
        opened.map_err(|error| match self.disk(site).close_for_all() {
            Ok(()) => error,
            Err(then) => SandboxError::NotUndone { error: Box::new(error), then: Box::new(then.into()) },
        })
    }

    /// Removes folders of this state folder's servers that no longer exist: a boot, or a restore without the disk, left
    /// them.
    fn tidy(&self, site: &Site) -> Result<(), SandboxError> {
        let replay = site.journal.read()?;
        if !replay.damaged_lines.is_empty() {
            return Ok(());
        }
        let in_journal = |path: &Path| {
            replay.open.iter().any(|open| open.as_kind::<MarkedFolder>().is_some_and(|f| f.path == path))
        };
        let links: Vec<PathBuf> = fs::read_dir(site.state.servers())
            .map(|all| {
                all.filter_map(|server| fs::read_link(server.ok()?.path().join("disk")).ok()).collect()
            })
            .unwrap_or_default();
        let (servers, ours) = (servers(&self.point()), ours(site));
        for entry in fs::read_dir(&servers).map_err(|e| SandboxError::io("read", &servers, e))? {
            let path = entry.map_err(|e| SandboxError::io("read", &servers, e))?.path();
            let is_ours = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ours));
            let forgotten = is_ours && !in_journal(&path) && !links.contains(&path);
            if folder::is_leaving(&path) || forgotten && folder::is_marked(&path) {
                fs::remove_dir_all(&path).map_err(|e| SandboxError::io("remove", &path, e))?;
            } else if forgotten {
                // A command that was killed before it marked the folder leaves it empty; one with files stays.
                let _ = fs::remove_dir(&path);
            }
        }
        Ok(())
    }

    /// Unmounts it if no server uses it. The caller holds its exclusive lock.
    pub(super) fn close_if_unused(&self, site: &Site) -> Result<(), SandboxError> {
        if !self.servers(site)?.is_empty() {
            return Ok(());
        }
        // The command that mounted it may still run, but has finished reading.
        Ok(self.disk(site).close_for_all()?)
    }

    /// Unmounts it, so that its folder can be removed. The caller holds its exclusive lock.
    pub(super) fn give_up(&self, site: &Site) -> Result<(), SandboxError> {
        let by = self.servers(site)?.join(" ");
        if !by.is_empty() {
            return Err(SandboxError::DataInUse { path: self.folder.clone(), by });
        }
        self.own(site)?;
        self.disk(site).close_for_all()?;
        if self.is_mounted()? {
            return Err(SandboxError::MountUnknown { point: self.point() });
        }
        Ok(())
    }

    /// The servers that use it.
    pub(super) fn servers(&self, site: &Site) -> Result<Vec<String>, SandboxError> {
        let point = self.point();
        let open = site.journal.read()?.open;
        let on_it = open.iter().filter(|open| {
            open.as_kind::<MarkedFolder>().is_some_and(|folder| folder.path.starts_with(&point))
        });
        Ok(on_it
            .map(|open| purpose::server_of(&open.entry.purpose).unwrap_or(&open.entry.purpose).to_owned())
            .collect())
    }

    /// Makes the folder of a server on it, and a link to it in the server's own folder.
    pub(super) fn make_folder(
        &self,
        site: &Site,
        purpose: &str,
        name: &str,
        server: &Path,
    ) -> Result<(), SandboxError> {
        let path = servers(&self.point()).join(format!("{name}{}", ours(site)));
        // The link is made first: a folder that has a link is never tidied up.
        let link = server.join("disk");
        std::os::unix::fs::symlink(&path, &link).map_err(|e| SandboxError::io("create", link, e))?;
        folder::create(site.journal, site.lease, purpose, &path)?;
        Ok(())
    }
}
