//! The search for the highest rate in a record: its trials, and the claim that they support.

use mydyno_model::plan::{CapacityPlan, Plan};
use mydyno_model::record::End;
use mydyno_model::summary::{CapacitySummary, CapacityTrial, StepSummary};

use super::{EndReason, Next, Requirements, Settings, Trial, claim, next, round};

/// Share of its window below which a trial that was cut short is ignored.
const WHOLE: f64 = 0.9;

/// The search of a plan.
pub struct Search<'a> {
    plan: &'a CapacityPlan,
    requirements: Requirements,
    time_s: f64,
}

impl<'a> Search<'a> {
    /// `None` when the plan has none, or one that this version cannot parse.
    pub fn of(plan: &'a Plan) -> Option<Self> {
        let capacity = plan.capacity.as_ref()?;
        let requirements = Requirements::parse_recorded(&capacity.holds.join(",")).ok()?;
        Some(Self { plan: capacity, requirements, time_s: plan.time_s })
    }

    /// The next step after these; `None` while the first one, which determines the initial rate, is missing.
    pub fn next(&self, steps: &[StepSummary]) -> Option<Next> {
        Some(next(&self.settings(steps)?, &self.trials(steps)))
    }

    /// The initial rate is given, or half of the throughput of the closed loop in the first step.
    fn settings(&self, steps: &[StepSummary]) -> Option<Settings> {
        let closed = || {
            let first = steps.iter().find(|s| s.rate.is_none() && self.is_whole(s))?;
            let reached = first.throughput.transactions_per_s.value;
            (reached > 0.0).then(|| round(reached / 2.0))
        };
        let before = usize::from(self.plan.from_per_s.is_none());
        Some(Settings {
            from_per_s: self.plan.from_per_s.or_else(closed)?,
            resolution: self.plan.resolution,
            most_trials: self.plan.most_steps.saturating_sub(before),
        })
    }

    /// The requirements that did not hold in a step.
    pub fn broken_by(&self, step: &StepSummary) -> Vec<String> {
        self.requirements.broken_by(step)
    }

    fn is_whole(&self, step: &StepSummary) -> bool {
        step.window_s >= WHOLE * self.time_s
    }

    fn tried<'s>(&'s self, steps: &'s [StepSummary]) -> impl Iterator<Item = (f64, &'s StepSummary)> {
        steps.iter().filter(|s| self.is_whole(s)).filter_map(|s| Some((s.rate?, s)))
    }

    fn trials(&self, steps: &[StepSummary]) -> Vec<Trial> {
        let trial =
            |(rate_per_s, step)| Trial { rate_per_s, held: self.requirements.broken_by(step).is_empty() };
        self.tried(steps).map(trial).collect()
    }

    /// The result of the search over these steps, in the order in which they ran.
    pub fn summarise(&self, steps: &[StepSummary], end: &End) -> CapacitySummary {
        let claim = claim(&self.trials(steps));
        let mut trials: Vec<CapacityTrial> = Vec::new();
        for (rate_per_s, step) in self.tried(steps) {
            trials.push(CapacityTrial {
                step: step.step,
                rate_per_s,
                done_per_s: step.throughput.transactions_per_s.value,
                broken: self.requirements.broken_by(step),
                again: trials.iter().any(|t| t.rate_per_s == rate_per_s),
            });
        }
        CapacitySummary {
            holds: self.plan.holds.clone(),
            rate_per_s: claim.holds_per_s,
            confirmed: claim.confirmed,
            broken_at_per_s: claim.breaks_per_s,
            end: self.end(steps, end),
            trials,
        }
    }

    fn end(&self, steps: &[StepSummary], end: &End) -> String {
        let percent = self.plan.resolution * 100.0;
        match self.next(steps) {
            Some(Next::Done(EndReason::Found)) => {
                format!(
                    "found: the rates on both sides were measured more than once and are at most {percent} % apart"
                )
            }
            Some(Next::Done(EndReason::NothingHeld)) => "no rate held, however low".to_owned(),
            Some(Next::Done(EndReason::OutOfTrials)) => {
                format!("not found within {} steps", self.plan.most_steps)
            }
            Some(Next::Measure(_)) | None => match end {
                End::Complete => {
                    "the closed loop at its start completed too little to choose the first rate".to_owned()
                }
                End::Interrupted => "interrupted before the rate was found".to_owned(),
                End::Killed => "killed before the rate was found".to_owned(),
                End::Recording => "not found yet".to_owned(),
                End::BrokeOff(why) => format!("broken off before the rate was found: {why}"),
            },
        }
    }
}
