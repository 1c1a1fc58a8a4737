//! A run or an experiment as one file: a tar archive of its folder, compressed with zstd.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_linux::calls::files::try_lock;
use mydyno_linux::calls::replace::Replacement;
use mydyno_model::text::steers;
use tar::{Archive, Builder, Entry, EntryType, Header};
use zstd::{Decoder, Encoder};

use crate::kept::{KeptError, file_error, is_recorded, kept};

/// Compression level: observations are already compressed, lines of intervals shrink to a tenth.
const LEVEL: i32 = 9;

/// Largest sum of the files of an archive; a run of a week at one line a second has less.
const LARGEST_BYTES: u64 = 4 << 30;

/// Limit of the entries of an archive; a run has a dozen, an experiment a few for each slice.
const MOST_ENTRIES: usize = 100_000;

/// Longest path of an archive, in bytes: `PATH_MAX`.
const LONGEST_PATH: u64 = 4096;

/// Prefix of the folders in which an import is unpacked.
const UNPACKING: &str = ".importing-";

/// Writes the folder of a run into `output`. Files keep their time of change; owners and permissions are left out.
/// `output` appears once it is whole.
///
/// # Errors
/// The folder holds no run or one that is being recorded, `output` exists, `stop` was set, or a file cannot be read or
/// written.
pub fn export(folder: &Path, output: &Path, stop: &AtomicBool) -> Result<(), KeptError> {
    let folder = folder.canonicalize().map_err(file_error("looking at", folder))?;
    let name = kept(&folder).map(|run| run.folder).ok_or_else(|| KeptError::NoRun(folder.clone()))?;
    if is_recorded(&folder) {
        return Err(KeptError::Recording(folder));
    }
    let exists = || output.symlink_metadata().is_ok();
    if exists() {
        return Err(KeptError::Exists(output.to_owned()));
    }
    let written = Replacement::of(output).write(|file| {
        write(&folder, &name, file, stop)?;
        // Renaming would replace what appeared meanwhile.
        if exists() { Err(Failed::Exists) } else { Ok(()) }
    });
    written.map_err(|failed| match failed {
        Failed::Reading(path, source) => KeptError::File { doing: "reading", path, source },
        Failed::Writing(source) => KeptError::File { doing: "writing", path: output.to_owned(), source },
        Failed::Stopped => KeptError::Stopped { doing: "writing", path: output.to_owned() },
        Failed::Exists => KeptError::Exists(output.to_owned()),
    })
}

enum Failed {
    Reading(PathBuf, io::Error),
    Writing(io::Error),
    Stopped,
    Exists,
}

impl From<io::Error> for Failed {
    fn from(source: io::Error) -> Self {
        Self::Writing(source)
    }
}

fn write(folder: &Path, name: &str, file: &File, stop: &AtomicBool) -> Result<(), Failed> {
    let mut encoder = Encoder::new(BufWriter::new(file), LEVEL).map_err(Failed::Writing)?;
    // Neither tar nor zstd otherwise notices a changed byte of a file.
    encoder.include_checksum(true).map_err(Failed::Writing)?;
    let mut archive = Builder::new(encoder);
    add_folder(&mut archive, folder, Path::new(name), stop)?;
    let end = || -> io::Result<()> {
        let file = archive.into_inner()?.finish()?.into_inner().map_err(|e| e.into_error())?;
        file.sync_all()
    };
    end().map_err(Failed::Writing)
}

/// Adds the files and folders of a folder, sorted by name; other kinds of file are left out.
fn add_folder<W: Write>(
    archive: &mut Builder<W>,
    folder: &Path,
    inside: &Path,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    let reading = |e| Failed::Reading(folder.to_owned(), e);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(reading)? {
        let entry = entry.map_err(reading)?;
        names.push((entry.file_name(), entry.file_type().map_err(reading)?));
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, kind) in names {
        let (path, inside) = (folder.join(&name), inside.join(&name));
        if kind.is_dir() {
            add_folder(archive, &path, &inside, stop)?;
        } else if kind.is_file() {
            add_file(archive, &path, &inside, stop)?;
        }
    }
    Ok(())
}

