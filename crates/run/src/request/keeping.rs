//! How connections are opened and kept, how their answers are waited for, and which errors end the run.

use std::time::Duration;

use mydyno_load::session;
use mydyno_model::plan::{Arrivals, Backend, ConnectionPlan, Scheduling, StepPlan, StopOnError, WaitPlan};
use mydyno_model::units::{parse_duration, parse_rate};

use super::faults::Faults;
use super::input::Request;
use super::limits::MOST_CONNECTIONS;

/// Longest time for which answers may gather: above it, response times would measure the gathering.
const MOST_COALESCE: Duration = Duration::from_millis(10);

pub(super) fn wait(request: &Request, default: Backend, faults: &mut Faults) -> WaitPlan {
    let backend = match request.backend.as_deref() {
        None => default,
        Some("epoll") => Backend::Epoll,
        Some("io_uring" | "io-uring") => Backend::IoUring,
        Some(other) => {
            faults.value("backend", format!("{other:?} is not epoll or io_uring"));
            Backend::Epoll
        }
    };
    let gathering =
        request.coalesce.as_deref().and_then(|text| faults.unit("coalesce", parse_duration(text)));
    if gathering.is_some_and(|time| time > MOST_COALESCE) {
        faults.value("coalesce", "longer than 10ms: what would be measured is this wait");
    }
    WaitPlan {
        backend,
        coalesce_us: gathering.unwrap_or_default().as_micros() as u64,
        scheduling: Scheduling::Normal,
        session_nice: None,
    }
}

/// The scheduling policy that the user requested; `None` without a valid one.
pub(super) fn scheduling(request: &Request, faults: &mut Faults) -> Option<Scheduling> {
    match request.scheduling.as_deref()? {
        "batch" => Some(Scheduling::Batch),
        "normal" => Some(Scheduling::Normal),
        other => {
            faults.value("scheduling", format!("{other:?} is not batch or normal"));
            None
        }
    }
}

/// The policy for the steps. A closed loop without think time sends after each answer, at no scheduled instant, and the
/// server's threads progress further if the client does not preempt them (docs/journal/load-engine.md): batch. An open
/// loop must send at scheduled instants: normal.
pub(super) fn scheduling_for(steps: &[StepPlan], searches: bool) -> Scheduling {
    let at_once = !searches && steps.iter().all(|step| step.arrivals == Arrivals::CLOSED);
    if at_once { Scheduling::Batch } else { Scheduling::Normal }
}

/// The nice value of the load generator's session on a host that schedules the load and its server by sessions; `None`
/// keeps the load in the user's session.
pub(super) fn session_nice(scheduling: Scheduling, steps: &[StepPlan]) -> Option<u8> {
    let gains = steps.iter().all(|step| session::gains(step.connections, session::FEWEST));
    (scheduling == Scheduling::Batch && gains).then_some(session::NICE)
}

pub(super) fn connecting(request: &Request, faults: &mut Faults) -> ConnectionPlan {
    let rate = request.connect_rate.as_deref();
    ConnectionPlan {
        rate_per_s: rate.and_then(|text| faults.unit("connect-rate", parse_rate(text))),
        idle: faults
            .count("idle", request.idle.as_ref(), 0..=MOST_CONNECTIONS, "a number of connections")
            .unwrap_or(0),
        reconnect_every: faults
            .count(
                "reconnect-every",
                request.reconnect_every.as_ref(),
                1..=1_000_000_000,
                "a number of transactions",
            )
            .map(|n| n as u64),
        reconnect: !request.no_reconnect,
    }
}

pub(super) fn stop_on_error(request: &Request, faults: &mut Faults) -> Option<StopOnError> {
    let mut except = Vec::new();
    if let Some(text) = &request.ignore_errors {
        if !request.stop_on_error {
            faults.value(
                "ignore-errors",
                "takes effect with --stop-on-error only: without it no error ends the run",
            );
        }
        for code in text.split(',').map(str::trim) {
            match code.parse() {
                Ok(code) => except.push(code),
                Err(_) => faults.value("ignore-errors", format!("{code:?} is not an error code like 1062")),
            }
        }
    }
    request.stop_on_error.then_some(StopOnError { except })
}
