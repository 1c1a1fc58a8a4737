//! One step on a running server, without a record: the unit that an experiment repeats.

use std::sync::atomic::AtomicBool;

use mydyno_load::StepEvent;
use mydyno_load::clock::MonotonicClock;
use mydyno_model::Header;
use mydyno_model::plan::StepPlan;
use mydyno_model::record::{EventKind, Interval, Manifest, RunRecord};
use mydyno_model::summary::{Fingerprint, StepSummary};
use time::OffsetDateTime;

use crate::error::RunError;
use crate::progress::{Progress, Watch};
use crate::server::RealServer;
use crate::step::{EarlyEnd, StepSink, error_event, run_step};
use crate::summarise::summarise_step;
use crate::tables::LoadSite;

/// The measurement of one step.
#[derive(Debug)]
pub struct Sliced {
    /// Its summary; `None` when nothing of it was measured.
    pub summary: Option<StepSummary>,
    /// Its intervals, a second each, warm-up included.
    pub intervals: Vec<Interval>,
    /// Events of the run, with the instant on the clock in seconds: errors and warnings.
    pub events: Vec<(f64, EventKind)>,
    /// The reason why it ended early; `None` when it is complete.
    pub cut: Option<EarlyEnd>,
}

/// Measures one step of a plan on a running server that has its tables. The number of the step selects the random
/// streams of its operations. Host and server are not sampled.
///
/// # Errors
/// The load could not start.
pub fn slice(
    place: LoadSite<'_>,
    clock: &MonotonicClock,
    (number, step): (usize, &StepPlan),
    stop: &AtomicBool,
    watch: &mut Watch<'_>,
) -> Result<Sliced, RunError> {
    let mut kept = Kept { place, intervals: Vec::new(), events: Vec::new(), watch };
    let cut = run_step(place, &RealServer { clock }, (number, step), true, &mut kept, stop)?;
    let Kept { intervals, events, .. } = kept;
    let manifest = Manifest {
        header: Header::of::<Manifest>(OffsetDateTime::now_utc()),
        run: String::new(),
        plan: place.plan.clone(),
        argv: Vec::new(),
        facts_digest: String::new(),
        clock: clock.describe(None),
        fingerprint: Fingerprint { data: String::new(), operations: place.work.fingerprint() },
        operations: place.work.operations().to_vec(),
        extra: serde_json::Map::new(),
    };
    let record = RunRecord {
        manifest,
        facts: None,
        intervals,
        events: Vec::new(),
        samples: Vec::new(),
        damage: Vec::new(),
        recording: false,
    };
    let summary = summarise_step(&record, number, step);
    Ok(Sliced { summary, intervals: record.intervals, events, cut })
}

/// Keeps the events of a step in memory.
struct Kept<'a, 'w> {
    place: LoadSite<'a>,
    intervals: Vec<Interval>,
    events: Vec<(f64, EventKind)>,
    watch: &'a mut Watch<'w>,
}

impl StepSink for Kept<'_, '_> {
    fn event(&mut self, number: usize, step: &StepPlan, event: StepEvent) -> Result<(), RunError> {
        match event {
            StepEvent::Connected { done, of } => (self.watch)(Progress::Connecting { step, done, of }),
            StepEvent::Phase(phase, at_s) => {
                self.events.push((at_s, EventKind::Phase { step: number, phase }));
                (self.watch)(Progress::Phase { number, step, phase });
            }
            StepEvent::Error(error, at_s) => {
                let what = error_event(self.place.work, number, error);
                self.events.push((at_s, what));
            }
            StepEvent::Interval(interval) => {
                (self.watch)(Progress::Interval { step, interval: &interval });
                self.intervals.push(*interval);
            }
        }
        Ok(())
    }

    fn note(&mut self, at_s: f64, what: EventKind) -> Result<(), RunError> {
        self.events.push((at_s, what));
        Ok(())
    }
}
