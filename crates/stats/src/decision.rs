//! What an experiment says after each block: goes on, or is decided.

use mydyno_model::Estimate;

use crate::compare::{LogEffect, rounding};
use crate::power::{Forecast, forecast, minimum_detectable_effect};
use crate::sequential::Schedule;
use crate::verdict::{Statement, Verdict};

/// The state of an experiment at a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What can be said by now.
    pub verdict: Verdict,
    /// Whether to stop: it is decided, or the planned blocks are used up.
    pub stop: bool,
    /// Blocks measured.
    pub blocks: usize,
    /// The effect as a ratio with the interval of this look, which holds in spite of looking often.
    pub effect_ratio: Estimate,
    /// The smallest effect, as a share, that the planned blocks would show with the noise seen; given when it stops, unless
    /// no noise was seen.
    pub minimum_detectable_effect: Option<f64>,
    /// Blocks needed in all; asked for when it stops undecided.
    pub forecast: Option<Forecast>,
}

/// Judges the blocks at hand. `None` when no look is due after so many blocks: measure another.
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

/// Walks through the blocks in the order measured and stops where the experiment would have stopped.
pub fn walk(log_ratios: &[f64], statement: &Statement, schedule: &Schedule) -> Option<Decision> {
    schedule
        .looks()
        .iter()
        .take_while(|look| **look <= log_ratios.len())
        .filter_map(|look| at_look(&log_ratios[..*look], statement, schedule))
        .find(|decision| decision.stop)
}
