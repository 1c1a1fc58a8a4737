//! A worker: its connections and its event loop.

use std::io;
use std::sync::mpsc::Sender;

use mydyno_workload::Workload;

use crate::connection::Connection;
use crate::context::StepContext;
use crate::drive::drive;
use crate::executor::Tasks;
use crate::handover::Message;
use crate::opening::Ready;
use crate::reporter::Reporter;
use crate::shared::Shared;
use crate::transport::{OPENED, Transport};

/// Longest wait: the delay with which a worker notices a cancellation.
pub const LONGEST_WAIT_NS: u64 = 100_000_000;

/// Answers that are received before statements are sent. Larger batches save CPU; smaller ones let the first answer's
/// connection send its next statement sooner.
const BATCH: usize = 64;

/// The tasks of a worker, one for each open connection, and their transport's events.
///
/// # Errors
/// Out of memory or watches.
pub fn tasks<'a, W: Workload, T: Transport>(
    context: &'a StepContext<'a, W>,
    shared: &'a Shared<T>,
    ready: Vec<Ready<T::Socket>>,
) -> io::Result<Tasks<impl Future<Output = ()> + use<'a, W, T>>> {
    let numbers = context.numbers(shared.worker);
    let connections: Vec<_> = ready
        .into_iter()
        .zip(numbers)
        .enumerate()
        .map(|(task, (ready, number))| Connection::new(shared, task, number, ready))
        .collect();
    for connection in &connections {
        connection.watch()?;
    }
    Ok(Tasks::new(connections.into_iter().map(|connection| {
        let number = connection.number;
        async move {
            drive(context, shared, connection, number).await;
            context.task_ended();
        }
    })))
}

/// A worker's event loop, cut where it waits: a thread waits in the kernel, a simulation advances its clock.
pub struct EventLoop<'a, W, T: Transport, F> {
    shared: &'a Shared<T>,
    tasks: Tasks<F>,
    reporter: Reporter<'a, W, T>,
    /// Tasks with events.
    ready: Vec<usize>,
    gather_ns: u64,
}

impl<'a, W: Workload, T: Transport, F: Future<Output = ()>> EventLoop<'a, W, T, F> {
    /// Starts the load: every task sends its first statement that is due.
    pub fn start(
        context: &'a StepContext<'a, W>,
        shared: &'a Shared<T>,
        mut tasks: Tasks<F>,
        start_ns: u64,
        messages: &'a Sender<Message>,
    ) -> Self {
        let reporter = Reporter::start(context, shared, messages, start_ns);
        tasks.poll_all();
        shared.send_all(|task| tasks.poll(task));
        let gather_ns = context.wait.coalesce_us * 1000;
        Self { shared, tasks, reporter, ready: Vec::new(), gather_ns }
    }

    /// Closes windows that have ended, and polls tasks whose timer or arrival is due. Returns until when to wait for
    /// events, on the run's clock; `None` when the worker is done.
    pub fn before_wait(&mut self) -> Option<u64> {
        let Self { shared, tasks, reporter, .. } = self;
        let now_ns = shared.now_ns();
        let was_stopping = shared.stopping.get();
        if reporter.close_windows(now_ns, tasks.live()) {
            return None;
        }
        if shared.stopping.get() && !was_stopping {
            // Tasks without a transaction under way end when they are polled.
            tasks.poll_all();
        }
        poll_due(shared, tasks, now_ns);
        shared.send_all(|task| tasks.poll(task));
        Some(next_ns(shared, reporter))
    }

    /// Waits for events until an instant; an instant that has passed means a look without waiting.
    ///
    /// # Errors
    /// Only those that a defect of this program causes.
    pub fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let wait_ns = until_ns.saturating_sub(self.shared.now_ns()).min(LONGEST_WAIT_NS);
        self.shared.transport.wait(&mut self.ready, wait_ns, self.gather_ns)?;
        self.reporter.waited();
        Ok(())
    }

    /// Polls the tasks with events.
    ///
    /// # Errors
    /// Only those that a defect of this program causes.
    pub fn after_wait(&mut self) -> io::Result<()> {
        let Self { shared, tasks, ready, .. } = self;
        for (number, batch) in ready.chunks(BATCH).enumerate() {
            if number > 0 {
                shared.transport.submit()?;
            }
            for &task in batch {
                match task {
                    OPENED => deliver_opened(shared, tasks),
                    task => tasks.poll(task),
                }
            }
            shared.send_all(|task| tasks.poll(task));
        }
        Ok(())
    }
}

/// When the next window, timer or awaited arrival is due.
fn next_ns<W: Workload, T: Transport>(shared: &Shared<T>, reporter: &Reporter<'_, W, T>) -> u64 {
    let timer_ns = shared.timers.next_ns().unwrap_or(u64::MAX);
    let arrival_ns = match &*shared.arrivals.borrow() {
        Some(arrivals) if arrivals.is_awaited() => arrivals.next_ns(),
        _ => u64::MAX,
    };
    reporter.next_ns().min(timer_ns).min(arrival_ns)
}

/// Polls the tasks whose arrival or timer is due.
fn poll_due<T: Transport, F: Future<Output = ()>>(shared: &Shared<T>, tasks: &mut Tasks<F>, now_ns: u64) {
    loop {
        let waiting = shared.arrivals.borrow_mut().as_mut().and_then(|arrivals| arrivals.next_task(now_ns));
        let Some(task) = waiting else { break };
        tasks.poll(task);
    }
    while let Some(task) = shared.timers.next_task(now_ns) {
        tasks.poll(task);
    }
}

/// Delivers opened connections to the tasks that requested them.
fn deliver_opened<T: Transport, F: Future<Output = ()>>(shared: &Shared<T>, tasks: &mut Tasks<F>) {
    for opened in shared.transport.opened() {
        let task = opened.task;
        shared.opening_use.set(shared.opening_use.get().plus(&opened.usage));
        shared.opened.borrow_mut().insert(task, opened);
        tasks.poll(task);
    }
}
