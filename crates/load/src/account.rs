//! A worker's account of its windows: closed on time, handed over once each.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use mydyno_model::record::{ArrivalCounts, Phase};
use mydyno_workload::Workload;

use crate::connection::Shared;
use crate::recorder::{FirstError, Recorder};
use crate::schedule::Schedule;
use crate::sys::ThreadUse;
use crate::waiting::{Arrivals, Counted};
use crate::worker::Orders;

/// What a worker tells while the load runs.
pub enum Message {
    /// A window is over.
    Handover(Box<Handover>),
    /// The worker has ended, whether or not it closed all its windows.
    Gone {
        /// Number of the worker.
        worker: usize,
    },
}

/// What a worker recorded in one window.
pub struct Handover {
    /// Number of the worker.
    pub worker: usize,
    /// Number of the window; the drain comes after the last.
    pub window: usize,
    pub phase: Phase,
    /// When the window ended, on the run's clock.
    pub end_ns: u64,
    /// How much later the worker came to close it.
    pub late_ns: u64,
    pub recorder: Recorder,
    pub arrivals: ArrivalCounts,
    /// What the worker used, and whoever opened connections for it.
    pub usage: ThreadUse,
    /// CPU of it that went into opening connections.
    pub opening_us: u64,
    /// Calls that waited for input.
    pub waits: u64,
    pub first_errors: Vec<FirstError>,
    /// Connections lost for good so far.
    pub lost: usize,
    /// Connections that are being opened again.
    pub down: usize,
    /// Why the last one was.
    pub last_loss: Option<String>,
}

/// Closes windows and hands them over.
pub struct Account<'a, 'w, W> {
    orders: &'a Orders<'a, W>,
    shared: &'a Shared<'w>,
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

impl<'a, 'w, W: Workload> Account<'a, 'w, W> {
    /// An account whose first window begins at `start_ns`.
    pub fn open(
        orders: &'a Orders<'a, W>,
        shared: &'a Shared<'w>,
        messages: &'a Sender<Message>,
        start_ns: u64,
    ) -> Self {
        let account = Self {
            orders,
            shared,
            messages,
            start_ns,
            window: 0,
            draining_since_ns: None,
            usage: ThreadUse::of_this_thread(),
            waits: 0,
            in_flight: 0,
            queued: 0,
        };
        let schedule = match orders.windows.get(0) {
            Some((Phase::Warmup, _)) => account.schedule_of_warmup(),
            _ => account.schedule_of_measurement(start_ns),
        };
        shared.arrivals.replace(schedule.map(Arrivals::new));
        account
    }

    fn schedule_of_warmup(&self) -> Option<Schedule> {
        let (orders, deal) = (self.orders, self.orders.deal(self.shared.worker));
        Schedule::warmup(orders.arrivals, deal, orders.seed, self.start_ns)
    }

    fn schedule_of_measurement(&self, from_ns: u64) -> Option<Schedule> {
        let (orders, deal) = (self.orders, self.orders.deal(self.shared.worker));
        Schedule::measure(orders.arrivals, deal, orders.seed, from_ns, orders.windows.measure_s())
    }

    /// Counts a call that waited for input.
    pub fn waited(&mut self) {
        self.waits += 1;
    }

    /// When something is to be done next, on the run's clock.
    pub fn next_ns(&self) -> u64 {
        match (self.draining_since_ns, self.orders.windows.get(self.window)) {
            (Some(since), _) => since + self.drain_limit_ns(),
            (None, Some((_, end))) => self.start_ns + end,
            (None, None) => 0,
        }
    }

    fn called_off(&self) -> bool {
        self.orders.stop.load(Ordering::Relaxed)
    }

    fn drain_limit_ns(&self) -> u64 {
        if self.called_off() { self.orders.drain_called_off_ns } else { self.orders.drain_limit_ns }
    }

    /// Hands over what has ended by now; whether the worker is done. `live` tasks have not ended.
    pub fn close_windows(&mut self, now_ns: u64, live: usize) -> bool {
        if self.draining_since_ns.is_none() {
            self.close_timed(now_ns, live);
        }
        let done =
            self.draining_since_ns.is_some_and(|since| live == 0 || now_ns >= since + self.drain_limit_ns());
        if done {
            self.hand_over(Phase::Drain, now_ns, now_ns);
        }
        done
    }

    fn close_timed(&mut self, now_ns: u64, live: usize) {
        while let Some((phase, end)) = self.orders.windows.get(self.window) {
            let end_ns = self.start_ns + end;
            if now_ns >= end_ns {
                self.hand_over(phase, end_ns, now_ns);
                self.window += 1;
                continue;
            }
            if live > 0 && !self.called_off() {
                return;
            }
            // The rest of the plan is called off: this window ends here.
            self.hand_over(phase, now_ns, now_ns);
            self.window = self.orders.windows.count();
        }
        self.shared.stopping.set(true);
        self.draining_since_ns = Some(now_ns);
    }

    fn hand_over(&mut self, phase: Phase, end_ns: u64, now_ns: u64) {
        let shared = self.shared;
        let fresh = Recorder::new(self.orders.workload.operations().len());
        let recorder = shared.recorder.replace(fresh);
        let arrivals = self.count(phase, &recorder, end_ns);
        let usage = ThreadUse::of_this_thread();
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
        // The receiver outlives the workers; if it has gone, so has the run.
        let _ = self.messages.send(Message::Handover(Box::new(handover)));
    }

    /// What became of the transactions that were due. When the measurement begins, what the warm-up has queued is
    /// dropped, and the schedule begins anew.
    fn count(&mut self, phase: Phase, recorder: &Recorder, end_ns: u64) -> ArrivalCounts {
        let done = recorder.transactions + recorder.failed;
        self.in_flight = self.in_flight + recorder.started - done;
        let mut dropped = 0;
        let mut intended = recorder.started;
        if let Some(arrivals) = self.shared.arrivals.borrow_mut().as_mut() {
            // Nothing becomes due in the drain; what is queued then stays so.
            let counted = match phase {
                Phase::Drain => Counted { intended: 0, queued: self.queued },
                _ => arrivals.count(end_ns),
            };
            (intended, self.queued) = (counted.intended, counted.queued);
            let next = self.orders.windows.get(self.window + 1).map(|(phase, _)| phase);
            if phase == Phase::Warmup && next == Some(Phase::Measure) && !self.called_off() {
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
