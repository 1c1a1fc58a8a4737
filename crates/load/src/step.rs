//! One step: connect, warm up, measure, drain; workers' windows merged into intervals.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mydyno_model::plan::{Arrivals, ConnectionPlan, StopOnError, WaitPlan};
use mydyno_model::record::{Interval, Phase};
use mydyno_wire::Client;
use mydyno_workload::Workload;

use crate::account::Message;
use crate::clock::Clock;
use crate::error::LoadError;
use crate::gate::{Gate, Keeper};
use crate::ledger::Ledger;
use crate::opening::{self, Closing, Connect, Openers};
use crate::recorder::FirstError;
use crate::sys;
use crate::window::{Warmup, Windows};
use crate::worker::{self, Orders};

/// File descriptors beside those of the connections: standard streams, epoll, files of the record, the server's
/// files that are sampled.
const OTHER_FILES: u64 = 128;

/// How long answers are awaited after the last window; after an interruption, [`DRAIN_INTERRUPTED`].
const DRAIN: Duration = Duration::from_secs(10);
const DRAIN_INTERRUPTED: Duration = Duration::from_secs(2);

/// How long no connection at all may be open before the step is given up: a restart of a server takes less.
const GIVE_UP: Duration = Duration::from_secs(30);

/// What a step does.
pub struct StepSpec<'a, W> {
    /// Number in the plan, for the intervals.
    pub number: usize,
    /// What is asked.
    pub workload: &'a W,
    /// Connections.
    pub connections: usize,
    /// Worker threads; not more than connections.
    pub workers: usize,
    /// When transactions are asked.
    pub arrivals: &'a Arrivals,
    /// Seed of arrivals and think times.
    pub seed: u64,
    /// Load before the measurement.
    pub warmup: Warmup<'a>,
    /// Length of the measurement.
    pub measure: Duration,
    /// How connections are opened and kept.
    pub keep: &'a ConnectionPlan,
    /// How answers are waited for.
    pub wait: &'a WaitPlan,
    /// Errors that end the step.
    pub stop_on_error: Option<&'a StopOnError>,
    /// Opens a connection to the right database.
    pub connect: Connect<'a>,
}

/// What happens during a step.
#[derive(Debug)]
pub enum StepEvent {
    /// So many connections are open.
    Connected {
        /// Open.
        done: usize,
        /// In the end.
        of: usize,
    },
    /// A phase began, at this second of the run.
    Phase(Phase, f64),
    /// The first error of a code on a worker, in the window that ended at this second of the run.
    Error(FirstError, f64),
    /// A window is complete.
    Interval(Box<Interval>),
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As planned.
    Complete(Shortfalls),
    /// The user asked to stop.
    Interrupted,
    /// An error came that the user wants none of.
    Forbidden {
        /// Which.
        why: String,
    },
    /// Every connection was lost, and none could be opened again.
    AllLost {
        /// Why the last one was.
        why: String,
    },
    /// Transactions failed one after the other and none succeeded.
    Hopeless {
        /// The commonest error.
        why: String,
    },
    /// A worker failed: what was recorded until then is there.
    Failed {
        /// Why.
        why: String,
    },
}

/// What a step that ended as planned fell short of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfalls {
    /// Transactions that had no answer in the time for draining.
    pub unanswered: u64,
    /// Transactions of the schedule that were due and never sent.
    pub queued: u64,
    /// Connections that were lost on the way and not opened again; all of them where the server is gone at the end.
    pub lost: usize,
    /// How late a worker came to the end of a window at worst, in nanoseconds: the load generator stood still.
    pub late_ns: u64,
}

