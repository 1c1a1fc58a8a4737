//! The life of one connection under load: transaction after transaction until the worker stops.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Poll;

use mydyno_model::plan::{Arrivals, Spread, Think};
use mydyno_stats::rng::Rng;
use mydyno_wire::WireError;
use mydyno_workload::{Fault, Workload};

use crate::connection::{Connection, Shared};
use crate::error::LoadError;
use crate::recorder::FirstError;
use crate::retry::is_retryable;
use crate::worker::Orders;

/// Failures in a row on one connection after which the load is pointless, if nothing has succeeded on any connection
/// and [`HOPELESS_AFTER_NS`] have passed.
const HOPELESS_FAILURES: u32 = 100;
const HOPELESS_AFTER_NS: u64 = 2_000_000_000;

/// Asks transactions on a connection; `number` is the connection's among all of the step.
pub async fn drive<W: Workload>(
    orders: &Orders<'_, W>,
    shared: &Shared<'_>,
    mut connection: Connection<'_>,
    number: usize,
) {
    let workload = orders.workload;
    let single = workload.operations().len() == 1;
    let lifetime = orders.keep.reconnect_every.unwrap_or(u64::MAX);
    let mut stream = workload.stream(number as u64);
    let mut pace = Pace::new(orders.arrivals, orders.seed, number as u64);
    let mut failures_in_a_row = 0;
    let mut asked = 0;
    connection.done_ns = shared.clock.now_ns();
    let began_ns = connection.done_ns;
    while let Some(intended_ns) = pace.next(shared, &connection).await {
        shared.recorder.borrow_mut().started += 1;
        let before = stream.clone();
        connection.begin(intended_ns);
        asked += 1;
        let mut attempt_ns = 0;
        let lost = loop {
            let fault = match workload.transaction(&mut stream, &mut connection).await {
                Ok(()) => {
                    // Retries count: from the first attempt's send to the last one's answer.
                    let (done_ns, sent_ns) = (connection.done_ns, connection.first_sent_ns);
                    let mut recorder = shared.recorder.borrow_mut();
                    recorder.transactions += 1;
                    if connection.is_timed() {
                        recorder.lateness.record(sent_ns - intended_ns);
                        if !single {
                            recorder.transaction(done_ns - intended_ns, done_ns - sent_ns);
                        }
                    }
                    if !shared.succeeded.replace(true) {
                        orders.succeeded.store(true, Ordering::Relaxed);
                    }
                    failures_in_a_row = 0;
                    break false;
                }
                Err(fault) => fault,
            };
            match after(fault, orders, shared, &mut connection).await {
                After::Retry if !shared.stopping.get() => {
                    let mut recorder = shared.recorder.borrow_mut();
                    recorder.retries += 1;
                    recorder.retried.record(connection.done_ns - connection.first_sent_ns.max(attempt_ns));
                    attempt_ns = connection.done_ns;
                    // The same transaction again; its first statement is due now.
                    stream = before.clone();
                    connection.intended_ns = connection.done_ns;
                }
                after => {
                    shared.recorder.borrow_mut().failed += 1;
                    failures_in_a_row += 1;
                    let failing_ns = connection.done_ns.saturating_sub(began_ns);
                    if failures_in_a_row >= HOPELESS_FAILURES
                        && failing_ns >= HOPELESS_AFTER_NS
                        && !orders.succeeded.load(Ordering::Relaxed)
                    {
                        orders.hopeless.store(true, Ordering::Relaxed);
                        orders.stop.store(true, Ordering::Relaxed);
                    }
                    break matches!(after, After::Lost);
                }
            }
        };
        if lost || asked >= lifetime {
            if !renew(orders, shared, &mut connection, lost).await {
                return;
            }
            asked = 0;
        }
    }
    connection.quit();
}

/// When a connection asks next.
enum Pace {
    /// As soon as it is answered.
    AtOnce,
    /// After a pause.
    Thinking(Think, Rng, bool),
    /// When the schedule has an arrival for it.
    Scheduled,
}

/// Label of the random streams of think times.
const THINKING: u64 = 0x7468_696e_6b69_6e67;

impl Pace {
    fn new(arrivals: &Arrivals, seed: u64, connection: u64) -> Self {
        match arrivals {
            Arrivals::Closed { think: None } => Self::AtOnce,
            Arrivals::Closed { think: Some(think) } => {
                Self::Thinking(*think, Rng::stream(seed, &[THINKING, connection]), true)
            }
            Arrivals::Open { .. } => Self::Scheduled,
        }
    }

    /// When the next transaction is intended; `None` when there is to be none.
    #[inline]
    async fn next(&mut self, shared: &Shared<'_>, connection: &Connection<'_>) -> Option<u64> {
        match self {
            Self::AtOnce => (!shared.stopping.get()).then_some(connection.done_ns),
            Self::Thinking(think, random, first) => {
                let share = match think.spread {
                    // Connections that pause equally long would all ask at once: they start one after the other.
                    Spread::Constant if std::mem::take(first) => random.f64(),
                    Spread::Constant => 1.0,
                    Spread::Exponential => random.exponential(),
                };
                let intended_ns = connection.done_ns.saturating_add((think.mean_s * share * 1e9) as u64);
                shared.sleep_until(intended_ns, connection.task()).await;
                (!shared.stopping.get()).then_some(intended_ns)
            }
            Self::Scheduled => arrival(shared, connection.task()).await,
        }
    }
}

