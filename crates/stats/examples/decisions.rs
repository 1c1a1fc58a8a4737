//! The rates of right and wrong verdicts on simulated servers.
//!
//! `cargo run --release -p mydyno-stats --example decisions [SEEDS]`
#![allow(clippy::print_stdout)]

use mydyno_stats::compare::{LogEffect, log_ratios, ratio_bootstrap};
use mydyno_stats::decision::walk;
use mydyno_stats::power::{Forecast, default_schedule};
use mydyno_stats::sim::experiment::{RowTime, World, measure, one_arm_after_the_other, run};
use mydyno_stats::sim::noise::Noise;
use mydyno_stats::verdict::{Direction, Statement, Verdict};
use mydyno_stats::{Error, Rng};

fn main() -> Result<(), Error> {
    let seeds: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1000);
    let time = RowTime::default();
    let schedule = default_schedule(12)?;
    println!("{seeds} seeds each; pairs differ by 4 %; up to 12 blocks, a look after each from the 5th");
    println!(
        "noise         false supported (no effect)     effect 5 %, δ 1 %          coverage  bootstrap-t 12"
    );
    println!("              δ=0 up  δ=0 down  δ=1 %   supported  refuted  mean blocks   of RCI    coverage");
    for (name, noise) in Noise::ALL {
        let world = World::calibrated(noise, 0.04, time);
        let rate = |world: &World, direction, delta, verdict| -> Result<(f64, f64, f64), Error> {
            let statement = Statement::new(direction, delta)?;
            let (mut hits, mut blocks, mut held) = (0u64, 0, 0u64);
            for seed in 0..seeds {
                let outcome = run(world, &statement, &schedule, time, seed)?;
                hits += u64::from(outcome.verdict == verdict);
                blocks += outcome.blocks;
                let truth = world.effect.exp();
                let inside = outcome.effect_ratio.low.is_some_and(|l| l <= truth)
                    && outcome.effect_ratio.high.is_some_and(|h| truth <= h);
                held += u64::from(inside);
            }
            let of = seeds as f64;
            Ok((hits as f64 / of, blocks as f64 / of, held as f64 / of))
        };
        let up = rate(&world, Direction::Higher, 0.0, Verdict::Supported)?;
        let down = rate(&world, Direction::Lower, 0.0, Verdict::Supported)?;
        let one = rate(&world, Direction::Higher, 0.01, Verdict::Supported)?;
        let effect = world.with_effect(0.05);
        let found = rate(&effect, Direction::Higher, 0.01, Verdict::Supported)?;
        let wrong = rate(&effect, Direction::Higher, 0.01, Verdict::Refuted)?;
        let mut boot = 0u64;
        for seed in 0..seeds {
            let logs = log_ratios(&measure(&effect, 12, time, seed))?;
            let estimate = ratio_bootstrap(&logs, 0.95, &mut Rng::stream(seed, &[9]));
            let truth = effect.effect.exp();
            boot += u64::from(
                estimate.low.is_some_and(|l| l <= truth) && estimate.high.is_some_and(|h| truth <= h),
            );
        }
        println!(
            "{name:12}  {:.3}   {:.3}     {:.3}   {:.3}      {:.3}    {:5.1}         {:.3}     {:.3}",
            up.0,
            down.0,
            one.0,
            found.0,
            wrong.0,
            found.1,
            up.2,
            boot as f64 / seeds as f64
        );
    }
    forecasts(seeds, time)?;
    trend(seeds, time)?;
    drift(seeds, time)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn forecasts(seeds: u64, time: RowTime) -> Result<(), Error> {
    println!(
        "\nforecast of blocks in all after 12 undecided blocks, over the truth: the blocks at which 80 % of these"
    );
    println!("experiments are decided when they go on");
    let statement = Statement::new(Direction::Higher, 0.01)?;
    let schedule = default_schedule(12)?;
    for (effect, sd) in [(0.03, 0.04), (0.04, 0.06), (0.05, 0.08), (0.03, 0.05), (0.03, 0.06), (0.0, 0.03)] {
        let world = World::calibrated(Noise::Ar1 { phi: 0.5 }, sd, time).with_effect(effect);
        let mut forecasts = Vec::new();
        let mut continued = Vec::new();
        for seed in 0..seeds {
            let logs = log_ratios(&measure(&world, 200, time, seed))?;
            let Some(decision) = walk(&logs, &statement, &schedule) else { continue };
            match decision.forecast {
                Some(Forecast::Blocks(n) | Forecast::AtLeast(n)) => forecasts.push(n as f64),
                _ => continue,
            }
            continued.push(logs);
        }
        let decided = |n: usize| {
            let hits = continued.iter().filter(|logs| {
                let ratio = LogEffect::of(&logs[..n]).ratio_t(0.95);
                statement.judge(&ratio) != Verdict::Undecided
            });
            hits.count() as f64 / continued.len() as f64
        };
        let truth = (13..=200).find(|n| decided(*n) >= 0.8).map_or(f64::INFINITY, |n| n as f64);
        println!(
            "effect {:.0} %, noise {:.0} %: undecided {:.2}, truth {truth}, median forecast over truth {:.2}",
            effect * 100.0,
            sd * 100.0,
            forecasts.len() as f64 / seeds as f64,
            median(forecasts) / truth
        );
    }
    Ok(())
}

