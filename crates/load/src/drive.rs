//! The life of one connection under load: transaction after transaction until the worker stops.

use std::sync::atomic::Ordering;

use mydyno_wire::WireError;
use mydyno_workload::{Fault, Workload};

use crate::connection::{Connection, Shared};
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
    number: u64,
) {
    let workload = orders.workload;
    let single = workload.operations().len() == 1;
    let mut stream = workload.stream(number);
    let mut failures_in_a_row = 0;
    connection.done_ns = shared.clock.now_ns();
    let began_ns = connection.done_ns;
    while !shared.stopping.get() {
        // Closed loop: the next transaction is due when the last one is answered.
        let intended_ns = connection.done_ns;
        let before = stream.clone();
        connection.intended_ns = intended_ns;
        connection.first_sent_ns = 0;
        loop {
            let fault = match workload.transaction(&mut stream, &mut connection).await {
                Ok(()) => {
                    // Retries count: from the first attempt's send to the last one's answer.
                    let (done_ns, sent_ns) = (connection.done_ns, connection.first_sent_ns);
                    let mut recorder = shared.recorder.borrow_mut();
                    recorder.transactions += 1;
                    recorder.lateness.record(sent_ns - intended_ns);
                    if !single {
                        recorder.transaction(done_ns - intended_ns, done_ns - sent_ns);
                    }
                    if !shared.succeeded.replace(true) {
                        orders.succeeded.store(true, Ordering::Relaxed);
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
                    // The same transaction again; its first statement is due now.
                    stream = before.clone();
                    connection.intended_ns = connection.done_ns;
                }
                After::Retry | After::Next => {
                    failures_in_a_row += 1;
                    let failing_ns = connection.done_ns.saturating_sub(began_ns);
                    if failures_in_a_row >= HOPELESS_FAILURES
                        && failing_ns >= HOPELESS_AFTER_NS
                        && !orders.succeeded.load(Ordering::Relaxed)
                    {
                        orders.hopeless.store(true, Ordering::Relaxed);
                        orders.stop.store(true, Ordering::Relaxed);
                    }
                    break;
                }
            }
        }
    }
    connection.quit();
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
    shared.recorder.borrow_mut().error(code);
    if shared.seen_errors.borrow_mut().insert(code) {
        shared.first_errors.borrow_mut().push(FirstError {
            code,
            sqlstate: sqlstate.to_owned(),
            message: message.to_owned(),
            operation: connection.last_operation,
        });
    }
}
