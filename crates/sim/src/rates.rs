//! How often the decision path is right, on servers whose truth is known: rates of verdicts, forecasts, bias, width.

use std::ops::Range;

use crate::experiment::{RowTime, World, measure, one_arm_after_the_other, run};
use crate::markdown::{percent, row, rule};
use crate::noise::Noise;
use mydyno_stats::Error;
use mydyno_stats::compare::{LogEffect, log_ratios, ratio_bootstrap};
use mydyno_stats::decision::walk;
use mydyno_stats::power::{Forecast, POWER, default_schedule};
use mydyno_stats::rng::Rng;
use mydyno_stats::special::t_quantile;
use mydyno_stats::verdict::{Direction, Statement, Verdict};

/// Standard deviation of the log ratio of the two rows of a block.
pub const PAIR_SD: f64 = 0.04;

/// Blocks that an experiment may use.
pub const BLOCKS: usize = 12;

/// Outcomes of the experiments in a world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Share that ended as *supported*.
    pub supported: f64,
    /// Share that ended as *refuted*.
    pub refuted: f64,
    /// Mean number of blocks used.
    pub blocks: f64,
    /// Share of the intervals at the stop that hold the true effect.
    pub coverage: f64,
}

/// Runs `seeds` experiments with up to [`BLOCKS`] blocks.
///
/// # Errors
/// None that a calibrated world can cause.
pub fn rates(world: &World, statement: &Statement, seeds: u64) -> Result<Rates, Error> {
    let schedule = default_schedule(BLOCKS)?;
    let truth = world.effect.exp();
    let mut rates = Rates { supported: 0.0, refuted: 0.0, blocks: 0.0, coverage: 0.0 };
    let each = 1.0 / seeds as f64;
    for seed in 0..seeds {
        let outcome = run(world, statement, &schedule, RowTime::default(), seed)?;
        match outcome.verdict {
            Verdict::Supported => rates.supported += each,
            Verdict::Refuted => rates.refuted += each,
            Verdict::Undecided => {}
        }
        rates.blocks += each * outcome.blocks as f64;
        let ends = outcome.effect_ratio.low.zip(outcome.effect_ratio.high);
        if ends.is_some_and(|(low, high)| low <= truth && truth <= high) {
            rates.coverage += each;
        }
    }
    Ok(rates)
}

/// Rates on every model of noise, as Markdown.
///
/// # Errors
/// None that a calibrated world can cause.
pub fn table_of_verdicts(seeds: u64) -> Result<String, Error> {
    let heads = [
        "noise",
        "no effect, δ 0: *supported* upwards",
        "downwards",
        "no effect, δ 1 %: *supported*",
        "effect 5 %, δ 1 %: *supported*",
        "*refuted*",
        "blocks, mean",
        "interval at the stop holds the truth, no effect",
        "effect 5 %",
        "bootstrap-t over 12 blocks",
    ];
    let mut table = row(heads.map(str::to_owned)) + &rule(heads.len());
    for (name, noise) in Noise::ALL {
        let none = World::calibrated(noise, PAIR_SD, RowTime::default());
        let effect = none.with_effect(0.05);
        let up = rates(&none, &Statement::new(Direction::Higher, 0.0)?, seeds)?;
        let down = rates(&none, &Statement::new(Direction::Lower, 0.0)?, seeds)?;
        let one = rates(&none, &Statement::new(Direction::Higher, 0.01)?, seeds)?;
        let found = rates(&effect, &Statement::new(Direction::Higher, 0.01)?, seeds)?;
        table += &row([
            name.to_owned(),
            percent(up.supported),
            percent(down.supported),
            percent(one.supported),
            percent(found.supported),
            percent(found.refuted),
            format!("{:.1}", found.blocks),
            percent(up.coverage),
            percent(found.coverage),
            percent(bootstrap_coverage(&effect, seeds)?),
        ]);
    }
    Ok(table)
}

