//! A run or an experiment as one file: a tar archive of its folder, compressed with zstd.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Builder, Entry, EntryType, Header};
use zstd::{Decoder, Encoder};

use crate::kept::{KeptError, file_error, kept};

/// Compression level: observations are already compressed, lines of intervals shrink to a tenth.
const LEVEL: i32 = 9;

/// Largest sum of the files of an archive; a run of a week at one line a second has less.
const LARGEST_BYTES: u64 = 4 << 30;

/// Limit of the entries of an archive; a run has a dozen, an experiment a few for each slice.
const MOST_ENTRIES: usize = 100_000;

/// Prefix of the folders in which an import is unpacked.
const UNPACKING: &str = ".importing-";

/// Writes the folder of a run into `output`. Files keep their time of change; owners and permissions are left out.
///
/// # Errors
/// The folder holds no run, `output` exists, or a file cannot be read or written.
pub fn export(folder: &Path, output: &Path) -> Result<(), KeptError> {
    let folder = folder.canonicalize().map_err(file_error("looking at", folder))?;
    let name = kept(&folder).map(|run| run.folder).ok_or_else(|| KeptError::NoRun(folder.clone()))?;
    let file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(output).map_err(|e| {
            match e.kind() {
                io::ErrorKind::AlreadyExists => KeptError::Exists(output.to_owned()),
                _ => file_error("writing", output)(e),
            }
        })?;
    let written = write(&folder, &name, file).map_err(|source| match source {
        Failed::Reading(path, source) => KeptError::File { doing: "reading", path, source },
        Failed::Writing(source) => KeptError::File { doing: "writing", path: output.to_owned(), source },
    });
    if written.is_err() {
        // A partial archive is useless and would block the next attempt.
        let _ = fs::remove_file(output);
    }
    written
}

enum Failed {
    Reading(PathBuf, io::Error),
    Writing(io::Error),
}

fn write(folder: &Path, name: &str, file: File) -> Result<(), Failed> {
    let encoder = Encoder::new(BufWriter::new(file), LEVEL).map_err(Failed::Writing)?;
    let mut archive = Builder::new(encoder);
    add_folder(&mut archive, folder, Path::new(name))?;
    let end = || -> io::Result<()> {
        let file = archive.into_inner()?.finish()?.into_inner().map_err(|e| e.into_error())?;
        file.sync_all()
    };
    end().map_err(Failed::Writing)
}

/// Adds the files and folders of a folder, sorted by name; other kinds of file are left out.
fn add_folder<W: Write>(archive: &mut Builder<W>, folder: &Path, inside: &Path) -> Result<(), Failed> {
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
            add_folder(archive, &path, &inside)?;
        } else if kind.is_file() {
            add_file(archive, &path, &inside)?;
        }
    }
    Ok(())
}

fn add_file<W: Write>(archive: &mut Builder<W>, path: &Path, inside: &Path) -> Result<(), Failed> {
    let reading = |e| Failed::Reading(path.to_owned(), e);
    let file = File::open(path).map_err(reading)?;
    let about = file.metadata().map_err(reading)?;
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(about.mtime()).unwrap_or_default());
    header.set_size(about.len());
    // A file that grows is cut at the size that it had.
    let mut exact = file.take(about.len()).chain(io::repeat(b' ')).take(about.len());
    archive.append_data(&mut header, inside, &mut exact).map_err(Failed::Writing)
}

/// Unpacks an exported run below `runs`, which exists, and returns its folder.
///
/// # Errors
/// The file is no archive or contains something else than the folder of one run, a run of this name exists, or a file
/// cannot be written. Nothing is left behind then.
pub fn import(runs: &Path, archive: &Path) -> Result<PathBuf, KeptError> {
    let file = mydyno_facts::open_regular(archive).map_err(file_error("reading", archive))?;
    let unpacking = runs.join(format!("{UNPACKING}{}", std::process::id()));
    let _left_by_a_killed_process = fs::remove_dir_all(&unpacking);
    new_folder(&unpacking)?;
    let done = unpack(file, archive, &unpacking).and_then(|name| {
        let (from, to) = (unpacking.join(&name), runs.join(&name));
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
    done
}

fn wrong(archive: &Path, why: impl Into<String>) -> KeptError {
    KeptError::Archive { path: archive.to_owned(), why: why.into() }
}

fn new_folder(path: &Path) -> Result<(), KeptError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(file_error("making", path))
}

/// Unpacks the only folder of an archive into `below`, and returns its name.
fn unpack(file: File, archive: &Path, below: &Path) -> Result<String, KeptError> {
    let damaged = |e: io::Error| wrong(archive, e.to_string());
    let mut tar = Archive::new(Decoder::new(file).map_err(damaged)?);
    let mut only: Option<String> = None;
    let mut bytes = 0_u64;
    for (nth, entry) in tar.entries().map_err(damaged)?.enumerate() {
        let mut entry = entry.map_err(damaged)?;
        bytes = bytes.saturating_add(entry.size());
        if nth >= MOST_ENTRIES || bytes > LARGEST_BYTES {
            return Err(wrong(archive, "it is larger than any run"));
        }
        let inside = entry.path().map_err(damaged)?.into_owned();
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
    only.ok_or_else(|| wrong(archive, "it is empty"))
}

/// The first component of a path that has normal components only and does not begin with a dot.
fn top(path: &Path) -> Option<String> {
    let normal = path.components().all(|part| matches!(part, Component::Normal(_)));
    let first = path.components().next().and_then(|part| part.as_os_str().to_str().map(str::to_owned));
    first.filter(|first| normal && !first.starts_with('.'))
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
        let count = entry.read(&mut buffer).map_err(|e| wrong(archive, e.to_string()))?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { return Ok(()) };
        file.write_all(read).map_err(file_error("writing", path))?;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
            (vec![(EntryType::Symlink, "a/link", "")], "neither a file nor a folder"),
            (vec![(EntryType::Fifo, "a/pipe", "")], "neither a file nor a folder"),
            (vec![(file, "a/x", "x"), (file, "b/x", "x")], "several folders"),
            (vec![(file, "a/x", "x"), (file, "a/x", "y")], "twice"),
            (vec![(file, "a/manifest.json", "{}")], "neither a run nor an experiment"),
            (vec![], "empty"),
        ] {
            let archive = archive_of(&entries);
            let error = import(&runs, archive.path()).unwrap_err().to_string();
            assert!(error.contains(why), "{entries:?}: {error}");
            assert_eq!(fs::read_dir(&runs).unwrap().count(), 0, "{entries:?}");
        }
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
        let none = tempfile::NamedTempFile::new().unwrap();
        fs::write(&none, "not an archive").unwrap();
        assert!(import(&runs, none.path()).unwrap_err().to_string().contains("is no exported run"));
    }
}
