//! A worker thread: its connections and its event loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use mydyno_model::plan::{Arrivals as ArrivalPlan, ConnectionPlan, Scheduling, StopOnError, WaitPlan};
use mydyno_workload::Workload;

use crate::account::{Account, Message};
use crate::clock::Clock;
use crate::connection::{Connection, Shared};
use crate::drive::drive;
use crate::error::LoadError;
use crate::executor::Tasks;
use crate::net::{BELL, Net};
use crate::opening::{Openers, Ready};
use crate::packets::Packets;
use crate::recorder::FirstError;
use crate::schedule::Deal;
use crate::sys;
use crate::window::Windows;

/// Longest sleep: how late a worker may learn that the user asked to stop.
const LONGEST_WAIT_NS: u64 = 100_000_000;

/// Answers that are received before statements are sent: enough to gain by it, and so few that the first of them does
/// not wait long for its next statement.
const BATCH: usize = 64;

/// What all workers of a step have in common.
pub struct Orders<'a, W> {
    pub workload: &'a W,
    pub clock: &'a Clock,
    pub windows: &'a Windows,
    pub arrivals: &'a ArrivalPlan,
    /// Of arrivals and pauses.
    pub seed: u64,
    pub connections: usize,
    pub workers: usize,
    pub keep: &'a ConnectionPlan,
    pub wait: &'a WaitPlan,
    /// Who opens connections while the load runs.
    pub openers: Option<&'a Openers>,
    pub stop_on_error: Option<&'a StopOnError>,
    /// The error that called the load off.
    pub forbidden: &'a Mutex<Option<String>>,
    /// How long answers are awaited after the last window.
    pub drain_limit_ns: u64,
    /// The same after the load was called off.
    pub drain_called_off_ns: u64,
    /// The load is called off: by the user, or by a worker that found it hopeless or failed.
    pub stop: &'a AtomicBool,
    /// A worker found the load hopeless.
    pub hopeless: &'a AtomicBool,
    /// A transaction has succeeded on some connection.
    pub succeeded: &'a AtomicBool,
}

