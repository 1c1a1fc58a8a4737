//! Writes the events of a run into its record and passes them on to the caller.

use std::sync::mpsc::Receiver;

use mydyno_load::StepEvent;
use mydyno_model::plan::StepPlan;
use mydyno_model::record::{EventKind, Interval, Manifest, RunRecord};
use mydyno_model::sample::Sample;
use mydyno_model::summary::StepSummary;

use crate::error::RunError;
use crate::progress::{Progress, Watch};
use crate::server::LoadedServer;
use crate::step::{StepSink, error_event};
use crate::summarise::summarise_step;
use crate::tables::LoadSite;
use crate::writer::Writer;

/// Writes the events of a run into its record and passes them on to the caller.
pub(crate) struct Recording<'a> {
    pub place: LoadSite<'a>,
    pub manifest: &'a Manifest,
    pub server: &'a dyn LoadedServer,
    pub writer: &'a mut Writer,
    pub watch: &'a mut Watch<'a>,
    samples: &'a Receiver<Sample>,
    /// Intervals of the step that a search judges before the record is complete.
    kept: Option<Vec<Interval>>,
}

impl<'a> Recording<'a> {
    pub fn new(
        place: LoadSite<'a>,
        manifest: &'a Manifest,
        server: &'a dyn LoadedServer,
        writer: &'a mut Writer,
        samples: &'a Receiver<Sample>,
        watch: &'a mut Watch<'a>,
    ) -> Self {
        Self { place, manifest, server, writer, watch, samples, kept: None }
    }

    /// Adds a step to those of the plan.
    pub fn add_step(&mut self, number: usize, step: &StepPlan) -> Result<(), RunError> {
        self.writer.event(self.server.clock().now_s(), EventKind::Step { step: number, plan: step.clone() })
    }

    /// Keeps the intervals that follow, for [`Self::summary`].
    pub fn keep_intervals(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// The summary of a step whose intervals were kept, without values from samples.
    pub fn summary(&mut self, number: usize, step: &StepPlan) -> Option<StepSummary> {
        let record = RunRecord {
            manifest: self.manifest.clone(),
            facts: None,
            intervals: self.kept.take()?,
            events: Vec::new(),
            samples: Vec::new(),
            damage: Vec::new(),
            recording: false,
        };
        summarise_step(&record, number, step)
    }
}

impl StepSink for Recording<'_> {
    /// Writes the event into the record and passes it on.
    fn event(&mut self, number: usize, step: &StepPlan, event: StepEvent) -> Result<(), RunError> {
        while let Ok(sample) = self.samples.try_recv() {
            self.writer.sample(sample)?;
        }
        match event {
            StepEvent::Connected { done, of } => (self.watch)(Progress::Connecting { step, done, of }),
            StepEvent::Phase(phase, at_s) => {
                self.writer.event(at_s, EventKind::Phase { step: number, phase })?;
                (self.watch)(Progress::Phase { number, step, phase });
            }
            StepEvent::Error(error, at_s) => {
                let what = error_event(self.place.work, number, error);
                self.writer.event(at_s.min(self.server.clock().now_s()), what)?;
            }
            StepEvent::Interval(interval) => {
                self.writer.interval(&interval)?;
                (self.watch)(Progress::Interval { step, interval: &interval });
                if let Some(kept) = &mut self.kept {
                    kept.push(*interval);
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, at_s: f64, what: EventKind) -> Result<(), RunError> {
        self.writer.event(at_s, what)
    }
}
