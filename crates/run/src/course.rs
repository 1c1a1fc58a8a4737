//! The course of a run: the steps of the plan in its order, or those that a search for the highest rate asks for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mydyno_load::clock::Clock;
use mydyno_load::{End, LoadError, Shortfalls, StepEvent};
use mydyno_model::Warning;
use mydyno_model::plan::{Arrivals, StepPlan, Warmup};
use mydyno_model::record::{EventKind, Interval};
use mydyno_model::summary::StepSummary;
use mydyno_model::units::show_us;
use mydyno_wire::Client;

use crate::bench::{Progress, control};
use crate::capacity::{Next, Search};
use crate::error::RunError;
use crate::recording::Recording;
use crate::settled::settled;
use crate::steps::NumberedStep;

/// How the steps ended.
pub(crate) enum How {
    Complete,
    Interrupted,
    /// Nothing succeeded, or an error that was to end the run.
    AnsweredBadly(String),
    BrokeOff(String),
}

/// Runs the steps.
pub(crate) fn run(recording: &mut Recording<'_>, stop: &AtomicBool) -> Result<How, RunError> {
    let plan = &recording.bench.resolved.plan;
    if let Some(search) = Search::of(plan) {
        return run_search(recording, &search, stop);
    }
    let order = plan.running_order();
    for (before, &number) in order.iter().enumerate() {
        // The order is ours; a plan from elsewhere may name steps that it does not have.
        let Some(step) = plan.steps.get(number) else { continue };
        (recording.watch)(Progress::Step { number, step, before, of: Some(order.len()) });
        if let Some(how) = run_step(recording, number, step, before == 0, stop)? {
            return Ok(how);
        }
    }
    Ok(How::Complete)
}

/// Runs the first step of the plan and then what the search asks for, until it is done.
fn run_search(
    recording: &mut Recording<'_>,
    search: &Search<'_>,
    stop: &AtomicBool,
) -> Result<How, RunError> {
    let plan = &recording.bench.resolved.plan;
    let (Some(first), Some(capacity)) = (plan.steps.first(), &plan.capacity) else {
        return Ok(How::Complete);
    };
    let mut summaries: Vec<StepSummary> = Vec::new();
    let mut step = first.clone();
    for number in 0.. {
        if number > 0 {
            let Some(Next::Measure(rate)) = search.next(&summaries) else { break };
            let arrivals = Arrivals::open(rate, capacity.spacing);
            let repeat = summaries.iter().filter(|s| s.arrivals == arrivals).count();
            step = StepPlan { arrivals, repeat, ..first.clone() };
            recording.add_step(number, &step)?;
        }
        (recording.watch)(Progress::Step { number, step: &step, before: number, of: None });
        recording.keep_intervals();
        if let Some(how) = run_step(recording, number, &step, number == 0, stop)? {
            return Ok(how);
        }
        if let Some(summary) = recording.summary(number, &step) {
            if summary.rate.is_some() {
                let broken = search.broken_by(&summary);
                (recording.watch)(Progress::Tried { step: &step, broken: &broken });
            }
            summaries.push(summary);
        }
    }
    Ok(How::Complete)
}

/// What the workloads' transactions rest on; everything else stays as the server has it.
const LOAD_SESSION: &str = "SET SESSION autocommit = 1";

/// On tables of the user's, statements that only read run in sessions that can do nothing else: what their text does
/// not tell, as of a stored function, the server refuses.
const READ_ONLY_SESSION: &str = "SET SESSION TRANSACTION READ ONLY";

