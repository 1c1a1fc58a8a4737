//! Replays a recorded watch with the same derivation as a live one.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::sync::atomic::Ordering;

use mydyno_facts::{open_regular, read_regular};
use mydyno_model::document::{Document as _, Header};
use mydyno_model::record::{self, Manifest};
use mydyno_model::sample::Sample;
use mydyno_model::watch::{WatchManifest, WatchNote, file};
use mydyno_samples::Interval;
use mydyno_samples::series::Series;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::recent::Recent;
use super::{Seen, WatchEnd};
use crate::error::RunError;
use crate::lines;
use crate::target::Cancel;

/// Most bytes of a manifest.
const LARGEST_MANIFEST: u64 = 16 << 20;

/// Most bytes of the notes.
const LARGEST_NOTES: u64 = 64 << 20;

/// Longest line of samples. A key frame of 2,000 values takes 100 kB.
const LONGEST_LINE: u64 = 4 << 20;

/// Most bytes that the samples are expanded to: several days at one second.
const LARGEST_SAMPLES: u64 = 8 << 30;

/// Values of one frame; a damaged file must not exhaust memory.
const MOST_VALUES: usize = 100_000;

/// Reads a recorded watch, or the samples of a bench, from the start and emits the same events as a live one. Samples
/// are expanded one at a time.
///
/// # Errors
/// The folder contains neither. Samples that cannot be read are left out and reported as a note.
pub fn replay(folder: &Path, stop: &Cancel, see: &mut dyn FnMut(Seen<'_>)) -> Result<WatchEnd, RunError> {
    let manifest = manifest(folder)?;
    let mut recent = Recent::new()?;
    let mut series = Series::new(started(&manifest), manifest.interval_s);
    see(Seen::Begins(&manifest));
    let mut notes = notes(folder).into_iter().peekable();
    let mut end = WatchEnd { interrupted: false, intervals: 0 };
    let damage = samples(folder, |sample| {
        while let Some(note) = notes.next_if(|note| note.at_s <= sample.at_s) {
            see(Seen::Note(note.text));
        }
        if let Some(interval) = series.push(sample) {
            end.intervals += 1;
            see(Seen::Interval(&interval));
            recent.push(interval);
        }
        end.interrupted = stop.load(Ordering::Relaxed);
        !end.interrupted
    })?;
    for note in notes {
        see(Seen::Note(note.text));
    }
    if let Some(damage) = damage {
        see(Seen::Note(damage));
    }
    if let Some(diagnosis) = recent.diagnosis() {
        see(Seen::Ends(&diagnosis));
    }
    Ok(end)
}

/// The manifest of a recorded watch, or of a bench, which samples once a second.
pub(super) fn manifest(folder: &Path) -> Result<WatchManifest, RunError> {
    let path = folder.join(file::MANIFEST);
    if let Some(text) = text(&path)? {
        return WatchManifest::from_json(&text).map_err(|source| RunError::Document { path, source });
    }
    let path = folder.join(record::file::MANIFEST);
    let Some(text) = text(&path)? else { return Err(RunError::NotAWatch { path: folder.to_owned() }) };
    let bench = Manifest::from_json(&text).map_err(|source| RunError::Document { path, source })?;
    let header =
        Header { created: bench.header.created, ..Header::of::<WatchManifest>(OffsetDateTime::UNIX_EPOCH) };
    Ok(WatchManifest {
        header,
        interval_s: Interval::SECOND.seconds(),
        address: Some(bench.plan.target.address),
        version: None,
        argv: bench.argv,
        gaps: Vec::new(),
        extra: serde_json::Map::new(),
    })
}

/// The text of a file; `None` when there is no such file.
fn text(path: &Path) -> Result<Option<String>, RunError> {
    match read_regular(path, LARGEST_MANIFEST) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::file("reading", path)(error)),
    }
}

pub(super) fn started(manifest: &WatchManifest) -> OffsetDateTime {
    OffsetDateTime::parse(&manifest.header.created, &Rfc3339).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// The notes in the order of their time; none where the file is missing.
fn notes(folder: &Path) -> Vec<WatchNote> {
    let Ok(file) = open_regular(&folder.join(file::NOTES)) else { return Vec::new() };
    lines::read(BufReader::new(file), LARGEST_NOTES).values
}

/// Passes each full frame to `give` until that returns `false`; returns a description of samples that could not be
/// read, if any.
pub(super) fn samples(
    folder: &Path,
    mut give: impl FnMut(Sample) -> bool,
) -> Result<Option<String>, RunError> {
    let path = folder.join(record::file::OBSERVE);
    let open = || -> std::io::Result<_> {
        let mut decoder = zstd::Decoder::new(open_regular(&path)?)?;
        // As in the reader of runs: the writer's level uses at most 8 MB.
        decoder.window_log_max(23)?;
        Ok(decoder)
    };
    let mut reader = BufReader::new(open().map_err(RunError::file("reading", &path))?).take(LARGEST_SAMPLES);
    let (mut line, mut last) = (Vec::new(), None::<Sample>);
    let mut unreadable = 0_u64;
    loop {
        line.clear();
        match (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            // The writer of a stream without an end was killed; an incomplete line is its last one.
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(e) => return Ok(Some(format!("{} cannot be read to its end: {e}", path.display()))),
            Ok(_) if !line.ends_with(b"\n") => break,
            Ok(_) => {}
        }
        let frame = serde_json::from_slice::<Sample>(&line).ok().map(|sample| sample.onto(last.as_ref()));
        let before_s = last.as_ref().map_or(0.0, |last| last.at_s);
        match frame.filter(|frame| frame.at_s >= before_s && frame.values.len() <= MOST_VALUES) {
            None => unreadable += 1,
            Some(frame) => {
                last = Some(frame.clone());
                if !give(frame) {
                    return Ok(None);
                }
            }
        }
    }
    Ok((unreadable > 0).then(|| format!("{unreadable} lines of {} cannot be read", path.display())))
}
