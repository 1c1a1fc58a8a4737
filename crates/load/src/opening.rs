//! Opening connections and preparing statements on them: before the load starts, and again while it runs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mydyno_wire::envelope::Envelope;
use mydyno_wire::reply::ReplyParser;
use mydyno_wire::{Client, Column, Session, WireError};
use mydyno_workload::Workload;

use crate::clock::Clock;
use crate::error::LoadError;
use crate::packets::id_of;
use crate::sys::{Bell, ThreadUse};

/// Opens an authenticated connection to the right database.
pub type Connect<'a> = &'a (dyn Fn() -> Result<Client, WireError> + Sync);

/// An authenticated connection with its statements prepared.
pub struct Ready {
    pub socket: OwnedFd,
    pub parser: ReplyParser,
    pub envelope: Option<Box<Envelope>>,
    pub ids: Box<[u32]>,
    /// Where statements keep rows.
    pub keeping: Option<Box<Keeping>>,
}

/// What is needed to keep rows of a connection's results.
pub struct Keeping {
    pub session: Session,
    /// Columns as they were prepared, by statement; empty where it keeps no row.
    pub columns: Box<[Arc<[Column]>]>,
}

/// Opens connection `number` (from 0, of `of`) and prepares the workload's statements on it.
///
/// # Errors
/// The connection or a statement is refused.
pub fn open<W: Workload>(
    workload: &W,
    connect: Connect<'_>,
    number: usize,
    of: usize,
) -> Result<Ready, LoadError> {
    let number = number + 1;
    let refused = |e: WireError| match e {
        WireError::Cancelled { .. } => LoadError::Interrupted,
        e => LoadError::Connect { number, of, source: Box::new(e) },
    };
    let mut client = connect().map_err(refused)?;
    let mut columns: Vec<Arc<[Column]>> = Vec::new();
    let keeps = workload.statements().iter().any(|s| s.keeps_row);
    let ids = workload
        .statements()
        .iter()
        .map(|statement| {
            let prepared = client.prepare(&statement.sql);
            if keeps {
                let kept = prepared.as_ref().ok().filter(|_| statement.keeps_row);
                columns.push(kept.map(|p| p.columns.clone()).unwrap_or_default().into());
            }
            id_of(prepared, statement).map_err(|e| match e {
                WireError::Cancelled { .. } => LoadError::Interrupted,
                e => LoadError::Prepare { number, of, sql: statement.sql.clone(), source: Box::new(e) },
            })
        })
        .collect::<Result<_, _>>()?;
    let (socket, session, envelope) = client.into_enveloped_parts().map_err(refused)?;
    let parser = ReplyParser::new(&session);
    let keeping = keeps.then(|| Box::new(Keeping { session, columns: columns.into() }));
    Ok(Ready { socket, parser, envelope, ids, keeping })
}

/// When connections may be opened: at most so many a second, over all workers.
#[derive(Debug, Clone, Copy)]
pub struct Pace<'a> {
    pub clock: &'a Clock,
    pub start_ns: u64,
    pub rate_per_s: Option<f64>,
}

/// A stop is noticed this soon while a connection waits for its turn.
const GLANCE: Duration = Duration::from_millis(50);

impl Pace<'_> {
    /// Waits for the turn of connection `number`; whether it came before `stop`.
    pub fn wait(&self, number: usize, stop: &dyn Fn() -> bool) -> bool {
        let turn_ns = self.rate_per_s.map_or(0, |rate| self.start_ns + (number as f64 / rate * 1e9) as u64);
        loop {
            if stop() {
                return false;
            }
            let left_ns = turn_ns.saturating_sub(self.clock.now_ns());
            if left_ns == 0 {
                return true;
            }
            std::thread::sleep(Duration::from_nanos(left_ns).min(GLANCE));
        }
    }
}

/// Threads that open connections while the load runs, so that no worker stands still for it.
#[derive(Debug)]
pub struct Openers {
    queue: Mutex<Queue>,
    changed: Condvar,
    desks: Vec<Desk>,
}

#[derive(Debug, Default)]
struct Queue {
    requests: VecDeque<Request>,
    closed: bool,
}

/// A task's wish for a new connection.
#[derive(Debug, Clone, Copy)]
struct Request {
    worker: usize,
    task: usize,
    number: usize,
}

/// Where a worker finds what was opened for it.
#[derive(Debug)]
struct Desk {
    opened: Mutex<Vec<Opened>>,
    bell: Bell,
}

/// What came of a wish.
pub struct Opened {
    pub task: usize,
    pub result: Result<Ready, LoadError>,
    /// From the first packet to the last answer.
    pub took_ns: u64,
    /// What opening cost this process.
    pub usage: ThreadUse,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("task", &self.task).finish_non_exhaustive()
    }
}

impl Openers {
    /// Desks for so many workers.
    ///
    /// # Errors
    /// Out of file descriptors.
    pub fn new(workers: usize) -> io::Result<Self> {
        let desk = || Ok(Desk { opened: Mutex::default(), bell: Bell::new()? });
        let desks = (0..workers).map(|_| desk()).collect::<io::Result<_>>()?;
        Ok(Self { queue: Mutex::default(), changed: Condvar::new(), desks })
    }

    /// What rings when something has been opened for this worker.
    pub fn bell(&self, worker: usize) -> &Bell {
        &self.desks[worker].bell
    }

    /// Asks for connection `number`, for a task of a worker.
    pub fn request(&self, worker: usize, task: usize, number: usize) {
        lock(&self.queue).requests.push_back(Request { worker, task, number });
        self.changed.notify_one();
    }

    /// What has been opened for a worker since the last call.
    pub fn opened(&self, worker: usize) -> Vec<Opened> {
        let desk = &self.desks[worker];
        desk.bell.silence();
        std::mem::take(&mut *lock(&desk.opened))
    }

    /// No more is to be opened: the threads go home.
    pub fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        queue.requests.clear();
        self.changed.notify_all();
    }

    /// The life of such a thread.
    pub fn serve<W: Workload>(&self, workload: &W, connect: Connect<'_>, of: usize, clock: &Clock) {
        let mut before = ThreadUse::of_this_thread();
        while let Some(Request { worker, task, number }) = self.next() {
            let start_ns = clock.now_ns();
            let result = catch_unwind(AssertUnwindSafe(|| open(workload, connect, number, of)))
                .unwrap_or_else(|_| Err(LoadError::Worker("opening a connection panicked".to_owned())));
            let took_ns = clock.now_ns() - start_ns;
            let after = ThreadUse::of_this_thread();
            let opened = Opened { task, result, took_ns, usage: after.since(&before) };
            before = after;
            let desk = &self.desks[worker];
            lock(&desk.opened).push(opened);
            desk.bell.ring();
        }
    }

    fn next(&self) -> Option<Request> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            if let Some(request) = queue.requests.pop_front() {
                return Some(request);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Sends the threads home when it goes out of scope.
pub struct Closing<'a>(pub Option<&'a Openers>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some(openers) = self.0 {
            openers.close();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