/// Runs one step, which may be the first; how the run ends, if it ends with it.
fn run_step(
    recording: &mut Recording<'_>,
    number: usize,
    step: &StepPlan,
    first: bool,
    stop: &AtomicBool,
) -> Result<Option<How>, RunError> {
    let bench = recording.bench;
    let (plan, clock) = (&bench.resolved.plan, recording.clock);
    let mut target = bench.target.clone();
    if !plan.database.is_empty() {
        target.database = Some(plan.database.clone());
    }
    let read_only = bench.work.only_reads_users_tables() && !plan.allow.write;
    let connect = || {
        let mut client = Client::connect(&target)?;
        client.execute(LOAD_SESSION)?;
        if read_only {
            client.execute(READ_ONLY_SESSION)?;
        }
        Ok(client)
    };
    let transaction = bench.work.operations().first().map_or("", |operation| operation.name.as_str());
    let is_steady = |seen: &[Interval]| settled(&step.arrivals, transaction, seen);
    let warmup = match plan.warmup {
        Warmup::Fixed { time_s } => mydyno_load::Warmup::Fixed(Duration::from_secs_f64(time_s)),
        Warmup::Steady { limit_s } => {
            mydyno_load::Warmup::Steady { limit: Duration::from_secs_f64(limit_s), is_steady: &is_steady }
        }
    };
    let before = bench.work.before_step();
    if !before.is_empty() && !stop.load(Ordering::Relaxed) {
        let put_back = || {
            let mut client = control(&target)?;
            for sql in before {
                client.execute(&sql).map_err(RunError::wire("putting the tables back before a step"))?;
            }
            Ok(())
        };
        match put_back() {
            Err(error) if first => return Err(error),
            Err(error) => return Ok(Some(How::BrokeOff(RunError::to_string(&error)))),
            Ok(()) => {}
        }
    }
    let step = NumberedStep { number, plan: step, whole: plan, warmup };
    let mut failure = None;
    let mut sink = |event: StepEvent| {
        if let Err(error) = recording.event(&step, event) {
            failure.get_or_insert(error);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let end = bench.work.run(clock, &step, &connect, stop, &mut sink);
    if let Some(error) = failure {
        return Err(error);
    }
    Ok(match end {
        Err(LoadError::Interrupted) | Ok(End::Interrupted) => {
            recording.writer.event(clock.now_s(), EventKind::Interrupted)?;
            Some(How::Interrupted)
        }
        Ok(End::Forbidden { why }) => {
            Some(How::AnsweredBadly(format!("stopped at an error (--stop-on-error): {why}")))
        }
        // The first step that cannot start is an error of the plan or the server; later ones keep what was measured.
        Err(error) if first => return Err(error.into()),
        Err(error) => Some(How::BrokeOff(error.to_string())),
        Ok(End::AllLost { why }) => {
            Some(How::BrokeOff(format!("every connection to the server was lost: {why}")))
        }
        Ok(End::Hopeless { why }) => Some(How::AnsweredBadly(format!("no transaction succeeded: {why}"))),
        Ok(End::Failed { why }) => Some(How::BrokeOff(why)),
        Ok(End::Complete(shortfalls)) => {
            for warning in after_step(&shortfalls) {
                recording.writer.event(clock.now_s(), EventKind::Warning(warning.at_step(number)))?;
            }
            // Where none is left, the server is asked: it may be gone for good, and after the last step nobody else
            // would tell.
            let gone = if shortfalls.lost >= step.plan.connections { connect().err() } else { None };
            gone.map(|why| How::BrokeOff(format!("every connection to the server was lost: {why}")))
        }
    })
}

/// A load generator that comes this much late to the end of a window has stood still.
const STALLED_NS: u64 = 100_000_000;

fn after_step(shortfalls: &Shortfalls) -> Vec<Warning> {
    let &Shortfalls { unanswered, lost, late_ns, queued: _ } = shortfalls;
    let mut warnings = Vec::new();
    if late_ns > STALLED_NS {
        warnings.push(Warning::new(
            "client-stalled",
            format!("the load generator stood still for up to {}", show_us(late_ns as f64 / 1e3)),
            "it was stopped, starved of CPU or swapped out: repeat the run on a host with room for it",
        ));
    }
    if unanswered > 0 {
        warnings.push(Warning::new(
            "unanswered",
            format!("{unanswered} transaction(s) had no answer ten seconds after the end and are in no histogram"),
            "look for locks that are held, or a server that hangs; the true tail is longer than the shown one",
        ));
    }
    if lost > 0 {
        warnings.push(Warning::new(
            "connections-lost",
            format!("{lost} connection(s) were lost on the way and not opened again: load fell by as much"),
            "look into the server's error log, and at wait_timeout and max_allowed_packet",
        ));
    }
    warnings
}
