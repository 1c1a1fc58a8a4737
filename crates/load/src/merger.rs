//! Merges the workers' windows into the intervals of the record.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use mydyno_model::record::{ArrivalCounts, ClientUse, Interval, OperationInfo, OperationTimes, Phase};
use mydyno_stats::Distribution;

use crate::event::StepEvent;
use crate::handover::{Handover, Message};
use crate::recorder::{FirstError, Recorded};
use crate::window::Windows;

/// Merges the hand-overs of a step.
pub struct Merger<'a> {
    step: usize,
    operations: &'a [OperationInfo],
    windows: &'a Windows,
    /// The last window that each worker has closed, and whether the worker runs.
    workers: Vec<Progress>,
    open: BTreeMap<usize, Open>,
    /// End of the last interval, on the run's clock.
    end_ns: u64,
    /// The last phase that was reported.
    phase: Option<Phase>,
    /// First errors by code, and how often each code came.
    errors: BTreeMap<u16, (u64, FirstError)>,
    /// Worst delay with which a worker closed a window, in nanoseconds.
    pub late_ns: u64,
    /// Connections lost for good.
    pub lost: usize,
    /// Answers with a wrong sequence number, which were accepted.
    pub misnumbered: u64,
    /// Since when no connection at all is open, on the run's clock.
    pub all_down_since_ns: Option<u64>,
    /// Why the last connection was lost.
    pub last_loss: Option<String>,
    /// Arrivals of the last interval.
    pub last: ArrivalCounts,
    /// Resident memory in bytes and threads of this process.
    process_size: fn() -> (u64, u64),
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    closed: Option<usize>,
    gone: bool,
    lost: usize,
    down: usize,
    connections: usize,
    /// Due and not sent, sent and not answered, at the end of the last emitted window.
    waiting: (u64, u64),
}

/// A window that some workers have not handed over.
struct Open {
    phase: Phase,
    end_ns: u64,
    recorder: Recorded,
    arrivals: ArrivalCounts,
    /// Transactions that wait at each worker when the window ends.
    waiting: BTreeMap<usize, (u64, u64)>,
    client: ClientUse,
}

impl<'a> Merger<'a> {
    pub fn new(
        step: usize,
        operations: &'a [OperationInfo],
        windows: &'a Windows,
        connections: usize,
        workers: usize,
        start_ns: u64,
        process_size: fn() -> (u64, u64),
    ) -> Self {
        let of = |worker| (worker..connections).step_by(workers).count();
        let workers = (0..workers).map(|n| Progress { connections: of(n), ..Progress::default() });
        Self {
            step,
            operations,
            windows,
            workers: workers.collect(),
            open: BTreeMap::new(),
            end_ns: start_ns,
            phase: None,
            errors: BTreeMap::new(),
            late_ns: 0,
            lost: 0,
            misnumbered: 0,
            all_down_since_ns: None,
            last_loss: None,
            last: ArrivalCounts::default(),
            process_size,
        }
    }

    /// Workers that have not ended.
    pub fn running(&self) -> usize {
        self.workers.iter().filter(|w| !w.gone).count()
    }

    /// Reports the phase that the load starts with.
    pub fn begin(&mut self, sink: &mut dyn FnMut(StepEvent)) {
        let first = self.windows.get(0).map_or(Phase::Drain, |(phase, _)| phase);
        self.announce(first, sink);
    }

    /// Processes a worker's message; windows that it completes go to the sink.
    pub fn take(&mut self, message: Message, sink: &mut dyn FnMut(StepEvent)) {
        match message {
            Message::Handover(handover) => self.take_handover(*handover, sink),
            Message::Gone { worker } => self.workers[worker].gone = true,
        }
        self.emit_complete(sink);
    }

