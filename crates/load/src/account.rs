//! A worker's account of its windows: closed on time, handed over once each.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use mydyno_model::record::Phase;
use mydyno_workload::Workload;

use crate::connection::Shared;
use crate::recorder::{FirstError, Recorder};
use crate::sys::ThreadUse;
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
    pub usage: ThreadUse,
    /// Calls that waited for input.
    pub waits: u64,
    pub first_errors: Vec<FirstError>,
    /// Connections lost so far.
    pub lost: usize,
    /// Why the last one was.
    pub last_loss: Option<String>,
    /// Transactions that had no answer when the worker gave up waiting.
    pub unanswered: usize,
}

/// Closes windows and hands them over.
pub struct Account<'a, 'w, W> {
    orders: &'a Orders<'a, W>,
    shared: &'a Shared<'w>,
    worker: usize,
    messages: &'a Sender<Message>,
    start_ns: u64,
    window: usize,
    /// When the drain began.
    draining_since_ns: Option<u64>,
    usage: ThreadUse,
    waits: u64,
}

impl<'a, 'w, W: Workload> Account<'a, 'w, W> {
    /// An account whose first window begins at `start_ns`.
    pub fn open(
        orders: &'a Orders<'a, W>,
        shared: &'a Shared<'w>,
        worker: usize,
        messages: &'a Sender<Message>,
        start_ns: u64,
    ) -> Self {
        let usage = ThreadUse::of_this_thread();
        Self {
            orders,
            shared,
            worker,
            messages,
            start_ns,
            window: 0,
            draining_since_ns: None,
            usage,
            waits: 0,
        }
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
            self.hand_over(Phase::Drain, now_ns, now_ns, live);
        }
        done
    }

    fn close_timed(&mut self, now_ns: u64, live: usize) {
        while let Some((phase, end)) = self.orders.windows.get(self.window) {
            let end_ns = self.start_ns + end;
            if now_ns >= end_ns {
                self.hand_over(phase, end_ns, now_ns, 0);
                self.window += 1;
                continue;
            }
            if live > 0 && !self.called_off() {
                return;
            }
            // The rest of the plan is called off: this window ends here.
            self.hand_over(phase, now_ns, now_ns, 0);
            self.window = self.orders.windows.len();
        }
        self.shared.stopping.set(true);
        self.draining_since_ns = Some(now_ns);
    }

    fn hand_over(&mut self, phase: Phase, end_ns: u64, now_ns: u64, unanswered: usize) {
        let fresh = Recorder::new(self.orders.workload.operations().len());
        let recorder = self.shared.recorder.replace(fresh);
        let usage = ThreadUse::of_this_thread();
        let handover = Handover {
            worker: self.worker,
            window: self.window,
            phase,
            end_ns,
            late_ns: now_ns - end_ns,
            recorder,
            usage: usage.since(&self.usage),
            waits: std::mem::take(&mut self.waits),
            first_errors: self.shared.first_errors.take(),
            lost: self.shared.lost.get(),
            last_loss: self.shared.last_loss.borrow().clone(),
            unanswered,
        };
        self.usage = usage;
        // The receiver outlives the workers; if it has gone, so has the run.
        let _ = self.messages.send(Message::Handover(Box::new(handover)));
    }
}
