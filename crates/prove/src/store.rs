//! The folder of an experiment: `design.json` before the first slice, a line of `slices.jsonl` for each slice at its
//! end, `verdict.json` at the end. The measurements stay readable however the experiment ends.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use mydyno_model::Document;
use mydyno_model::experiment::{Design, Slice, Verdict};

use crate::error::ProveError;

const DESIGN: &str = "design.json";
const SLICES: &str = "slices.jsonl";
const VERDICT: &str = "verdict.json";

/// A folder that is being written.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    slices: File,
}

impl Store {
    /// Makes the folder and writes the design.
    ///
    /// # Errors
    /// It holds an experiment already, or cannot be written.
    pub fn create(folder: &Path, design: &Design) -> Result<Self, ProveError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder).map_err(ProveError::io("create", folder))?;
        let path = folder.join(DESIGN);
        if path.exists() {
            let why = "it holds an experiment already: name another folder with --out".to_owned();
            return Err(ProveError::Folder { path: folder.to_owned(), why });
        }
        write_synced(&path, &design.to_json())?;
        let path = folder.join(SLICES);
        let slices = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&path)
            .map_err(ProveError::io("create", path))?;
        Ok(Self { folder: folder.to_owned(), slices })
    }

    /// Opens the folder of an experiment to add slices. An incomplete last line is removed.
    ///
    /// # Errors
    /// It contains no experiment, or cannot be written.
    pub fn open(folder: &Path) -> Result<Self, ProveError> {
        let path = folder.join(SLICES);
        let slices = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(ProveError::io("open", &path))?;
        let text = read_file(&path)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            slices.set_len(whole as u64).map_err(ProveError::io("shorten", &path))?;
        }
        Ok(Self { folder: folder.to_owned(), slices })
    }

    /// Adds a slice.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn slice(&mut self, slice: &Slice) -> Result<(), ProveError> {
        let mut line = serde_json::to_string(slice).unwrap_or_default();
        line.push('\n');
        self.slices.write_all(line.as_bytes()).map_err(ProveError::io("write", self.folder.join(SLICES)))
    }

    /// Writes the verdict.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn verdict(&self, verdict: &Verdict) -> Result<(), ProveError> {
        write_synced(&self.folder.join(VERDICT), &verdict.to_json())
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Largest file that is read: an experiment of a day has 90,000 slices of 500 bytes.
const LARGEST_BYTES: u64 = 256 << 20;

/// Reads an experiment: its design, and all slices with complete lines.
///
/// # Errors
/// There is no design, or a file is not a regular file, too large, or damaged before its last line.
pub fn read(folder: &Path) -> Result<(Design, Vec<Slice>), ProveError> {
    let path = folder.join(DESIGN);
    let design = Design::from_json(&read_file(&path)?)
        .map_err(|source| ProveError::Document { path: path.clone(), source })?;
    let path = folder.join(SLICES);
    let text = read_file(&path)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut slices = Vec::with_capacity(lines.len());
    for (number, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(slice) => slices.push(slice),
            // The last line of a killed experiment may be incomplete.
            Err(_) if number + 1 == lines.len() => {}
            Err(error) => {
                let why = format!("line {} is damaged: {error}", number + 1);
                return Err(ProveError::Folder { path, why });
            }
        }
    }
    Ok((design, slices))
}

/// Whether a folder holds an experiment.
pub fn holds_experiment(folder: &Path) -> bool {
    folder.join(DESIGN).is_file()
}

/// The verdict in the folder of an experiment, if it has ended.
///
/// # Errors
/// It cannot be read, or is damaged.
pub fn read_verdict(folder: &Path) -> Result<Option<Verdict>, ProveError> {
    let path = folder.join(VERDICT);
    if !path.exists() {
        return Ok(None);
    }
    let verdict = Verdict::from_json(&read_file(&path)?);
    verdict.map(Some).map_err(|source| ProveError::Document { path, source })
}

pub(crate) fn read_file(path: &Path) -> Result<String, ProveError> {
    let about = fs::metadata(path).map_err(ProveError::io("read", path))?;
    if !about.is_file() || about.len() > LARGEST_BYTES {
        let why = format!("it is not a regular file of at most {LARGEST_BYTES} bytes");
        return Err(ProveError::Folder { path: path.to_owned(), why });
    }
    fs::read_to_string(path).map_err(ProveError::io("read", path))
}

pub(crate) fn write_synced(path: &Path, text: &str) -> Result<(), ProveError> {
    let mut file = File::create(path).map_err(ProveError::io("create", path))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(ProveError::io("write", path))
}
