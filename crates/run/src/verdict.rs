//! The verdict over a trial, which the exit status follows.

use mydyno_model::summary::{CapacityTrial, StepSummary};

use crate::bound::Bound;
use crate::trial::Ended;

/// The verdict over a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It ran to its end and nothing is wrong with its answers.
    Fine,
    /// It ran to its end, and these sentences say what is wrong.
    Bad(Vec<String>),
    /// The user ended it.
    Interrupted,
    /// It broke off.
    BrokeOff {
        /// Why.
        why: String,
        /// Whether the server's answers were the reason, rather than the server's loss or the host.
        by_answers: bool,
    },
}

impl Ended {
    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        if self.interrupted {
            return Verdict::Interrupted;
        }
        if let Some(why) = &self.broke_off {
            return Verdict::BrokeOff { why: why.clone(), by_answers: self.answered_badly };
        }
        let problems = self.problems();
        if problems.is_empty() { Verdict::Fine } else { Verdict::Bad(problems) }
    }

    fn problems(&self) -> Vec<String> {
        let summary = &self.summary;
        let steps: Vec<&StepSummary> = summary.steps.iter().filter(|step| self.is_bounded(step)).collect();
        let bounds: Vec<Bound> =
            self.plan.fail_if.iter().filter_map(|text| Bound::parse(text).ok()).collect();
        let mut problems: Vec<String> =
            bounds.iter().flat_map(|b| steps.iter().filter_map(|s| b.broken_by(s))).collect();
        if let Some(capacity) = &summary.capacity
            && capacity.rate_per_s.is_none()
        {
            problems.push(format!("no rate holds {}: {}", capacity.holds.join(","), capacity.end));
        }
        for step in summary.steps.iter().filter(|s| s.transactions == 0) {
            problems.push(format!("no transaction completed with {} connections", step.connections));
        }
        // A transaction without an answer is in no histogram: the shown tail is not the true one.
        problems.extend(summary.warnings.iter().filter(|w| w.id == "unanswered").map(|w| w.text.clone()));
        let measured = |number: &usize| summary.steps.iter().any(|s| s.step == *number);
        for number in (0..self.plan.steps.len()).filter(|number| !measured(number)) {
            problems.push(format!("step {} of the plan has no measured window", number + 1));
        }
        problems
    }

    /// Whether bounds apply to a step: a search goes where they break, so there they apply to the rate that it claims.
    fn is_bounded(&self, step: &StepSummary) -> bool {
        self.summary.capacity.as_ref().is_none_or(|capacity| {
            let held = |t: &CapacityTrial| t.step == step.step && t.broken.is_empty();
            capacity.rate_per_s.is_some()
                && step.rate == capacity.rate_per_s
                && capacity.trials.iter().any(held)
        })
    }
}
