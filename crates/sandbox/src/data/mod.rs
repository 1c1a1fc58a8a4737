//! Data at rest: the data directory of a private server that was shut down, kept with checksums, so that every arm of
//! an experiment starts from the same bytes. Where a file system shares blocks, starting from them copies nothing: the
//! host's own, or that of a disk made for the data.

mod home;
mod manifest;
mod reading;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_host::disk::DiskSpec;
use mydyno_host::journal::Closing;
use mydyno_host::machine::Presence;
use mydyno_host::{Change, folder, process};
use mydyno_model::server::{KeptData, ServerInfo};
use mydyno_wire::{Client, WireError};
use serde_json::Map;

use crate::connect::connect_options;
use crate::copy::{UNIQUE, copy_folder, occupied_bytes, shares_blocks, sync_folder};
use crate::error::SandboxError;
use crate::folder::{Description, ServerFolder, check_name};
use crate::list::check_ours;
use crate::purpose;
use crate::site::{Progress, Site};
use crate::template::{check_owner, check_room};
use home::Home;
use manifest::{MANIFEST, Manifest};
pub(crate) use reading::{Reading, claim, leave_unused};

/// Time limit of a shutdown: writing back a large buffer pool takes minutes on a slow disk.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(600);
/// Space that stays free on the host's file system beside data that are copied to it.
const ROOM_KEPT: u64 = 1 << 30;

/// Data at rest.
#[derive(Debug, Clone)]
pub struct DataAtRest {
    name: String,
    path: PathBuf,
    manifest: Manifest,
}

/// Where and how data are kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keeping {
    /// Bytes that servers may write beside the data, where these get a disk of their own; `None`: as much as the data,
    /// at least 1 GiB.
    pub room: Option<u64>,
    /// Keep them as files on the host's file system even where it cannot share blocks; each server then gets a copy.
    pub plain: bool,
    /// Keep them only while this command runs, until [`give_back`]; after a kill `mydyno host restore` removes them. They are
    /// in no list.
    pub lent: bool,
}

