//! The decision of an experiment after each block: continue or stop.

use mydyno_model::Estimate;

use crate::compare::{LogEffect, rounding};
use crate::power::{Forecast, forecast, minimum_detectable_effect};
use crate::sequential::Schedule;
use crate::verdict::{Statement, Verdict};

/// The state of an experiment at a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The verdict at this look.
    pub verdict: Verdict,
    /// Whether to stop: the verdict is decided, or the planned blocks are used up.
    pub stop: bool,
    /// Blocks measured.
    pub blocks: usize,
    /// The effect as a ratio with the interval of this look, which accounts for repeated looks.
    pub effect_ratio: Estimate,
    /// Minimum detectable effect: the smallest effect, as a share, that the planned blocks would show with the observed noise;
    /// given when the experiment stops, unless no noise was observed.
    pub minimum_detectable_effect: Option<f64>,
    /// Total number of blocks needed; computed when the experiment stops undecided.
    pub forecast: Option<Forecast>,
}

/// Judges the blocks measured so far. `None` when no look is due after this number of blocks: measure another.
pub fn at_look(log_ratios: &[f64], statement: &Statement, schedule: &Schedule) -> Option<Decision> {
    let effect = LogEffect::of(log_ratios);
    let effect_ratio = schedule.interval(&effect)?;
    let verdict = statement.judge(&effect_ratio);
    let used_up = effect.blocks >= schedule.max_blocks();
    let undecided = verdict == Verdict::Undecided;
    let stop = used_up || !undecided;
    Some(Decision {
        verdict,
        stop,
        blocks: effect.blocks,
        effect_ratio,
        minimum_detectable_effect: effect
            .sd
            .filter(|sd| stop && *sd > rounding(effect.mean))
            .and_then(|sd| minimum_detectable_effect(schedule.max_blocks(), sd)),
        forecast: (used_up && undecided).then(|| forecast(&effect, statement)),
    })
}

/// Replays the blocks in measurement order and stops where the experiment would have stopped.
pub fn walk(log_ratios: &[f64], statement: &Statement, schedule: &Schedule) -> Option<Decision> {
    schedule
        .looks()
        .iter()
        .take_while(|look| **look <= log_ratios.len())
        .filter_map(|look| at_look(&log_ratios[..*look], statement, schedule))
        .find(|decision| decision.stop)
}
