//! Files in the folder of an experiment: documents, and JSON lines that are appended while it runs and readable after a kill.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use mydyno_linux::calls::files::try_lock;
use mydyno_linux::calls::replace::Replacement;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ProveError;

/// Largest file that is read: an experiment of a day has 90,000 slices of 500 bytes.
const LARGEST_BYTES: u64 = 256 << 20;

/// A file of JSON lines that is being appended to.
#[derive(Debug)]
pub(crate) struct LineWriter {
    path: PathBuf,
    file: File,
}

impl LineWriter {
    /// Creates the file, which must not exist.
    pub(crate) fn create(path: PathBuf) -> Result<Self, ProveError> {
        let opened = OpenOptions::new().create_new(true).append(true).open(&path);
        let file = opened.map_err(ProveError::io("create", &path))?;
        // The lock tells other commands that the experiment goes on; a file system without locks does not tell them.
        let _ = try_lock(&file, true);
        Ok(Self { path, file })
    }

    /// Opens the file to append to it, and removes an incomplete last line.
    pub(crate) fn open(path: PathBuf) -> Result<Self, ProveError> {
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        let file = opened.map_err(ProveError::io("open", &path))?;
        if matches!(try_lock(&file, true), Ok(false)) {
            let why = "another command is measuring this experiment";
            return Err(ProveError::io("open", &path)(std::io::Error::other(why)));
        }
        let text = read_file(&path)?;
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        if complete < text.len() {
            file.set_len(complete as u64).map_err(ProveError::io("shorten", &path))?;
        }
        Ok(Self { path, file })
    }

    /// Appends a value with a single write.
    pub(crate) fn push(&self, value: &impl Serialize) -> Result<(), ProveError> {
        let mut line = serde_json::to_string(value).unwrap_or_default();
        line.push('\n');
        (&self.file).write_all(line.as_bytes()).map_err(ProveError::io("write", &self.path))
    }
}

/// The values of a file of JSON lines. The last line may be incomplete, as after a kill.
pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, ProveError> {
    let text = read_file(path)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut values = Vec::with_capacity(lines.len());
    for (number, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(value) => values.push(value),
            Err(_) if number + 1 == lines.len() => {}
            Err(error) => {
                let why = format!("line {} is damaged: {error}", number + 1);
                return Err(ProveError::Folder { path: path.to_owned(), why });
            }
        }
    }
    Ok(values)
}

/// Makes the folder of an experiment, which may exist unless one of `files` is in it.
pub(crate) fn make_folder(folder: &Path, files: &[&str]) -> Result<(), ProveError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder).map_err(ProveError::io("create", folder))?;
    if files.iter().any(|file| folder.join(file).exists()) {
        let why = "it holds an experiment already: name another folder with --out".to_owned();
        return Err(ProveError::Folder { path: folder.to_owned(), why });
    }
    Ok(())
}

/// Reads a regular file of at most [`LARGEST_BYTES`].
pub(crate) fn read_file(path: &Path) -> Result<String, ProveError> {
    let about = fs::metadata(path).map_err(ProveError::io("read", path))?;
    if !about.is_file() || about.len() > LARGEST_BYTES {
        let why = format!("it is not a regular file of at most {LARGEST_BYTES} bytes");
        return Err(ProveError::Folder { path: path.to_owned(), why });
    }
    fs::read_to_string(path).map_err(ProveError::io("read", path))
}

/// Writes a file and syncs it.
pub(crate) fn write_synced(path: &Path, text: &str) -> Result<(), ProveError> {
    let mut file = File::create(path).map_err(ProveError::io("create", path))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(ProveError::io("write", path))
}

/// Replaces a file atomically, and syncs it before.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ProveError> {
    let write = |mut file: &File| file.write_all(text.as_bytes());
    Replacement::of(path).synced().write(write).map_err(ProveError::io("write", path))
}
