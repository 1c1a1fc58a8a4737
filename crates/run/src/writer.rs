//! The record's writer: each line is passed to the file system when its second ends, so that a killed run keeps all but
//! its last second.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mydyno_linux::calls::files::try_lock;
use mydyno_linux::calls::replace::Replacement;
use mydyno_model::Document;
use mydyno_model::diagnosis::Diagnosis;
use mydyno_model::facts::FactSet;
use mydyno_model::record::{End, Event, EventKind, Interval, Manifest, file};
use mydyno_model::sample::Sample;
use mydyno_model::summary::Summary;
use mydyno_model::watch::{self, WatchNote};
use serde::Serialize;

use crate::error::RunError;
use crate::sample_stream::SampleStream;
use crate::stacks::AllStacks;

/// Writes a run folder.
pub struct Writer {
    folder: PathBuf,
    intervals: Lines,
    events: Lines,
    samples: Option<SampleStream>,
}

/// An open file of JSON lines.
pub(crate) struct Lines {
    path: PathBuf,
    file: File,
    line: Vec<u8>,
}

impl Lines {
    pub fn create(folder: &Path, name: &str) -> Result<Self, RunError> {
        let path = folder.join(name);
        let file = create(&path)?;
        // The lock tells other commands that the run goes on; a file system without locks does not tell them.
        let _ = try_lock(&file, true);
        Ok(Self { path, file, line: Vec::new() })
    }

    /// One write per line, so that a line is complete unless the disk is full.
    pub fn push(&mut self, document: &impl Serialize) -> Result<(), RunError> {
        self.line.clear();
        put_line(&mut self.line, document);
        self.file.write_all(&self.line).map_err(RunError::file("writing", &self.path))
    }
}

pub(crate) fn put_line(line: &mut Vec<u8>, document: &impl Serialize) {
    // The documents hold only maps with text keys and finite or null numbers, so this cannot fail.
    if serde_json::to_writer(&mut *line, document).is_ok() {
        line.push(b'\n');
    }
}

pub(crate) fn create(path: &Path) -> Result<File, RunError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(RunError::file("creating", path))
}

/// Writes an output file that the user named: a regular file is replaced atomically, through links; a device or pipe is
/// written to.
///
/// # Errors
/// It cannot be written.
pub fn write_output(path: &Path, text: &str) -> Result<(), RunError> {
    match std::fs::canonicalize(path) {
        Ok(real) if real.is_file() => write_whole(&real, text),
        Ok(other) => OpenOptions::new()
            .write(true)
            .open(&other)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(RunError::file("writing", path)),
        Err(_) => write_whole(path, text),
    }
}

/// Writes a document of a run folder, replacing an older one atomically.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn write_whole(path: &Path, text: &str) -> Result<(), RunError> {
    write_by(path, |mut file| file.write_all(text.as_bytes()))
}

/// As [`write_whole`], with what `write` writes.
fn write_by(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<(), RunError> {
    Replacement::of(path).write(write).map_err(RunError::file("writing", path))
}

/// Folded stacks hold whole numbers.
const MICROSECONDS: f64 = 1e6;

/// Writes captured stacks into a folder, folded; nothing where nothing was captured.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write_stacks(folder: &Path, all: &AllStacks) -> Result<(), RunError> {
    for (name, stacks, scale) in
        [(file::CPU_STACKS, &all.on_cpu, 1.0), (file::WAIT_STACKS, &all.off_cpu, MICROSECONDS)]
    {
        if !stacks.is_empty() {
            write_by(&folder.join(name), |file| {
                let mut file = BufWriter::new(file);
                stacks.write(scale, &mut file)?;
                file.flush()
            })?;
        }
    }
    Ok(())
}

/// A folder for a record. If nothing is recorded, a folder that was made for it is removed again.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    made: bool,
}

impl Claim {
    /// Keeps the folder from now on.
    pub(crate) fn keep(mut self) -> PathBuf {
        self.made = false;
        self.folder.clone()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.made {
            // Removes it only while it is empty.
            let _ = std::fs::remove_dir(&self.folder);
        }
    }
}

/// Makes the folder (mode 0700); it must not exist, or be empty.
///
/// # Errors
/// It is not empty, or cannot be made or written.
pub fn claim(folder: &Path) -> Result<Claim, RunError> {
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(RunError::File { doing: "recording to", path: folder.to_owned(), source });
    }
    let made = !folder.exists();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(RunError::file("creating", folder))?;
    let claim = Claim { folder: folder.to_owned(), made };
    let probe = folder.join(".probe");
    std::fs::write(&probe, b"x")
        .and_then(|()| std::fs::remove_file(&probe))
        .map_err(RunError::file("writing to", folder))?;
    Ok(claim)
}

impl Writer {
    /// Opens the streams in a claimed folder and writes facts and manifest.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create(claim: Claim, manifest: &Manifest, facts: &FactSet) -> Result<Self, RunError> {
        let folder = claim.keep();
        let folder = folder.as_path();
        // The manifest makes the folder a run, which is locked by then.
        let intervals = Lines::create(folder, file::INTERVALS)?;
        let events = Lines::create(folder, file::EVENTS)?;
        write_whole(&folder.join(file::FACTS), &facts.to_json())?;
        write_whole(&folder.join(file::MANIFEST), &manifest.to_json())?;
        let observe = manifest.plan.observe;
        let samples = observe.then(|| SampleStream::create(folder)).transpose()?;
        Ok(Self { folder: folder.to_owned(), intervals, events, samples })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Appends an interval.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), RunError> {
        self.intervals.push(interval)
    }

    /// Appends an event.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn event(&mut self, at_s: f64, what: EventKind) -> Result<(), RunError> {
        self.events.push(&Event { at_s, what })
    }

    /// Appends a sample, given as a full frame.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn sample(&mut self, sample: Sample) -> Result<(), RunError> {
        self.samples.as_mut().map_or(Ok(()), |samples| samples.push(sample))
    }

    /// Writes why counters are missing from the samples. A failure to write notes does not fail the run.
    pub fn notes(&self, notes: &[WatchNote]) {
        if notes.is_empty() {
            return;
        }
        let written = Lines::create(&self.folder, watch::file::NOTES)
            .and_then(|mut lines| notes.iter().try_for_each(|note| lines.push(note)));
        if let Err(error) = written {
            tracing::debug!("{error}");
        }
    }

    /// Writes the stacks that were captured beside the load, folded. As with notes, a failure is no reason to lose a run.
    pub fn stacks(&self, all: &AllStacks) {
        let written = write_stacks(&self.folder, all);
        if let Err(error) = written {
            tracing::debug!("{error}");
        }
    }

    /// Ends the streams. The summary follows by [`Writer::summary`].
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn end(&mut self, at_s: f64, how: End) -> Result<(), RunError> {
        self.event(at_s, EventKind::End { how })?;
        self.samples.take().map_or(Ok(()), SampleStream::finish)
    }

    /// Writes the diagnosis.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn diagnosis(&self, diagnosis: &Diagnosis) -> Result<(), RunError> {
        write_whole(&self.folder.join(file::DIAGNOSIS), &diagnosis.to_json())
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn summary(&self, summary: &Summary) -> Result<(), RunError> {
        write_whole(&self.folder.join(file::SUMMARY), &summary.to_json())
    }
}
