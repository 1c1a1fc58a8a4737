//! Copies of data directories: by reflink where the file system supports it, else without copying zeros.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_linux::calls::files::{allocate, forget_zeros, next_data, share_blocks};

use crate::error::SandboxError;

/// The unit of copying; a block of zeros of this size is not written.
const BLOCK: usize = 64 << 10;

/// A block of zeros, to compare with.
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Files of a data directory that must differ between servers: MySQL's server UUID.
pub(crate) const UNIQUE: &[&str] = &["auto.cnf"];

/// How files were copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) files: usize,
    /// Files that share their blocks with the original.
    pub(crate) shared: usize,
}

/// Copies a folder of regular files and folders to a path that does not exist. Names in `without` are left out at the
/// top level. Setting `stop` ends it.
pub(crate) fn copy_folder(
    from: &Path,
    to: &Path,
    without: &[&str],
    stop: &AtomicBool,
) -> Result<Copied, SandboxError> {
    let folder = File::open(from).map_err(|e| SandboxError::io("open", from, e))?;
    copy_open_folder(&folder, from, to, without, stop)
}

/// As [`copy_folder`], for an open folder: data may belong to another user, who can replace a folder by a link at any
/// moment.
fn copy_open_folder(
    folder: &File,
    from: &Path,
    to: &Path,
    without: &[&str],
    stop: &AtomicBool,
) -> Result<Copied, SandboxError> {
    let mut copied = Copied::default();
    // The path that refers to an open file itself: proc_pid_fd(5).
    let inside = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    DirBuilder::new().mode(0o700).create(to).map_err(|e| SandboxError::io("create", to, e))?;
    for child in fs::read_dir(&inside).map_err(|e| SandboxError::io("read", from, e))? {
        let child = child.map_err(|e| SandboxError::io("read", from, e))?;
        let name = child.file_name();
        if without.iter().any(|w| name == *w) {
            continue;
        }
        let shown = from.join(&name);
        let kind = child.file_type().map_err(|e| SandboxError::io("read", &shown, e))?;
        let target = to.join(&name);
        if kind.is_dir() {
            let mut open = OpenOptions::new();
            open.read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
            let child = open.open(child.path()).map_err(|e| SandboxError::io("open", &shown, e))?;
            let below = copy_open_folder(&child, &shown, &target, &[], stop)?;
            copied.files += below.files;
            copied.shared += below.shared;
        } else if kind.is_file() {
            let shared = copy_file(&child.path(), &target, stop).map_err(|e| match e.kind() {
                io::ErrorKind::Interrupted => SandboxError::Interrupted,
                _ => SandboxError::io("copy to", &target, e),
            })?;
            copied.files += 1;
            copied.shared += usize::from(shared);
        } else {
            let odd = io::Error::new(io::ErrorKind::InvalidInput, "neither a file nor a folder");
            return Err(SandboxError::io("copy", &shown, odd));
        }
    }
    Ok(copied)
}

/// Whether files copied from one folder to another can share blocks. Tried with unnamed files.
pub(crate) fn shares_blocks(from: &Path, to: &Path) -> bool {
    let nameless = |folder: &Path| {
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder)
    };
    let (Ok(source), Ok(target)) = (nameless(from), nameless(to)) else { return false };
    source.write_all_at(&[1; 4096], 0).is_ok() && share_blocks(&source, &target)
}

/// Disk space of a folder's files, in bytes. Files may appear and disappear meanwhile.
pub(crate) fn occupied_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for child in fs::read_dir(folder)? {
        let child = child?;
        let meta = match child.metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            meta => meta?,
        };
        bytes += if meta.is_dir() { occupied_bytes(&child.path())? } else { meta.blocks() * 512 };
    }
    Ok(bytes)
}

/// Writes a folder's files and names to disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    for child in fs::read_dir(folder)? {
        let child = child?;
        if child.file_type()?.is_dir() {
            sync_folder(&child.path())?;
        } else {
            File::open(child.path())?.sync_all()?;
        }
    }
    File::open(folder)?.sync_all()
}