    fn take_handover(&mut self, handover: Handover, sink: &mut dyn FnMut(StepEvent)) {
        for error in handover.first_errors {
            if let Entry::Vacant(entry) = self.errors.entry(error.code) {
                sink(StepEvent::Error(error.clone(), handover.end_ns as f64 / 1e9));
                entry.insert((0, error));
            }
        }
        for (code, count) in &handover.recorder.errors {
            if let Some((total, _)) = self.errors.get_mut(code) {
                *total += count;
            }
        }
        let worker = &mut self.workers[handover.worker];
        (worker.closed, worker.lost, worker.down) = (Some(handover.window), handover.lost, handover.down);
        self.lost = self.workers.iter().map(|w| w.lost).sum();
        let all_down = self.workers.iter().all(|w| w.lost + w.down >= w.connections);
        self.all_down_since_ns = all_down
            .then(|| self.all_down_since_ns.map_or(handover.end_ns, |since| since.min(handover.end_ns)));
        self.last_loss = handover.last_loss.or(self.last_loss.take());
        self.late_ns = self.late_ns.max(handover.late_ns);
        self.misnumbered += handover.recorder.misnumbered;
        let open = match self.open.entry(handover.window) {
            Entry::Occupied(entry) => {
                let open = entry.into_mut();
                open.recorder.merge(&handover.recorder);
                open
            }
            Entry::Vacant(entry) => entry.insert(Open {
                phase: handover.phase,
                end_ns: handover.end_ns,
                recorder: handover.recorder,
                arrivals: ArrivalCounts::default(),
                waiting: BTreeMap::new(),
                client: ClientUse::default(),
            }),
        };
        open.end_ns = open.end_ns.max(handover.end_ns);
        add(&mut open.arrivals, &handover.arrivals);
        let waiting = (handover.arrivals.queued, handover.arrivals.in_flight);
        open.waiting.insert(handover.worker, waiting);
        open.client.user_us += handover.usage.user_us;
        open.client.system_us += handover.usage.system_us;
        open.client.voluntary_switches += handover.usage.voluntary_switches;
        open.client.involuntary_switches += handover.usage.involuntary_switches;
        open.client.opening_us += handover.opening_us;
        open.client.waits += handover.waits;
    }

    /// End of the latest window that a worker has handed over, on the run's clock.
    pub fn reported_until_ns(&self) -> u64 {
        self.open.values().map(|open| open.end_ns).max().unwrap_or(0).max(self.end_ns)
    }

    /// Code and message of the step's most frequent error.
    pub fn most_frequent_error(&self) -> Option<String> {
        let (_, error) = self.errors.values().max_by_key(|(count, _)| *count)?;
        Some(format!("error {} ({}): {}", error.code, error.sqlstate, error.message))
    }

    /// Emits the remaining windows, whether or not every worker has handed them over.
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
            let window = *entry.key();
            let open = entry.remove();
            self.emit(open, sink);
            // The next phase is reported before it has ended, so that a truncated record says which one was running.
            if let Some((phase, _)) = self.windows.get(window + 1) {
                self.announce(phase, sink);
            }
        }
    }

    fn announce(&mut self, phase: Phase, sink: &mut dyn FnMut(StepEvent)) {
        if self.phase != Some(phase) {
            self.phase = Some(phase);
            sink(StepEvent::Phase(phase, self.end_ns as f64 / 1e9));
        }
    }

    fn emit(&mut self, mut open: Open, sink: &mut dyn FnMut(StepEvent)) {
        // Transactions that wait at a worker without a part in this window are still waiting.
        for (worker, waiting) in std::mem::take(&mut open.waiting) {
            self.workers[worker].waiting = waiting;
        }
        open.arrivals.queued = self.workers.iter().map(|w| w.waiting.0).sum();
        open.arrivals.in_flight = self.workers.iter().map(|w| w.waiting.1).sum();
        let start_ns = self.end_ns;
        self.announce(open.phase, sink);
        self.end_ns = open.end_ns.max(start_ns);
        self.last = open.arrivals;
        let (resident_bytes, threads) = (self.process_size)();
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
            retried: recorder.retried.to_data(),
            reconnects: recorder.reconnects,
            arrivals: open.arrivals,
            connect: recorder.connect.to_data(),
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
            counts: (recorder.counted.iter().zip(&recorder.counts))
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            extra: serde_json::Map::new(),
        };
        sink(StepEvent::Interval(Box::new(interval)));
    }
}

/// Adds the counts of another worker in the same window, except those of transactions that wait at its end.
fn add(sum: &mut ArrivalCounts, more: &ArrivalCounts) {
    let ArrivalCounts { intended, started, failed, dropped, queued: _, in_flight: _ } = more;
    sum.intended += intended;
    sum.started += started;
    sum.failed += failed;
    sum.dropped += dropped;
}
