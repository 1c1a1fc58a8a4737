//! The whole decision path of an experiment on simulated servers: rates of right and wrong verdicts. 1,000 seeds on each model
//! of noise; more is printed by the example `decisions`.

use mydyno_sim::experiment::{RowTime, World, measure, one_arm_after_the_other, run};
use mydyno_sim::noise::Noise;
use mydyno_sim::rates::{WALKS, Widths, blocks_until_decided, rates, widths};
use mydyno_stats::compare::{LogEffect, log_ratios};
use mydyno_stats::decision::{at_look, walk};
use mydyno_stats::power::{Forecast, default_schedule, forecast};
use mydyno_stats::sequential::Schedule;
use mydyno_stats::verdict::{Direction, Statement, Verdict};

const TIME: RowTime = RowTime { prepare_s: 15, measure_s: 30 };

fn rate(world: &World, statement: Statement, verdict: Verdict, seeds: u64) -> f64 {
    let schedule = default_schedule(12).unwrap();
    let hits =
        (0..seeds).filter(|seed| run(world, &statement, &schedule, TIME, *seed).unwrap().verdict == verdict);
    hits.count() as f64 / seeds as f64
}

#[test]
fn without_an_effect_supported_is_said_in_at_most_5_percent_in_spite_of_eight_looks() {
    // δ = 0 is the hardest: every chance effect in the direction would do.
    for (name, noise) in Noise::ALL {
        let world = World::calibrated(noise, 0.04, TIME);
        for direction in [Direction::Higher, Direction::Lower] {
            let false_alarms =
                rate(&world, Statement::new(direction, 0.0).unwrap(), Verdict::Supported, 1000);
            assert!(false_alarms <= 0.05, "{name}, {direction:?}: {false_alarms}");
        }
    }
}

