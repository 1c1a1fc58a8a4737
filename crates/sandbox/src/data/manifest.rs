//! The manifest of kept data: every file with its length and checksum.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mydyno_host::HostError;
use mydyno_host::disk::{DiskSpec, Medium};
use mydyno_host::features::Features;
use mydyno_host::file_system::{FILE_SYSTEMS, FileSystem};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::copy::open_plain;
use crate::error::SandboxError;
use crate::folder::Description;
use crate::site::Site;

/// Its file's name.
pub(super) const MANIFEST: &str = "data.json";
const FORM: &str = "mydyno.data/";
const SCHEMA: &str = "mydyno.data/1";
const BLOCK: usize = 1 << 20;

/// Properties of the data when they were kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    schema: String,
    /// The server's `--version` line; another server may not be able to read them, or may upgrade them.
    pub(super) engine: String,
    /// Family and series of that server, as in `mariadb-10.11`.
    #[serde(default)]
    pub(super) series: Option<String>,
    /// The disk that they are on; `None` for the host's file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disk: Option<KeptDisk>,
    /// Sorted by path.
    files: Vec<Sum>,
}

/// A disk as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeptDisk {
    file_system: String,
    bytes: u64,
    mount_options: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    path: PathBuf,
    bytes: u64,
    sha256: String,
    /// The file system's description of the disk at that time; `None` if unknown.
    #[serde(default)]
    stamp: Option<Stamp>,
}

/// Identity and last change of a file. No program can set the time of the last change (ctime, inode(7)), so a file with
/// the same stamp and length has the same content.
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

impl Manifest {
    /// The stamps of all files below a folder that a server wrote.
    pub(super) fn of(
        site: &Site,
        folder: &Path,
        server: &Description,
        disk: Option<&DiskSpec>,
    ) -> Result<Self, SandboxError> {
        let disk = disk.map(|spec| KeptDisk {
            file_system: spec.file_system.name().to_owned(),
            bytes: spec.bytes,
            mount_options: spec.options.to_string(),
        });
        let (engine, series) = (server.engine.clone(), Some(server.server.engine.clone()));
        Ok(Self { schema: SCHEMA.to_owned(), engine, series, disk, files: sums(site, folder)? })
    }

    pub(super) fn load(path: &Path) -> Result<Self, SandboxError> {
        let file = path.join(MANIFEST);
        let text = fs::read(&file).map_err(|e| SandboxError::io("read", &file, e))?;
        let wrong = |why: String| SandboxError::KeptData { path: file.clone(), why };
        let value: Value = serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))?;
        match value["schema"].as_str() {
            Some(SCHEMA) => serde_json::from_value(value).map_err(|e| wrong(e.to_string())),
            Some(other) if other.starts_with(FORM) => Err(wrong(format!(
                "another mydyno wrote it ({other}, and this one knows {SCHEMA}): use that one"
            ))),
            _ => Err(wrong("it does not say which form it has".to_owned())),
        }
    }

    pub(super) fn save(&self, path: &Path) -> Result<(), SandboxError> {
        let file = path.join(MANIFEST);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| SandboxError::KeptData { path: file.clone(), why: e.to_string() })?;
        fs::write(&file, text).map_err(|e| SandboxError::io("write", file, e))
    }

    /// The disk that the data are on.
    pub(super) fn disk(&self) -> Result<Option<DiskSpec>, SandboxError> {
        let Some(disk) = &self.disk else { return Ok(None) };
        let file_system = FileSystem::named(&disk.file_system).ok_or_else(|| HostError::SettingValue {
            name: "the file system of kept data".to_owned(),
            value: disk.file_system.clone(),
            form: FILE_SYSTEMS.map(FileSystem::name).join(" "),
        })?;
        let options = file_system.options(&disk.mount_options)?;
        let (medium, features) = (Medium::File, Features::default());
        Ok(Some(DiskSpec { medium, file_system, features, bytes: disk.bytes, options }))
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Compares the content of all files with the manifest. Names in `without` are ignored at the top level.
    pub(super) fn verify(&self, site: &Site, folder: &Path, without: &[&str]) -> Result<(), SandboxError> {
        let mut now = by_path(sums(site, folder)?);
        now.retain(|path, _| !without.iter().any(|name| path == Path::new(name)));
        for file in &self.files {
            let same = now.remove(&file.path).is_some_and(|found| found.same_bytes(file));
            if !same {
                return Err(SandboxError::DataChanged { path: folder.join(&file.path) });
            }
        }
        nothing_added(folder, now.keys())
    }

    /// Compares the lengths and stamps of all files with the manifest, and the content of files whose stamp differs.
    pub(super) fn check(&self, site: &Site, folder: &Path) -> Result<(), SandboxError> {
        let mut now: BTreeSet<PathBuf> = files(folder)?.into_iter().collect();
        for file in &self.files {
            let path = folder.join(&file.path);
            let found = now.remove(&file.path);
            let meta = path.metadata().ok().filter(|m| found && m.len() == file.bytes);
            let same = match meta {
                None => false,
                Some(meta) if file.stamp == Some(Stamp::of(&meta)) => true,
                Some(_) => sum(site, &path)?.1 == file.sha256,
            };
            if !same {
                return Err(SandboxError::DataChanged { path });
            }
        }
        nothing_added(folder, now.iter())
    }
}

fn by_path(sums: Vec<Sum>) -> BTreeMap<PathBuf, Sum> {
    sums.into_iter().map(|sum| (sum.path.clone(), sum)).collect()
}

fn nothing_added<'a>(folder: &Path, mut left: impl Iterator<Item = &'a PathBuf>) -> Result<(), SandboxError> {
    match left.next() {
        None => Ok(()),
        Some(added) => Err(SandboxError::DataChanged { path: folder.join(added) }),
    }
}

impl Sum {
    fn same_bytes(&self, other: &Self) -> bool {
        (&self.path, self.bytes, &self.sha256) == (&other.path, other.bytes, &other.sha256)
    }
}

fn sums(site: &Site, folder: &Path) -> Result<Vec<Sum>, SandboxError> {
    let sum_of = |path: PathBuf| {
        let whole = folder.join(&path);
        let (bytes, sha256) = sum(site, &whole)?;
        let meta = whole.metadata().map_err(|e| SandboxError::io("read", &whole, e))?;
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

fn sum(site: &Site, path: &Path) -> Result<(u64, String), SandboxError> {
    let failed = |e| SandboxError::io("read", path, e);
    let mut file = open_plain(path).map_err(failed)?;
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    let mut block = vec![0u8; BLOCK];
    loop {
        site.check_cancelled()?;
        let length = file.read(&mut block).map_err(failed)?;
        if length == 0 {
            return Ok((bytes, digest.finalize().iter().map(|b| format!("{b:02x}")).collect()));
        }
        digest.update(&block[..length]);
        bytes += length as u64;
    }
}
