//! A worker thread: its connections and its event loop.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use mydyno_workload::Workload;

use crate::account::{Account, Message};
use crate::clock::Clock;
use crate::connection::{Connection, Shared};
use crate::drive::drive;
use crate::error::LoadError;
use crate::executor::Tasks;
use crate::opening::Ready;
use crate::packets::Packets;
use crate::sys::{Epoll, Events, NO_EVENT};
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
    let epoll = Epoll::new().map_err(system("making an event loop (epoll)"))?;
    let packets = Packets::new(orders.workload.statements());
    let shared = Shared::new(orders.clock, epoll, packets, operations);
    let connections: Vec<Connection<'_>> =
        ready.into_iter().enumerate().map(|(token, ready)| Connection::new(&shared, token, ready)).collect();
    for (token, connection) in connections.iter().enumerate() {
        shared.epoll.add_input(connection.fd(), token).map_err(system("watching a connection (epoll)"))?;
    }
    let mut tasks = Tasks::new(
        connections.into_iter().zip(numbers).map(|(c, number)| drive(orders, &shared, c, number as u64)),
    );

    let Some(start_ns) = gate() else { return Ok(()) };
    let mut account = Account::open(orders, &shared, worker, messages, start_ns);
    for number in tasks.numbers() {
        tasks.poll(number);
    }
    shared.send_all(|task| tasks.poll(task));
    let mut events: Events = [NO_EVENT; 512];
    loop {
        let now_ns = orders.clock.now_ns();
        if account.close_windows(now_ns, tasks.live()) {
            return Ok(());
        }
        let wait_ns = account.next_ns().saturating_sub(now_ns).min(LONGEST_WAIT_NS);
        let timeout_ms = wait_ns.div_ceil(1_000_000) as i32;
        let ready =
            shared.epoll.wait(&mut events, timeout_ms).map_err(system("waiting for answers (epoll)"))?;
        account.waited();
        for batch in ready.chunks(BATCH) {
            for event in batch {
                tasks.poll(event.u64 as usize);
            }
            shared.send_all(|task| tasks.poll(task));
        }
    }
}
