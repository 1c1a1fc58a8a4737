//! One step: connect, warm up, measure, drain; workers' windows merged into intervals.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use mydyno_model::record::{Interval, Phase};
use mydyno_wire::{Client, WireError};
use mydyno_workload::Workload;

use crate::clock::Clock;
use crate::error::LoadError;
use crate::ledger::Ledger;
use crate::recorder::FirstError;
use crate::sys;
use crate::window::{Phases, Windows};
use crate::worker::{self, Handover, Orders};

/// File descriptors beside those of the connections: standard streams, epoll, files of the record, the server's
/// files that are sampled.
const OTHER_FILES: u64 = 128;

/// How long answers are awaited after the last window; after an interruption, [`DRAIN_INTERRUPTED`].
const DRAIN: Duration = Duration::from_secs(10);
const DRAIN_INTERRUPTED: Duration = Duration::from_secs(2);

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
    /// Warm-up and measurement.
    pub phases: Phases,
    /// Opens a connection to the right database.
    pub connect: &'a (dyn Fn() -> Result<Client, WireError> + Sync),
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
    Complete {
        /// Transactions that had no answer in the time for draining.
        unanswered: usize,
        /// Connections that were lost on the way.
        lost: usize,
    },
    /// The user asked to stop.
    Interrupted,
    /// Every connection was lost.
    AllLost {
        /// Why the last one was.
        why: String,
    },
    /// A connection failed again and again without one success between.
    Hopeless,
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
    let needed = spec.connections as u64 + OTHER_FILES;
    sys::allow_open_files(needed).map_err(|limit| LoadError::System {
        what: format!(
            "{} connections need {needed} open files and this process may have {limit}: raise the limit with `ulimit -n {needed}` or ask for fewer connections",
            spec.connections
        ),
        source: std::io::Error::from_raw_os_error(libc::EMFILE),
    })?;
    sink(StepEvent::Phase(Phase::Connect, clock.now_s()));
    let windows = Windows::tile(spec.phases);
    let (call_off, hopeless) = (AtomicBool::new(false), AtomicBool::new(false));
    let orders = Orders {
        workload: spec.workload,
        clock,
        windows: &windows,
        drain_limit_ns: DRAIN.as_nanos() as u64,
        drain_called_off_ns: DRAIN_INTERRUPTED.as_nanos() as u64,
        stop: &call_off,
        hopeless: &hopeless,
    };
    std::thread::scope(|scope| {
        let crew = Crew::hire(scope, spec, &orders, stop);
        crew.connect(sink, spec.connections)?;
        crew.start(clock, stop, sink, spec, &call_off, &hopeless)
    })
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
    handovers: Receiver<Handover>,
    start: Arc<Start>,
}

/// When the load starts; 0 when it does not.
struct Start {
    at_ns: AtomicU64,
    gate: Barrier,
}

impl<'scope> Crew<'scope> {
    /// Threads that connect, then wait at the gate. Connection n belongs to worker n modulo the number of workers.
    fn hire<'env, W: Workload>(
        scope: &'scope std::thread::Scope<'scope, 'env>,
        spec: &'env StepSpec<'_, W>,
        orders: &'env Orders<'_, W>,
        stop: &'env AtomicBool,
    ) -> Self {
        let (muster_in, muster) = channel();
        let (handover_in, handovers) = channel();
        let start = Arc::new(Start { at_ns: AtomicU64::new(0), gate: Barrier::new(spec.workers + 1) });
        let threads = (0..spec.workers)
            .map(|number| {
                let (muster, handovers, start) = (muster_in.clone(), handover_in.clone(), start.clone());
                scope.spawn(move || {
                    let mine = || (number..spec.connections).step_by(spec.workers);
                    let connected = || drop(muster.send(Muster::Connected));
                    let ready = worker::connect(
                        spec.workload,
                        spec.connect,
                        mine(),
                        spec.connections,
                        stop,
                        connected,
                    );
                    let ready = match ready {
                        Ok(ready) => {
                            drop(muster.send(Muster::Ready));
                            Some(ready)
                        }
                        Err(error) => {
                            drop(muster.send(Muster::Failed(error)));
                            None
                        }
                    };
                    start.gate.wait();
                    match (ready, start.at_ns.load(Ordering::Acquire)) {
                        (Some(ready), at_ns) if at_ns > 0 => {
                            worker::work(orders, number, ready, mine(), at_ns, &handovers)
                        }
                        _ => Ok(()),
                    }
                })
            })
            .collect();
        Self { threads, muster, handovers, start }
    }

    /// Waits until all connections are open; lets the workers go home when one is refused.
    fn connect(&self, sink: &mut dyn FnMut(StepEvent), of: usize) -> Result<(), LoadError> {
        let (mut done, mut mustered, mut failure) = (0, 0, None);
        while mustered < self.threads.len() {
            match self.muster.recv() {
                Ok(Muster::Connected) => {
                    done += 1;
                    sink(StepEvent::Connected { done, of });
                }
                Ok(Muster::Ready) => mustered += 1,
                Ok(Muster::Failed(error)) => {
                    mustered += 1;
                    failure.get_or_insert(error);
                }
                Err(_) => break,
            }
        }
        match failure {
            None => Ok(()),
            Some(error) => {
                self.start.gate.wait();
                Err(error)
            }
        }
    }

    fn start<W: Workload>(
        self,
        clock: &Clock,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
        spec: &StepSpec<'_, W>,
        call_off: &AtomicBool,
        hopeless: &AtomicBool,
    ) -> Result<End, LoadError> {
        let start_ns = clock.now_ns().max(1);
        self.start.at_ns.store(start_ns, Ordering::Release);
        self.start.gate.wait();
        let mut ledger = Ledger::new(spec.number, spec.workload.operations(), spec.workers, start_ns);
        let mut interrupted = false;
        while ledger.working() > 0 {
            if stop.load(Ordering::Relaxed) && !call_off.swap(true, Ordering::Relaxed) {
                interrupted = true;
            }
            match self.handovers.recv_timeout(Duration::from_millis(50)) {
                Ok(handover) => ledger.take(handover, sink),
                Err(RecvTimeoutError::Timeout) => {
                    if self.threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        ledger.close(sink);
        for thread in self.threads {
            if let Ok(result) = thread.join() {
                result?;
            }
        }
        let Ledger { lost, last_loss, unanswered, .. } = ledger;
        Ok(if hopeless.load(Ordering::Relaxed) {
            End::Hopeless
        } else if lost >= spec.connections {
            End::AllLost { why: last_loss.unwrap_or_default() }
        } else if interrupted {
            End::Interrupted
        } else {
            End::Complete { unanswered, lost }
        })
    }
}
