//! The worker threads of a step: they connect, wait for the common start, and run their event loops.

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use mydyno_linux::calls::scheduler;
use mydyno_model::plan::{Arrivals, Scheduling};
use mydyno_wire::Client;
use mydyno_workload::Workload;

use crate::barrier::StartBarrier;
use crate::clock::{Clock, MonotonicClock};
use crate::context::StepContext;
use crate::coordinator::Coordinator;
use crate::error::LoadError;
use crate::event::{End, StepEvent, StepSpec};
use crate::handover::Message;
use crate::net::Net;
use crate::opener_pool::OpenerPool;
use crate::opening::{self, ConnectRate, Ready};
use crate::packets::Packets;
use crate::shared::Shared;
use crate::usage;
use crate::worker::{self, EventLoop};

/// Longest wait for a worker's message: the delay with which an interruption by the user is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A worker's message before the load starts.
enum Startup {
    Connected,
    Ready,
    Failed(LoadError),
}

/// State that all threads of a step share.
pub struct Environment<'a, W> {
    pub spec: &'a StepSpec<'a, W>,
    pub context: &'a StepContext<'a, W>,
    pub clock: &'a MonotonicClock,
    pub barrier: &'a StartBarrier,
    pub opener_pool: Option<&'a OpenerPool>,
    /// Set when the user interrupts the run.
    pub stop: &'a AtomicBool,
}

// Derived, the copy would ask for a copyable workload.
impl<W> Clone for Environment<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Environment<'_, W> {}

impl<W> Environment<'_, W> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn connect_rate(&self) -> ConnectRate<'_> {
        ConnectRate {
            clock: self.clock,
            start_ns: self.clock.now_ns(),
            rate_per_s: self.spec.keep.rate_per_s,
        }
    }
}

/// Starts a named thread.
///
/// # Errors
/// The kernel permits no further thread.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, LoadError> {
    Builder::new()
        .name(name)
        .spawn_scoped(scope, run)
        .map_err(|e| LoadError::Worker(format!("{e}; ask for fewer --workers")))
}

/// The worker threads and the channels from them.
pub struct WorkerPool<'scope, 'env, W> {
    environment: Environment<'env, W>,
    threads: Vec<ScopedJoinHandle<'scope, Result<(), LoadError>>>,
    startup: Receiver<Startup>,
    messages: Receiver<Message>,
}

impl<'scope, 'env, W: Workload> WorkerPool<'scope, 'env, W> {
    /// Starts the threads, which connect and then wait at the barrier.
    ///
    /// # Errors
    /// The kernel permits no further thread.
    pub fn start(
        scope: &'scope Scope<'scope, 'env>,
        environment: Environment<'env, W>,
    ) -> Result<Self, LoadError> {
        let (to_startup, startup) = channel();
        let (to_messages, messages) = channel();
        let threads = (0..environment.spec.workers)
            .map(|number| {
                let channels = Channels {
                    worker: number,
                    startup: to_startup.clone(),
                    messages: to_messages.clone(),
                    cancelled: &environment.context.cancelled,
                    in_order: false,
                };
                spawn(scope, format!("load-{number}"), move || run_worker(number, environment, channels))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { environment, threads, startup, messages })
    }

    /// Waits until all connections are open, and opens and returns those that stay idle.
    ///
    /// # Errors
    /// A connection was refused, a worker failed, or the user interrupted.
    pub fn connect(&self, sink: &mut dyn FnMut(StepEvent)) -> Result<Vec<Client>, LoadError> {
        let spec = self.environment.spec;
        let of = spec.connections + spec.keep.idle;
        let (mut done, mut ready) = (0, 0);
        while ready < self.threads.len() {
            match self.startup.recv() {
                Ok(Startup::Connected) => {
                    done += 1;
                    sink(StepEvent::Connected { done, of });
                }
                Ok(Startup::Ready) => ready += 1,
                Ok(Startup::Failed(error)) => return Err(error),
                Err(_) => return Err(LoadError::Worker("it ended before the load started".to_owned())),
            }
        }
        let mut idle = Vec::new();
        let rate = self.environment.connect_rate();
        while done < of {
            if !rate.wait(idle.len(), &|| self.environment.is_stopped()) {
                return Err(LoadError::Interrupted);
            }
            let refused = |e| LoadError::Connect { number: done + 1, of, source: Box::new(e) };
            idle.push((spec.connect)().map_err(refused)?);
            done += 1;
            sink(StepEvent::Connected { done, of });
        }
        Ok(idle)
    }

    /// Starts the load and processes messages until the last worker has ended.
    pub fn run(self, sink: &mut dyn FnMut(StepEvent)) -> End {
        let Environment { spec, context, clock, barrier, .. } = self.environment;
        let start_ns = clock.now_ns();
        barrier.release(Some(start_ns));
        let mut coordinator = Coordinator::start(context, spec, start_ns, usage::process_size, sink);
        while coordinator.is_running() {
            if self.environment.is_stopped() {
                coordinator.interrupt();
            }
            match self.messages.recv_timeout(LONGEST_WAIT) {
                Ok(message) => coordinator.take(message, sink),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            coordinator.decide(|| clock.now_ns());
        }
        let mut failure = None;
        for thread in self.threads {
            let result = thread.join().unwrap_or_else(|panic| Err(LoadError::Worker(message_of(&*panic))));
            if let Err(error) = result {
                failure.get_or_insert(error.to_string());
            }
        }
        coordinator.finish(failure, sink)
    }
}

/// A worker's channels. Dropping them reports that the worker has ended, and cancels the load unless it ended in order.
struct Channels<'a> {
    worker: usize,
    startup: Sender<Startup>,
    messages: Sender<Message>,
    cancelled: &'a AtomicBool,
    in_order: bool,
}

impl Drop for Channels<'_> {
    fn drop(&mut self) {
        if !self.in_order {
            self.cancelled.store(true, Ordering::Relaxed);
            // Received only before the start, and only if this worker has sent nothing else that ends the startup.
            let ended = LoadError::Worker("it ended before the load started".to_owned());
            let _ = self.startup.send(Startup::Failed(ended));
        }
        let _ = self.messages.send(Message::Gone { worker: self.worker });
    }
}

