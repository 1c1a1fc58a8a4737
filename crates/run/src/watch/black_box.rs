//! The black box: the latest minutes of a watch in a bounded ring of segments on disk, and incidents, which keep the minutes around a mark
//! of the user's or a spike of the server's own latency.

mod incident;
mod spike;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mydyno_model::sample::Sample;
use mydyno_model::watch::{WatchInterval, WatchManifest};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use self::incident::Incident;
use self::spike::SpikeWatch;
use super::record::Record;
use crate::error::RunError;
use crate::stacks::AllStacks;
use crate::writer::{write_stacks, write_whole};

/// Names inside the folder of a black box.
mod name {
    pub const RING: &str = "ring";
    pub const INCIDENTS: &str = "incidents";
    pub const MARKS: &str = "marks";
}

/// Length of a segment of the ring.
const SEGMENT_S: f64 = 60.0;

/// How much of the time before an incident is kept, and how long the time after it is waited for.
const BEFORE_S: f64 = 180.0;
const AFTER_S: f64 = 60.0;

/// After an incident no spike makes another one for so long; a mark does.
const QUIET_S: f64 = 300.0;

/// Incidents that are kept; the oldest go.
const MOST_INCIDENTS: usize = 20;

/// Longest text of a mark.
const LONGEST_MARK: u64 = 4096;

/// Where a black box is, and how large it may become.
#[derive(Debug, Clone)]
pub struct BlackBoxPlan {
    /// Its folder.
    pub folder: PathBuf,
    /// Minutes that the ring goes back.
    pub minutes: u32,
    /// Bytes that ring and incidents together may have; the oldest go.
    pub most_bytes: u64,
}

/// Marks the present instant in the black box of a folder: the one that runs there keeps the minutes around it.
///
/// # Errors
/// The folder is not that of a black box, or cannot be written.
pub fn mark(folder: &Path, text: &str) -> Result<(), RunError> {
    let marks = folder.join(name::MARKS);
    if !marks.is_dir() {
        return Err(RunError::NotABlackBox { path: folder.to_owned() });
    }
    let now = OffsetDateTime::now_utc().unix_timestamp_nanos();
    write_whole(&marks.join(format!("{now}.mark")), text)
}

/// An open black box. Nothing that it cannot write ends the watch.
pub struct BlackBox {
    plan: BlackBoxPlan,
    manifest: WatchManifest,
    /// The segment that is written; none after an error, until the next one is due.
    segment: Option<(PathBuf, Record)>,
    segment_begun_s: f64,
    /// Numbers the segments of this watch.
    segments: u64,
    stacks: Option<Arc<Mutex<AllStacks>>>,
    spikes: SpikeWatch,
    pending: Option<Incident>,
    quiet_until_s: f64,
    /// Whether the latest write failed, which is said once.
    failing: bool,
}

