//! The folder of an experiment: `design.json` before the first slice, a line of `slices.jsonl` for each slice at its
//! end, `verdict.json` at the end. The measurements stay readable however the experiment ends.

use std::path::{Path, PathBuf};

use mydyno_model::Document;
use mydyno_model::experiment::{Design, Slice, Verdict};

use crate::error::ProveError;
use crate::lines::{LineWriter, make_folder, read_file, read_lines, write_synced};

const DESIGN: &str = "design.json";
const SLICES: &str = "slices.jsonl";
const VERDICT: &str = "verdict.json";

/// A folder that is being written.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    slices: LineWriter,
}

impl Store {
    /// Makes the folder and writes the design.
    ///
    /// # Errors
    /// It contains an experiment already, or cannot be written.
    pub fn create(folder: &Path, design: &Design) -> Result<Self, ProveError> {
        make_folder(folder, &[DESIGN])?;
        write_synced(&folder.join(DESIGN), &design.to_json())?;
        Ok(Self { folder: folder.to_owned(), slices: LineWriter::create(folder.join(SLICES))? })
    }

    /// Opens the folder of an experiment to add slices. An incomplete last line is removed.
    ///
    /// # Errors
    /// It contains no experiment, or cannot be written.
    pub fn open(folder: &Path) -> Result<Self, ProveError> {
        Ok(Self { folder: folder.to_owned(), slices: LineWriter::open(folder.join(SLICES))? })
    }

    /// Adds a slice.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn slice(&self, slice: &Slice) -> Result<(), ProveError> {
        self.slices.push(slice)
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

/// Reads an experiment: its design, and all slices with complete lines.
///
/// # Errors
/// There is no design, or a file is not a regular file, too large, or damaged before its last line.
pub fn read(folder: &Path) -> Result<(Design, Vec<Slice>), ProveError> {
    let path = folder.join(DESIGN);
    let design =
        Design::from_json(&read_file(&path)?).map_err(|source| ProveError::Document { path, source })?;
    Ok((design, read_lines(&folder.join(SLICES))?))
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