/// Lets the file system forget the zeros that are stored in a folder's files, so that copies need not read them: a new redo log is
/// nothing else. Lengths, bytes and reserved blocks stay. Copies are the same where a file's zeros cannot be forgotten, so
/// that is no error.
pub(crate) fn forget_zeros_of(folder: &Path) {
    let Ok(children) = fs::read_dir(folder) else { return };
    for child in children.flatten() {
        match child.file_type() {
            Ok(kind) if kind.is_dir() => forget_zeros_of(&child.path()),
            Ok(kind) if kind.is_file() => drop(forget_zeros_in(&child.path())),
            _ => {}
        }
    }
}

/// The same for one file: each run of zeros is one call, since a page of the cache that is cut in part counts as data.
fn forget_zeros_in(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let meta = file.metadata()?;
    // A range that reaches into a hole would fill it.
    if meta.blocks() * 512 < meta.size() {
        return Ok(());
    }
    let mut block = vec![0u8; BLOCK];
    let (mut at, mut zeros_from) = (0, None);
    loop {
        let length = file.read_at(&mut block, at)?;
        if length == BLOCK && block == ZEROS {
            zeros_from.get_or_insert(at);
        } else if let Some(from) = zeros_from.take() {
            let known = forget_zeros(&file, from, at - from)?;
            if !known {
                return Ok(());
            }
        }
        // A block that is not full is the last one.
        if length < BLOCK {
            return Ok(());
        }
        at += BLOCK as u64;
    }
}

/// Copies a file; `true` when the copy shares its blocks with the original.
fn copy_file(from: &Path, to: &Path, stop: &AtomicBool) -> io::Result<bool> {
    let source = open_plain(from)?;
    let meta = source.metadata()?;
    let target = OpenOptions::new().write(true).create_new(true).mode(meta.mode() & 0o700).open(to)?;
    if share_blocks(&source, &target) {
        return Ok(true);
    }
    // A preallocated log stays preallocated, because writing into holes has a cost.
    if meta.blocks() * 512 >= meta.size() {
        preallocate(&target, meta.size())?;
    } else {
        target.set_len(meta.size())?;
    }
    let mut block = vec![0u8; BLOCK];
    let mut at = 0;
    while let Some(data) = next_data(&source, at)? {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        at = data;
        let length = source.read_at(&mut block, at)?;
        if length == 0 {
            break;
        }
        // A comparison of memory: most of a template is a redo log of zeros, which a loop over bytes takes far longer to read.
        if block[..length] != ZEROS[..length] {
            target.write_all_at(&block[..length], at)?;
        }
        at += length as u64;
    }
    Ok(false)
}

/// Opens a regular file for reading. The data may belong to another user, who can replace it by a link or a pipe at any
/// moment.
///
/// # Errors
/// It is no regular file, or cannot be opened.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let mut open = OpenOptions::new();
    let file = open.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    match allocate(file, bytes) {
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(bytes),
        allocated => allocated,
    }
}

#[cfg(test)]
mod tests {
    use mydyno_host::disk::{Disk, DiskFolder, DiskSpec, Medium};
    use mydyno_host::features::Features;
    use mydyno_host::file_system::FileSystem;
    use mydyno_host::restore::{NoHooks, put_back};
    use mydyno_host::{Host, HostError, Machine, StateDir, folder, loops};

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn make_disk(host: &Host, path: &Path, spec: &DiskSpec) -> Result<Disk, HostError> {
        let (journal, lease) = (&host.journal, &host.lease);
        DiskFolder { journal, lease, purpose: "test", path }.make(spec, None)
    }

