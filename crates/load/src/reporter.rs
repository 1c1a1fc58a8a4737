//! Closes a worker's windows on time and hands each over once.

use std::sync::mpsc::Sender;

use mydyno_model::record::{ArrivalCounts, Phase};
use mydyno_workload::Workload;

use crate::context::StepContext;
use crate::handover::{Handover, Message};
use crate::recorder::Recorded;
use crate::schedule::Schedule;
use crate::shared::Shared;
use crate::transport::Transport;
use crate::usage::ThreadUse;
use crate::waiting::{Arrivals, Counted};

/// Closes windows and hands them over.
pub struct Reporter<'a, W, T: Transport> {
    context: &'a StepContext<'a, W>,
    shared: &'a Shared<T>,
    messages: &'a Sender<Message>,
    start_ns: u64,
    window: usize,
    /// When the drain began.
    draining_since_ns: Option<u64>,
    usage: ThreadUse,
    waits: u64,
    /// Transactions sent and not answered.
    in_flight: u64,
    /// Transactions due and not sent, at the end of the last window.
    queued: u64,
}

impl<'a, W: Workload, T: Transport> Reporter<'a, W, T> {
    /// A reporter whose first window begins at `start_ns`.
    pub fn start(
        context: &'a StepContext<'a, W>,
        shared: &'a Shared<T>,
        messages: &'a Sender<Message>,
        start_ns: u64,
    ) -> Self {
        let reporter = Self {
            context,
            shared,
            messages,
            start_ns,
            window: 0,
            draining_since_ns: None,
            usage: shared.transport.usage(),
            waits: 0,
            in_flight: 0,
            queued: 0,
        };
        let schedule = match context.windows.get(0) {
            Some((Phase::Warmup, _)) => reporter.schedule_of_warmup(),
            _ => reporter.schedule_of_measurement(start_ns),
        };
        shared.arrivals.replace(schedule.map(Arrivals::new));
        reporter
    }

    fn schedule_of_warmup(&self) -> Option<Schedule> {
        let (context, deal) = (self.context, self.context.deal(self.shared.worker));
        Schedule::warmup(context.arrivals, deal, context.seed, self.start_ns)
    }

    fn schedule_of_measurement(&self, from_ns: u64) -> Option<Schedule> {
        let (context, deal) = (self.context, self.context.deal(self.shared.worker));
        Schedule::measure(context.arrivals, deal, context.seed, from_ns, context.windows.measure_s())
    }

    /// Counts a call that waited for events.
    pub fn waited(&mut self) {
        self.waits += 1;
    }

    /// When the open window or the drain ends, on the run's clock.
    pub fn next_ns(&self) -> u64 {
        match (self.draining_since_ns, self.context.windows.get(self.window)) {
            (Some(since), _) => since + self.context.drain_limit_ns(),
            (None, Some((_, end))) => self.start_ns + end,
            (None, None) => 0,
        }
    }

    /// Hands over the windows that have ended by `now_ns`, and returns whether the worker is done. `live` tasks have not
    /// ended.
    pub fn close_windows(&mut self, now_ns: u64, live: usize) -> bool {
        if self.draining_since_ns.is_none() {
            self.close_timed(now_ns);
        }
        let done = self
            .draining_since_ns
            .is_some_and(|since| live == 0 || now_ns >= since + self.context.drain_limit_ns());
        if done {
            self.hand_over(Phase::Drain, now_ns, now_ns);
        }
        done
    }

    fn close_timed(&mut self, now_ns: u64) {
        while let Some((phase, end)) = self.context.windows.get(self.window) {
            let end_ns = self.start_ns + end;
            if now_ns >= end_ns {
                self.hand_over(phase, end_ns, now_ns);
                self.window += 1;
                continue;
            }
            // A worker that has lost all its connections goes on counting its arrivals while others have some.
            if self.context.goes_on() {
                return;
            }
            // The load is cancelled, or no connection is left: the last window ends here.
            self.hand_over(phase, now_ns, now_ns);
            self.window = self.context.windows.count();
        }
        self.shared.stopping.set(true);
        self.draining_since_ns = Some(now_ns);
    }

    fn hand_over(&mut self, phase: Phase, end_ns: u64, now_ns: u64) {
        let shared = self.shared;
        let recorder = shared.recorder.borrow_mut().take();
        let arrivals = self.count(phase, &recorder, end_ns);
        let usage = shared.transport.usage();
        let opening = shared.opening_use.take();
        let handover = Handover {
            worker: shared.worker,
            window: self.window,
            phase,
            end_ns,
            late_ns: now_ns - end_ns,
            recorder,
            arrivals,
            usage: usage.since(&self.usage).plus(&opening),
            opening_us: opening.user_us + opening.system_us,
            waits: std::mem::take(&mut self.waits),
            first_errors: shared.first_errors.take(),
            lost: shared.lost.get(),
            down: shared.down.get(),
            last_loss: shared.last_loss.borrow().clone(),
        };
        self.usage = usage;
        // Without a receiver the run has ended, and the window is not needed.
        let _ = self.messages.send(Message::Handover(Box::new(handover)));
    }

    /// Counts the transactions that were due. When the measurement begins, the backlog of the warm-up is dropped and the
    /// schedule starts again.
    fn count(&mut self, phase: Phase, recorder: &Recorded, end_ns: u64) -> ArrivalCounts {
        let done = recorder.transactions + recorder.failed;
        self.in_flight = self.in_flight + recorder.started - done;
        let mut dropped = 0;
        let mut intended = recorder.started;
        if let Some(arrivals) = self.shared.arrivals.borrow_mut().as_mut() {
            // Nothing becomes due in the drain; the backlog stays as it is.
            let counted = match phase {
                Phase::Drain => Counted { intended: 0, queued: self.queued },
                _ => arrivals.count(end_ns),
            };
            (intended, self.queued) = (counted.intended, counted.queued);
            let next = self.context.windows.get(self.window + 1).map(|(phase, _)| phase);
            if phase == Phase::Warmup && next == Some(Phase::Measure) && !self.context.is_cancelled() {
                dropped = std::mem::take(&mut self.queued);
                if let Some(schedule) = self.schedule_of_measurement(end_ns) {
                    arrivals.change(schedule);
                }
                self.shared.timed_from_ns.set(end_ns);
            }
        }
        ArrivalCounts {
            intended,
            started: recorder.started,
            failed: recorder.failed,
            dropped,
            queued: self.queued,
            in_flight: self.in_flight,
        }
    }
}
