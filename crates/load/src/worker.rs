//! A worker thread: its connections, its event loop, its hand-overs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use mydyno_model::record::Phase;
use mydyno_wire::{Client, WireError};
use mydyno_workload::{Fault, Workload};

use crate::clock::Clock;
use crate::connection::{Connection, Shared};
use crate::error::LoadError;
use crate::packets::{Packets, id_of};
use crate::recorder::{FirstError, Recorder};
use crate::retry::is_retryable;
use crate::sys::{Epoll, Events, NO_EVENT, ThreadUse};
use crate::window::Windows;

/// Longest sleep: how late a worker may learn that the user asked to stop.
const LONGEST_WAIT_NS: u64 = 100_000_000;

/// Failures in a row on one connection, without one success in the step, after which the load is pointless.
const HOPELESS_FAILURES: u32 = 100;

/// What a worker recorded in one window.
pub struct Handover {
    /// Number of the worker.
    pub worker: usize,
    /// Number of the window; the drain comes after the last.
    pub window: usize,
    pub phase: Phase,
    /// When the window ended, on the run's clock.
    pub end_ns: u64,
    pub recorder: Recorder,
    pub usage: ThreadUse,
    /// Calls that waited for input.
    pub waits: u64,
    pub first_errors: Vec<FirstError>,
    /// Nothing follows from this worker.
    pub last: bool,
    /// Connections lost so far.
    pub lost: usize,
    /// Why the last one was.
    pub last_loss: Option<String>,
    /// Transactions that had no answer when the worker gave up waiting.
    pub unanswered: usize,
}

/// What all workers of a step have in common.
pub struct Orders<'a, W> {
    pub workload: &'a W,
    pub clock: &'a Clock,
    pub windows: &'a Windows,
    /// How long answers are awaited after the last window.
    pub drain_limit_ns: u64,
    /// The same after the load was called off.
    pub drain_called_off_ns: u64,
    /// The user asked to stop, or another worker found the load hopeless.
    pub stop: &'a AtomicBool,
    pub hopeless: &'a AtomicBool,
}

/// An authenticated connection with its statements prepared.
pub struct Ready {
    socket: std::os::fd::OwnedFd,
    parser: mydyno_wire::reply::ReplyParser,
    envelope: Option<Box<mydyno_wire::envelope::Envelope>>,
    ids: Box<[u32]>,
}

/// Opens connections `numbers` (from 0, of `of`) and prepares the workload's statements on each.
///
/// # Errors
/// The first connection or statement that is refused.
pub fn connect<W: Workload>(
    workload: &W,
    connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
    numbers: impl Iterator<Item = usize>,
    of: usize,
    stop: &AtomicBool,
    mut connected: impl FnMut(),
) -> Result<Vec<Ready>, LoadError> {
    let mut ready = Vec::new();
    for number in numbers {
        if stop.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted);
        }
        let number = number + 1;
        let mut client = connect().map_err(|e| LoadError::Connect { number, of, source: Box::new(e) })?;
        let ids = workload
            .statements()
            .iter()
            .map(|statement| {
                id_of(client.prepare(&statement.sql), statement).map_err(|e| LoadError::Prepare {
                    number,
                    of,
                    sql: statement.sql.clone(),
                    source: Box::new(e),
                })
            })
            .collect::<Result<_, _>>()?;
        let (socket, session, envelope) = client.into_enveloped_parts().map_err(|e| LoadError::Connect {
            number,
            of,
            source: Box::new(e),
        })?;
        ready.push(Ready { socket, parser: mydyno_wire::reply::ReplyParser::new(&session), envelope, ids });
        connected();
    }
    Ok(ready)
}

