//! Merges what the workers report, ends a steady warm-up, and cancels the load when it has to end early.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use mydyno_model::record::{Interval, Phase};
use mydyno_workload::Workload;

use crate::context::StepContext;
use crate::event::{End, Shortfalls, StepEvent, StepSpec};
use crate::handover::Message;
use crate::merger::Merger;
use crate::window::{Warmup, Windows};

/// Without any open connection for so long the step ends, in nanoseconds: a restart of a server takes less.
const GIVE_UP_NS: u64 = 30_000_000_000;

/// The state of a running step beside its workers.
pub struct Coordinator<'a, W> {
    context: &'a StepContext<'a, W>,
    merger: Merger<'a>,
    warm_up: WarmUp<'a>,
    start_ns: u64,
    interrupted: bool,
    all_lost: bool,
}

impl<'a, W: Workload> Coordinator<'a, W> {
    /// The load starts at `start_ns`; `process_size` gives resident bytes and threads of this process.
    pub fn start(
        context: &'a StepContext<'a, W>,
        spec: &StepSpec<'a, W>,
        start_ns: u64,
        process_size: fn() -> (u64, u64),
        sink: &mut dyn FnMut(StepEvent),
    ) -> Self {
        let mut merger = Merger::new(
            spec.number,
            spec.workload.operations(),
            &context.windows,
            spec.connections,
            spec.workers,
            start_ns,
            process_size,
        );
        merger.begin(sink);
        let warm_up = WarmUp::new(spec.warmup, &context.windows);
        Self { context, merger, warm_up, start_ns, interrupted: false, all_lost: false }
    }

    /// Whether a worker has not ended.
    pub fn is_running(&self) -> bool {
        self.merger.running() > 0
    }

    /// Cancels the load for the user, unless it is cancelled already.
    pub fn interrupt(&mut self) {
        if !self.context.cancel() {
            self.interrupted = true;
        }
    }

    /// Processes a worker's message.
    pub fn take(&mut self, message: Message, sink: &mut dyn FnMut(StepEvent)) {
        let Self { merger, warm_up, .. } = self;
        merger.take(message, &mut |event| {
            warm_up.see(&event);
            sink(event);
        });
    }

    /// Decides what the messages so far and the time call for: the end of the warm-up, or of the step.
    pub fn decide(&mut self, now_ns: impl Fn() -> u64) {
        let start_ns = self.start_ns;
        self.warm_up.end_when_steady(|| now_ns() - start_ns);
        let down_ns =
            self.merger.all_down_since_ns.map_or(0, |since| self.merger.reported_until_ns() - since);
        if down_ns >= GIVE_UP_NS && !self.context.cancel() {
            self.all_lost = true;
        }
    }

    /// Emits what is left, and returns how the step ended. `failure` is the first error of a worker.
    pub fn finish(mut self, failure: Option<String>, sink: &mut dyn FnMut(StepEvent)) -> End {
        self.merger.close(sink);
        let Self { context, merger, interrupted, all_lost, .. } = self;
        let shortfalls = Shortfalls {
            unanswered: merger.last.in_flight,
            queued: merger.last.queued,
            lost: merger.lost,
            late_ns: merger.late_ns,
            misnumbered: merger.misnumbered,
        };
        let forbidden = context.forbidden.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(why) = failure {
            End::Failed { why }
        } else if context.hopeless.load(Ordering::Relaxed) {
            End::Hopeless { why: merger.most_frequent_error().unwrap_or_default() }
        } else if let Some(why) = forbidden {
            End::Forbidden { why }
        } else if interrupted {
            End::Interrupted
        } else if all_lost || (!context.keep.reconnect && merger.lost >= context.connections) {
            End::AllLost { why: merger.last_loss.unwrap_or_default() }
        } else {
            End::Complete(shortfalls)
        }
    }
}

/// Ends a warm-up that lasts until the load is steady.
struct WarmUp<'a> {
    plan: Warmup<'a>,
    windows: &'a Windows,
    seen: Vec<Interval>,
    /// Number of intervals at the last judgement.
    judged: usize,
}

impl<'a> WarmUp<'a> {
    fn new(plan: Warmup<'a>, windows: &'a Windows) -> Self {
        Self { plan, windows, seen: Vec::new(), judged: 0 }
    }

    fn see(&mut self, event: &StepEvent) {
        if let (Warmup::Steady { .. }, StepEvent::Interval(interval)) = (&self.plan, event)
            && interval.phase == Phase::Warmup
        {
            self.seen.push((**interval).clone());
        }
    }

    /// The measurement begins after the next window by the clock. No worker can have reached it when it reads this, however
    /// late the workers' messages arrive here.
    fn end_when_steady(&mut self, elapsed_ns: impl Fn() -> u64) {
        let Warmup::Steady { is_steady, .. } = self.plan else { return };
        if self.seen.len() == self.judged {
            return;
        }
        self.judged = self.seen.len();
        if is_steady(&self.seen) {
            self.windows.end_warmup_after((elapsed_ns() / 1_000_000_000) as usize + 2);
        }
    }
}