    #[test]
    fn links_pipes_and_folders_behind_links_are_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let from = temp.path().join("from");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("plain"), "x").unwrap();
        assert!(open_plain(&from.join("plain")).is_ok());
        std::os::unix::fs::symlink(from.join("plain"), from.join("link")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(from.join("pipe")).status().unwrap().success());
        for name in ["link", "pipe"] {
            assert!(open_plain(&from.join(name)).is_err(), "{name}");
            let error = copy_folder(&from, &temp.path().join(name), &[], &NEVER).unwrap_err().to_string();
            assert!(error.contains("neither a file nor a folder") && error.contains("/from/"), "{error}");
            fs::remove_file(from.join(name)).unwrap();
        }
        let done = copy_folder(&from, &temp.path().join("whole"), &[], &NEVER).unwrap();
        assert_eq!(done.files, 1);
    }

    #[test]
    fn a_file_system_that_shares_blocks_copies_without_writing_data() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(&temp.path().join("state")).unwrap();
        let host = Host::of(state, &Machine::real().unwrap(), "test").unwrap();
        for file_system in [FileSystem::Xfs, FileSystem::Btrfs] {
            if loops::check(host.machine()).is_err() || file_system.check(host.machine()).is_err() {
                println!("no {file_system} here");
                continue;
            }
            let path = fs::canonicalize(temp.path()).unwrap().join("disk-folder");
            folder::create(&host.journal, &host.lease, "test", &path).unwrap();
            let spec = DiskSpec {
                medium: Medium::File,
                file_system,
                features: Features::default(),
                bytes: file_system.least_bytes(),
                options: Default::default(),
            };
            let disk = make_disk(&host, &path, &spec);
            let copied = disk.map(|disk| {
                let from = disk.point.join("from");
                fs::create_dir_all(from.join("deep")).unwrap();
                fs::write(from.join("a"), vec![7; 1 << 20]).unwrap();
                fs::write(from.join("deep/b"), vec![8; 1 << 20]).unwrap();
                copy_folder(&from, &disk.point.join("to"), &[], &NEVER).unwrap()
            });
            let ours = host.journal.take_over(&host.lease, |_| true).unwrap();
            put_back(&host.journal, host.machine(), &ours, &NoHooks).unwrap();
            assert_eq!(copied.unwrap(), Copied { files: 2, shared: 2 });
        }
    }

    /// A measurement, which prints its result: `make bench-restore` runs it.
    #[test]
    #[ignore = "measures: make bench-restore"]
    fn restoring_a_gigabyte_takes_so_long() {
        use std::time::Instant;
        const FILES: usize = 16;
        let fill = |folder: &Path| {
            fs::create_dir(folder).unwrap();
            let data: Vec<u8> =
                (0..64u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            for number in 0..FILES {
                let mut file = File::create(folder.join(format!("t{number}.ibd"))).unwrap();
                std::io::Write::write_all(&mut file, &data).unwrap();
                file.sync_all().unwrap();
            }
        };
        let temp = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        fill(&temp.path().join("from"));
        let written = begin.elapsed();
        let begin = Instant::now();
        let copied = copy_folder(&temp.path().join("from"), &temp.path().join("to"), &[], &NEVER).unwrap();
        let unsynced = begin.elapsed();
        for number in 0..FILES {
            File::open(temp.path().join(format!("to/t{number}.ibd"))).unwrap().sync_all().unwrap();
        }
        println!(
            "1 GiB: written {written:?}; copied {unsynced:?}, and synced {:?}; {copied:?}",
            begin.elapsed()
        );
        fs::remove_dir_all(temp.path().join("from")).unwrap();
        fs::remove_dir_all(temp.path().join("to")).unwrap();
        let state = StateDir::open(&temp.path().join("state")).unwrap();
        let host = Host::of(state, &Machine::real().unwrap(), "test").unwrap();
        for file_system in [FileSystem::Xfs, FileSystem::Btrfs] {
            if let Err(lack) = loops::check(host.machine()).and_then(|()| file_system.check(host.machine())) {
                println!("{lack}");
                continue;
            }
            let path = fs::canonicalize(temp.path()).unwrap().join("disk-folder");
            folder::create(&host.journal, &host.lease, "test", &path).unwrap();
            let (medium, options) = (Medium::File, Default::default());
            let spec =
                DiskSpec { medium, file_system, features: Features::default(), bytes: 2 << 30, options };
            let disk = make_disk(&host, &path, &spec);
            let reported = disk.map(|disk| {
                fill(&disk.point.join("from"));
                let begin = Instant::now();
                let copied =
                    copy_folder(&disk.point.join("from"), &disk.point.join("to"), &[], &NEVER).unwrap();
                format!("1 GiB on {file_system}: {:?}; {copied:?}", begin.elapsed())
            });
            let ours = host.journal.take_over(&host.lease, |_| true).unwrap();
            put_back(&host.journal, host.machine(), &ours, &NoHooks).unwrap();
            println!("{}", reported.unwrap());
        }
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_lengths_with_and_without_holes() {
        let temp = tempfile::tempdir().unwrap();
        let from = temp.path().join("from");
        fs::create_dir_all(from.join("deep/er")).unwrap();
        let mut dense = vec![0u8; 3 * BLOCK + 17];
        dense[0] = 1;
        dense[2 * BLOCK + 5] = 2;
        *dense.last_mut().unwrap() = 3;
        fs::write(from.join("dense"), &dense).unwrap();
        fs::write(from.join("deep/er/empty"), b"").unwrap();
        fs::write(from.join("auto.cnf"), b"[auto]").unwrap();
        let sparse = File::create(from.join("sparse")).unwrap();
        sparse.set_len(10 << 20).unwrap();
        sparse.write_all_at(b"end", (10 << 20) - 3).unwrap();
        let zeros = vec![0u8; BLOCK * 2 + 1];
        fs::write(from.join("zeros"), &zeros).unwrap();
        let to = temp.path().join("to");
        copy_folder(&from, &to, &["auto.cnf"], &NEVER).unwrap();
        for name in ["dense", "sparse", "zeros", "deep/er/empty"] {
            assert!(fs::read(from.join(name)).unwrap() == fs::read(to.join(name)).unwrap(), "{name}");
        }
        assert!(!to.join("auto.cnf").exists());
    }

    #[test]
    fn zeros_that_are_forgotten_are_still_read_and_their_blocks_still_reserved() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("deep")).unwrap();
        let path = temp.path().join("deep/log");
        let mut bytes = vec![0u8; 64 * BLOCK + 100];
        bytes[BLOCK + 7] = 1;
        *bytes.last_mut().unwrap() = 2;
        fs::write(&path, &bytes).unwrap();
        let sparse = File::create(temp.path().join("sparse")).unwrap();
        sparse.set_len(10 << 20).unwrap();
        forget_zeros_of(temp.path());
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 >= bytes.len() as u64);
        assert!(sparse.metadata().unwrap().blocks() * 512 < 1 << 20);
        // Some file systems know no such zeros. A page of the cache may reach beyond the ends of a run.
        let known = forget_zeros(File::options().write(true).open(&path).unwrap(), 0, BLOCK as u64).unwrap();
        let middle = 40 * BLOCK as u64;
        let stored = next_data(&file, middle).unwrap().unwrap();
        assert_eq!(stored > middle, known, "{stored}");
        // After the look: zeros that were read are in the page cache, and count as data.
        assert!(fs::read(&path).unwrap() == bytes);
    }

    #[test]
    fn a_copy_of_a_sparse_file_is_sparse() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("from"), temp.path().join("to"));
        File::create(&from).unwrap().set_len(64 << 20).unwrap();
        copy_file(&from, &to, &NEVER).unwrap();
        let meta = fs::metadata(&to).unwrap();
        assert_eq!(meta.len(), 64 << 20);
        assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
    }

    #[test]
    fn links_are_not_copied_but_named() {
        let temp = tempfile::tempdir().unwrap();
        let from = temp.path().join("from");
        fs::create_dir(&from).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
        let error = copy_folder(&from, &temp.path().join("to"), &[], &NEVER).unwrap_err().to_string();
        assert!(error.contains("neither a file nor a folder"), "{error}");
    }
}
