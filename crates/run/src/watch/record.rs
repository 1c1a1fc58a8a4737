//! The folder of a recorded watch: `watch.json`, the samples, and notes.

use std::path::{Path, PathBuf};

use mydyno_model::Document as _;
use mydyno_model::sample::Sample;
use mydyno_model::watch::{WatchManifest, WatchNote, file};

use crate::error::RunError;
use crate::sample_stream::SampleStream;
use crate::stacks::AllStacks;
use crate::writer::{Lines, claim, write_stacks, write_whole};

/// An open record. Everything that was pushed is kept, even if the process is killed.
pub struct Record {
    folder: PathBuf,
    samples: SampleStream,
    notes: Lines,
}

impl Record {
    /// Makes the folder, which must not exist or be empty, and writes the manifest.
    ///
    /// # Errors
    /// The folder is not empty or cannot be written.
    pub fn create(folder: &Path, manifest: &WatchManifest) -> Result<Self, RunError> {
        let claim = claim(folder)?;
        write_whole(&folder.join(file::MANIFEST), &manifest.to_json())?;
        let record = Self {
            folder: folder.to_owned(),
            samples: SampleStream::create(folder)?,
            notes: Lines::create(folder, file::NOTES)?,
        };
        claim.keep();
        Ok(record)
    }

    /// Appends a sample.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn sample(&mut self, sample: Sample) -> Result<(), RunError> {
        self.samples.push(sample)
    }

    /// Appends a note.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note(&mut self, at_s: f64, text: &str) -> Result<(), RunError> {
        self.notes.push(&WatchNote { at_s, text: text.to_owned() })
    }

    /// Ends the record, with the stacks that were captured.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self, stacks: Option<&AllStacks>) -> Result<(), RunError> {
        if let Some(stacks) = stacks {
            write_stacks(&self.folder, stacks)?;
        }
        self.samples.finish()
    }
}