fn trend(seeds: u64, time: RowTime) -> Result<(), Error> {
    println!("\nbias by a linear trend as large as the effect (5 %), interleaved, 12 blocks");
    for noise in [Noise::Ar1 { phi: 0.0 }, Noise::Drifting { phi: 0.999, size: 3.0 }] {
        let world = World::calibrated(noise, 0.04, time).with_effect(0.05).with_trend(0.05);
        let (mut bias, mut by_hand) = (0.0, 0.0);
        for seed in 0..seeds {
            let logs = log_ratios(&measure(&world, 12, time, seed))?;
            bias += (LogEffect::of(&logs).mean - world.effect) / seeds as f64;
            let (a, b) = one_arm_after_the_other(&world, 12, time, seed);
            by_hand += (LogEffect::of(&b).mean - LogEffect::of(&a).mean - world.effect) / seeds as f64;
        }
        println!(
            "{noise:?}: bias {:+.1} % of the effect; one arm after the other: {:+.1} %",
            100.0 * bias / world.effect,
            100.0 * by_hand / world.effect
        );
    }
    Ok(())
}

fn drift(seeds: u64, time: RowTime) -> Result<(), Error> {
    println!("\ninterleaved against one arm after the other on drifting noise, 12 blocks");
    for (phi, size) in [(0.999, 3.0), (0.9999, 3.0), (0.9999, 1.0)] {
        let world = World::calibrated(Noise::Drifting { phi, size }, 0.04, time);
        let (mut paired, mut unpaired) = (Vec::new(), Vec::new());
        let (mut held, mut held_by_hand) = (0, 0);
        for seed in 0..seeds {
            let logs = log_ratios(&measure(&world, 12, time, seed))?;
            let estimate = LogEffect::of(&logs).ratio_t(0.95);
            let (Some(low), Some(high)) = (estimate.low, estimate.high) else { continue };
            paired.push((high / low).ln());
            held += u64::from(low <= 1.0 && 1.0 <= high);
            let (a, b) = one_arm_after_the_other(&world, 12, time, seed);
            let (a, b) = (LogEffect::of(&a), LogEffect::of(&b));
            let se = a.standard_error().unwrap_or(0.0).hypot(b.standard_error().unwrap_or(0.0));
            unpaired.push(2.0 * mydyno_stats::special::t_quantile(0.975, 22.0) * se);
            held_by_hand +=
                u64::from((b.mean - a.mean).abs() <= unpaired.last().copied().unwrap_or(0.0) / 2.0);
        }
        println!(
            "walk {phi} × {size}: width {:.2} of the other's; coverage {:.3} against {:.3}",
            median(paired) / median(unpaired),
            held as f64 / seeds as f64,
            held_by_hand as f64 / seeds as f64
        );
    }
    Ok(())
}
