//! The verdict on a trial, which determines the exit status.

use crate::trial::Ended;

/// The verdict on a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is complete and all requirements are met.
    Fine,
    /// It is complete, and these sentences name the violations.
    Bad(Vec<String>),
    /// The user ended it.
    Interrupted,
    /// It ended early.
    BrokeOff {
        /// The cause.
        why: String,
        /// Whether the server's answers were the cause, rather than its loss or the host.
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
        let broken = summary.bounds.iter().filter(|bound| bound.broken);
        let mut problems: Vec<String> = broken
            .map(|b| format!("{} with {} connections: it is {}", b.bound, b.connections, b.found))
            .collect();
        if let Some(capacity) = &summary.capacity
            && capacity.rate_per_s.is_none()
        {
            problems.push(format!("no rate holds {}: {}", capacity.holds.join(","), capacity.end));
        }
        for step in summary.steps.iter().filter(|s| s.transactions == 0) {
            problems.push(format!("no transaction completed with {} connections", step.connections));
        }
        // A transaction without an answer is in no histogram, so the tail is underestimated.
        problems.extend(summary.warnings.iter().filter(|w| w.id == "unanswered").map(|w| w.text.clone()));
        let measured = |number: &usize| summary.steps.iter().any(|s| s.step == *number);
        for number in (0..self.plan.steps.len()).filter(|number| !measured(number)) {
            problems.push(format!("step {} of the plan has no measured window", number + 1));
        }
        problems
    }
}
