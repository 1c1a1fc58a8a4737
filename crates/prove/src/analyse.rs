//! From slices to effects: pure arithmetic over the run table.
//!
//! Noise has two levels. Slices of one start share a memory layout, hash seeds and page placement; the next start has others.
//! A mean over many slices of one start is therefore no better known than starts differ. So each start gives one value, the
//! mean log ratio of its blocks, and the interval is Student's over starts: with `n` starts it has `n − 1` degrees of freedom.
//! Only where nothing is started anew between blocks (both arms are values of one running server) are blocks the units.

use std::collections::BTreeMap;

use mydyno_model::Estimate;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::{BlockRatio, Role, Slice};
use mydyno_stats::compare::LogEffect;
use mydyno_stats::sequential::Schedule;
use mydyno_stats::special::t_quantile;

use crate::measure::Measure;

/// Independent observations that an interval rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// One value for each start of the servers.
    Start,
    /// One value for each block.
    Block,
}

impl Unit {
    /// The units of a mode: where nothing is started anew between blocks, blocks are the units.
    pub const fn of(mode: Mode) -> Self {
        match mode {
            Mode::InPlace => Self::Block,
            Mode::Alternate | Mode::Rows | Mode::Duet => Self::Start,
        }
    }

    /// Its plural for people and documents.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Start => "starts",
            Self::Block => "blocks",
        }
    }

    /// Units before the first look: three starts give two degrees of freedom, the fewest with a usable interval; blocks are
    /// cheap, and five of them cost nothing.
    pub const fn first_look(self) -> usize {
        match self {
            Self::Start => 3,
            Self::Block => 5,
        }
    }
}

/// Log ratios of one response, over the baseline of the same block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ratios {
    /// Of the treatment: the start of each block, and the log ratio.
    pub treatment: Vec<(usize, f64)>,
    /// Of the second copy of the baseline.
    pub again: Vec<(usize, f64)>,
    /// Geometric mean of the baseline over blocks that have both arms; 0 when there are none.
    pub baseline_mean: f64,
    /// Geometric mean of the treatment over the same blocks.
    pub treatment_mean: f64,
    /// Both ratios block by block, in the order of the table.
    pub blocks: Vec<BlockRatio>,
}

impl Ratios {
    /// Analyses all complete blocks. Slices that failed, and blocks that lack an arm, are ignored.
    pub fn of(slices: &[Slice], measure: &Measure) -> Self {
        let mut blocks: BTreeMap<(usize, usize), BTreeMap<Role, f64>> = BTreeMap::new();
        for slice in slices.iter().filter(|slice| slice.failed.is_none()) {
            if let Some(value) = (measure.of)(slice).filter(|value| value.is_finite() && *value > 0.0) {
                blocks.entry((slice.row.start, slice.row.block)).or_default().insert(slice.row.arm, value);
            }
        }
        let mut ratios = Self::default();
        let (mut baseline_logs, mut treatment_logs) = (Vec::new(), Vec::new());
        for ((start, block), arms) in &blocks {
            let Some(baseline) = arms.get(&Role::Baseline) else { continue };
            let ratio = |role: Role| arms.get(&role).map(|value| value / baseline);
            let (treatment, again) = (ratio(Role::Treatment), ratio(Role::Again));
            ratios.blocks.push(BlockRatio { start: *start, block: *block, treatment, again });
            if let Some(treatment) = arms.get(&Role::Treatment) {
                ratios.treatment.push((*start, (treatment / baseline).ln()));
                baseline_logs.push(baseline.ln());
                treatment_logs.push(treatment.ln());
            }
            if let Some(again) = arms.get(&Role::Again) {
                ratios.again.push((*start, (again / baseline).ln()));
            }
        }
        let geometric = |logs: &[f64]| if logs.is_empty() { 0.0 } else { LogEffect::of(logs).mean.exp() };
        ratios.baseline_mean = geometric(&baseline_logs);
        ratios.treatment_mean = geometric(&treatment_logs);
        ratios
    }
}

