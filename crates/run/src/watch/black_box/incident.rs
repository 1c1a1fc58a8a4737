//! An incident: a recorded watch of the minutes around it, with what differed in them from the minutes before.

use std::path::{Path, PathBuf};

use mydyno_judge::diagnosis::{Rules, diagnose};
use mydyno_model::Document as _;
use mydyno_model::record::file;
use mydyno_model::summary::Differs;
use mydyno_model::watch::{WatchInterval, WatchManifest};
use mydyno_profile::Folded;
use mydyno_samples::series::Series;

use super::{instant, make};
use crate::error::RunError;
use crate::spikes::differs;
use crate::stacks::AllStacks;
use crate::watch::record::Record;
use crate::watch::replay;
use crate::writer::write_whole;

/// How much of the time before the instant belongs to the incident: it may have begun before it was seen.
const LEAD_S: f64 = 10.0;

/// Most different stacks of an incident.
const MOST_STACKS: usize = 50_000;

/// Most bytes of a file of stacks.
const LARGEST_STACKS: u64 = 64 << 20;

/// An incident that waits for the minute after it.
#[derive(Debug)]
pub struct Incident {
    /// Its instant in seconds of the watch.
    pub at_s: f64,
    /// `mark` or `spike`.
    reason: String,
    /// Its texts, for people.
    pub texts: Vec<String>,
}

impl Incident {
    pub fn new(at_s: f64, reason: &str) -> Self {
        Self { at_s, reason: reason.to_owned(), texts: Vec::new() }
    }

    /// Writes the samples of `segments` from `from_s` on into a folder of their own, and beside them what they say.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn keep(
        &self,
        incidents: &Path,
        manifest: &WatchManifest,
        segments: &[PathBuf],
        from_s: f64,
    ) -> Result<PathBuf, RunError> {
        let at = instant(manifest, self.at_s);
        let folder = incidents.join(format!("{}-{}", at.replace(':', ""), self.reason));
        make(&folder)?;
        let mut record = Record::create(&folder, manifest)?;
        for text in &self.texts {
            record.note(self.at_s, &format!("{}: {text}", self.reason))?;
        }
        let mut series = Series::new(replay::started(manifest), manifest.interval_s);
        let mut intervals: Vec<WatchInterval> = Vec::new();
        let mut stacks = AllStacks::default();
        let mut written = Ok(());
        for segment in segments {
            // A segment that an error cut short is read as far as it goes.
            let _ = replay::samples(segment, |sample| {
                if sample.at_s >= from_s {
                    written = record.sample(sample.clone());
                    intervals.extend(series.push(sample));
                }
                written.is_ok()
            });
            std::mem::replace(&mut written, Ok(()))?;
            stacks.on_cpu.merge(&folded(&segment.join(file::CPU_STACKS)), MOST_STACKS);
            // The files hold microseconds.
            stacks.off_cpu.merge(&folded(&segment.join(file::WAIT_STACKS)).scaled(1e-6), MOST_STACKS);
        }
        record.finish(Some(&stacks))?;
        let (during, before): (Vec<WatchInterval>, Vec<WatchInterval>) =
            intervals.into_iter().partition(|interval| interval.at_s >= self.at_s - LEAD_S);
        let diagnosis = diagnose(&Rules::embedded()?, &during);
        write_whole(&folder.join(file::DIAGNOSIS), &diagnosis.to_json())?;
        write_whole(&folder.join("incident.txt"), &self.text(&at, &during, &before))?;
        Ok(folder)
    }

    /// The incident for people.
    fn text(&self, at: &str, during: &[WatchInterval], before: &[WatchInterval]) -> String {
        let mut text = format!("{} at {at}\n", self.reason);
        self.texts.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        text.push_str("\nLarger than in every interval before:\n");
        let here = during.iter().filter(|interval| interval.at_s <= self.at_s + LEAD_S);
        let before: Vec<&WatchInterval> = before.iter().collect();
        let found: Vec<Differs> = differs(here, &before);
        for Differs { figure, value, usual } in &found {
            text.push_str(&format!("  {figure}: {value:.4} (usually {usual:.4})\n"));
        }
        if found.is_empty() {
            text.push_str("  no figure\n");
        }
        text
    }
}

fn folded(file: &Path) -> Folded {
    let text = mydyno_facts::read_regular(file, LARGEST_STACKS).unwrap_or_default();
    Folded::parse(&text).unwrap_or_default()
}
