//! Runs the steps of a plan in order, or those that a search for the highest rate requests.

use std::sync::atomic::AtomicBool;

use mydyno_model::plan::{Arrivals, StepPlan};
use mydyno_model::summary::StepSummary;

use crate::capacity::{Next, Search};
use crate::error::RunError;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::step::{EarlyEnd, run_step};

/// How the steps ended.
pub(crate) enum CourseEnd {
    Complete,
    EarlyEnd(EarlyEnd),
}

fn step_of(
    recording: &mut Recording<'_>,
    number: usize,
    step: &StepPlan,
    first: bool,
    stop: &AtomicBool,
) -> Result<Option<EarlyEnd>, RunError> {
    let (place, server) = (recording.place, recording.server);
    run_step(place, server, (number, step), first, recording, stop)
}

/// Runs the steps.
pub(crate) fn run(recording: &mut Recording<'_>, stop: &AtomicBool) -> Result<CourseEnd, RunError> {
    let plan = recording.place.plan;
    if let Some(search) = Search::of(plan) {
        return run_search(recording, &search, stop);
    }
    let order = plan.running_order();
    for (before, &number) in order.iter().enumerate() {
        // The order comes from this program; a plan from elsewhere may name steps that do not exist.
        let Some(step) = plan.steps.get(number) else { continue };
        (recording.watch)(Progress::Step { number, step, before, of: Some(order.len()) });
        if let Some(cut) = step_of(recording, number, step, before == 0, stop)? {
            return Ok(CourseEnd::EarlyEnd(cut));
        }
    }
    Ok(CourseEnd::Complete)
}

/// Runs the first step of the plan, then the steps of the search until it is finished.
fn run_search(
    recording: &mut Recording<'_>,
    search: &Search<'_>,
    stop: &AtomicBool,
) -> Result<CourseEnd, RunError> {
    let plan = recording.place.plan;
    let (Some(first), Some(capacity)) = (plan.steps.first(), &plan.capacity) else {
        return Ok(CourseEnd::Complete);
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
        if let Some(cut) = step_of(recording, number, &step, number == 0, stop)? {
            return Ok(CourseEnd::EarlyEnd(cut));
        }
        if let Some(summary) = recording.summary(number, &step) {
            if summary.rate.is_some() {
                let broken = search.broken_by(&summary);
                (recording.watch)(Progress::Tried { step: &step, broken: &broken });
            }
            summaries.push(summary);
        }
    }
    Ok(CourseEnd::Complete)
}
