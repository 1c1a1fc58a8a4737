//! One step of a plan: its connections, its warm-up and measured window, and its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mydyno_load::{End, FirstError, LoadError, Shortfalls, StepEvent};
use mydyno_model::Warning;
use mydyno_model::plan::{StepPlan, Warmup};
use mydyno_model::record::{EventKind, Interval};
use mydyno_model::units::show_us;

use crate::error::RunError;
use crate::own_flag::with_own_flag;
use crate::server::LoadedServer;
use crate::settled::settled;
use crate::steps::{NumberedStep, Work};
use crate::tables::LoadSite;

/// The reason why a step, and the run with it, ended early.
#[derive(Debug)]
pub enum EarlyEnd {
    /// The user ended it.
    Interrupted,
    /// No transaction succeeded, or an error occurred that ends the run.
    AnsweredBadly(String),
    /// The connection to the server was lost, or the load generator failed.
    BrokeOff(String),
}

/// Receives the events of a step. An error ends the step.
pub(crate) trait StepSink {
    /// An event of the load.
    fn event(&mut self, number: usize, step: &StepPlan, event: StepEvent) -> Result<(), RunError>;
    /// An event of the run, at an instant of its clock in seconds.
    fn note(&mut self, at_s: f64, what: EventKind) -> Result<(), RunError>;
}

/// Runs one step; returns the reason if the run ends with it. An error of the first step is an error of the plan or the
/// server.
pub(crate) fn run_step(
    place: LoadSite<'_>,
    server: &dyn LoadedServer,
    (number, step): (usize, &StepPlan),
    first: bool,
    sink: &mut dyn StepSink,
    stop: &AtomicBool,
) -> Result<Option<EarlyEnd>, RunError> {
    let LoadSite { plan, work, .. } = place;
    let transaction = work.operations().first().map_or("", |operation| operation.name.as_str());
    let is_steady = |seen: &[Interval]| settled(&step.arrivals, transaction, seen);
    let warmup = match plan.warmup {
        Warmup::Fixed { time_s } => mydyno_load::Warmup::Fixed(Duration::from_secs_f64(time_s)),
        Warmup::Steady { limit_s } => {
            mydyno_load::Warmup::Steady { limit: Duration::from_secs_f64(limit_s), is_steady: &is_steady }
        }
    };
    if !stop.load(Ordering::Relaxed) {
        match server.restore_tables(place) {
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(Some(EarlyEnd::Interrupted)),
            Err(error) if first => return Err(error),
            Err(error) => return Ok(Some(EarlyEnd::BrokeOff(error.to_string()))),
            Ok(()) => {}
        }
    }
    let numbered = NumberedStep { number, plan: step, whole: plan, warmup };
    let mut failure = None;
    let end = with_own_flag(stop, |end_load| {
        server.load(place, &numbered, end_load, &mut |event: StepEvent| {
            if let Err(error) = sink.event(number, step, event) {
                failure.get_or_insert(error);
                end_load.store(true, Ordering::Relaxed);
            }
        })
    });
    if let Some(error) = failure {
        return Err(error);
    }
    Ok(match end {
        Err(LoadError::Interrupted) | Ok(End::Interrupted) => {
            sink.note(server.clock().now_s(), EventKind::Interrupted)?;
            Some(EarlyEnd::Interrupted)
        }
        Ok(End::Forbidden { why }) => {
            Some(EarlyEnd::AnsweredBadly(format!("stopped at an error (--stop-on-error): {why}")))
        }
        // A failure to start the first step is an error of the plan or the server; after later ones the measurements so
        // far are kept.
        Err(error) if first => return Err(error.into()),
        Err(error) => Some(EarlyEnd::BrokeOff(error.to_string())),
        Ok(End::AllLost { why }) => {
            Some(EarlyEnd::BrokeOff(format!("every connection to the server was lost: {why}")))
        }
        Ok(End::Hopeless { why }) => {
            Some(EarlyEnd::AnsweredBadly(format!("no transaction succeeded: {why}")))
        }
        Ok(End::Failed { why }) => Some(EarlyEnd::BrokeOff(why)),
        Ok(End::Complete(shortfalls)) => {
            for warning in after_step(&shortfalls) {
                sink.note(server.clock().now_s(), EventKind::Warning(warning.at_step(number)))?;
            }
            // Without any connection left the server may be gone for good; after the last step only a new connection
            // shows it.
            let gone = if shortfalls.lost >= step.connections { server.unreachable(place) } else { None };
            gone.map(|why| EarlyEnd::BrokeOff(format!("every connection to the server was lost: {why}")))
        }
    })
}

/// An error of the load as an event of the record.
pub(crate) fn error_event(work: &Work, number: usize, error: FirstError) -> EventKind {
    let operation = work.operations().get(error.operation);
    EventKind::Error {
        step: number,
        code: error.code.to_string(),
        sqlstate: error.sqlstate,
        message: error.message,
        operation: operation.map(|o| o.name.clone()).unwrap_or_default(),
    }
}

/// Delay at the end of a window above which the load generator has stood still.
const STALLED_NS: u64 = 100_000_000;

fn after_step(shortfalls: &Shortfalls) -> Vec<Warning> {
    let &Shortfalls { unanswered, lost, late_ns, misnumbered, queued: _ } = shortfalls;
    let mut warnings = Vec::new();
    if late_ns > STALLED_NS {
        warnings.push(Warning::new(
            "client-stalled",
            format!("the load generator did not run for up to {}", show_us(late_ns as f64 / 1e3)),
            "it was stopped, starved of CPU or swapped out: repeat the run on a host with free CPU time and memory",
        ));
    }
    if unanswered > 0 {
        warnings.push(Warning::new(
            "unanswered",
            format!("{unanswered} transaction(s) had no answer ten seconds after the end and are in no histogram"),
            "look for locks that are held, or a server that hangs; the true tail is longer than the shown one",
        ));
    }
    if misnumbered > 0 {
        warnings.push(Warning::new(
            "misnumbered-answers",
            format!("{misnumbered} answer(s) had a wrong sequence number and were accepted nevertheless"),
            "MySQL and MariaDB send no such packets: examine the server or proxy that does",
        ));
    }
    if lost > 0 {
        warnings.push(Warning::new(
            "connections-lost",
            format!("{lost} connection(s) were lost during the step and not reopened: the load was lower by as much"),
            "check the server's error log, wait_timeout and max_allowed_packet",
        ));
    }
    warnings
}
