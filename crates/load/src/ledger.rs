//! The workers' windows, merged into the intervals of the record.

use std::collections::BTreeMap;

use mydyno_model::record::{ClientUse, Interval, OperationInfo, OperationTimes, Phase};
use mydyno_stats::Distribution;

use crate::recorder::Recorder;
use crate::step::StepEvent;
use crate::sys;
use crate::worker::Handover;

/// Collects the hand-overs of a step.
pub struct Ledger<'a> {
    step: usize,
    operations: &'a [OperationInfo],
    /// Window that each worker has closed last, and whether it goes on.
    workers: Vec<Progress>,
    open: BTreeMap<usize, Open>,
    /// End of the last interval, on the run's clock.
    end_ns: u64,
    phase: Option<Phase>,
    /// Connections lost.
    pub lost: usize,
    /// Why the last of them was.
    pub last_loss: Option<String>,
    /// Transactions without an answer at the end.
    pub unanswered: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    closed: Option<usize>,
    gone: bool,
    lost: usize,
}

/// A window that not all workers have handed over.
struct Open {
    phase: Phase,
    end_ns: u64,
    recorder: Recorder,
    client: ClientUse,
}

impl<'a> Ledger<'a> {
    pub fn new(step: usize, operations: &'a [OperationInfo], workers: usize, start_ns: u64) -> Self {
        Self {
            step,
            operations,
            workers: vec![Progress::default(); workers],
            open: BTreeMap::new(),
            end_ns: start_ns,
            phase: None,
            lost: 0,
            last_loss: None,
            unanswered: 0,
        }
    }

    /// Workers that have not gone home.
    pub fn working(&self) -> usize {
        self.workers.iter().filter(|w| !w.gone).count()
    }

    /// Takes a hand-over; windows that are complete by it go to the sink.
    pub fn take(&mut self, handover: Handover, sink: &mut dyn FnMut(StepEvent)) {
        for error in handover.first_errors {
            sink(StepEvent::Error(error, handover.end_ns as f64 / 1e9));
        }
        let worker = &mut self.workers[handover.worker];
        *worker = Progress { closed: Some(handover.window), gone: handover.last, lost: handover.lost };
        self.lost = self.workers.iter().map(|w| w.lost).sum();
        self.last_loss = handover.last_loss.or(self.last_loss.take());
        self.unanswered += handover.unanswered;
        let operations = self.operations.len();
        let open = self.open.entry(handover.window).or_insert_with(|| Open {
            phase: handover.phase,
            end_ns: handover.end_ns,
            recorder: Recorder::new(operations),
            client: ClientUse::default(),
        });
        open.end_ns = open.end_ns.max(handover.end_ns);
        open.recorder.merge(&handover.recorder);
        open.client.user_us += handover.usage.user_us;
        open.client.system_us += handover.usage.system_us;
        open.client.voluntary_switches += handover.usage.voluntary_switches;
        open.client.involuntary_switches += handover.usage.involuntary_switches;
        open.client.waits += handover.waits;
        self.emit_complete(sink);
    }

    /// Emits what is left, whether or not every worker has handed it over.
    pub fn close(&mut self, sink: &mut dyn FnMut(StepEvent)) {
        for open in std::mem::take(&mut self.open).into_values() {
            self.emit(open, sink);
        }
    }

    fn emit_complete(&mut self, sink: &mut dyn FnMut(StepEvent)) {
        let waiting_for = self.workers.iter().filter(|w| !w.gone).map(|w| w.closed).min();
        let complete_below = match waiting_for {
            None => usize::MAX,
            Some(None) => return,
            Some(Some(closed)) => closed + 1,
        };
        while let Some(entry) = self.open.first_entry().filter(|e| *e.key() < complete_below) {
            let open = entry.remove();
            self.emit(open, sink);
        }
    }

    fn emit(&mut self, open: Open, sink: &mut dyn FnMut(StepEvent)) {
        let start_ns = self.end_ns;
        self.end_ns = open.end_ns.max(start_ns);
        if self.phase != Some(open.phase) {
            self.phase = Some(open.phase);
            sink(StepEvent::Phase(open.phase, start_ns as f64 / 1e9));
        }
        let (resident_bytes, threads) = sys::process_size();
        let recorder = open.recorder;
        let interval = Interval {
            step: self.step,
            phase: open.phase,
            start_s: start_ns as f64 / 1e9,
            width_s: (self.end_ns - start_ns) as f64 / 1e9,
            transactions: recorder.transactions,
            queries: recorder.queries,
            errors: recorder.errors.iter().map(|(code, count)| (code.to_string(), *count)).collect(),
            retries: recorder.retries,
            reconnects: recorder.reconnects,
            client: ClientUse { resident_bytes, threads, ..open.client },
            lateness: recorder.lateness.to_data(),
            operations: self
                .operations
                .iter()
                .zip(&recorder.times)
                .filter(|(_, times)| times.response.count() > 0)
                .map(|(info, times)| {
                    let times = OperationTimes {
                        response: times.response.to_data(),
                        service: times.service.to_data(),
                    };
                    (info.name.clone(), times)
                })
                .collect(),
            extra: serde_json::Map::new(),
        };
        sink(StepEvent::Interval(Box::new(interval)));
    }
}