/// Runs the load of one worker from `start_ns` to the end of the last window, and drains.
///
/// # Errors
/// The operating system refused what an event loop needs.
pub fn work<W: Workload>(
    orders: &Orders<'_, W>,
    worker: usize,
    ready: Vec<Ready>,
    numbers: impl Iterator<Item = usize>,
    start_ns: u64,
    handovers: &Sender<Handover>,
) -> Result<(), LoadError> {
    let system = |what: &str| {
        let what = what.to_owned();
        move |source| LoadError::System { what, source }
    };
    let operations = orders.workload.operations().len();
    let epoll = Epoll::new().map_err(system("making an event loop (epoll)"))?;
    let packets = Packets::new(orders.workload.statements());
    let shared = Shared::new(orders.clock, epoll, packets, operations);
    let connections: Vec<Connection<'_>> = ready
        .into_iter()
        .enumerate()
        .map(|(token, r)| Connection::new(&shared, r.socket, token, r.parser, r.envelope, r.ids))
        .collect();
    for (token, connection) in connections.iter().enumerate() {
        shared.epoll.add_input(connection.fd(), token).map_err(system("watching a connection (epoll)"))?;
    }
    let mut tasks = crate::executor::Tasks::new(
        connections.into_iter().zip(numbers).map(|(c, number)| drive(orders, &shared, c, number as u64)),
    );

    let mut account = Account::open(orders, &shared, worker, handovers, start_ns);
    for number in tasks.numbers() {
        tasks.poll(number);
    }
    let mut events: Events = [NO_EVENT; 512];
    loop {
        let now_ns = orders.clock.now_ns();
        if account.close_windows(now_ns, tasks.live()) {
            return Ok(());
        }
        let wait_ns = (account.next_ns().saturating_sub(now_ns)).min(LONGEST_WAIT_NS);
        let timeout_ms = wait_ns.div_ceil(1_000_000) as i32;
        let ready =
            shared.epoll.wait(&mut events, timeout_ms).map_err(system("waiting for answers (epoll)"))?;
        account.waits += 1;
        for event in ready {
            tasks.poll(event.u64 as usize);
        }
    }
}

/// Closes windows and hands them over.
struct Account<'a, 'w, W> {
    orders: &'a Orders<'a, W>,
    shared: &'a Shared<'w>,
    worker: usize,
    handovers: &'a Sender<Handover>,
    start_ns: u64,
    window: usize,
    draining_until_ns: Option<u64>,
    usage: ThreadUse,
    waits: u64,
}

impl<'a, 'w, W: Workload> Account<'a, 'w, W> {
    fn open(
        orders: &'a Orders<'a, W>,
        shared: &'a Shared<'w>,
        worker: usize,
        handovers: &'a Sender<Handover>,
        start_ns: u64,
    ) -> Self {
        let usage = ThreadUse::of_this_thread();
        Self {
            orders,
            shared,
            worker,
            handovers,
            start_ns,
            window: 0,
            draining_until_ns: None,
            usage,
            waits: 0,
        }
    }

    /// When something is to be done next, on the run's clock.
    fn next_ns(&self) -> u64 {
        match (self.draining_until_ns, self.orders.windows.get(self.window)) {
            (Some(until), _) => until,
            (None, Some((_, end))) => self.start_ns + end,
            (None, None) => 0,
        }
    }

    /// Hands over what has ended by now; whether the worker is done.
    fn close_windows(&mut self, now_ns: u64, live: usize) -> bool {
        if self.draining_until_ns.is_none() {
            self.close_timed(now_ns, live);
        }
        if self.draining_until_ns.is_some_and(|until| live == 0 || now_ns >= until) {
            self.hand_over(Phase::Drain, now_ns, live, true);
            return true;
        }
        false
    }

    fn close_timed(&mut self, now_ns: u64, live: usize) {
        while let Some((phase, end)) = self.orders.windows.get(self.window) {
            let end_ns = self.start_ns + end;
            if now_ns >= end_ns {
                self.hand_over(phase, end_ns, live, false);
                self.window += 1;
                continue;
            }
            if live > 0 && !self.orders.stop.load(Ordering::Relaxed) {
                return;
            }
            // The rest of the plan is called off: this window ends here.
            self.hand_over(phase, now_ns, live, false);
            self.window = self.orders.windows.len();
        }
        self.shared.stopping.set(true);
        let called_off = self.orders.stop.load(Ordering::Relaxed);
        let limit_ns = if called_off { self.orders.drain_called_off_ns } else { self.orders.drain_limit_ns };
        self.draining_until_ns = Some(now_ns + limit_ns);
    }

