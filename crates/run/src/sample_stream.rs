//! Writes samples as changed values and key frames, compressed with zstd.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use mydyno_model::record::file;
use mydyno_model::sample::Sample;

use crate::error::RunError;
use crate::writer::{create, put_line};

/// Every so many samples one contains all values, so that a reader can start there.
const KEY_FRAME_EVERY: usize = 60;

/// Compression of the samples: the default of zstd, a few microseconds a line.
const ZSTD_LEVEL: i32 = 3;

/// An open `observe.jsonl.zst`. Each sample is on its way to the file system when [`SampleStream::push`] returns.
pub struct SampleStream {
    path: PathBuf,
    encoder: zstd::Encoder<'static, File>,
    last: Option<Sample>,
    written: usize,
}

impl SampleStream {
    /// Creates the file in a run folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(file::OBSERVE);
        let encoder =
            zstd::Encoder::new(create(&path)?, ZSTD_LEVEL).map_err(RunError::file("writing", &path))?;
        Ok(Self { path, encoder, last: None, written: 0 })
    }

    /// Appends a sample, given as a full frame.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, sample: Sample) -> Result<(), RunError> {
        let key = self.written.is_multiple_of(KEY_FRAME_EVERY);
        let mut line = Vec::new();
        match self.last.as_ref().filter(|_| !key) {
            Some(before) => put_line(&mut line, &sample.delta_from(before)),
            None => put_line(&mut line, &Sample { key: true, ..sample.clone() }),
        }
        self.written += 1;
        self.last = Some(sample);
        let written = self.encoder.write_all(&line).and_then(|()| self.encoder.flush());
        written.map_err(RunError::file("writing", &self.path))
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), RunError> {
        self.encoder.finish().map(|_| ()).map_err(RunError::file("writing", &self.path))
    }
}
