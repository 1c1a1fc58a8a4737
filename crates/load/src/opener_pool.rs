//! Threads that open connections while the load runs, so that no worker blocks on a handshake.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use mydyno_workload::Workload;

use crate::clock::{Clock, MonotonicClock};
use crate::error::LoadError;
use crate::opening::{Connect, open};
use crate::shared_columns::SharedColumns;
use crate::sys::EventFd;
use crate::transport::Opened;
use crate::usage::ThreadUse;

/// The requests of all workers, and the results for each.
pub struct OpenerPool {
    queue: Mutex<Queue>,
    changed: Condvar,
    inboxes: Vec<Inbox>,
}

#[derive(Debug, Default)]
struct Queue {
    requests: VecDeque<Request>,
    closed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    worker: usize,
    task: usize,
    number: usize,
}

/// Results that one worker has not collected.
struct Inbox {
    opened: Mutex<Vec<Opened<OwnedFd>>>,
    filled: EventFd,
}

impl OpenerPool {
    /// A pool without threads; each thread runs [`Self::serve`].
    ///
    /// # Errors
    /// Out of file descriptors.
    pub fn new(workers: usize) -> io::Result<Self> {
        let inbox = || Ok(Inbox { opened: Mutex::default(), filled: EventFd::new()? });
        let inboxes = (0..workers).map(|_| inbox()).collect::<io::Result<_>>()?;
        Ok(Self { queue: Mutex::default(), changed: Condvar::new(), inboxes })
    }

    /// Readable while results wait for this worker.
    pub fn filled(&self, worker: usize) -> &EventFd {
        &self.inboxes[worker].filled
    }

    /// Requests connection `number` for a task of a worker.
    pub fn request(&self, worker: usize, task: usize, number: usize) {
        lock(&self.queue).requests.push_back(Request { worker, task, number });
        self.changed.notify_one();
    }

    /// Results for a worker since the last call.
    pub fn opened(&self, worker: usize) -> Vec<Opened<OwnedFd>> {
        let inbox = &self.inboxes[worker];
        inbox.filled.reset();
        std::mem::take(&mut *lock(&inbox.opened))
    }

    /// Drops outstanding requests and ends the threads.
    pub fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        queue.requests.clear();
        self.changed.notify_all();
    }

    /// Runs one thread of the pool until [`Self::close`]; `of` is the step's number of connections.
    pub fn serve<W: Workload>(
        &self,
        workload: &W,
        connect: Connect<'_>,
        columns: &SharedColumns,
        of: usize,
        clock: &MonotonicClock,
    ) {
        let mut before = ThreadUse::of_this_thread();
        while let Some(Request { worker, task, number }) = self.next() {
            let start_ns = clock.now_ns();
            let result = catch_unwind(AssertUnwindSafe(|| open(workload, connect, columns, number, of)))
                .unwrap_or_else(|_| Err(LoadError::Worker("opening a connection panicked".to_owned())));
            let took_ns = clock.now_ns() - start_ns;
            let after = ThreadUse::of_this_thread();
            let opened = Opened { task, result, took_ns, usage: after.since(&before) };
            before = after;
            let inbox = &self.inboxes[worker];
            lock(&inbox.opened).push(opened);
            inbox.filled.notify();
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

/// Closes the pool when it goes out of scope.
pub struct CloseOnDrop<'a>(pub Option<&'a OpenerPool>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(pool) = self.0 {
            pool.close();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