#[test]
fn an_effect_of_5_percent_at_4_percent_noise_is_found_within_12_blocks() {
    let statement = Statement::new(Direction::Higher, 0.01).unwrap();
    for (name, noise) in Noise::ALL {
        let world = World::calibrated(noise, 0.04, TIME).with_effect(0.05);
        let found = rate(&world, statement, Verdict::Supported, 1000);
        assert!(found >= 0.8, "{name}: {found}");
        let wrong = rate(&world, statement, Verdict::Refuted, 1000);
        assert!(wrong <= 0.01, "{name}: {wrong}");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn the_forecast_of_blocks_is_right_within_30_percent_in_the_median() {
    let statement = Statement::new(Direction::Higher, 0.01).unwrap();
    let schedule = default_schedule(12).unwrap();
    for (effect, sd) in [(0.03, 0.04), (0.03, 0.05), (0.0, 0.03)] {
        let world = World::calibrated(Noise::Ar1 { phi: 0.5 }, sd, TIME).with_effect(effect);
        let (mut forecasts, mut continued) = (Vec::new(), Vec::new());
        for seed in 0..300 {
            let logs = log_ratios(&measure(&world, 120, TIME, seed)).unwrap();
            if let Some(Forecast::Blocks(n) | Forecast::AtLeast(n)) =
                walk(&logs, &statement, &schedule).and_then(|decision| decision.forecast)
            {
                forecasts.push(n as f64);
                continued.push(logs);
            }
        }
        // The truth: the plan in which 80 % of the undecided experiments, continued, are decided at one of its looks.
        let truth = blocks_until_decided(&continued, &statement, 13, 120).unwrap().unwrap() as f64;
        let ratio = median(forecasts) / truth;
        assert!((0.7..=1.3).contains(&ratio), "effect {effect}, noise {sd}: truth {truth}, ratio {ratio}");
    }
}

#[test]
fn a_linear_trend_as_large_as_the_effect_biases_it_by_at_most_a_tenth() {
    let seeds = 400;
    let world = World::calibrated(Noise::Ar1 { phi: 0.0 }, 0.04, TIME).with_effect(0.05).with_trend(0.05);
    let (mut interleaved, mut by_hand) = (0.0, 0.0);
    for seed in 0..seeds {
        let mean = |logs: &[f64]| LogEffect::of(logs).mean / seeds as f64;
        interleaved += mean(&log_ratios(&measure(&world, 12, TIME, seed)).unwrap());
        let (a, b) = one_arm_after_the_other(&world, 12, TIME, seed);
        by_hand += mean(&b) - mean(&a);
    }
    let bias = |mean: f64| (mean - world.effect) / world.effect;
    assert!(bias(interleaved).abs() <= 0.1, "{}", bias(interleaved));
    assert!(bias(by_hand) > 0.3, "the trend is there to be seen: {}", bias(by_hand));
}

/// Ten times a hundred experiments: what holds only for some seeds fails in one of them.
fn each_hundred(world: &World) -> impl Iterator<Item = Widths> {
    let world = *world;
    (0..10).map(move |group| widths(&world, 100 * group..100 * (group + 1)).unwrap())
}

#[test]
fn on_drifting_noise_interleaving_gives_an_interval_of_at_most_six_tenths() {
    let drifting = Noise::ALL.into_iter().find(|(name, _)| *name == "drifting").unwrap().1;
    let world = World::calibrated(drifting, 0.04, TIME);
    for widths in each_hundred(&world) {
        assert!(widths.interleaved <= 0.6 * widths.by_hand, "{widths:?}");
    }
}

#[test]
fn on_weaker_drift_too_it_is_six_tenths_of_what_one_arm_after_the_other_needs_to_be_right() {
    for (phi, size) in WALKS {
        let world = World::calibrated(Noise::Drifting { phi, size }, 0.04, TIME);
        for widths in each_hundred(&world) {
            assert!(widths.interleaved <= 0.6 * widths.by_hand_needed, "{phi}, {size}: {widths:?}");
        }
        let all = widths(&world, 0..1000).unwrap();
        assert!((0.92..=0.98).contains(&all.interleaved_held), "{phi}, {size}: {all:?}");
        // What looks as narrow there is narrow because it is wrong.
        assert!(all.by_hand_held <= 0.6, "{phi}, {size}: {all:?}");
    }
}

#[test]
fn an_experiment_repeats_itself_from_its_seed() {
    let world = World::calibrated(Noise::Spiky { share: 0.05, depth: 5.0 }, 0.04, TIME).with_effect(0.02);
    assert_eq!(measure(&world, 6, TIME, 9), measure(&world, 6, TIME, 9));
    assert_ne!(measure(&world, 6, TIME, 9), measure(&world, 6, TIME, 10));
}

#[test]
fn looks_are_taken_when_they_are_due_and_the_last_one_ends_it() {
    let statement = Statement::new(Direction::Higher, 0.0).unwrap();
    let schedule = Schedule::new(4, 3, 12, 0.95).unwrap();
    assert_eq!(schedule.looks(), [4, 7, 10, 12]);
    // Without an effect and with even noise nothing is decided.
    let logs: Vec<f64> = (0..12).map(|i| if i % 2 == 0 { 0.03 } else { -0.03 }).collect();
    for blocks in 0..12 {
        let decision = at_look(&logs[..blocks], &statement, &schedule);
        assert_eq!(decision.is_some(), [4, 7, 10].contains(&blocks), "{blocks} blocks");
        assert!(decision.is_none_or(|d| !d.stop));
    }
    let last = walk(&logs, &statement, &schedule).unwrap();
    assert!(last.stop && last.blocks == 12 && last.verdict == Verdict::Undecided);
    assert!(matches!(last.forecast, Some(Forecast::AtLeast(n)) if n > 12), "{last:?}");
    // A huge effect is seen at the first look.
    let clear: Vec<f64> = (0..12).map(|i| 0.5 + 0.001 * f64::from(i % 3)).collect();
    let decision = walk(&clear, &statement, &schedule).unwrap();
    assert_eq!((decision.verdict, decision.blocks), (Verdict::Supported, 4));
    assert!(Schedule::new(1, 1, 5, 0.95).is_err() && Schedule::new(5, 1, 4, 0.95).is_err());
    assert!(Schedule::new(5, 0, 9, 0.95).is_err() && Schedule::new(5, 1, 9, 1.0).is_err());
}

#[test]
fn without_spread_there_is_no_verdict_and_no_forecast() {
    let statement = Statement::new(Direction::Higher, 0.01).unwrap();
    let decision = at_look(&[0.1; 5], &statement, &Schedule::new(5, 1, 5, 0.95).unwrap()).unwrap();
    assert_eq!(decision.verdict, Verdict::Undecided);
    assert!(decision.effect_ratio.low.is_none());
    assert_eq!(forecast(&LogEffect::of(&[0.1; 5]), &statement), Forecast::Unknown);
    assert_eq!(forecast(&LogEffect::of(&[0.1, 0.2]), &statement), Forecast::Unknown);
}

#[test]
fn the_journal_states_the_rates_that_are_measured() {
    let page = include_str!("../../../../docs/journal/statistics-measured.md");
    let verdicts = page.split("## Verdicts").nth(1).unwrap();
    for (name, noise) in [Noise::ALL[2], Noise::ALL[8]] {
        let world = World::calibrated(noise, 0.04, TIME);
        let supported = |world: &World, delta| {
            let statement = Statement::new(Direction::Higher, delta).unwrap();
            100.0 * rates(world, &statement, 1000).unwrap().supported
        };
        let line = verdicts.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        let cells: Vec<f64> =
            line.split('|').filter_map(|cell| cell.trim().trim_end_matches(" %").parse().ok()).collect();
        // Half a percent: another platform's logarithm may push a seed over the line.
        assert!((cells[0] - supported(&world, 0.0)).abs() <= 0.5, "{name}: {cells:?}");
        assert!((cells[3] - supported(&world.with_effect(0.05), 0.01)).abs() <= 0.5, "{name}: {cells:?}");
    }
}
