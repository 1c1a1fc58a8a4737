//! One connection's task: transaction after transaction until the worker stops.

use std::sync::atomic::Ordering;

use mydyno_model::plan::{Arrivals, Spread, Think};
use mydyno_stats::rng::Rng;
use mydyno_wire::WireError;
use mydyno_workload::{Due, Fault, TransactionStream, Workload};

use crate::connection::Connection;
use crate::context::StepContext;
use crate::error::LoadError;
use crate::recorder::FirstError;
use crate::retry::is_retryable;
use crate::shared::Shared;
use crate::transport::Transport;

/// Failures in a row on one connection after which the load is pointless, if nothing has succeeded on any connection
/// and [`HOPELESS_AFTER_NS`] have passed.
const HOPELESS_FAILURES: u32 = 100;
const HOPELESS_AFTER_NS: u64 = 2_000_000_000;

/// Runs transactions on a connection; `number` is the connection's among all of the step.
pub async fn drive<W: Workload, T: Transport>(
    context: &StepContext<'_, W>,
    shared: &Shared<T>,
    mut connection: Connection<'_, T>,
    number: usize,
) {
    let workload = context.workload;
    let single = workload.operations().len() == 1;
    let lifetime = context.keep.reconnect_every.unwrap_or(u64::MAX);
    let mut stream = workload.stream(number as u64);
    let mut pace = Pace::new(context.arrivals, context.seed, number as u64);
    let mut failures_in_a_row = 0;
    let mut transactions = 0;
    connection.done_ns = shared.now_ns();
    let began_ns = connection.done_ns;
    while let Some(intended_ns) = next(workload, &mut stream, &mut pace, shared, &connection).await {
        stream.begin();
        if stream.is_over() {
            break;
        }
        shared.recorder.borrow_mut().started += 1;
        connection.begin(intended_ns);
        transactions += 1;
        let mut attempt_ns = 0;
        let lost = loop {
            let fault = match workload.transaction(&mut stream, &mut connection).await {
                Ok(()) if connection.first_sent_ns == 0 => {
                    handed_on(shared, &mut connection, intended_ns, &stream);
                    break false;
                }
                Ok(()) => {
                    // Retries count: from the first attempt's send to the last one's answer.
                    let (done_ns, sent_ns) = (connection.done_ns, connection.first_sent_ns);
                    let mut recorder = shared.recorder.borrow_mut();
                    recorder.transactions += 1;
                    if connection.is_timed() {
                        recorder.lateness.record(sent_ns - intended_ns);
                        if !single {
                            for operation in std::iter::once(0).chain(stream.operation()) {
                                recorder.transaction(operation, done_ns - intended_ns, done_ns - sent_ns);
                            }
                        }
                        recorder.count(stream.counts());
                    }
                    if !shared.succeeded.replace(true) {
                        context.succeeded.store(true, Ordering::Relaxed);
                    }
                    failures_in_a_row = 0;
                    break false;
                }
                Err(fault) => fault,
            };
            match after(fault, context, shared, &mut connection).await {
                After::Retry if !shared.stopping.get() => {
                    let mut recorder = shared.recorder.borrow_mut();
                    recorder.retries += 1;
                    recorder.retried.record(connection.done_ns - connection.first_sent_ns.max(attempt_ns));
                    attempt_ns = connection.done_ns;
                    // The same transaction again; its first statement is due now.
                    stream.redraw();
                    connection.intended_ns = connection.done_ns;
                }
                after => {
                    shared.recorder.borrow_mut().failed += 1;
                    failures_in_a_row += 1;
                    let failing_ns = connection.done_ns.saturating_sub(began_ns);
                    if failures_in_a_row >= HOPELESS_FAILURES
                        && failing_ns >= HOPELESS_AFTER_NS
                        && !context.succeeded.load(Ordering::Relaxed)
                    {
                        context.hopeless.store(true, Ordering::Relaxed);
                        context.cancel();
                    }
                    break matches!(after, After::Lost);
                }
            }
        };
        if lost || transactions >= lifetime {
            if !renew(context, shared, &mut connection, lost).await {
                return;
            }
            transactions = 0;
        }
    }
    connection.quit();
}

/// Records a transaction that sent nothing, because another connection does its work: under its operation only.
fn handed_on<T: Transport>(
    shared: &Shared<T>,
    connection: &mut Connection<'_, T>,
    intended_ns: u64,
    stream: &impl TransactionStream,
) {
    connection.done_ns = shared.now_ns();
    let mut recorder = shared.recorder.borrow_mut();
    // It began within this poll, so no window has been handed over since.
    recorder.started -= 1;
    if let Some(operation) = stream.operation().filter(|_| connection.is_timed()) {
        recorder.transaction(operation, connection.done_ns.saturating_sub(intended_ns), 0);
        recorder.count(stream.counts());
    }
}

/// When the next transaction is intended; `None` when there is to be none. The workload decides, or leaves it to the arrivals.
#[inline]
async fn next<W: Workload, T: Transport>(
    workload: &W,
    stream: &mut W::Stream,
    pace: &mut Pace,
    shared: &Shared<T>,
    connection: &Connection<'_, T>,
) -> Option<u64> {
    loop {
        let until_ns = match workload.due(stream, connection.done_ns) {
            Due::ByArrivals => return pace.next(shared, connection).await,
            Due::At(at_ns) => {
                shared.sleep_until(at_ns, connection.task()).await;
                return (!shared.stopping.get()).then_some(at_ns);
            }
            Due::AskAgain(after_ns) => shared.now_ns() + after_ns,
        };
        shared.sleep_until(until_ns, connection.task()).await;
        if shared.stopping.get() {
            return None;
        }
    }
}

