//! The folder that a probe works in. It is recorded in the journal, so that it is removed even after `kill -9`.
//!
//! Its files have names. Files without a name (`O_TMPFILE`, or unlinked at once) would need no journal, but file
//! systems know that they cannot be found again: btrfs writes nothing to its log when such a file is synced
//! (`btrfs_log_inode_parent`: a link count of 0), so its syncs would appear several times too fast.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mydyno_host::{Host, data_directory, folder, restore, room};
use mydyno_model::change::RestoreState;

use crate::error::ProbeError;

/// Space that stays free on a file system in addition to a probe's: other programs write there too.
const KEPT_FREE: u64 = 64 << 20;

/// Bytes of each write that fills a file: its page cache then consists of folios of this size (Linux 6.18, ext4 and
/// XFS), as after a log is written block by block. With larger folios each small write and its sync have to walk
/// through all blocks of a folio: 2 µs of CPU more in 10, measured with 1 MiB on ext4.
pub const LOG_PIECE: usize = 4096;
/// Bytes of each write for files that are not overwritten through the page cache.
pub const PIECE: usize = 1 << 20;

/// A temporary folder of this probe.
#[derive(Debug)]
pub struct Scratch<'a> {
    host: &'a Host,
    path: PathBuf,
    purpose: String,
    removed: bool,
}

impl<'a> Scratch<'a> {
    /// Makes a folder in `parent` if there is space for `needed` bytes.
    ///
    /// # Errors
    /// There is too little space, the folder cannot be made, or `parent` is a server's data directory.
    pub fn make(host: &'a Host, parent: &Path, needed: u64) -> Result<Self, ProbeError> {
        let parent = fs::canonicalize(parent).map_err(ProbeError::io("find", parent))?;
        check_no_data_directory(&parent)?;
        let needed = needed.saturating_add(KEPT_FREE);
        let free = room::free_bytes(&parent)?;
        if free < needed {
            return Err(ProbeError::Space { path: parent, free, needed });
        }
        let purpose = format!("probe {}", std::process::id());
        let path = parent.join(format!("mydyno-probe-{}", std::process::id()));
        folder::create(&host.journal, &host.lease, &purpose, &path)?;
        Ok(Self { host, path, purpose, removed: false })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The purpose of its journal entries.
    pub(crate) fn purpose(&self) -> &str {
        &self.purpose
    }

    /// Creates a file with this name, opened for reading and writing with additional flags of open(2).
    ///
    /// # Errors
    /// It cannot be created.
    pub fn file(&self, name: &str, flags: i32) -> Result<File, ProbeError> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600).custom_flags(flags);
        options.open(&path).map_err(|e| refusal(flags, &path, e))
    }

    /// Creates a file with this name whose blocks are written, not only reserved, in writes of `piece` bytes
    /// ([`LOG_PIECE`] or [`PIECE`]).
    ///
    /// # Errors
    /// It cannot be written.
    pub fn filled(&self, name: &str, bytes: u64, piece: usize) -> Result<(), ProbeError> {
        let path = self.path.join(name);
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            let chunk = noise(piece);
            let mut left = bytes;
            while left > 0 {
                let now = left.min(piece as u64) as usize;
                file.write_all(&chunk[..now])?;
                left -= now as u64;
            }
            file.sync_all()
        };
        write().map_err(ProbeError::io("write", &path))
    }

    /// Removes the folder and its contents.
    ///
    /// # Errors
    /// It cannot be removed; its entry then stays in the journal.
    pub fn remove(mut self) -> Result<(), ProbeError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), ProbeError> {
        self.removed = true;
        let own = &self.host.lease.identity().process;
        let taken = self.host.journal.take_over(&self.host.lease, |open| {
            open.entry.purpose == self.purpose && open.lease.process == *own
        })?;
        let outcomes = restore::put_back(&self.host.journal, self.host.machine(), &taken, &restore::NoHooks)?;
        match outcomes.iter().find(|(_, outcome)| outcome.state != RestoreState::Restored) {
            None => Ok(()),
            Some((_, outcome)) => Err(ProbeError::Missing {
                missing: format!("{} was not removed: {}", self.path.display(), outcome.why),
                remedy: "run `mydyno host restore`".to_owned(),
            }),
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if !self.removed {
            // Reached only after an error, which is reported; the journal keeps entries that could not be removed.
            let _ = self.put_back();
        }
    }
}