impl<W: Workload> Orders<'_, W> {
    /// Calls the load off when the user wants no such error.
    pub fn forbid(&self, error: &FirstError) {
        if self.stop_on_error.is_some_and(|stop| !stop.except.contains(&error.code)) {
            let operation = self.workload.operations().get(error.operation).map_or("", |o| o.name.as_str());
            let FirstError { code, sqlstate, message, .. } = error;
            let mut forbidden = self.forbidden.lock().unwrap_or_else(PoisonError::into_inner);
            forbidden.get_or_insert_with(|| format!("{code} ({sqlstate}) in {operation}: {message}"));
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Which arrivals a worker takes.
    pub fn deal(&self, worker: usize) -> Deal {
        Deal { worker: worker as u64, workers: self.workers as u64, connections: self.connections as u64 }
    }
}

/// Lays everything out, waits at `gate` for the instant of the start, runs the load to the end of the last window, and
/// drains. `gate` gives nothing when the load does not start.
///
/// # Errors
/// The operating system refused what an event loop needs.
pub fn work<W: Workload>(
    orders: &Orders<'_, W>,
    worker: usize,
    ready: Vec<Ready>,
    numbers: impl Iterator<Item = usize>,
    gate: impl FnOnce() -> Option<u64>,
    messages: &Sender<Message>,
) -> Result<(), LoadError> {
    let system = |what: &str| {
        let what = what.to_owned();
        move |source| LoadError::System { what, source }
    };
    let operations = orders.workload.operations().len();
    let backend = orders.wait.backend;
    let net = Net::new(backend, ready.len(), *orders.clock)
        .map_err(system(&format!("making an event loop ({backend})")))?;
    if orders.wait.scheduling == Scheduling::Batch {
        sys::wait_for_turns().map_err(system(
            "letting the server's threads have their turns (--scheduling normal does without)",
        ))?;
    }
    let packets = Packets::new(orders.workload.statements());
    let shared = Shared::new(worker, orders.clock, net, packets, operations);
    let connections: Vec<Connection<'_>> = ready
        .into_iter()
        .zip(numbers)
        .enumerate()
        .map(|(token, (ready, number))| Connection::new(&shared, token, number, ready))
        .collect();
    for (token, connection) in connections.iter().enumerate() {
        shared.net.add(connection.fd(), token).map_err(system("watching a connection"))?;
    }
    if let Some(openers) = orders.openers {
        let bell = openers.bell(worker).fd();
        shared.net.add_bell(bell).map_err(system("watching for new connections"))?;
    }
    let mut tasks = Tasks::new(connections.into_iter().map(|c| {
        let number = c.number;
        drive(orders, &shared, c, number)
    }));

    let Some(start_ns) = gate() else { return Ok(()) };
    let gather_ns = orders.wait.coalesce_us * 1000;
    if *orders.arrivals != ArrivalPlan::CLOSED || gather_ns > 0 {
        sys::sleep_precisely();
    }
    let mut account = Account::open(orders, &shared, messages, start_ns);
    for number in tasks.numbers() {
        tasks.poll(number);
    }
    shared.send_all(|task| tasks.poll(task));
    let mut able = Vec::new();
    loop {
        let now_ns = orders.clock.now_ns();
        let was_stopping = shared.stopping.get();
        if account.close_windows(now_ns, tasks.live()) {
            return Ok(());
        }
        if shared.stopping.get() && !was_stopping {
            // Whoever waits for something else than an answer goes home.
            for number in tasks.numbers() {
                tasks.poll(number);
            }
        }
        call(&shared, &mut tasks, now_ns);
        shared.send_all(|task| tasks.poll(task));
        let now_ns = orders.clock.now_ns();
        let wait_ns = next_ns(&shared, &account).saturating_sub(now_ns).min(LONGEST_WAIT_NS);
        shared.net.wait(&mut able, wait_ns, gather_ns).map_err(system("waiting for answers"))?;
        account.waited();
        for (number, batch) in able.chunks(BATCH).enumerate() {
            if number > 0 {
                shared.net.submit().map_err(system("sending statements"))?;
            }
            for &task in batch {
                match task {
                    BELL => hand_out(orders, &shared, &mut tasks),
                    task => tasks.poll(task),
                }
            }
            shared.send_all(|task| tasks.poll(task));
        }
    }
}

/// When something is due that no socket tells.
fn next_ns<W: Workload>(shared: &Shared<'_>, account: &Account<'_, '_, W>) -> u64 {
    let timer_ns = shared.timers.next_ns().unwrap_or(u64::MAX);
    let arrival_ns = match &*shared.arrivals.borrow() {
        Some(arrivals) if arrivals.is_awaited() => arrivals.next_ns(),
        _ => u64::MAX,
    };
    account.next_ns().min(timer_ns).min(arrival_ns)
}

/// Lets tasks go on whose instant or arrival has come.
fn call<F: Future<Output = ()>>(shared: &Shared<'_>, tasks: &mut Tasks<F>, now_ns: u64) {
    loop {
        let called = shared.arrivals.borrow_mut().as_mut().and_then(|arrivals| arrivals.call(now_ns));
        let Some(task) = called else { break };
        tasks.poll(task);
    }
    while let Some(task) = shared.timers.call(now_ns) {
        tasks.poll(task);
    }
}

/// Hands connections that were opened to the tasks that wished for them.
fn hand_out<W, F: Future<Output = ()>>(orders: &Orders<'_, W>, shared: &Shared<'_>, tasks: &mut Tasks<F>) {
    let Some(openers) = orders.openers else { return };
    for opened in openers.opened(shared.worker) {
        let task = opened.task;
        shared.opening_use.set(shared.opening_use.get().plus(&opened.usage));
        shared.arrived.borrow_mut().insert(task, opened);
        tasks.poll(task);
    }
}