impl Ratios {
    /// Log ratios of any arm over the baseline of the same block: the start of each block, and the log ratio.
    pub fn to_baseline(slices: &[Slice], measure: &Measure, arm: Role) -> Vec<(usize, f64)> {
        let mut blocks: BTreeMap<(usize, usize), [Option<f64>; 2]> = BTreeMap::new();
        for slice in slices.iter().filter(|slice| slice.failed.is_none()) {
            let value = (measure.of)(slice).filter(|value| value.is_finite() && *value > 0.0);
            let block = blocks.entry((slice.row.start, slice.row.block)).or_default();
            match slice.row.arm {
                Role::Baseline => block[0] = value,
                role if role == arm => block[1] = value,
                _ => {}
            }
        }
        let ratio = |((start, _), [baseline, of_arm]): ((usize, usize), [Option<f64>; 2])| {
            Some((start, (of_arm? / baseline?).ln()))
        };
        blocks.into_iter().filter_map(ratio).collect()
    }
}

/// One value for each unit, in the order of measurement: for starts the mean of their blocks.
pub fn units(ratios: &[(usize, f64)], unit: Unit) -> Vec<f64> {
    match unit {
        Unit::Block => ratios.iter().map(|(_, ratio)| *ratio).collect(),
        Unit::Start => {
            let mut starts: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
            for (start, ratio) in ratios {
                starts.entry(*start).or_default().push(*ratio);
            }
            starts.values().map(|blocks| LogEffect::of(blocks).mean).collect()
        }
    }
}

/// The effect with the interval of the look that is due after this many units. Between looks, and beyond the schedule,
/// without an interval.
pub fn effect_at(units: &[f64], schedule: &Schedule) -> Estimate {
    let effect = LogEffect::of(units);
    schedule.interval(&effect).unwrap_or_else(|| {
        Estimate::without_interval(effect.mean.exp(), "no look is due after so many units")
    })
}

/// The effect with the interval of the look that is due, else with that of a single look at this level, provisional: an
/// experiment that ended between looks.
pub fn effect_or_provisional(units: &[f64], unit: Unit, schedule: Option<&Schedule>, level: f64) -> Estimate {
    if let Some(schedule) = schedule.filter(|schedule| schedule.significance(units.len()).is_some()) {
        return effect_at(units, schedule);
    }
    let estimate = LogEffect::of(units).ratio_t(level);
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            let method = format!("t over {}, between planned looks: provisional", unit.plural());
            Estimate::provisional(estimate.value, low, high, method)
        }
        _ => estimate,
    }
}

/// Bound of the mean of `units.len()` units that differ by chance alone, in 95 of 100 experiments, as a share: units of
/// the baseline against its own second copy. The true effect is known to be 0, so the mean is not fitted and costs no
/// degree of freedom. `None` for fewer than two units, or when none of them differs.
pub fn noise_floor(again: &[f64]) -> Option<f64> {
    let n = again.len() as f64;
    if again.len() < 2 {
        return None;
    }
    let sd = (again.iter().map(|ratio| ratio * ratio).sum::<f64>() / n).sqrt();
    (sd > 1e-12).then(|| (t_quantile(0.975, n) * sd / n.sqrt()).exp_m1())
}

/// Variance of the blocks' log ratios, within starts and between them (analysis of variance with one factor).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// Standard deviation of a block within its start.
    pub within: f64,
    /// Standard deviation of starts beyond the part that their blocks explain; 0 where the blocks explain all.
    pub between: f64,
}

/// Both levels; `None` with fewer than two starts, or without a start that has two blocks.
pub fn levels(ratios: &[(usize, f64)]) -> Option<Levels> {
    let mut starts: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (start, ratio) in ratios {
        starts.entry(*start).or_default().push(*ratio);
    }
    let (k, n) = (starts.len() as f64, ratios.len() as f64);
    if starts.len() < 2 || ratios.len() <= starts.len() {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let all = mean(&ratios.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>());
    let within_squares: f64 =
        starts.values().map(|v| v.iter().map(|x| (x - mean(v)).powi(2)).sum::<f64>()).sum();
    let between_squares: f64 = starts.values().map(|v| v.len() as f64 * (mean(v) - all).powi(2)).sum();
    let within = within_squares / (n - k);
    // Blocks of a start on average, for starts with different numbers of them.
    let n0 = (n - starts.values().map(|v| (v.len() as f64).powi(2)).sum::<f64>() / n) / (k - 1.0);
    let between = ((between_squares / (k - 1.0) - within) / n0).max(0.0);
    Some(Levels { within: within.sqrt(), between: between.sqrt() })
}

#[cfg(test)]
mod tests;