/// When a connection starts its next transaction.
enum Pace {
    /// As soon as the last one is answered.
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
    async fn next<T: Transport>(
        &mut self,
        shared: &Shared<T>,
        connection: &Connection<'_, T>,
    ) -> Option<u64> {
        match self {
            Self::AtOnce => (!shared.stopping.get()).then_some(connection.done_ns),
            Self::Thinking(think, random, first) => {
                let share = match think.spread {
                    // Connections that pause equally long would all send at once: their first pauses are spread out.
                    Spread::Constant if std::mem::take(first) => random.f64(),
                    Spread::Constant => 1.0,
                    Spread::Exponential => random.exponential(),
                };
                let intended_ns = connection.done_ns.saturating_add((think.mean_s * share * 1e9) as u64);
                shared.sleep_until(intended_ns, connection.task()).await;
                (!shared.stopping.get()).then_some(intended_ns)
            }
            Self::Scheduled => shared.arrival(connection.task()).await,
        }
    }
}

/// The next action of a connection after a failed transaction.
enum After {
    Retry,
    Next,
    Lost,
}

/// Counts the fault, and rolls back where the workload is transactional.
async fn after<W: Workload, T: Transport>(
    fault: Fault,
    context: &StepContext<'_, W>,
    shared: &Shared<T>,
    connection: &mut Connection<'_, T>,
) -> After {
    let error = match fault {
        Fault::Server(error) => error,
        Fault::Lost(error) => return lose(&error, context, shared, connection),
    };
    let retryable = is_retryable(error.code);
    let error = FirstError {
        code: error.code,
        sqlstate: error.sqlstate,
        message: error.message,
        operation: connection.last_operation,
    };
    if !retryable {
        context.forbid(&error);
    }
    shared.count_error(error);
    if context.workload.transactional()
        && let Err(Fault::Lost(error)) = connection.rollback().await
    {
        return lose(&error, context, shared, connection);
    }
    if retryable { After::Retry } else { After::Next }
}

/// `CR_SERVER_LOST`, the code under which clients of the field count lost connections.
const SERVER_LOST: u16 = 2013;
/// `CR_CONN_HOST_ERROR`: a connection could not be opened.
const NOT_CONNECTED: u16 = 2003;

fn lose<W: Workload, T: Transport>(
    error: &WireError,
    context: &StepContext<'_, W>,
    shared: &Shared<T>,
    connection: &Connection<'_, T>,
) -> After {
    let error = FirstError {
        code: SERVER_LOST,
        sqlstate: "HY000".to_owned(),
        message: error.to_string(),
        operation: connection.last_operation,
    };
    context.forbid(&error);
    shared.last_loss.replace(Some(error.message.clone()));
    shared.count_error(error);
    After::Lost
}

/// Pauses between attempts to open a lost connection again: the first, and the longest after doubling.
const FIRST_PAUSE_NS: u64 = 50_000_000;
const LONGEST_PAUSE_NS: u64 = 2_000_000_000;

/// Opens a connection again, because it was lost or because its transactions are used up. Returns whether it did; the time
/// it takes is part of no transaction.
async fn renew<W: Workload, T: Transport>(
    context: &StepContext<'_, W>,
    shared: &Shared<T>,
    connection: &mut Connection<'_, T>,
    lost: bool,
) -> bool {
    if !shared.transport.opens_connections() || (lost && !context.keep.reconnect) {
        shared.lost.set(shared.lost.get() + 1);
        return false;
    }
    if !lost {
        connection.quit();
    }
    connection.close();
    let mut down = Down { shared, is: false };
    down.set(lost);
    let mut pause_ns = FIRST_PAUSE_NS;
    while !shared.stopping.get() {
        shared.transport.request_connection(connection.task(), connection.number);
        let Some(opened) = shared.opened(connection.task()).await else { return false };
        let error = match opened.result.and_then(|ready| connection.renew(ready)) {
            Ok(()) => {
                let mut recorder = shared.recorder.borrow_mut();
                recorder.connect.record(opened.took_ns);
                recorder.reconnects += u64::from(down.is);
                drop(recorder);
                down.set(false);
                connection.done_ns = shared.now_ns();
                return true;
            }
            Err(error) => error,
        };
        down.set(true);
        let error = first_error(&error, connection.last_operation);
        context.forbid(&error);
        shared.last_loss.replace(Some(error.message.clone()));
        shared.count_error(error);
        // Spread, so that connections that were lost together do not all reconnect at one instant.
        let spread_ns = pause_ns / 64 * (connection.number as u64 % 32);
        shared.sleep_until(shared.now_ns() + pause_ns + spread_ns, connection.task()).await;
        pause_ns = (pause_ns * 2).min(LONGEST_PAUSE_NS);
    }
    false
}

/// Counts a connection as down while it is.
struct Down<'a, T: Transport> {
    shared: &'a Shared<T>,
    is: bool,
}

impl<T: Transport> Down<'_, T> {
    fn set(&mut self, is: bool) {
        let change = i64::from(is) - i64::from(self.is);
        self.shared.down.set((self.shared.down.get() as i64 + change) as usize);
        self.is = is;
    }
}

impl<T: Transport> Drop for Down<'_, T> {
    fn drop(&mut self) {
        // A task that ends while its connection is down leaves it lost.
        let lost = self.is && self.shared.stopping.get();
        self.set(false);
        if lost {
            self.shared.lost.set(self.shared.lost.get() + 1);
        }
    }
}

/// A refused connection as an entry of the event log.
fn first_error(error: &LoadError, operation: usize) -> FirstError {
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