fn bootstrap_coverage(world: &World, seeds: u64) -> Result<f64, Error> {
    let truth = world.effect.exp();
    let mut held = 0u64;
    for seed in 0..seeds {
        let logs = log_ratios(&measure(world, BLOCKS, RowTime::default(), seed))?;
        let estimate = ratio_bootstrap(&logs, 0.95, &mut Rng::stream(seed, &[9]));
        held += u64::from(estimate.low.zip(estimate.high).is_some_and(|(l, h)| l <= truth && truth <= h));
    }
    Ok(held as f64 / seeds as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The smallest plan from `first` to `most` blocks in which 80 % of the experiments are decided at one of its looks, from the
/// log ratios of at least `most` blocks of each; `None` when even `most` are too few.
///
/// # Errors
/// A plan of fewer than five blocks.
pub fn blocks_until_decided(
    experiments: &[Vec<f64>],
    statement: &Statement,
    first: usize,
    most: usize,
) -> Result<Option<usize>, Error> {
    let enough = |blocks: usize| {
        let schedule = default_schedule(blocks)?;
        let decided = experiments.iter().filter(|logs| {
            walk(&logs[..blocks], statement, &schedule).is_some_and(|d| d.verdict != Verdict::Undecided)
        });
        Ok(decided.count() as f64 >= POWER * experiments.len() as f64)
    };
    let (mut low, mut high) = (first, most + 1);
    while low < high {
        let middle = (low + high) / 2;
        if !enough(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok((low <= most).then_some(low))
}

/// Forecasts of the blocks that undecided experiments still need, against the blocks at which 80 % of these are decided
/// when they continue, as Markdown.
///
/// # Errors
/// None for a calibrated simulation.
pub fn table_of_forecasts(seeds: u64) -> Result<String, Error> {
    const MOST_BLOCKS: usize = 200;
    let heads = [
        "true effect",
        "pairs differ by",
        "undecided after 12",
        "true blocks",
        "forecast over truth, median",
    ];
    let mut table = row(heads.map(str::to_owned)) + &rule(heads.len());
    let statement = Statement::new(Direction::Higher, 0.01)?;
    let schedule = default_schedule(BLOCKS)?;
    for (effect, sd) in [(0.03, 0.04), (0.04, 0.06), (0.05, 0.08), (0.03, 0.05), (0.03, 0.06), (0.0, 0.03)] {
        let world = World::calibrated(Noise::Ar1 { phi: 0.5 }, sd, RowTime::default()).with_effect(effect);
        let (mut forecasts, mut continued) = (Vec::new(), Vec::new());
        for seed in 0..seeds {
            let logs = log_ratios(&measure(&world, MOST_BLOCKS, RowTime::default(), seed))?;
            let forecast = walk(&logs, &statement, &schedule).and_then(|decision| decision.forecast);
            if let Some(Forecast::Blocks(n) | Forecast::AtLeast(n)) = forecast {
                forecasts.push(n as f64);
                continued.push(logs);
            }
        }
        let truth = blocks_until_decided(&continued, &statement, BLOCKS + 1, MOST_BLOCKS)?;
        let undecided = forecasts.len() as f64 / seeds as f64;
        let over = truth.map_or("–".to_owned(), |n| format!("{:.2}", median(forecasts) / n as f64));
        table += &row([
            percent(effect),
            percent(sd),
            percent(undecided),
            truth.map_or(format!("> {MOST_BLOCKS}"), |n| n.to_string()),
            over,
        ]);
    }
    Ok(table)
}

/// Effect of a linear trend as large as the treatment's on the estimate, interleaved and one arm after the other, as Markdown.
///
/// # Errors
/// None that a calibrated world can cause.
pub fn table_of_bias(seeds: u64) -> Result<String, Error> {
    let heads = ["noise", "bias, interleaved", "one arm after the other"];
    let mut table = row(heads.map(str::to_owned)) + &rule(heads.len());
    let time = RowTime::default();
    for (name, noise) in Noise::ALL.into_iter().filter(|(name, _)| ["independent", "drifting"].contains(name))
    {
        let world = World::calibrated(noise, PAIR_SD, time).with_effect(0.05).with_trend(0.05);
        let (mut bias, mut by_hand) = (0.0, 0.0);
        for seed in 0..seeds {
            let logs = log_ratios(&measure(&world, BLOCKS, time, seed))?;
            bias += (LogEffect::of(&logs).mean - world.effect) / seeds as f64;
            let (a, b) = one_arm_after_the_other(&world, BLOCKS, time, seed);
            by_hand += (LogEffect::of(&b).mean - LogEffect::of(&a).mean - world.effect) / seeds as f64;
        }
        let share = |bias: f64| format!("{:+.1} %", 100.0 * bias / world.effect);
        table += &row([name.to_owned(), share(bias), share(by_hand)]);
    }
    Ok(table)
}

/// Verdicts of two ways to measure the same rows in a world without an effect; widths on the log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Widths {
    /// Median width of the interval of interleaved blocks.
    pub interleaved: f64,
    /// Share of these that hold the truth.
    pub interleaved_held: f64,
    /// Median width of Student's two-sample interval of the same rows, one arm after the other.
    pub by_hand: f64,
    /// Share of these that hold the truth: it takes rows that drift for independent ones.
    pub by_hand_held: f64,
    /// Width that an interval needs to hold the truth in 95 % of the experiments done one arm after the other.
    pub by_hand_needed: f64,
}

/// Widths in a world, from experiments with these seeds.
///
/// # Errors
/// None that a calibrated world can cause.
pub fn widths(world: &World, seeds: Range<u64>) -> Result<Widths, Error> {
    let (time, of) = (RowTime::default(), (seeds.end - seeds.start) as f64);
    let (mut interleaved, mut by_hand, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let (mut held, mut by_hand_held) = (0u64, 0u64);
    for seed in seeds {
        let effect = LogEffect::of(&log_ratios(&measure(world, BLOCKS, time, seed))?);
        let half = t_quantile(0.975, effect.df()) * effect.standard_error().unwrap_or(f64::NAN);
        interleaved.push(2.0 * half);
        held += u64::from((effect.mean - world.effect).abs() <= half);
        let (a, b) = one_arm_after_the_other(world, BLOCKS, time, seed);
        let (a, b) = (LogEffect::of(&a), LogEffect::of(&b));
        let se = a.standard_error().unwrap_or(f64::NAN).hypot(b.standard_error().unwrap_or(f64::NAN));
        let half = t_quantile(0.975, a.df() + b.df()) * se;
        let error = (b.mean - a.mean - world.effect).abs();
        by_hand.push(2.0 * half);
        by_hand_held += u64::from(error <= half);
        errors.push(error);
    }
    errors.sort_by(f64::total_cmp);
    let worst = errors.get((0.95 * of) as usize).copied().unwrap_or(f64::NAN);
    Ok(Widths {
        interleaved: median(interleaved),
        interleaved_held: held as f64 / of,
        by_hand: median(by_hand),
        by_hand_held: by_hand_held as f64 / of,
        by_hand_needed: 2.0 * worst,
    })
}

/// Walks, and their size over the noise upon them, on which widths are compared.
pub const WALKS: [(f64, f64); 3] = [(0.999, 3.0), (0.9999, 3.0), (0.9999, 1.0)];

/// Widths of the interval, interleaved and one arm after the other, on drifting noise, as Markdown.
///
/// # Errors
/// None that a calibrated world can cause.
pub fn table_of_widths(seeds: u64) -> Result<String, Error> {
    let heads = [
        "walk",
        "its size over the noise upon it",
        "interleaved: holds the truth",
        "one arm after the other: holds the truth",
        "width interleaved over the other's",
        "over the width that the other needs to hold it in 95 %",
    ];
    let mut table = row(heads.map(str::to_owned)) + &rule(heads.len());
    for (phi, size) in WALKS {
        let world = World::calibrated(Noise::Drifting { phi, size }, PAIR_SD, RowTime::default());
        let widths = widths(&world, 0..seeds)?;
        table += &row([
            phi.to_string(),
            size.to_string(),
            percent(widths.interleaved_held),
            percent(widths.by_hand_held),
            format!("{:.2}", widths.interleaved / widths.by_hand),
            format!("{:.2}", widths.interleaved / widths.by_hand_needed),
        ]);
    }
    Ok(table)
}
