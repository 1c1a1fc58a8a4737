//! State that the tasks of one worker share.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::clock::Clock;
use crate::packets::Packets;
use crate::recorder::{FirstError, Recorder};
use crate::send_queue::SendQueue;
use crate::shared_columns::SharedColumns;
use crate::transport::{Opened, Transport};
use crate::usage::ThreadUse;
use crate::waiting::{Arrivals, Timers};

/// State that the tasks of one worker share. One thread owns it, so cells suffice.
pub struct Shared<T: Transport> {
    /// Number of the worker.
    pub worker: usize,
    pub transport: T,
    pub packets: RefCell<Packets>,
    pub recorder: RefCell<Recorder>,
    /// Codes of errors that occurred in this step.
    pub seen_errors: RefCell<BTreeSet<u16>>,
    /// First errors since the last hand-over.
    pub first_errors: RefCell<Vec<FirstError>>,
    /// A transaction of this worker has succeeded.
    pub succeeded: Cell<bool>,
    /// No new transactions are started.
    pub stopping: Cell<bool>,
    /// Connections that were lost for good, those that are being opened again, and why the last one was lost.
    pub lost: Cell<usize>,
    pub down: Cell<usize>,
    pub last_loss: RefCell<Option<String>>,
    /// Transactions that were due before this instant are counted and not timed: the backlog of the warm-up.
    pub timed_from_ns: Cell<u64>,
    /// Arrivals of an open loop.
    pub arrivals: RefCell<Option<Arrivals>>,
    pub timers: Timers,
    /// Opened connections that their tasks have not taken.
    pub opened: RefCell<BTreeMap<usize, Opened<T::Socket>>>,
    /// Cost of opening connections since the last hand-over.
    pub opening_use: Cell<ThreadUse>,
    /// Input and output of an envelope; empty while connections have none.
    pub wrapped: RefCell<Vec<u8>>,
    pub send_queue: RefCell<SendQueue>,
    /// Definitions of columns that the workers have in common.
    pub columns: Arc<SharedColumns>,
    /// All available answers have been received: statements are sent.
    pub sending: Cell<bool>,
}

impl<T: Transport> Shared<T> {
    pub fn new(
        worker: usize,
        transport: T,
        packets: Packets,
        operations: usize,
        columns: Arc<SharedColumns>,
    ) -> Self {
        Self {
            worker,
            transport,
            packets: RefCell::new(packets),
            recorder: RefCell::new(Recorder::new(operations)),
            seen_errors: RefCell::default(),
            first_errors: RefCell::default(),
            succeeded: Cell::new(false),
            stopping: Cell::new(false),
            lost: Cell::new(0),
            down: Cell::new(0),
            last_loss: RefCell::default(),
            timed_from_ns: Cell::new(0),
            arrivals: RefCell::default(),
            timers: Timers::default(),
            opened: RefCell::new(BTreeMap::new()),
            opening_use: Cell::default(),
            wrapped: RefCell::default(),
            send_queue: RefCell::default(),
            columns,
            sending: Cell::new(false),
        }
    }

    /// Nanoseconds since the run began.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.transport.clock().now_ns()
    }

    /// Polls every task that has a queued packet, so that it sends it.
    pub fn send_all(&self, mut poll: impl FnMut(usize)) {
        self.sending.set(true);
        loop {
            let Some(task) = self.send_queue.borrow_mut().next() else { break };
            poll(task);
        }
        self.sending.set(false);
    }

    /// Waits until an instant, or until no new transactions are started.
    pub async fn sleep_until(&self, at_ns: u64, task: usize) {
        if self.now_ns() < at_ns {
            self.timers.set(at_ns, task);
        }
        poll_fn(|_| {
            let over = self.stopping.get() || self.now_ns() >= at_ns;
            if over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Waits for the connection that a task requested; `None` when no new transactions are started.
    pub async fn opened(&self, task: usize) -> Option<Opened<T::Socket>> {
        poll_fn(|_| match self.opened.borrow_mut().remove(&task) {
            None if !self.stopping.get() => Poll::Pending,
            opened => Poll::Ready(opened),
        })
        .await
    }

    /// Waits for an arrival of the schedule, and returns its instant; `None` when no new transactions are started.
    pub async fn arrival(&self, task: usize) -> Option<u64> {
        poll_fn(|_| {
            if self.stopping.get() {
                return Poll::Ready(None);
            }
            let mut arrivals = self.arrivals.borrow_mut();
            let Some(arrivals) = arrivals.as_mut() else { return Poll::Pending };
            let taken = arrivals.take(self.now_ns());
            if taken.is_some() {
                return Poll::Ready(taken);
            }
            // An event of its socket can poll a waiting task, which then waits twice: a superfluous poll is harmless.
            arrivals.wait(task);
            Poll::Pending
        })
        .await
    }

    /// Counts an error; the first of a code goes to the event log.
    pub fn count_error(&self, error: FirstError) {
        self.recorder.borrow_mut().error(error.code);
        if self.seen_errors.borrow_mut().insert(error.code) {
            self.first_errors.borrow_mut().push(error);
        }
    }
}
