//! Reads a run folder, of a run that ended or was killed, within bounds and from regular files only.

use std::io::BufReader;
use std::path::Path;

use mydyno_facts::{open_regular, read_regular};
use mydyno_model::Document;
use mydyno_model::facts::FactSet;
use mydyno_model::plan::StepPlan;
use mydyno_model::record::{Event, EventKind, Interval, Manifest, RunRecord, file};
use mydyno_model::sample::Sample;
use serde::de::DeserializeOwned;
use serde_json::Map;

use crate::error::RunError;
use crate::frames::Frames;
use crate::lines::{self, Lines};

/// Most bytes of a document of the folder.
const LARGEST_DOCUMENT: u64 = 16 << 20;

/// Most bytes of a file of lines. A day of windows with six operations takes 600 MB.
const LARGEST_FILE: u64 = 1 << 30;

/// Most bytes that `observe.jsonl.zst` is expanded to.
const LARGEST_OBSERVATION: u64 = 64 << 20;

/// Most steps of a run: each is compared with all windows and samples, and takes 80 kB while a page is made. Two loads
/// with a thousand repeats each have room.
const MOST_STEPS: usize = 2_000;

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
    let mut manifest =
        Manifest::from_json(&text).map_err(|source| RunError::Document { path: manifest_path, source })?;
    let events = plain(folder, file::EVENTS, |event| event);
    // No reader of a record looks at fields that later versions may add to a window, and they may be of any size.
    let intervals = plain(folder, file::INTERVALS, |interval| Interval { extra: Map::new(), ..interval });
    let (samples, frames) = observed(folder);
    let ended = events.values.iter().any(|event: &Event| matches!(event.what, EventKind::End { .. }));
    let mut damage = intervals.damage(file::INTERVALS, ended);
    damage.extend(events.damage(file::EVENTS, ended));
    damage.extend(samples.damage(file::OBSERVE, ended));
    let recording = !ended && crate::kept::is_recorded(folder);
    let facts = facts(folder, &manifest, &mut damage);
    let mut intervals = lines::check_intervals(intervals.values, &mut damage);
    let mut events = lines::check_events(events.values, &mut damage);
    bound_steps(&mut manifest.plan.steps, &mut events, &mut damage);
    if manifest.plan.steps.len() >= MOST_STEPS {
        intervals.retain(|interval| interval.step < MOST_STEPS);
    }
    lines::check_phases(&intervals, &events, &mut damage);
    let samples = frames.end(&mut damage);
    Ok(RunRecord { manifest, facts, intervals, events, samples, damage, recording })
}

/// Leaves out the steps of the plan, and those that were added while it ran, after the first [`MOST_STEPS`].
fn bound_steps(steps: &mut Vec<StepPlan>, events: &mut Vec<Event>, damage: &mut Vec<String>) {
    let added = |event: &&Event| matches!(event.what, EventKind::Step { .. });
    let all = steps.len() + events.iter().filter(added).count();
    if all > MOST_STEPS {
        damage.push(format!("the run has {all} steps: those after the first {MOST_STEPS} are left out"));
        steps.truncate(MOST_STEPS);
        let mut number = steps.len();
        events.retain(|event| {
            number += usize::from(added(&event));
            !added(&event) || number <= MOST_STEPS
        });
    }
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

/// The lines of a file, each as `keep` leaves it; none where it is missing.
fn plain<T: DeserializeOwned>(folder: &Path, name: &str, keep: impl Fn(T) -> T) -> Lines<T> {
    let mut values = Vec::new();
    let lines = match open_regular(&folder.join(name)) {
        Ok(file) => lines::read_each(BufReader::new(file), LARGEST_FILE, |value| values.push(keep(value))),
        Err(error) => Lines::unopened(&error),
    };
    Lines { values, ..lines }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_more_steps_than_any_run_has_is_cut_and_told() {
        let plan = r#"{"connections":1,"workers":1,"arrivals":{"kind":"closed"}}"#;
        let step = |step: usize| -> Event {
            let text = format!(r#"{{"at_s":1.0,"event":"step","step":{step},"plan":{plan}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let mut steps: Vec<StepPlan> = vec![serde_json::from_str(plan).unwrap(); 3];
        let mut damage = Vec::new();
        let mut events: Vec<Event> = (3..MOST_STEPS).map(step).collect();
        bound_steps(&mut steps, &mut events, &mut damage);
        assert!(damage.is_empty() && steps.len() + events.len() == MOST_STEPS);
        events.extend((0..5).map(|more| step(MOST_STEPS + more)));
        bound_steps(&mut steps, &mut events, &mut damage);
        assert_eq!((steps.len() + events.len(), damage.len()), (MOST_STEPS, 1));
        assert!(damage[0].contains("2005 steps"), "{damage:?}");
    }
}