impl BlackBox {
    /// Makes the folders. Segments of earlier watches stay until the ring is full.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(
        plan: &BlackBoxPlan,
        manifest: &WatchManifest,
        stacks: Option<Arc<Mutex<AllStacks>>>,
    ) -> Result<Self, RunError> {
        for folder in [name::RING, name::INCIDENTS, name::MARKS] {
            let folder = plan.folder.join(folder);
            make(&folder)?;
        }
        Ok(Self {
            plan: plan.clone(),
            manifest: manifest.clone(),
            segment: None,
            segment_begun_s: f64::NEG_INFINITY,
            segments: 0,
            stacks,
            spikes: SpikeWatch::default(),
            pending: None,
            quiet_until_s: 0.0,
            failing: false,
        })
    }

    /// Keeps a sample; sentences about what could not be kept go to `say`.
    pub fn sample(&mut self, sample: &Sample, say: &mut dyn FnMut(String)) {
        if sample.at_s - self.segment_begun_s >= SEGMENT_S {
            self.segment_begun_s = sample.at_s;
            let turned = self.turn();
            self.judge(turned, say);
        }
        let Some((_, record)) = &mut self.segment else { return };
        if let Err(error) = record.sample(sample.clone()) {
            // A full disk: the segment ends here, its samples so far stay, and the next one is tried when it is due.
            self.segment = None;
            self.judge(Err(error), say);
        }
    }

    /// Keeps a sentence beside the samples.
    pub fn note(&mut self, at_s: f64, text: &str) {
        if let Some((_, record)) = &mut self.segment {
            // What cannot be written shows with the next sample.
            let _ = record.note(at_s, text);
        }
    }

    /// Looks for marks and spikes at the end of an interval, and keeps an incident whose time is over.
    pub fn interval(&mut self, interval: &WatchInterval, say: &mut dyn FnMut(String)) {
        let spike = self.spikes.push(interval);
        for text in self.marks() {
            say(format!("Marked: {text}"));
            self.begin(interval.at_s, "mark", text);
        }
        if let Some(text) = spike.filter(|_| interval.at_s >= self.quiet_until_s) {
            say(format!("A spike: {text}"));
            self.begin(interval.at_s, "spike", text);
        }
        if self.pending.as_ref().is_some_and(|incident| interval.at_s >= incident.at_s + AFTER_S) {
            self.keep(interval.at_s, say);
        }
    }

    /// Ends the ring; an incident that waits for its end is kept as it is.
    pub fn finish(&mut self, say: &mut dyn FnMut(String)) {
        self.keep(self.segment_begun_s, say);
        if let Some((folder, record)) = self.segment.take() {
            let ended = self.write_stacks(&folder).and_then(|()| record.finish(None));
            self.judge(ended, say);
        }
    }

    fn begin(&mut self, at_s: f64, reason: &str, text: String) {
        self.quiet_until_s = at_s + QUIET_S;
        let seen = self.pending.get_or_insert_with(|| Incident::new(at_s, reason));
        seen.texts.push(text);
    }

    fn keep(&mut self, now_s: f64, say: &mut dyn FnMut(String)) {
        let Some(incident) = self.pending.take() else { return };
        // The latest segment is read from its file: it has to be there whole.
        let turned = self.turn();
        self.segment_begun_s = now_s;
        let incidents = self.plan.folder.join(name::INCIDENTS);
        let from_s = incident.at_s - BEFORE_S;
        let kept = turned
            .and_then(|()| incident.keep(&incidents, &self.manifest, &self.segments_since(from_s), from_s));
        let kept = kept.map(|folder| {
            say(format!("Kept the minutes around it: mydyno watch --replay {}", folder.display()));
        });
        self.judge(kept, say);
        prune(&incidents, MOST_INCIDENTS, u64::MAX);
    }

    /// Says once that something cannot be written, and once that it can again.
    fn judge(&mut self, done: Result<(), RunError>, say: &mut dyn FnMut(String)) {
        match done {
            Ok(()) if std::mem::take(&mut self.failing) => say("The black box is written again".to_owned()),
            Ok(()) => {}
            Err(error) if !std::mem::replace(&mut self.failing, true) => {
                say(format!("The black box cannot be written; it is tried again every minute: {error}"));
            }
            Err(_) => {}
        }
    }

    /// Ends the segment and begins the next one, for which the oldest go.
    fn turn(&mut self) -> Result<(), RunError> {
        if let Some((folder, record)) = self.segment.take() {
            self.write_stacks(&folder).and_then(|()| record.finish(None))?;
        }
        let ring = self.plan.folder.join(name::RING);
        let incidents = size(&self.plan.folder.join(name::INCIDENTS));
        prune(&ring, self.plan.minutes as usize, self.plan.most_bytes.saturating_sub(incidents));
        let now = OffsetDateTime::now_utc().unix_timestamp();
        self.segments += 1;
        let folder = ring.join(format!("{now:012}-{:06}", self.segments));
        self.segment = Some((folder.clone(), Record::create(&folder, &self.manifest)?));
        Ok(())
    }

    /// The stacks that were captured in the segment; the next one begins without.
    fn write_stacks(&self, folder: &Path) -> Result<(), RunError> {
        let Some(stacks) = &self.stacks else { return Ok(()) };
        let stacks = std::mem::take(&mut *stacks.lock().unwrap_or_else(PoisonError::into_inner));
        write_stacks(folder, &stacks)
    }

    /// Segments of this watch that may hold samples of `from_s` or later, the oldest first.
    fn segments_since(&self, from_s: f64) -> Vec<PathBuf> {
        let back = ((self.segment_begun_s - from_s) / SEGMENT_S).ceil().max(0.0) as usize + 2;
        let own = |path: &PathBuf| self.is_own(path);
        let mut segments: Vec<PathBuf> =
            children(&self.plan.folder.join(name::RING)).into_iter().filter(own).collect();
        let first = segments.len().saturating_sub(back);
        segments.split_off(first)
    }

    fn is_own(&self, segment: &Path) -> bool {
        super::replay::manifest(segment).is_ok_and(|m| m.header.created == self.manifest.header.created)
    }

    /// Texts of marks that came since the last look.
    fn marks(&self) -> Vec<String> {
        let files = children(&self.plan.folder.join(name::MARKS));
        let marks = files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "mark"));
        let text = |file: PathBuf| {
            let text = mydyno_facts::read_regular(&file, LONGEST_MARK).unwrap_or_default();
            // One that cannot be removed would be seen again and again.
            std::fs::remove_file(&file).ok()?;
            let text: String = text.chars().filter(|c| !c.is_control()).collect();
            Some(if text.trim().is_empty() { "by the user".to_owned() } else { text.trim().to_owned() })
        };
        marks.filter_map(text).collect()
    }
}

/// The instant of a watch's clock as text.
fn instant(manifest: &WatchManifest, at_s: f64) -> String {
    let begun = OffsetDateTime::parse(&manifest.header.created, &Rfc3339);
    let at = begun.unwrap_or(OffsetDateTime::UNIX_EPOCH) + time::Duration::seconds_f64(at_s);
    let at = at.replace_nanosecond(0).unwrap_or(at);
    at.format(&Rfc3339).unwrap_or_default()
}

fn make(folder: &Path) -> Result<(), RunError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder).map_err(RunError::file("creating", folder))
}

/// Files and folders in a folder, by name.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> u64 {
    let of = |path: PathBuf| match std::fs::symlink_metadata(&path) {
        Ok(about) if about.is_dir() => size(&path),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    children(folder).into_iter().map(of).sum()
}

/// Removes the oldest folders until there is room for one more of `most` and `most_bytes` are not exceeded.
fn prune(folder: &Path, most: usize, most_bytes: u64) {
    let mut paths: std::collections::VecDeque<(PathBuf, u64)> =
        children(folder).into_iter().map(|path| (path.clone(), size(&path))).collect();
    let mut bytes: u64 = paths.iter().map(|(_, bytes)| bytes).sum();
    while paths.len() > most || (bytes > most_bytes && paths.len() > 1) {
        let Some((oldest, its)) = paths.pop_front() else { return };
        // What cannot be removed is looked at again with the next segment.
        let _ = std::fs::remove_dir_all(&oldest);
        bytes = bytes.saturating_sub(its);
    }
}

#[cfg(test)]
mod tests;
