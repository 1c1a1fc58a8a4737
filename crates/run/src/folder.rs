//! Reads a run folder, of a run that ended or was killed, within bounds and from regular files only.

use std::io::BufReader;
use std::path::Path;

use mydyno_facts::{open_regular, read_regular};
use mydyno_model::Document;
use mydyno_model::facts::FactSet;
use mydyno_model::record::{EventKind, Manifest, RunRecord, file};
use mydyno_model::sample::Sample;
use serde::de::DeserializeOwned;

use crate::error::RunError;
use crate::frames::Frames;
use crate::lines::{self, Lines};

/// Most bytes of a document of the folder.
const LARGEST_DOCUMENT: u64 = 16 << 20;

/// Most bytes of a file of lines. A day of windows with six operations takes 600 MB.
const LARGEST_FILE: u64 = 1 << 30;

/// Most bytes that `observe.jsonl.zst` is expanded to.
const LARGEST_OBSERVATION: u64 = 64 << 20;

/// Reads a run folder. What cannot be read of intervals, events and samples is left out, and reported in
/// [`RunRecord::damage`].
///
/// # Errors
/// Not a run folder, or a damaged or newer manifest.
pub fn read(folder: &Path) -> Result<RunRecord, RunError> {
    let manifest_path = folder.join(file::MANIFEST);
    let text = match read_regular(&manifest_path, LARGEST_DOCUMENT) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(RunError::NotARun { path: folder.to_owned(), missing: file::MANIFEST });
        }
        other => other.map_err(RunError::file("reading", &manifest_path))?,
    };
    let manifest =
        Manifest::from_json(&text).map_err(|source| RunError::Document { path: manifest_path, source })?;
    let events = plain(folder, file::EVENTS);
    let intervals = plain(folder, file::INTERVALS);
    let (samples, frames) = observed(folder);
    let ended = events
        .values
        .iter()
        .any(|event: &mydyno_model::record::Event| matches!(event.what, EventKind::End { .. }));
    let mut damage = intervals.damage(file::INTERVALS, ended);
    damage.extend(events.damage(file::EVENTS, ended));
    damage.extend(samples.damage(file::OBSERVE, ended));
    let recording = !ended && crate::kept::is_recorded(folder);
    let facts = facts(folder, &manifest, &mut damage);
    let intervals = lines::check_intervals(intervals.values, &mut damage);
    let events = lines::check_events(events.values, &mut damage);
    lines::check_phases(&intervals, &events, &mut damage);
    let samples = frames.end(&mut damage);
    Ok(RunRecord { manifest, facts, intervals, events, samples, damage, recording })
}

/// The facts, and the damage to them. A manifest without a digest belongs to a record without facts.
fn facts(folder: &Path, manifest: &Manifest, damage: &mut Vec<String>) -> Option<FactSet> {
    let named = &manifest.facts_digest;
    let text = match read_regular(&folder.join(file::FACTS), LARGEST_DOCUMENT) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_empty() => return None,
        Err(e) => {
            damage.push(format!("{} cannot be read ({e})", file::FACTS));
            return None;
        }
    };
    match FactSet::from_json(&text) {
        Ok(facts) => {
            if !named.is_empty() && mydyno_facts::digest(&facts) != *named {
                damage.push(format!("{} was changed: its digest is not that of the manifest", file::FACTS));
            }
            Some(facts)
        }
        Err(e) => {
            damage.push(format!("{} cannot be read ({e})", file::FACTS));
            None
        }
    }
}

/// The lines of a file; none where it is missing.
fn plain<T: DeserializeOwned>(folder: &Path, name: &str) -> Lines<T> {
    match open_regular(&folder.join(name)) {
        Ok(file) => lines::read(BufReader::new(file), LARGEST_FILE),
        Err(error) => Lines::unopened(&error),
    }
}

/// The lines of a zstd stream up to its end or the first damage.
fn observed(folder: &Path) -> (Lines<Sample>, Frames) {
    // A stream may request a window of 2 GB; 8 MB is the largest that the writer's levels use.
    let open = || -> std::io::Result<_> {
        let mut decoder = zstd::Decoder::new(open_regular(&folder.join(file::OBSERVE))?)?;
        decoder.window_log_max(23)?;
        Ok(decoder)
    };
    let mut frames = Frames::new();
    let lines = match open() {
        Ok(decoder) => {
            lines::read_each(BufReader::new(decoder), LARGEST_OBSERVATION, |sample| frames.push(sample))
        }
        Err(error) => Lines::unopened(&error),
    };
    (lines, frames)
}
