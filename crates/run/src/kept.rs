//! The runs and experiments that a state folder keeps: listed, found by name or number, labelled and deleted.

use std::io;
use std::path::{Path, PathBuf};

use mydyno_facts::{open_regular, read_regular};
use mydyno_linux::calls::files::try_lock;
use mydyno_model::Document;
use mydyno_model::experiment::Design;
use mydyno_model::experiment::factorial::Factorial;
use mydyno_model::record::{Manifest, file};
use mydyno_model::run_list::{KeptRun, RunKind, RunLabel};
use thiserror::Error;

/// File of a run's label.
const LABEL: &str = "label.json";

/// File that makes a folder an experiment.
const DESIGN: &str = "design.json";

/// File that makes a folder an experiment with several factors.
const FACTORIAL: &str = "factorial.json";

/// Most bytes of a document that is read for the list.
const LARGEST_BYTES: u64 = 16 << 20;

/// The reason why a kept run cannot be found or changed.
#[derive(Debug, Error)]
pub enum KeptError {
    /// The word is no path, name or number of a run.
    #[error("{0:?} is neither a folder nor the name or number of a run: `mydyno runs` lists them")]
    Unknown(String),
    /// Several runs have this name.
    #[error("{name:?} is the name of several runs: {folders}; take the folder or its number")]
    Ambiguous {
        /// The name.
        name: String,
        /// Their folders.
        folders: String,
    },
    /// An invalid name or tag.
    #[error(
        "{0:?} cannot be a name or a tag: give letters, digits, '-', '_' and '.', with at least one letter, at most 64 characters"
    )]
    Word(String),
    /// The folder is outside the state folder.
    #[error("{0} is not in the folder of kept runs: delete it by hand")]
    Outside(PathBuf),
    /// The folder to be exported contains no run.
    #[error("{0} holds neither a run nor an experiment: `mydyno runs` lists them")]
    NoRun(PathBuf),
    /// The archive is invalid or contains something else than one run.
    #[error("{path} is no exported run: {why}; `mydyno runs export` writes them")]
    Archive {
        /// The file.
        path: PathBuf,
        /// The defect.
        why: String,
    },
    /// A process writes the run.
    #[error("{0} is still being measured: try again when that has ended")]
    Recording(PathBuf),
    /// The user ended the operation.
    #[error("{doing} {path} was interrupted; nothing of it is left")]
    Stopped {
        /// The operation, as in `reading`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The run exists already.
    #[error("{0} is there already; mydyno does not write over it")]
    Exists(PathBuf),
    /// A file or folder could not be accessed.
    #[error("{doing} {path}: {source}")]
    File {
        /// The operation, as in `reading`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// For `map_err` of operations on a file.
pub(crate) fn file_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeptError {
    let path = path.to_owned();
    move |source| KeptError::File { doing, path, source }
}

/// Lists the runs below a folder, the latest first. Folders without a manifest or design are left out.
///
/// # Errors
/// The folder cannot be read; a missing folder contains no runs.
pub fn list(runs: &Path) -> Result<Vec<KeptRun>, KeptError> {
    let entries = match std::fs::read_dir(runs) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(file_error("reading", runs))?,
    };
    let mut kept: Vec<KeptRun> = entries.filter_map(|entry| kept(&entry.ok()?.path())).collect();
    kept.sort_by(|a, b| (&b.created, &b.folder).cmp(&(&a.created, &a.folder)));
    for (number, run) in (1..).zip(&mut kept) {
        run.number = number;
    }
    Ok(kept)
}

/// The run or experiment in a folder; `None` without one.
pub(crate) fn kept(folder: &Path) -> Option<KeptRun> {
    let text = |name: &str| read_regular(&folder.join(name), LARGEST_BYTES).ok();
    let (kind, created, subject, server) = if let Some(manifest) = text(file::MANIFEST) {
        let manifest = Manifest::from_json(&manifest).ok()?;
        (RunKind::Run, manifest.header.created, manifest.plan.workload.name, manifest.plan.target.address)
    } else if let Some(design) = text(DESIGN) {
        let design = Design::from_json(&design).ok()?;
        (RunKind::Experiment, design.header.created, design.experiment, String::new())
    } else {
        let factorial = Factorial::from_json(&text(FACTORIAL)?).ok()?;
        (RunKind::Experiment, factorial.header.created, factorial.experiment, String::new())
    };
    Some(KeptRun {
        number: 0,
        folder: folder.file_name()?.to_string_lossy().into_owned(),
        path: folder.display().to_string(),
        kind,
        created,
        subject,
        server,
        label: label(folder),
    })
}

/// The label of a folder; empty when it has none, or one that cannot be read.
fn label(folder: &Path) -> RunLabel {
    let text = read_regular(&folder.join(LABEL), LARGEST_BYTES).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The folder that an argument of the command line means: a path, else the name of a kept folder, the user's name for
/// it, or its number in the list.
///
/// # Errors
/// There is no such run, or several have this name.
pub fn find(runs: &Path, word: &Path) -> Result<PathBuf, KeptError> {
    let text = word.to_string_lossy();
    if word.exists() || text.contains('/') {
        return Ok(word.to_owned());
    }
    let kept = list(runs)?;
    if let Some(run) = kept.iter().find(|run| run.folder == text) {
        return Ok(PathBuf::from(&run.path));
    }
    let named: Vec<&KeptRun> = kept.iter().filter(|run| run.label.name.as_deref() == Some(&*text)).collect();
    match named.as_slice() {
        [] => {}
        [run] => return Ok(PathBuf::from(&run.path)),
        several => {
            let folders: Vec<&str> = several.iter().map(|run| run.folder.as_str()).collect();
            return Err(KeptError::Ambiguous { name: text.into_owned(), folders: folders.join(", ") });
        }
    }
    let number = text.parse::<usize>().ok();
    let numbered = number.and_then(|number| kept.iter().find(|run| run.number == number));
    numbered.map(|run| PathBuf::from(&run.path)).ok_or_else(|| KeptError::Unknown(text.into_owned()))
}

/// Files that are locked while a process writes a run or an experiment.
const LOCKED: [&str; 3] = [file::INTERVALS, "slices.jsonl", "runs.jsonl"];

/// Whether a process is writing the run or experiment in this folder.
pub fn is_recorded(folder: &Path) -> bool {
    LOCKED.iter().any(|name| {
        open_regular(&folder.join(name)).is_ok_and(|file| matches!(try_lock(&file, false), Ok(false)))
    })
}

/// Changes the label of a run.
///
/// # Errors
/// The folder holds no run, an invalid name or tag, or the file cannot be written.
pub fn relabel(folder: &Path, change: impl FnOnce(&mut RunLabel)) -> Result<RunLabel, KeptError> {
    if kept(folder).is_none() {
        return Err(KeptError::NoRun(folder.to_owned()));
    }
    let mut label = label(folder);
    change(&mut label);
    label.tags.sort();
    label.tags.dedup();
    if let Some(wrong) = label.name.iter().chain(&label.tags).find(|word| !may_be_word(word)) {
        return Err(KeptError::Word(wrong.clone()));
    }
    let path = folder.join(LABEL);
    let text = serde_json::to_string_pretty(&label).unwrap_or_default();
    crate::writer::write_output(&path, &text).map_err(|error| match error {
        crate::RunError::File { source, .. } => KeptError::File { doing: "writing", path, source },
        other => KeptError::File { doing: "writing", path, source: io::Error::other(other.to_string()) },
    })?;
    Ok(label)
}

/// Whether a word is a valid name: it cannot be mistaken for a number or a path, and needs no quoting.
fn may_be_word(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    word.len() <= 64 && word.chars().all(plain) && word.chars().any(|c| c.is_ascii_alphabetic())
}

/// Deletes a run with its folder. Only runs directly below `runs` are deleted.
///
/// # Errors
/// The folder is elsewhere, contains no run or one that is being recorded, or cannot be removed.
pub fn delete(runs: &Path, folder: &Path) -> Result<(), KeptError> {
    let real = |path: &Path| path.canonicalize().map_err(file_error("looking at", path));
    let (below, folder) = (real(runs)?, real(folder)?);
    if folder.parent() != Some(&below) || kept(&folder).is_none() {
        return Err(KeptError::Outside(folder));
    }
    if is_recorded(&folder) {
        return Err(KeptError::Recording(folder));
    }
    std::fs::remove_dir_all(&folder).map_err(file_error("deleting", &folder))
}