fn add_file<W: Write>(
    archive: &mut Builder<W>,
    path: &Path,
    inside: &Path,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    let reading = |e| Failed::Reading(path.to_owned(), e);
    let file = File::open(path).map_err(reading)?;
    let about = file.metadata().map_err(reading)?;
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(about.mtime()).unwrap_or_default());
    header.set_size(about.len());
    // A file that grows is cut at the size that it had.
    let mut exact =
        Stoppable { inner: file.take(about.len()).chain(io::repeat(b' ')).take(about.len()), stop };
    archive.append_data(&mut header, inside, &mut exact).map_err(|error| match stopped(stop) {
        true => Failed::Stopped,
        false => Failed::Writing(error),
    })
}

fn stopped(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

/// Fails the next read once `stop` is set.
struct Stoppable<'a, R> {
    inner: R,
    stop: &'a AtomicBool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match stopped(self.stop) {
            // `Interrupted` would be read again.
            true => Err(io::Error::other("interrupted")),
            false => self.inner.read(buffer),
        }
    }
}

/// Unpacks an exported run below `runs`, and returns its folder. A folder's name that the list's numbers or options
/// could be mistaken for gets `run-` before it.
///
/// # Errors
/// The file is no archive or contains something else than the folder of one run, a run of this name exists, `stop` was
/// set, or a file cannot be written. Nothing is left behind then.
pub fn import(runs: &Path, archive: &Path, stop: &AtomicBool) -> Result<PathBuf, KeptError> {
    let file = mydyno_facts::open_regular(archive).map_err(file_error("reading", archive))?;
    new_folder(runs)?;
    remove_abandoned(runs);
    let unpacking = runs.join(format!("{UNPACKING}{}", std::process::id()));
    new_folder(&unpacking)?;
    // Others take an unlocked folder for one that a killed process left.
    let lock = File::open(&unpacking).map_err(file_error("locking", &unpacking))?;
    let _ = try_lock(&lock, true);
    let done = unpack(Stoppable { inner: file, stop }, archive, &unpacking).and_then(|name| {
        let misleading = name.starts_with('-') || name.bytes().all(|byte| byte.is_ascii_digit());
        let kept_as = if misleading { format!("run-{name}") } else { name.clone() };
        let (from, to) = (unpacking.join(&name), runs.join(kept_as));
        if kept(&from).is_none() {
            return Err(wrong(archive, "it holds neither a run nor an experiment that this version reads"));
        }
        // Renaming would replace an empty folder.
        if to.symlink_metadata().is_ok() {
            return Err(KeptError::Exists(to));
        }
        fs::rename(&from, &to).map_err(file_error("writing", &to))?;
        Ok(to)
    });
    let _ = fs::remove_dir_all(&unpacking);
    match stopped(stop) && done.is_err() {
        true => Err(KeptError::Stopped { doing: "reading", path: archive.to_owned() }),
        false => done,
    }
}

/// Removes what imports of killed processes left: their folders that no process locks.
fn remove_abandoned(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let path = entry.path();
        let left = entry.file_name().to_str().is_some_and(|name| name.starts_with(UNPACKING));
        if left && File::open(&path).is_ok_and(|folder| matches!(try_lock(&folder, true), Ok(true))) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn wrong(archive: &Path, why: impl Into<String>) -> KeptError {
    KeptError::Archive { path: archive.to_owned(), why: why.into() }
}

fn new_folder(path: &Path) -> Result<(), KeptError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(file_error("making", path))
}

/// Unpacks the only folder of an archive into `below`, and returns its name.
fn unpack(file: impl Read, archive: &Path, below: &Path) -> Result<String, KeptError> {
    let damaged = |e: io::Error| wrong(archive, format!("it is damaged: {e}"));
    let mut tar = Archive::new(Decoder::new(file).map_err(damaged)?);
    let mut only: Option<String> = None;
    let mut bytes = 0_u64;
    // The crate reads a long name whole, however long it is; raw entries leave that to this function.
    let mut long_path: Option<PathBuf> = None;
    for (nth, entry) in tar.entries().map_err(damaged)?.raw(true).enumerate() {
        let mut entry = entry.map_err(damaged)?;
        bytes = bytes.saturating_add(entry.size());
        if nth >= MOST_ENTRIES || bytes > LARGEST_BYTES {
            return Err(wrong(archive, "it is larger than any run"));
        }
        if entry.header().entry_type() == EntryType::GNULongName {
            if entry.size() > LONGEST_PATH {
                return Err(wrong(archive, "it holds a path that is longer than any path"));
            }
            let mut name = Vec::new();
            entry.read_to_end(&mut name).map_err(damaged)?;
            name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
            long_path = Some(OsString::from_vec(name).into());
            continue;
        }
        let inside = match long_path.take() {
            Some(path) => path,
            None => entry.path().map_err(damaged)?.into_owned(),
        };
        let name = top(&inside)
            .ok_or_else(|| wrong(archive, format!("{inside:?} is not a path inside of one folder")))?;
        if *only.get_or_insert_with(|| name.clone()) != name {
            return Err(wrong(archive, "it holds several folders"));
        }
        let path = below.join(&inside);
        match entry.header().entry_type() {
            EntryType::Directory => new_folder(&path)?,
            EntryType::Regular => unpack_file(&mut entry, &path, archive)?,
            _ => return Err(wrong(archive, format!("{inside:?} is neither a file nor a folder"))),
        }
    }
    // The checksum comes last.
    let mut rest = tar.into_inner().take(LARGEST_BYTES);
    io::copy(&mut rest, &mut io::sink()).map_err(damaged)?;
    only.ok_or_else(|| wrong(archive, "it is empty"))
}