    fn hand_over(&mut self, phase: Phase, end_ns: u64, live: usize, last: bool) {
        let fresh = Recorder::new(self.orders.workload.operations().len());
        let recorder = self.shared.recorder.replace(fresh);
        let usage = ThreadUse::of_this_thread();
        let handover = Handover {
            worker: self.worker,
            window: self.window,
            phase,
            end_ns,
            recorder,
            usage: usage.since(&self.usage),
            waits: std::mem::take(&mut self.waits),
            first_errors: self.shared.first_errors.take(),
            last,
            lost: self.shared.lost.get(),
            last_loss: self.shared.last_loss.borrow().clone(),
            unanswered: if last { live } else { 0 },
        };
        self.usage = usage;
        // The receiver outlives the workers; if it has gone, so has the run.
        let _ = self.handovers.send(handover);
    }
}

/// The life of one connection under load: transaction after transaction until the worker stops.
async fn drive<W: Workload>(
    orders: &Orders<'_, W>,
    shared: &Shared<'_>,
    mut connection: Connection<'_>,
    number: u64,
) {
    let workload = orders.workload;
    let single = workload.operations().len() == 1;
    let mut stream = workload.stream(number);
    let mut failures_in_a_row = 0;
    connection.done_ns = shared.clock.now_ns();
    while !shared.stopping.get() {
        // Closed loop: the next transaction is due when the last one is answered.
        let intended_ns = connection.done_ns;
        let before = stream.clone();
        loop {
            connection.intended_ns = intended_ns;
            connection.first_sent_ns = 0;
            let fault = match workload.transaction(&mut stream, &mut connection).await {
                Ok(()) => {
                    let mut recorder = shared.recorder.borrow_mut();
                    recorder.transactions += 1;
                    recorder.lateness.record(connection.first_sent_ns - intended_ns);
                    if !single {
                        let done_ns = connection.done_ns;
                        recorder.transaction(done_ns - intended_ns, done_ns - connection.first_sent_ns);
                    }
                    failures_in_a_row = 0;
                    break;
                }
                Err(fault) => fault,
            };
            match after(fault, workload.transactional(), shared, &mut connection).await {
                After::Lost => return,
                After::Retry if !shared.stopping.get() => {
                    shared.recorder.borrow_mut().retries += 1;
                    stream = before.clone();
                }
                After::Retry | After::Next => {
                    failures_in_a_row += 1;
                    if failures_in_a_row >= HOPELESS_FAILURES {
                        orders.hopeless.store(true, Ordering::Relaxed);
                        orders.stop.store(true, Ordering::Relaxed);
                    }
                    break;
                }
            }
        }
    }
}

/// What a connection does after a failed transaction.
enum After {
    Retry,
    Next,
    Lost,
}

/// Counts the fault, and rolls back where there is something to roll back.
async fn after(
    fault: Fault,
    transactional: bool,
    shared: &Shared<'_>,
    connection: &mut Connection<'_>,
) -> After {
    let error = match fault {
        Fault::Server(error) => error,
        Fault::Lost(error) => return lose(&error, shared, connection),
    };
    count(error.code, &error.sqlstate, &error.message, shared, connection);
    if transactional && let Err(Fault::Lost(error)) = connection.rollback().await {
        return lose(&error, shared, connection);
    }
    if is_retryable(error.code) { After::Retry } else { After::Next }
}

/// `CR_SERVER_LOST`, the code under which clients of the field count lost connections.
const SERVER_LOST: u16 = 2013;

fn lose(error: &WireError, shared: &Shared<'_>, connection: &Connection<'_>) -> After {
    let text = error.to_string();
    count(SERVER_LOST, "HY000", &text, shared, connection);
    shared.lost.set(shared.lost.get() + 1);
    shared.last_loss.replace(Some(text));
    After::Lost
}

fn count(code: u16, sqlstate: &str, message: &str, shared: &Shared<'_>, connection: &Connection<'_>) {
    if shared.recorder.borrow_mut().error(code) {
        shared.first_errors.borrow_mut().push(FirstError {
            code,
            sqlstate: sqlstate.to_owned(),
            message: message.to_owned(),
            operation: connection.last_operation,
        });
    }
}
