//! Data at rest: the data directory of a private server that was shut down, kept with checksums, so that every arm of an
//! experiment starts from the same bytes.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_host::journal::Closing;
use mydyno_host::machine::Presence;
use mydyno_host::{Change, folder, process};
use mydyno_model::server::ServerInfo;
use mydyno_wire::{Client, WireError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::connect::connect_options;
use crate::copy::{copy_folder, occupied_bytes, sync_folder};
use crate::error::SandboxError;
use crate::folder::{ServerFolder, check_name};
use crate::site::Site;
use crate::template::{check_owner, check_room};
use crate::up::UNIQUE;

/// Writing back a large buffer pool takes minutes on a slow disk.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(600);
const MANIFEST: &str = "data.json";
const BLOCK: usize = 1 << 20;

/// Data at rest.
#[derive(Debug, Clone)]
pub struct DataAtRest {
    path: PathBuf,
    manifest: Manifest,
}

/// What the data were when they were kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    schema: String,
    /// What `--version` of the server said; another one may not read them, or change them.
    engine: String,
    /// Sorted by path.
    files: Vec<Sum>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    path: PathBuf,
    bytes: u64,
    sha256: String,
    /// What the file system said of it then; none: unknown.
    #[serde(default)]
    stamp: Option<Stamp>,
}

/// Which file it is, and when it was last changed. The last change of a file (ctime, inode(7)) cannot be set by anybody, so a
/// file with the same stamp and length has the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self { inode: meta.ino(), changed_s: meta.ctime(), changed_ns: meta.ctime_nsec() }
    }
}

/// Shuts a private server down in good order and waits until it ended. Its folder stays.
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
        // MySQL before 5.7.9 has no such statement. To a signal all servers shut down in good order.
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
    let ended = |change: &Change| matches!(change, Change::Process(p) if p.identity == description.process);
    for open in site.journal.read()?.open.iter().filter(|open| ended(&open.entry.change)) {
        site.journal.close(open.entry.id, Closing::Restored, "it was shut down")?;
    }
    Ok(())
}

/// Keeps the data of a private server that was stopped, under a name that is free.
///
/// # Errors
/// It runs, there is no room, or the name is taken.
pub fn keep(site: &Site, server: &ServerInfo, name: &str) -> Result<DataAtRest, SandboxError> {
    check_name(name)?;
    let from = ServerFolder::of(site.state, &server.name);
    if let Some(description) = from.load()?
        && let Presence::Running | Presence::Unseen = site.lease.machine().presence(&description.process)?
    {
        return Err(SandboxError::StillRuns { name: server.name.clone() });
    }
    // A server removes this file as the last thing that it does (`delete_pid_file` in `clean_up` of sql/mysqld.cc); one that
    // was killed leaves it, and its data would be recovered first by every server that starts with them.
    if from.pid_file().exists() {
        return Err(SandboxError::NotStopped { name: server.name.clone() });
    }
    let all = folder_of(site)?;
    let path = all.join(name);
    if path.exists() {
        return Err(SandboxError::NameTaken { name: name.to_owned(), detail: " (kept data)".to_owned() });
    }
    let bytes = occupied_bytes(&from.data()).map_err(|e| SandboxError::io("read", from.data(), e))?;
    check_room(&all, bytes, "MYDYNO_CACHE")?;
    let purpose = format!("data {name}");
    let work = all.join(format!(".new-{}-{name}", std::process::id()));
    let id = folder::create(site.journal, site.lease, &purpose, &work)?;
    let made = (|| {
        copy_folder(&from.data(), &work.join("data"), UNIQUE)?;
        let manifest = Manifest {
            schema: "mydyno.data/1".to_owned(),
            engine: from.load()?.map(|d| d.engine).unwrap_or_default(),
            files: sums(&work.join("data"))?,
        };
        let text = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
        fs::write(work.join(MANIFEST), text)
            .map_err(|e| SandboxError::io("write", work.join(MANIFEST), e))?;
        sync_folder(&work).map_err(|e| SandboxError::io("sync", &work, e))?;
        fs::rename(&work, &path).map_err(|e| SandboxError::io("create", &path, e))?;
        File::open(&all).and_then(|f| f.sync_all()).map_err(|e| SandboxError::io("sync", &all, e))?;
        Ok(DataAtRest { path: path.clone(), manifest })
    })();
    match made {
        Ok(kept) => {
            site.journal.close(id, Closing::Released, "its data are kept")?;
            Ok(kept)
        }
        Err(error) => Err(site.undo_after(error, &purpose)),
    }
}