/// The first component of a path that has normal components only, does not begin with a dot and can be displayed.
fn top(path: &Path) -> Option<String> {
    let normal = path.components().all(|part| matches!(part, Component::Normal(_)));
    let first = path.components().next().and_then(|part| part.as_os_str().to_str().map(str::to_owned));
    first.filter(|first| normal && !first.starts_with('.') && !first.contains(steers))
}

fn unpack_file<R: Read>(entry: &mut Entry<'_, R>, path: &Path, archive: &Path) -> Result<(), KeptError> {
    new_folder(path.parent().unwrap_or(path))?;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = made.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => {
            wrong(archive, format!("it holds {:?} twice", path.file_name().unwrap_or(OsStr::new(""))))
        }
        _ => file_error("writing", path)(e),
    })?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = entry.read(&mut buffer).map_err(|e| wrong(archive, format!("it is damaged: {e}")))?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { return Ok(()) };
        file.write_all(read).map_err(file_error("writing", path))?;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    static GOES_ON: AtomicBool = AtomicBool::new(false);

    /// A factorial document is the smallest one that makes a folder an experiment.
    fn archive_of(entries: &[(EntryType, &str, &str)]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut tar = Builder::new(Encoder::new(file.reopen().unwrap(), 1).unwrap());
        for (kind, path, text) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(text.len() as u64);
            header.set_mode(0o777);
            if *kind == EntryType::Symlink {
                header.set_link_name("/etc/passwd").unwrap();
            }
            // As another program could write it: the crate's own functions refuse `..`.
            let name = header.as_old_mut().name.get_mut(..path.len()).unwrap();
            name.copy_from_slice(path.as_bytes());
            header.set_cksum();
            tar.append(&header, text.as_bytes()).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
        file
    }

    #[test]
    fn an_archive_with_anything_else_than_one_run_is_refused_and_leaves_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let runs = temp.path().join("runs");
        fs::create_dir(&runs).unwrap();
        let file = EntryType::Regular;
        for (entries, why) in [
            (vec![(file, "../escape", "x")], "not a path inside"),
            (vec![(file, "/etc/escape", "x")], "not a path inside"),
            (vec![(file, "a/../../escape", "x")], "not a path inside"),
            (vec![(file, ".hidden/x", "x")], "not a path inside"),
            (vec![(file, "a\u{1b}[2J/x", "x")], "not a path inside"),
            (vec![(EntryType::GNULongName, "././@LongLink", &"a".repeat(5000))], "longer than any path"),
            (vec![(EntryType::Symlink, "a/link", "")], "neither a file nor a folder"),
            (vec![(EntryType::Fifo, "a/pipe", "")], "neither a file nor a folder"),
            (vec![(file, "a/x", "x"), (file, "b/x", "x")], "several folders"),
            (vec![(file, "a/x", "x"), (file, "a/x", "y")], "twice"),
            (vec![(file, "a/manifest.json", "{}")], "neither a run nor an experiment"),
            (vec![], "empty"),
        ] {
            let archive = archive_of(&entries);
            let error = import(&runs, archive.path(), &GOES_ON).unwrap_err().to_string();
            assert!(error.contains(why), "{entries:?}: {error}");
            assert_eq!(fs::read_dir(&runs).unwrap().count(), 0, "{entries:?}");
        }
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
        let none = tempfile::NamedTempFile::new().unwrap();
        fs::write(&none, "not an archive").unwrap();
        assert!(import(&runs, none.path(), &GOES_ON).unwrap_err().to_string().contains("is no exported run"));
    }
}
