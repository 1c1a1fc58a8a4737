//! The disk of kept data: where the host's file system cannot share blocks, one of mydyno's own that can.
//!
//! It is mounted while a command reads it or a server lives on it. The journal lists the servers that live on it: those with a
//! folder below the mount. The process that mounted it need not be the one that unmounts it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mydyno_host::disk::{self, DiskFolder, DiskSpec, Medium};
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

/// Space that a file system takes for itself: a log of 64 MiB (mkfs.xfs(8)), tables of its groups, reserves.
const OVERHEAD: u64 = 192 << 20;
/// Room for what servers write beside the data that they share, unless the user says how much.
const LEAST_ROOM: u64 = 1 << 30;

/// The folder of kept data that are on a disk, and what its changes are journalled under.
#[derive(Debug, Clone)]
pub(super) struct Home {
    folder: PathBuf,
    purpose: String,
}

/// The disk to make for so many bytes of data, in a folder.
///
/// # Errors
/// Why there can be none.
pub(super) fn choose(
    site: &Site,
    folder: &Path,
    bytes: u64,
    room: Option<u64>,
) -> Result<DiskSpec, SandboxError> {
    let room = room.unwrap_or(bytes.max(LEAST_ROOM));
    // Tables of extents and checksums grow with what is stored.
    let needed = bytes.saturating_add(room);
    let whole = needed.saturating_add(needed / 20).saturating_add(OVERHEAD).next_multiple_of(1 << 20);
    let with = |file_system: FileSystem| {
        let options = file_system.options("noatime")?;
        let bytes = whole.max(file_system.least_bytes());
        let spec = DiskSpec { medium: Medium::File, file_system, bytes, options };
        disk::check(site.lease, folder, &spec).map(|()| spec)
    };
    // What is said to be missing is what the first choice needs.
    Ok(with(FileSystem::Xfs).or_else(|lack| with(FileSystem::Btrfs).map_err(|_| lack))?)
}

/// Makes the disk and lets `fill` write to it, then closes it. What fails is put back with the purpose.
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

/// Where servers have their folders on it.
fn servers(point: &Path) -> PathBuf {
    point.join("servers")
}

/// The end of the names of folders of this state folder's servers: a disk can be seen from several.
fn ours(site: &Site) -> String {
    let machine = site.lease.machine().place().machine_id.clone().unwrap_or_default();
    let digest = Sha256::digest(format!("{machine} {}", site.state.path().display()));
    digest.iter().take(4).fold("-".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

impl Home {
    pub(super) fn of(folder: &Path, name: &str) -> Self {
        Self { folder: folder.to_owned(), purpose: purpose::of_data(name) }
    }

    /// All that are mounted, as the journal has it.
    pub(super) fn all(site: &Site) -> Result<Vec<Self>, SandboxError> {
        let open = site.journal.read()?.open;
        let mounted =
            open.iter().filter(|open| purpose::is_of_data(&open.entry.purpose)).filter_map(|open| {
                let folder = open.as_kind::<Mounted>()?.point.parent()?.to_owned();
                Some(Self { folder, purpose: open.entry.purpose.clone() })
            });
        Ok(mounted.collect())
    }

    /// The one that a server lives on, by the link in its folder.
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

    /// Whether this entry is its device or its mount. Others are made for the same data: a folder that was being filled.
    fn is_own(&self, open: &Open) -> bool {
        open.as_kind::<Mounted>().is_some_and(|mount| mount.point == self.point())
            || open
                .as_kind::<AttachedLoop>()
                .is_some_and(|device| device.backing.parent() == Some(&self.folder))
    }

    /// Whether somebody has mounted it who says so in the journal. Then this command answers for it too, unless the one who did
    /// is still there.
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

    /// Its entries. Those of another machine, container or mount namespace speak of what cannot be seen from here.
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

    /// Mounts it. The caller holds its lock alone. After an error nothing of it stays.
    pub(super) fn open(&self, site: &Site, spec: &DiskSpec) -> Result<(), SandboxError> {
        if !self.own(site)?.is_empty() {
            // Entries left by a dead command, by an earlier boot or after another program unmounted it.
            self.disk(site).close_for_all()?;
        }
        let opened = self.disk(site).open(spec).map_err(SandboxError::from).and_then(|_| self.tidy(site));
        opened.map_err(|error| match self.disk(site).close_for_all() {
            Ok(()) => error,
            Err(then) => SandboxError::NotUndone { error: Box::new(error), then: Box::new(then.into()) },
        })
    }

    /// Removes folders of this state folder's servers that are gone: a boot or a restore without the disk has forgotten them.
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
                // Killed before it was marked, it is empty; one that is not stays.
                let _ = fs::remove_dir(&path);
            }
        }
        Ok(())
    }

    /// Unmounts it if no server lives on it. The caller holds its lock alone.
    pub(super) fn close_if_unused(&self, site: &Site) -> Result<(), SandboxError> {
        if !self.servers(site)?.is_empty() {
            return Ok(());
        }
        // The command that mounted it may still run, but has finished reading.
        Ok(self.disk(site).close_for_all()?)
    }

    /// Unmounts it for good, so that its folder can be removed. The caller holds its lock alone.
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

    /// The servers that live on it.
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

    /// Makes the folder of a server on it, and lets the server's own folder know.
    pub(super) fn make_folder(
        &self,
        site: &Site,
        purpose: &str,
        name: &str,
        server: &Path,
    ) -> Result<(), SandboxError> {
        let path = servers(&self.point()).join(format!("{name}{}", ours(site)));
        // The link is there before what it leads to: what is behind a link is never tidied away.
        let link = server.join("disk");
        std::os::unix::fs::symlink(&path, &link).map_err(|e| SandboxError::io("create", link, e))?;
        folder::create(site.journal, site.lease, purpose, &path)?;
        Ok(())
    }
}