/// Runs a worker's thread: connects, waits for the start, runs the event loop. Every way out is reported.
fn run_worker<W: Workload>(
    number: usize,
    environment: Environment<'_, W>,
    mut channels: Channels<'_>,
) -> Result<(), LoadError> {
    let connected = catch_unwind(AssertUnwindSafe(|| connect(number, environment, &channels)))
        .unwrap_or_else(|panic| Err(LoadError::Worker(message_of(&*panic))));
    let ready = match connected {
        Ok(ready) => ready,
        Err(error) => {
            drop(channels.startup.send(Startup::Failed(error)));
            return Ok(());
        }
    };
    let mut started = false;
    match run_load(number, environment, ready, &channels, &mut started) {
        // An error before the start goes through the startup channel, so that no other thread waits for this worker.
        Err(error) if !started => {
            drop(channels.startup.send(Startup::Failed(error)));
            Ok(())
        }
        other => {
            channels.in_order = other.is_ok();
            other
        }
    }
}

/// Opens the connections of a worker.
fn connect<W: Workload>(
    worker: usize,
    environment: Environment<'_, W>,
    channels: &Channels<'_>,
) -> Result<Vec<Ready<OwnedFd>>, LoadError> {
    let Environment { spec, context, .. } = environment;
    // The user has interrupted, or another worker's connection was refused.
    let cancelled = || environment.is_stopped() || context.is_cancelled();
    let rate = environment.connect_rate();
    let open = |number| {
        if !rate.wait(number, &cancelled) {
            return Err(LoadError::Interrupted);
        }
        let ready = opening::open(spec.workload, spec.connect, &context.columns, number, spec.connections)?;
        drop(channels.startup.send(Startup::Connected));
        Ok(ready)
    };
    context.numbers(worker).map(open).collect()
}

/// Waits at the barrier, then runs the load to the end of the last window, and drains.
fn run_load<W: Workload>(
    worker: usize,
    environment: Environment<'_, W>,
    ready: Vec<Ready<OwnedFd>>,
    channels: &Channels<'_>,
    started: &mut bool,
) -> Result<(), LoadError> {
    let Environment { context, clock, barrier, opener_pool, .. } = environment;
    let backend = context.wait.backend;
    let net = Net::new(worker, backend, ready.len(), *clock, opener_pool)
        .map_err(system(&format!("making an event loop ({backend})")))?;
    if context.wait.scheduling == Scheduling::Batch {
        scheduler::schedule_as_batch().map_err(system(
            "letting the server's threads have their turns (--scheduling normal does without)",
        ))?;
    }
    let packets = Packets::new(context.workload.statements());
    let shared =
        Shared::new(worker, net, packets, context.workload.operations().len(), Arc::clone(&context.columns));
    let tasks = worker::tasks(context, &shared, ready).map_err(system("watching a connection"))?;
    drop(channels.startup.send(Startup::Ready));
    let Some(start_ns) = barrier.wait() else { return Ok(()) };
    *started = true;
    if *context.arrivals != Arrivals::CLOSED || context.wait.coalesce_us > 0 {
        scheduler::sleep_precisely();
    }
    let mut event_loop = EventLoop::start(context, &shared, tasks, start_ns, &channels.messages);
    while let Some(until_ns) = event_loop.before_wait() {
        event_loop.wait(until_ns).map_err(system("waiting for answers"))?;
        event_loop.after_wait().map_err(system("sending statements"))?;
    }
    Ok(())
}

fn system(what: &str) -> impl FnOnce(io::Error) -> LoadError + use<> {
    let what = what.to_owned();
    move |source| LoadError::System { what, source }
}

/// The message of a panic.
fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