/// The next arrival of the schedule for a task.
async fn arrival(shared: &Shared<'_>, task: usize) -> Option<u64> {
    poll_fn(|_| {
        if shared.stopping.get() {
            return Poll::Ready(None);
        }
        let mut arrivals = shared.arrivals.borrow_mut();
        let Some(arrivals) = arrivals.as_mut() else { return Poll::Pending };
        let taken = arrivals.take(shared.clock.now_ns());
        if taken.is_some() {
            return Poll::Ready(taken);
        }
        // Woken by its socket, it stands in the line twice: to be called once too often does no harm.
        arrivals.wait(task);
        Poll::Pending
    })
    .await
}

/// What a connection does after a failed transaction.
enum After {
    Retry,
    Next,
    Lost,
}

/// Counts the fault, and rolls back where there is something to roll back.
async fn after<W: Workload>(
    fault: Fault,
    orders: &Orders<'_, W>,
    shared: &Shared<'_>,
    connection: &mut Connection<'_>,
) -> After {
    let error = match fault {
        Fault::Server(error) => error,
        Fault::Lost(error) => return lose(&error, orders, shared, connection),
    };
    let retryable = is_retryable(error.code);
    let error = FirstError {
        code: error.code,
        sqlstate: error.sqlstate,
        message: error.message,
        operation: connection.last_operation,
    };
    if !retryable {
        orders.forbid(&error);
    }
    count(error, shared);
    if orders.workload.transactional()
        && let Err(Fault::Lost(error)) = connection.rollback().await
    {
        return lose(&error, orders, shared, connection);
    }
    if retryable { After::Retry } else { After::Next }
}

/// `CR_SERVER_LOST`, the code under which clients of the field count lost connections.
const SERVER_LOST: u16 = 2013;
/// `CR_CONN_HOST_ERROR`: a connection could not be opened.
const NOT_CONNECTED: u16 = 2003;

fn lose<W: Workload>(
    error: &WireError,
    orders: &Orders<'_, W>,
    shared: &Shared<'_>,
    connection: &Connection<'_>,
) -> After {
    let error = FirstError {
        code: SERVER_LOST,
        sqlstate: "HY000".to_owned(),
        message: error.to_string(),
        operation: connection.last_operation,
    };
    orders.forbid(&error);
    shared.last_loss.replace(Some(error.message.clone()));
    count(error, shared);
    After::Lost
}

fn count(error: FirstError, shared: &Shared<'_>) {
    shared.recorder.borrow_mut().error(error.code);
    if shared.seen_errors.borrow_mut().insert(error.code) {
        shared.first_errors.borrow_mut().push(error);
    }
}

/// Pauses between attempts to open a lost connection again: the first, and the longest after doubling.
const FIRST_PAUSE_NS: u64 = 50_000_000;
const LONGEST_PAUSE_NS: u64 = 2_000_000_000;

/// Opens a connection anew: because it was lost, or because its time is up. Whether it did; the time it takes is part
/// of no transaction.
async fn renew<W: Workload>(
    orders: &Orders<'_, W>,
    shared: &Shared<'_>,
    connection: &mut Connection<'_>,
    lost: bool,
) -> bool {
    let Some(openers) = orders.openers.filter(|_| !lost || orders.keep.reconnect) else {
        shared.lost.set(shared.lost.get() + 1);
        return false;
    };
    if !lost {
        connection.quit();
    }
    connection.close();
    let mut down = Down { shared, is: false };
    down.set(lost);
    let mut pause_ns = FIRST_PAUSE_NS;
    while !shared.stopping.get() {
        openers.request(shared.worker, connection.task(), connection.number);
        let Some(opened) = shared.opened(connection.task()).await else { return false };
        let error = match opened.result.and_then(|ready| connection.renew(ready)) {
            Ok(()) => {
                let mut recorder = shared.recorder.borrow_mut();
                recorder.connect.record(opened.took_ns);
                recorder.reconnects += u64::from(down.is);
                drop(recorder);
                down.set(false);
                connection.done_ns = shared.clock.now_ns();
                return true;
            }
            Err(error) => error,
        };
        down.set(true);
        let error = said(&error, connection.last_operation);
        orders.forbid(&error);
        shared.last_loss.replace(Some(error.message.clone()));
        count(error, shared);
        // Connections that were lost together do not all come back at one instant.
        let spread_ns = pause_ns / 64 * (connection.number as u64 % 32);
        shared.sleep_until(shared.clock.now_ns() + pause_ns + spread_ns, connection.task()).await;
        pause_ns = (pause_ns * 2).min(LONGEST_PAUSE_NS);
    }
    false
}

/// Counts a connection as down while it is.
struct Down<'a, 'w> {
    shared: &'a Shared<'w>,
    is: bool,
}

impl Down<'_, '_> {
    fn set(&mut self, is: bool) {
        let change = i64::from(is) - i64::from(self.is);
        self.shared.down.set((self.shared.down.get() as i64 + change) as usize);
        self.is = is;
    }
}

impl Drop for Down<'_, '_> {
    fn drop(&mut self) {
        // Who gives up while the connection is down leaves it lost.
        let lost = self.is && self.shared.stopping.get();
        self.set(false);
        if lost {
            self.shared.lost.set(self.shared.lost.get() + 1);
        }
    }
}

/// A refusal in the words of an error.
fn said(error: &LoadError, operation: usize) -> FirstError {
    let source = match error {
        LoadError::Connect { source, .. } | LoadError::Prepare { source, .. } => Some(&**source),
        _ => None,
    };
    match source {
        Some(WireError::Server(error)) => FirstError {
            code: error.code,
            sqlstate: error.sqlstate.clone(),
            message: error.message.clone(),
            operation,
        },
        other => FirstError {
            code: NOT_CONNECTED,
            sqlstate: "HY000".to_owned(),
            message: other.map_or_else(|| error.to_string(), ToString::to_string),
            operation,
        },
    }
}