/// MariaDB, and MySQL up to 5.7, list each folder of the data directory as a schema.
fn check_no_data_directory(folder: &Path) -> Result<(), ProbeError> {
    if !data_directory::is_one(folder) {
        return Ok(());
    }
    let device = |path: &Path| fs::metadata(path).ok().map(|meta| meta.dev());
    let beside = folder.parent().filter(|parent| device(parent) == device(folder));
    let remedy = match beside {
        Some(parent) => {
            let beside = parent.join("mydyno-probe").display().to_string();
            format!(
                "name a folder beside it on the same file system, as in `mkdir {beside}` and `--folder {beside}`, and remove it \
                 afterwards"
            )
        }
        None => "it is the top of its file system, so none lies beside it; name a folder on another file system of the same disk, \
                 or end the server and name a folder that you make in it and remove before the server starts"
            .to_owned(),
    };
    Err(ProbeError::DataDirectory { path: folder.to_owned(), remedy })
}

fn refusal(flags: i32, path: &Path, error: std::io::Error) -> ProbeError {
    if flags & libc::O_DIRECT != 0 && error.raw_os_error() == Some(libc::EINVAL) {
        return ProbeError::Missing {
            missing: "this file system cannot read and write past the page cache (O_DIRECT)".to_owned(),
            remedy: "choose a folder on another one with --folder".to_owned(),
        };
    }
    ProbeError::io("open", path)(error)
}

/// Incompressible bytes without repetitions: some devices and file systems compress or deduplicate data.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; length];
    fill_with_noise(&mut bytes);
    bytes
}

/// Fills existing memory with such bytes.
pub(crate) fn fill_with_noise(bytes: &mut [u8]) {
    let mut rng = mydyno_stats::Rng::from_seed(bytes.len() as u64);
    for chunk in bytes.chunks_mut(8) {
        let word = rng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_host::{Machine, StateDir};

    #[test]
    fn a_data_directory_is_refused_with_a_folder_beside_it_and_what_holds_one_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(&temp.path().join("state")).unwrap();
        let host = Host::of(state, &Machine::real().unwrap(), "probe").unwrap();
        for file in data_directory::FILES {
            let folder = temp.path().join(file.replace('/', "-"));
            fs::create_dir_all(folder.join("mysql")).unwrap();
            Scratch::make(&host, &folder, 1).unwrap().remove().unwrap();
            fs::write(folder.join(file), "").unwrap();
            let before = fs::read_dir(&folder).unwrap().count();
            let error = Scratch::make(&host, &folder, 1).unwrap_err().to_string();
            let beside = temp.path().canonicalize().unwrap().join("mydyno-probe");
            assert!(error.contains(&format!("--folder {}`", beside.display())), "{error}");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), before);
        }
    }

    #[test]
    fn a_data_directory_behind_a_link_or_a_mount_is_refused_as_the_directory_that_it_is() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        let state = StateDir::open(&top.join("state")).unwrap();
        let host = Host::of(state, &Machine::real().unwrap(), "probe").unwrap();
        let data = top.join("data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("ibdata1"), "").unwrap();
        let refused = |folder: &Path| Scratch::make(&host, folder, 1).unwrap_err().to_string();
        let link = top.join("link");
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let error = refused(&link);
        assert!(error.contains(&format!("{} is a server's data directory", data.display())), "{error}");
        let point = top.join("point");
        fs::create_dir(&point).unwrap();
        let run = |program: &str, args: &[&Path]| {
            std::process::Command::new(program).args(args).status().is_ok_and(|status| status.success())
        };
        if !run("mount", &[Path::new("--bind"), &data, &point]) {
            return println!("not tested: binding a folder needs root");
        }
        let error = refused(&point);
        assert!(run("umount", &[&point]));
        assert!(error.contains(&format!("{} is a server's data directory", point.display())), "{error}");
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
    }
}