/// Shuts a private server down cleanly and waits until it has ended. Its folder stays.
///
/// # Errors
/// It cannot be reached, or does not end in time.
pub fn stop(site: &Site, server: &ServerInfo) -> Result<(), SandboxError> {
    let unreachable = |source| SandboxError::Unreachable { name: server.name.clone(), source };
    let Some(description) = ServerFolder::of(site.state, &server.name).load()? else {
        return Err(SandboxError::NoSuchServer { name: server.name.clone(), known: vec![] });
    };
    let mut client = Client::connect(&connect_options(server)?).map_err(unreachable)?;
    match client.query("SHUTDOWN") {
        Ok(_) => {}
        // MySQL before 5.7.9 has no SHUTDOWN statement. All servers shut down cleanly on SIGTERM.
        Err(WireError::Server(_)) => process::ask_to_end(site.lease.machine(), &description.process)?,
        Err(error) => return Err(unreachable(error)),
    }
    drop(client);
    let deadline = Instant::now() + SHUTDOWN_PATIENCE;
    while site.lease.machine().presence(&description.process)? == Presence::Running {
        site.check_cancelled()?;
        if Instant::now() >= deadline {
            return Err(SandboxError::TooSlow {
                program: description.program,
                doing: "to shut down",
                waited: SHUTDOWN_PATIENCE,
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = |change: &dyn Change| change.process() == Some(&description.process);
    for open in site.journal.read()?.open.iter().filter(|open| ended(&*open.entry.change)) {
        site.journal.close(open.entry.id, Closing::Restored, "it was shut down")?;
    }
    Ok(())
}

/// Shuts a private server down cleanly and keeps its data under an unused name. The server's folder stays. Everything
/// that can fail is checked before the shutdown.
///
/// # Errors
/// Another command uses the server, it was killed, there is too little space, or the name exists.
pub fn keep(
    site: &Site,
    server: &ServerInfo,
    name: &str,
    how: Keeping,
    progress: &mut dyn FnMut(Progress),
) -> Result<DataAtRest, SandboxError> {
    check_name(name)?;
    let from = ServerFolder::of(site.state, &server.name);
    check_ours(site, &server.name)?;
    let _nobody_else = from.lock(&server.name)?;
    let known = from.load()?.filter(|known| !known.engine.is_empty());
    let Some(known) = known else { return Err(SandboxError::NotStopped { name: server.name.clone() }) };
    let running = site.lease.machine().presence(&known.process)? == Presence::Running;
    if !running {
        check_shut_down(&from, &server.name)?;
    }
    let mounted = mount_for(site, &from)?;
    let kept = keep_of(site, server, &known, running, name, how, progress);
    let left = mounted.map_or(Ok(()), |mounted| mounted.leave(site));
    kept.and_then(|kept| left.map(|()| kept))
}

fn keep_of(
    site: &Site,
    server: &ServerInfo,
    known: &Description,
    running: bool,
    name: &str,
    how: Keeping,
    progress: &mut dyn FnMut(Progress),
) -> Result<DataAtRest, SandboxError> {
    let from = ServerFolder::of(site.state, &server.name);
    let all = folder_of(site)?;
    let path = all.join(name);
    check_is_free(&path, name)?;
    let bytes = occupied_bytes(&from.data()).map_err(|e| SandboxError::io("read", from.data(), e))?;
    let disk = disk_for(site, &from.data(), &all, bytes, how, progress)?;
    let purpose = purpose::of_data(name);
    let work = all.join(format!(".new-{}-{name}", std::process::id()));
    let id = folder::create(site.journal, site.lease, &purpose, &work)?;
    let made = (|| {
        let fill = |place: &Path, progress: &mut dyn FnMut(Progress)| {
            if running {
                progress(Progress::ShuttingDown);
                stop(site, server)?;
                check_shut_down(&from, &server.name)?;
            }
            let data = place.join("data");
            copy_folder(&from.data(), &data, UNIQUE, site.cancelled)?;
            // Stamps change until the files are on disk.
            sync_folder(&data).map_err(|e| SandboxError::io("sync", &data, e))?;
            let manifest = Manifest::of(site, &data, known, disk.as_ref())?;
            // The original is removed, so the copy is compared with it.
            manifest.verify(site, &from.data(), UNIQUE)?;
            Ok(manifest)
        };
        let manifest = match &disk {
            Some(spec) => home::make(site, &work, &purpose, spec, progress, fill)?,
            None => fill(&work, progress)?,
        };
        manifest.save(&work)?;
        sync_folder(&work).map_err(|e| SandboxError::io("sync", &work, e))?;
        if how.lent {
            return Ok(DataAtRest { name: name.to_owned(), path: work.clone(), manifest });
        }
        check_is_free(&path, name)?;
        fs::rename(&work, &path).map_err(|e| SandboxError::io("create", &path, e))?;
        File::open(&all).and_then(|f| f.sync_all()).map_err(|e| SandboxError::io("sync", &all, e))?;
        Ok(DataAtRest { name: name.to_owned(), path: path.clone(), manifest })
    })();
    match made {
        Ok(kept) if how.lent => Ok(kept),
        Ok(kept) => {
            site.journal.close(id, Closing::Released, "its data are kept")?;
            Ok(kept)
        }
        Err(error) => Err(site.undo_after(error, &purpose)),
    }
}

/// A server removes its pid file last (`delete_pid_file` in `clean_up` of sql/mysqld.cc). A server that was killed
/// leaves it, and every server that starts from its data would have to recover them.
fn check_shut_down(server: &ServerFolder, name: &str) -> Result<(), SandboxError> {
    if server.pid_file().exists() {
        return Err(SandboxError::NotStopped { name: name.to_owned() });
    }
    Ok(())
}

fn check_is_free(path: &Path, name: &str) -> Result<(), SandboxError> {
    if path.symlink_metadata().is_ok() {
        return Err(SandboxError::DataNameTaken { name: name.to_owned() });
    }
    Ok(())
}

/// The disk for kept data; `None` where the host's file system shares blocks, or where no disk is possible, so that
/// each server gets a copy.
///
/// # Errors
/// There is too little space for the data, or for the `room` that the user requests.
fn disk_for(
    site: &Site,
    from: &Path,
    all: &Path,
    bytes: u64,
    how: Keeping,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<DiskSpec>, SandboxError> {
    if shares_blocks(from, all) && shares_blocks(all, &site.state.servers()) {
        return Ok(None);
    }
    if !how.plain {
        match home::choose(site, all, bytes, how.room) {
            Ok(spec) => {
                progress(Progress::DataDisk { file_system: spec.file_system.name(), bytes: spec.bytes });
                return Ok(Some(spec));
            }
            // `--room` was given, which a copy cannot have.
            Err(error) if how.room.is_some() => return Err(error),
            Err(error) => progress(Progress::NoSharing { why: error.to_string() }),
        }
    }
    check_room(all, bytes.saturating_add(ROOM_KEPT), "MYDYNO_STATE")?;
    Ok(None)
}

/// Data kept under a name.
///
/// # Errors
/// There are none, or their list of files cannot be read.
pub fn find(site: &Site, name: &str) -> Result<DataAtRest, SandboxError> {
    let path = path_of(site, name)?;
    Ok(DataAtRest { name: name.to_owned(), manifest: Manifest::load(&path)?, path })
}

/// # Errors
/// There are none.
fn path_of(site: &Site, name: &str) -> Result<PathBuf, SandboxError> {
    check_name(name)?;
    let path = place(site).join(name);
    if !path.join(MANIFEST).exists() {
        return Err(SandboxError::NoSuchData { name: name.to_owned(), known: names(site)? });
    }
    fs::canonicalize(&path).map_err(|e| SandboxError::io("open", &path, e))
}

/// Names of all kept data, sorted.
///
/// # Errors
/// Their folder cannot be read.
pub fn names(site: &Site) -> Result<Vec<String>, SandboxError> {
    let all = place(site);
    let entries = match fs::read_dir(&all) {
        // Listing does not make the folder.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(|e| SandboxError::io("read", &all, e))?,
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(MANIFEST).exists())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| check_name(name).is_ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Removes kept data, also those whose list of files cannot be read. After an interruption they are either complete, or
/// no server can start from them and `mydyno host restore` removes the rest.
///
/// # Errors
/// There are none, a server uses their disk, another command reads them, or a file cannot be removed.
pub fn remove(site: &Site, name: &str) -> Result<(), SandboxError> {
    let path = path_of(site, name)?;
    let home = Home::of(&path, name);
    let by = home.servers(site)?.join(" ");
    if !by.is_empty() {
        return Err(SandboxError::DataInUse { path, by });
    }
    let _alone = reading::alone(&path)?;
    if home.point().exists() {
        home.give_up(site)?;
    }
    let purpose = purpose::of_data(name);
    folder::give_away(site.journal, site.lease, &purpose, &path)?;
    site.undo_own(&purpose)?;
    // Removing the last one removes the folder.
    let _ = fs::remove_dir(place(site));
    Ok(())
}

/// Removes data that were lent to this command.
///
/// # Errors
/// A file cannot be removed.
pub fn give_back(site: &Site, data: &DataAtRest) -> Result<(), SandboxError> {
    site.undo_own(&purpose::of_data(&data.name))?;
    // Removing the last one removes the folder.
    let _ = fs::remove_dir(place(site));
    Ok(())
}

/// Data outlive every command, so their folder is not the cache.
fn place(site: &Site) -> PathBuf {
    site.state.path().join("data")
}

fn folder_of(site: &Site) -> Result<PathBuf, SandboxError> {
    let all = place(site);
    let create = DirBuilder::new().recursive(true).mode(0o700).create(&all);
    create.map_err(|e| SandboxError::io("create", &all, e))?;
    check_owner(&all)?;
    fs::canonicalize(&all).map_err(|e| SandboxError::io("open", &all, e))
}

/// Mounts the disk of kept data that a server uses, unless it is mounted: the server's folder is not accessible after a
/// reboot.
///
/// # Errors
/// It cannot be mounted.
pub(crate) fn mount_for(site: &Site, server: &ServerFolder) -> Result<Option<Reading>, SandboxError> {
    match Home::of_server(server.path()) {
        None => Ok(None),
        Some((home, name)) => {
            let manifest = Manifest::load(home.folder())?;
            DataAtRest { name, path: home.folder().to_owned(), manifest }.open(site).map(Some)
        }
    }
}

/// Whether the disk that a server uses can be unmounted from here.
///
/// # Errors
/// It was mounted in another namespace.
pub(crate) fn check_in_reach(site: &Site, server: &ServerFolder) -> Result<(), SandboxError> {
    Home::of_server(server.path()).map_or(Ok(()), |(home, _)| home.check_in_reach(site))
}

impl DataAtRest {
    /// The name under which they are kept.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Their description.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn info(&self, site: &Site) -> Result<KeptData, SandboxError> {
        let disk = self.manifest.disk()?;
        Ok(KeptData {
            name: self.name.clone(),
            engine: self.manifest.engine.clone(),
            bytes: self.bytes(),
            disk: disk.as_ref().map(|spec| spec.file_system.name().to_owned()),
            disk_bytes: disk.map(|spec| spec.bytes),
            servers: Home::of(&self.path, &self.name).servers(site)?,
            path: self.path.display().to_string(),
            extra: Map::new(),
        })
    }

    /// Makes them readable until [`Reading::leave`].
    pub(crate) fn open(&self, site: &Site) -> Result<Reading, SandboxError> {
        match self.manifest.disk()? {
            None => Reading::of_files(site, &self.path),
            Some(spec) => Reading::of_disk(site, Home::of(&self.path, &self.name), &spec),
        }
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.manifest.bytes()
    }

    /// The `--version` line of the server that wrote them.
    pub(crate) fn engine(&self) -> &str {
        &self.manifest.engine
    }

    /// Family and series of that server, as in `mariadb-10.11`.
    pub(crate) fn series(&self) -> Option<&str> {
        self.manifest.series.as_deref()
    }

    /// Reads all files again and compares them with the manifest.
    ///
    /// # Errors
    /// One is missing, was added or has changed.
    pub fn verify(&self, site: &Site) -> Result<(), SandboxError> {
        let reading = self.open(site)?;
        let same = self.manifest.verify(site, &reading.data, &[]);
        same.and(reading.leave(site))
    }

    /// Compares the files with the manifest: lengths and stamps, and the content where the stamp differs.
    ///
    /// # Errors
    /// One is missing, was added or has changed.
    pub(crate) fn check(&self, site: &Site, reading: &Reading) -> Result<(), SandboxError> {
        self.manifest.check(site, &reading.data)
    }
}
