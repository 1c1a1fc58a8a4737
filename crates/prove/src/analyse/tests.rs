use mydyno_model::experiment::{Asks, Finding, Row};
use mydyno_stats::rng::Rng;
use serde_json::Map;

use super::*;
use crate::measure::MEASURES;
use crate::statement::Question;

fn slice(start: usize, block: usize, arm: Role, transactions: u64) -> Slice {
    Slice {
        row: Row { order: 0, start, block, arm },
        at_s: 0.0,
        measured_s: 1.0,
        transactions,
        queries: transactions,
        errors: 0,
        retries: 0,
        p95_us: None,
        mean_us: None,
        client_cpu_us: 0,
        workers: 1,
        figures: Default::default(),
        failed: None,
        extra: Map::new(),
    }
}

#[test]
fn only_blocks_with_both_arms_count_and_failed_slices_do_not() {
    let mut slices = vec![
        slice(0, 0, Role::Baseline, 100),
        slice(0, 0, Role::Treatment, 110),
        slice(0, 0, Role::Again, 100),
        slice(0, 1, Role::Baseline, 100),
        slice(0, 1, Role::Treatment, 0),
        slice(0, 2, Role::Treatment, 500),
        slice(1, 0, Role::Baseline, 200),
        slice(1, 0, Role::Treatment, 220),
    ];
    slices.push(Slice { failed: Some("the server died".to_owned()), ..slice(1, 1, Role::Treatment, 9) });
    slices.push(slice(1, 1, Role::Baseline, 100));
    let ratios = Ratios::of(&slices, &MEASURES[0]);
    let effect = 1.1f64.ln();
    assert_eq!(ratios.treatment.iter().map(|(start, _)| *start).collect::<Vec<_>>(), [0, 1]);
    assert!(ratios.treatment.iter().all(|(_, ratio)| (ratio - effect).abs() < 1e-12));
    assert_eq!(ratios.again, [(0, 0.0)]);
    assert!((ratios.baseline_mean - 20_000f64.sqrt()).abs() < 1e-9);
    assert!((ratios.treatment_mean - 24_200f64.sqrt()).abs() < 1e-9);
}

#[test]
fn a_start_is_one_unit_whatever_the_number_of_its_blocks() {
    let ratios = [(0, 0.01), (0, 0.03), (1, 0.05), (2, 0.00), (2, 0.02), (2, 0.04)];
    let starts = units(&ratios, Unit::Start);
    assert_eq!(starts.len(), 3);
    for (seen, expected) in starts.iter().zip([0.02, 0.05, 0.02]) {
        assert!((seen - expected).abs() < 1e-12);
    }
    assert_eq!(units(&ratios, Unit::Block).len(), 6);
}

/// From the formulas of the one-way analysis of variance, calculated by hand: three groups of two with means 2, 4, 9
/// and differences of 2 within each. Mean squares: within 2, between 26; so the component between is (26 − 2)/2 = 12.
#[test]
fn the_two_levels_of_noise_are_told_apart() {
    let ratios = [(0, 1.0), (0, 3.0), (1, 3.0), (1, 5.0), (2, 8.0), (2, 10.0)];
    let levels = levels(&ratios).unwrap();
    assert!((levels.within.powi(2) - 2.0).abs() < 1e-12, "{levels:?}");
    assert!((levels.between.powi(2) - 12.0).abs() < 1e-12, "{levels:?}");
    assert_eq!(super::levels(&ratios[..2]), None);
    assert_eq!(super::levels(&[(0, 1.0), (1, 2.0)]), None);
}

/// t₀.₉₇₅ with 4 degrees of freedom is 2.776445; the root mean square of these is 0.02, so the floor is
/// exp(2.776445 · 0.02 / √4) − 1.
#[test]
fn the_noise_floor_is_that_of_a_mean_of_as_many_units() {
    let floor = noise_floor(&[0.02, -0.02, 0.02, -0.02]).unwrap();
    assert!((floor - (2.776_445_105f64 * 0.01).exp_m1()).abs() < 1e-6, "{floor}");
    assert_eq!(noise_floor(&[0.02]), None);
    assert_eq!(noise_floor(&[0.0, 0.0]), None);
}

/// Blocks of an experiment whose starts differ by `start_sd` and whose blocks differ by `block_sd`.
fn simulated(rng: &mut Rng, starts: usize, blocks: usize, start_sd: f64, effect: f64) -> Vec<(usize, f64)> {
    const BLOCK_SD: f64 = 0.03;
    let mut ratios = Vec::new();
    for start in 0..starts {
        let of_start = start_sd * (rng.normal() - rng.normal());
        ratios.extend((0..blocks).map(|_| (start, effect + of_start + BLOCK_SD * rng.normal())));
    }
    ratios
}

fn supported(unit: Unit, start_sd: f64, effect: f64) -> f64 {
    const SEEDS: u64 = 1000;
    const STARTS: usize = 6;
    const BLOCKS: usize = 20;
    let question = Question { asks: Asks::Higher, delta: 0.0 };
    let planned = if unit == Unit::Start { STARTS } else { STARTS * BLOCKS };
    let schedule = Schedule::new(unit.first_look(), 1, planned, 0.95).unwrap();
    let found = (0..SEEDS).filter(|seed| {
        let mut rng = Rng::stream(*seed, &[1]);
        let units = units(&simulated(&mut rng, STARTS, BLOCKS, start_sd, effect), unit);
        let decided = schedule
            .looks()
            .iter()
            .map(|look| question.judge(&effect_at(&units[..*look], &schedule)))
            .find(|finding| *finding != Finding::Undecided);
        decided == Some(Finding::Supported)
    });
    found.count() as f64 / SEEDS as f64
}

#[test]
fn starts_that_differ_do_not_support_an_effect_that_is_not_there() {
    for start_sd in [0.0, 0.01, 0.03] {
        let false_supported = supported(Unit::Start, start_sd, 0.0);
        assert!(false_supported <= 0.05, "starts differ by {start_sd}: {false_supported}");
    }
}

#[test]
fn blocks_as_units_mistake_the_noise_of_starts_for_an_effect() {
    let false_supported = supported(Unit::Block, 0.01, 0.0);
    assert!(false_supported > 0.15, "the one-level design would hold: {false_supported}");
}

#[test]
fn an_effect_of_five_percent_is_found_in_the_planned_starts() {
    let found = supported(Unit::Start, 0.01, 0.05f64.ln_1p());
    assert!(found >= 0.8, "{found}");
}
