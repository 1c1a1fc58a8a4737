//! The record's reader: a folder is read up to where its run was cut off.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use mydyno_model::Document;
use mydyno_model::facts::FactSet;
use mydyno_model::record::{Manifest, RunRecord, file};
use mydyno_model::sample::Sample;
use serde::de::DeserializeOwned;

use crate::error::RunError;

/// Reads a run folder, of a run that ended or was killed.
///
/// # Errors
/// Not a run folder, or a damaged or newer manifest. Lines behind the first that cannot be read are left out.
pub fn read(folder: &Path) -> Result<RunRecord, RunError> {
    let manifest_path = folder.join(file::MANIFEST);
    let text = match std::fs::read_to_string(&manifest_path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(RunError::NotARun { path: folder.to_owned(), missing: file::MANIFEST });
        }
        other => other.map_err(RunError::file("reading", &manifest_path))?,
    };
    let manifest =
        Manifest::from_json(&text).map_err(|source| RunError::Document { path: manifest_path, source })?;
    let facts = std::fs::read_to_string(folder.join(file::FACTS))
        .ok()
        .and_then(|text| FactSet::from_json(&text).ok());
    let samples = frames(lines(&decompress(&folder.join(file::OBSERVE))));
    Ok(RunRecord {
        manifest,
        facts,
        intervals: lines(&std::fs::read(folder.join(file::INTERVALS)).unwrap_or_default()),
        events: lines(&std::fs::read(folder.join(file::EVENTS)).unwrap_or_default()),
        samples,
    })
}

/// The lines up to the first that is not whole: what a killed writer leaves at the end.
fn lines<T: DeserializeOwned>(bytes: &[u8]) -> Vec<T> {
    bytes
        .split_inclusive(|b| *b == b'\n')
        .take_while(|line| line.ends_with(b"\n"))
        .map_while(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// The bytes of a zstd stream up to where it is damaged or ends.
fn decompress(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(mut decoder) = File::open(path).and_then(zstd::Decoder::new) else { return bytes };
    let mut block = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = decoder.read(&mut block) {
        bytes.extend_from_slice(&block[..n]);
    }
    bytes
}

fn frames(samples: Vec<Sample>) -> Vec<Sample> {
    let mut frames: Vec<Sample> = Vec::with_capacity(samples.len());
    for sample in samples {
        let frame = sample.onto(frames.last());
        frames.push(frame);
    }
    frames
}
