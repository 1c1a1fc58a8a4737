//! The folder of the classes of two builds: `classes.json`, and a line of `rounds.jsonl` for each round.

use std::path::Path;

use mydyno_model::Document;
use mydyno_model::experiment::classes::{ClassComparison, ClassRound};

use super::analyse;
use crate::error::ProveError;
use crate::lines::{read_file, read_lines, replace};

/// File of the document.
pub(super) const DOCUMENT: &str = "classes.json";
/// File with a line for each round.
pub(super) const ROUNDS: &str = "rounds.jsonl";

/// Writes the document atomically.
pub(super) fn write(folder: &Path, document: &ClassComparison) -> Result<(), ProveError> {
    replace(&folder.join(DOCUMENT), &document.to_json())
}

/// Whether a folder is that of such an experiment.
pub fn holds_classes(folder: &Path) -> bool {
    folder.join(DOCUMENT).is_file()
}

/// The document and the complete rounds of a folder.
pub(super) fn read(folder: &Path) -> Result<(ClassComparison, Vec<ClassRound>), ProveError> {
    let path = folder.join(DOCUMENT);
    let document = ClassComparison::from_json(&read_file(&path)?)
        .map_err(|source| ProveError::Document { path, source })?;
    Ok((document, read_lines(&folder.join(ROUNDS))?))
}

/// The experiment of a folder; of one that was killed, with the rounds so far.
///
/// # Errors
/// There is none, or a file is damaged before its last line.
pub fn of_folder(folder: &Path) -> Result<ClassComparison, ProveError> {
    let (document, rounds) = read(folder)?;
    match document.answer.is_empty() {
        true => Ok(analyse::conclude(&document, &rounds)),
        false => Ok(document),
    }
}