/// Runs one step. `stop` ends it early with all that was measured.
///
/// # Errors
/// [`LoadError`] when the load could not start; nothing was measured then.
pub fn run_step<W: Workload>(
    clock: &Clock,
    spec: &StepSpec<'_, W>,
    stop: &AtomicBool,
    sink: &mut dyn FnMut(StepEvent),
) -> Result<End, LoadError> {
    let connections = (spec.connections + spec.keep.idle) as u64;
    let needed = connections + OTHER_FILES;
    sys::allow_open_files(needed).map_err(|limit| LoadError::System {
        what: format!(
            "{connections} connections need {needed} open files and this process may have {limit}: raise the limit with `ulimit -n {needed}` or ask for fewer connections"
        ),
        source: std::io::Error::from_raw_os_error(libc::EMFILE),
    })?;
    sink(StepEvent::Phase(Phase::Connect, clock.now_s()));
    let windows = Windows::tile(spec.warmup.longest(), spec.measure);
    let [call_off, hopeless, succeeded] = [const { AtomicBool::new(false) }; 3];
    let forbidden = Mutex::new(None);
    let openers = opener_threads(spec.keep, spec.connections, spec.workers);
    let openers =
        if openers > 0 { Some((Openers::new(spec.workers).map_err(no_bell)?, openers)) } else { None };
    let orders = Orders {
        workload: spec.workload,
        clock,
        windows: &windows,
        arrivals: spec.arrivals,
        seed: spec.seed,
        connections: spec.connections,
        workers: spec.workers,
        keep: spec.keep,
        wait: spec.wait,
        openers: openers.as_ref().map(|(openers, _)| openers),
        stop_on_error: spec.stop_on_error,
        forbidden: &forbidden,
        drain_limit_ns: DRAIN.as_nanos() as u64,
        drain_called_off_ns: DRAIN_INTERRUPTED.as_nanos() as u64,
        stop: &call_off,
        hopeless: &hopeless,
        succeeded: &succeeded,
    };
    let gate = Gate::default();
    std::thread::scope(|scope| {
        // Whatever happens here, the workers and the openers are let go.
        let _keeper = Keeper(&gate);
        let _closing = Closing(orders.openers);
        let crew = Crew::hire(scope, spec, &orders, &gate, stop)?;
        if let Some((openers, threads)) = &openers {
            for number in 0..*threads {
                let serve = || openers.serve(spec.workload, spec.connect, spec.connections, clock);
                hire(scope, format!("open-{number}"), serve)?;
            }
        }
        let idle = crew.muster(spec, clock, stop, sink)?;
        let end = crew.lead(spec, &orders, &gate, stop, sink);
        for client in idle {
            // Best effort: the server closes them anyway.
            let _ = client.quit();
        }
        end
    })
}

fn no_bell(source: std::io::Error) -> LoadError {
    LoadError::System { what: "making an event file (eventfd)".to_owned(), source }
}

/// Threads that open connections while the load runs: each can have one on the way.
fn opener_threads(keep: &ConnectionPlan, connections: usize, workers: usize) -> usize {
    match keep.reconnect_every {
        Some(_) => connections.min(8 * workers),
        None if keep.reconnect => workers,
        None => 0,
    }
}

fn hire<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: String,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<std::thread::ScopedJoinHandle<'scope, T>, LoadError> {
    std::thread::Builder::new()
        .name(name)
        .spawn_scoped(scope, work)
        .map_err(|e| LoadError::Worker(format!("{e}; ask for fewer --workers")))
}

/// What the workers tell before the load starts.
enum Muster {
    Connected,
    Ready,
    Failed(LoadError),
}

/// The threads of a step and the lines to them.
struct Crew<'scope> {
    threads: Vec<std::thread::ScopedJoinHandle<'scope, Result<(), LoadError>>>,
    muster: Receiver<Muster>,
    messages: Receiver<Message>,
}