/// Data that were kept under a name.
///
/// # Errors
/// There are none, or their list of files cannot be read.
pub fn find(site: &Site, name: &str) -> Result<DataAtRest, SandboxError> {
    check_name(name)?;
    let path = folder_of(site)?.join(name);
    let file = path.join(MANIFEST);
    let text = fs::read(&file).map_err(|e| SandboxError::io("read", &file, e))?;
    let manifest = serde_json::from_slice(&text)
        .map_err(|e| SandboxError::Description { path: file, why: e.to_string() })?;
    Ok(DataAtRest { path, manifest })
}

fn folder_of(site: &Site) -> Result<PathBuf, SandboxError> {
    let all = site.cache.join("data");
    let create = DirBuilder::new().recursive(true).mode(0o700).create(&all);
    create.map_err(|e| SandboxError::io("create", &all, e))?;
    check_owner(&all)?;
    fs::canonicalize(&all).map_err(|e| SandboxError::io("open", &all, e))
}

impl DataAtRest {
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// What they occupy on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }

    /// The server that wrote them.
    pub(crate) fn engine(&self) -> &str {
        &self.manifest.engine
    }

    /// Reads all files again and compares them with what they were when they were kept.
    ///
    /// # Errors
    /// One is missing, was added or has changed.
    pub fn verify(&self) -> Result<(), SandboxError> {
        let now = sums(&self.data())?;
        let before = &self.manifest.files;
        let is_in = |all: &[Sum], one: &Sum| all.iter().any(|other| other.same_bytes(one));
        let changed = before
            .iter()
            .find(|file| !is_in(&now, file))
            .or_else(|| now.iter().find(|file| !is_in(before, file)));
        match changed {
            None => Ok(()),
            Some(file) => Err(SandboxError::DataChanged { path: self.data().join(&file.path) }),
        }
    }

    /// Compares the files with what they were: by their lengths and stamps, and those whose stamp is another one by their
    /// bytes.
    ///
    /// # Errors
    /// One is missing, was added or has changed.
    pub(crate) fn check(&self) -> Result<(), SandboxError> {
        let folder = self.data();
        let mut now = files(&folder)?;
        for file in &self.manifest.files {
            let path = folder.join(&file.path);
            let found = now.iter().position(|path| *path == file.path).map(|at| now.swap_remove(at));
            let meta = path.metadata().ok().filter(|m| found.is_some() && m.len() == file.bytes);
            let same = match meta {
                None => false,
                Some(meta) if file.stamp == Some(Stamp::of(&meta)) => true,
                Some(_) => {
                    let (_, sha256) = sum(&path).map_err(|e| SandboxError::io("read", &path, e))?;
                    sha256 == file.sha256
                }
            };
            if !same {
                return Err(SandboxError::DataChanged { path });
            }
        }
        match now.first() {
            None => Ok(()),
            Some(added) => Err(SandboxError::DataChanged { path: folder.join(added) }),
        }
    }

    /// Removes them, their list of files first: what an interruption leaves is not taken for data.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(self) -> Result<(), SandboxError> {
        let manifest = self.path.join(MANIFEST);
        fs::remove_file(&manifest).map_err(|e| SandboxError::io("remove", &manifest, e))?;
        fs::remove_dir_all(&self.path).map_err(|e| SandboxError::io("remove", &self.path, e))
    }
}

impl Sum {
    fn same_bytes(&self, other: &Self) -> bool {
        (&self.path, self.bytes, &self.sha256) == (&other.path, other.bytes, &other.sha256)
    }
}

fn sums(folder: &Path) -> Result<Vec<Sum>, SandboxError> {
    let sum_of = |path: PathBuf| {
        let (bytes, sha256) =
            sum(&folder.join(&path)).map_err(|e| SandboxError::io("read", folder.join(&path), e))?;
        let meta =
            folder.join(&path).metadata().map_err(|e| SandboxError::io("read", folder.join(&path), e))?;
        Ok(Sum { path, bytes, sha256, stamp: Some(Stamp::of(&meta)) })
    };
    files(folder)?.into_iter().map(sum_of).collect()
}

/// All files below a folder, by their paths in it, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, SandboxError> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for child in fs::read_dir(&next).map_err(|e| SandboxError::io("read", &next, e))? {
            let child = child.map_err(|e| SandboxError::io("read", &next, e))?;
            let path = child.path();
            if child.file_type().map_err(|e| SandboxError::io("read", &path, e))?.is_dir() {
                folders.push(path);
            } else {
                all.push(path.strip_prefix(folder).unwrap_or(&path).to_owned());
            }
        }
    }
    all.sort();
    Ok(all)
}

fn sum(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    let mut block = vec![0u8; BLOCK];
    loop {
        let length = file.read(&mut block)?;
        if length == 0 {
            return Ok((bytes, digest.finalize().iter().map(|b| format!("{b:02x}")).collect()));
        }
        digest.update(&block[..length]);
        bytes += length as u64;
    }
}