impl<'scope> Crew<'scope> {
    /// Threads that connect, then wait at the gate. Connection n belongs to worker n modulo the number of workers.
    fn hire<'env, W: Workload>(
        scope: &'scope std::thread::Scope<'scope, 'env>,
        spec: &'env StepSpec<'_, W>,
        orders: &'env Orders<'_, W>,
        gate: &'env Gate,
        stop: &'env AtomicBool,
    ) -> Result<Self, LoadError> {
        let (muster_in, muster) = channel();
        let (messages_in, messages) = channel();
        let threads = (0..spec.workers)
            .map(|number| {
                let (muster, messages) = (muster_in.clone(), messages_in.clone());
                let worker = move || serve(number, spec, orders, gate, stop, &muster, &messages);
                hire(scope, format!("load-{number}"), worker)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { threads, muster, messages })
    }

    /// Waits until all connections are open, and opens those that stay idle.
    fn muster<W>(
        &self,
        spec: &StepSpec<'_, W>,
        clock: &Clock,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<Vec<Client>, LoadError> {
        let of = spec.connections + spec.keep.idle;
        let (mut done, mut ready) = (0, 0);
        while ready < self.threads.len() {
            match self.muster.recv() {
                Ok(Muster::Connected) => {
                    done += 1;
                    sink(StepEvent::Connected { done, of });
                }
                Ok(Muster::Ready) => ready += 1,
                Ok(Muster::Failed(error)) => return Err(error),
                Err(_) => return Err(LoadError::Worker("it ended before the load started".to_owned())),
            }
        }
        let mut idle = Vec::new();
        let pace = opening::Pace { clock, start_ns: clock.now_ns(), rate_per_s: spec.keep.rate_per_s };
        while done < of {
            if !pace.wait(idle.len(), &|| stop.load(Ordering::Relaxed)) {
                return Err(LoadError::Interrupted);
            }
            let refused = |e| LoadError::Connect { number: done + 1, of, source: Box::new(e) };
            idle.push((spec.connect)().map_err(refused)?);
            done += 1;
            sink(StepEvent::Connected { done, of });
        }
        Ok(idle)
    }

    /// Starts the load and collects what the workers tell until the last has gone.
    fn lead<W: Workload>(
        self,
        spec: &StepSpec<'_, W>,
        orders: &Orders<'_, W>,
        gate: &Gate,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<End, LoadError> {
        let start_ns = orders.clock.now_ns();
        gate.open(Some(start_ns));
        let operations = spec.workload.operations();
        let mut ledger =
            Ledger::new(spec.number, operations, orders.windows, spec.connections, spec.workers, start_ns);
        ledger.begin(sink);
        let (mut interrupted, mut all_lost) = (false, false);
        let mut warming_up = WarmingUp::new(spec.warmup, orders.windows);
        let elapsed_ns = || orders.clock.now_ns() - start_ns;
        while ledger.working() > 0 {
            if stop.load(Ordering::Relaxed) && !orders.stop.swap(true, Ordering::Relaxed) {
                interrupted = true;
            }
            match self.messages.recv_timeout(Duration::from_millis(50)) {
                Ok(message) => ledger.take(message, &mut |event| {
                    warming_up.see(&event);
                    sink(event);
                }),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            warming_up.end_when_steady(elapsed_ns);
            let down_ns = ledger.all_down_since_ns.map_or(0, |since| ledger.told_until_ns() - since);
            if down_ns >= GIVE_UP.as_nanos() as u64 && !orders.stop.swap(true, Ordering::Relaxed) {
                all_lost = true;
            }
        }
        ledger.close(sink);
        let mut failure = None;
        for thread in self.threads {
            let result = thread.join().unwrap_or_else(|panic| Err(LoadError::Worker(words(&*panic))));
            if let Err(error) = result {
                failure.get_or_insert(error.to_string());
            }
        }
        let shortfalls = Shortfalls {
            unanswered: ledger.last.in_flight,
            queued: ledger.last.queued,
            lost: ledger.lost,
            late_ns: ledger.late_ns,
        };
        let forbidden = orders.forbidden.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(if let Some(why) = failure {
            End::Failed { why }
        } else if orders.hopeless.load(Ordering::Relaxed) {
            End::Hopeless { why: ledger.commonest_error().unwrap_or_default() }
        } else if let Some(why) = forbidden {
            End::Forbidden { why }
        } else if interrupted {
            End::Interrupted
        } else if all_lost || (!spec.keep.reconnect && ledger.lost >= spec.connections) {
            End::AllLost { why: ledger.last_loss.unwrap_or_default() }
        } else {
            End::Complete(shortfalls)
        })
    }
}

/// Ends a warm-up that lasts until the load is steady.
struct WarmingUp<'a> {
    warmup: Warmup<'a>,
    windows: &'a Windows,
    seen: Vec<Interval>,
    /// Intervals that were judged.
    judged: usize,
}

impl<'a> WarmingUp<'a> {
    fn new(warmup: Warmup<'a>, windows: &'a Windows) -> Self {
        Self { warmup, windows, seen: Vec::new(), judged: 0 }
    }

    fn see(&mut self, event: &StepEvent) {
        if let (Warmup::Steady { .. }, StepEvent::Interval(interval)) = (&self.warmup, event)
            && interval.phase == Phase::Warmup
        {
            self.seen.push((**interval).clone());
        }
    }

    /// The measurement begins after the window that comes next by the clock: no worker can be there before it hears of
    /// it, however late the words of the workers come here.
    fn end_when_steady(&mut self, elapsed_ns: impl Fn() -> u64) {
        let Warmup::Steady { is_steady, .. } = self.warmup else { return };
        if self.seen.len() == self.judged {
            return;
        }
        self.judged = self.seen.len();
        if is_steady(&self.seen) {
            self.windows.end_warmup_after((elapsed_ns() / 1_000_000_000) as usize + 2);
        }
    }
}

/// The life of a worker thread: connect, wait for the start, work. However it ends, the others hear of it.
fn serve<W: Workload>(
    number: usize,
    spec: &StepSpec<'_, W>,
    orders: &Orders<'_, W>,
    gate: &Gate,
    stop: &AtomicBool,
    muster: &Sender<Muster>,
    messages: &Sender<Message>,
) -> Result<(), LoadError> {
    let mut leaving = Leaving { worker: number, muster, messages, stop: orders.stop, in_order: false };
    let mine = || (number..spec.connections).step_by(spec.workers);
    // The step is off when the user says so or when another worker's connection was refused.
    let off = || stop.load(Ordering::Relaxed) || orders.stop.load(Ordering::Relaxed);
    let pace = opening::Pace {
        clock: orders.clock,
        start_ns: orders.clock.now_ns(),
        rate_per_s: spec.keep.rate_per_s,
    };
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let open = |number| {
            if !pace.wait(number, &off) {
                return Err(LoadError::Interrupted);
            }
            let ready = opening::open(spec.workload, spec.connect, number, spec.connections)?;
            drop(muster.send(Muster::Connected));
            Ok(ready)
        };
        mine().map(open).collect::<Result<Vec<_>, _>>()
    }));
    let ready = match opened.unwrap_or_else(|panic| Err(LoadError::Worker(words(&*panic)))) {
        Ok(ready) => ready,
        Err(error) => {
            drop(muster.send(Muster::Failed(error)));
            return Ok(());
        }
    };
    let start = || {
        drop(muster.send(Muster::Ready));
        gate.wait()
    };
    let mustered = std::cell::Cell::new(false);
    let worked =
        worker::work(orders, number, ready, mine(), || start().inspect(|_| mustered.set(true)), messages);
    match worked {
        // What fails before the start is told at the muster, so that nobody waits for this worker.
        Err(error) if !mustered.get() => {
            drop(muster.send(Muster::Failed(error)));
            Ok(())
        }
        other => {
            leaving.in_order = other.is_ok();
            other
        }
    }
}

/// Tells that a worker has gone, and calls the load off unless it went in order.
struct Leaving<'a> {
    worker: usize,
    muster: &'a Sender<Muster>,
    messages: &'a Sender<Message>,
    stop: &'a AtomicBool,
    in_order: bool,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.in_order {
            self.stop.store(true, Ordering::Relaxed);
            // Heard only before the start; an earlier word of this worker counts.
            let ended = LoadError::Worker("it ended before the load started".to_owned());
            let _ = self.muster.send(Muster::Failed(ended));
        }
        let _ = self.messages.send(Message::Gone { worker: self.worker });
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
