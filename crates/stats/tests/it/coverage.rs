//! Nominal 95 % intervals must hold the truth 92 to 98 % of the time wherever they promise it, on servers whose truth is known. Fast
//! subsets; the whole page is made by the example `measure`.
//!
//! Seeds are fixed, so each share here is a constant of the code. 1,000 seeds know a share of 95 % to ± 1.4 %, so that a cell
//! that stays in the band with them is, with a chance of 97.5 %, truly inside 90.6 to 98.9 %.

use std::ops::RangeInclusive;

use mydyno_stats::sim::coverage::{LENGTHS, Tally, cell, means, percentiles};
use mydyno_stats::sim::latency::Latency;
use mydyno_stats::sim::noise::Noise;
use mydyno_stats::{Rng, interval, series, steady};

const BAND: RangeInclusive<f64> = 0.92..=0.98;

/// Cells of a row of the journal's page by noise: the first table with that name.
fn journal(noise: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/journal/statistics-measured.md");
    let start = format!("| {noise} | ");
    let line = page.lines().find(|line| line.starts_with(&start)).unwrap();
    line[start.len()..].trim_end_matches(" |").split(" | ").map(str::to_owned).collect()
}

/// Whether two cells agree to half a percent: another platform's logarithm may push a seed over the line.
fn alike(a: &str, b: &str) -> bool {
    let numbers =
        |cell: &str| -> Vec<f64> { cell.split_whitespace().filter_map(|word| word.parse().ok()).collect() };
    let (a, b) = (numbers(a), numbers(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 0.5)
}

/// A cell of 1,000 seeds, which must be the one of the journal.
fn measured(name: &str, noise: Noise, n: usize) -> Tally {
    let tally = means(noise, n, 1000);
    let kept = &journal(name)[LENGTHS.iter().position(|length| *length == n).unwrap()];
    assert!(alike(kept, &cell(&tally)), "{name}, {n}: the journal has {kept}, measured {}", cell(&tally));
    tally
}

#[test]
fn means_hold_the_truth_as_often_as_they_promise_on_every_stationary_noise() {
    for (name, noise) in Noise::ALL.into_iter().filter(|(name, _)| *name != "drifting") {
        for n in [60, 90, 120, 300] {
            let tally = measured(name, noise, n);
            let held = tally.coverage().unwrap();
            assert!(BAND.contains(&held), "{name}, {n} windows: {held}");
        }
    }
}

/// Share of the series of a cell that may keep an interval outside the band which does not say so.
const UNSAID: f64 = 0.03;

#[test]
fn where_intervals_hold_the_truth_more_often_than_98_percent_they_say_that_their_level_is_a_floor() {
    for (name, noise) in Noise::ALL {
        for n in [60, 90, 120, 200, 300, 600] {
            let tally = measured(name, noise, n);
            // Too narrow is never allowed, floor or not.
            assert!(tally.coverage().unwrap() >= *BAND.start(), "{name}, {n} windows: {tally:?}");
            assert!(tally.floor_coverage().unwrap() >= *BAND.start(), "{name}, {n} windows: {tally:?}");
            let exact = tally.exact_coverage().filter(|_| tally.exact_share() > UNSAID);
            assert!(exact.is_none_or(|held| BAND.contains(&held)), "{name}, {n} windows: {tally:?}");
        }
    }
}

#[test]
fn an_interval_of_fewer_than_300_windows_or_of_a_level_that_may_wander_has_a_floor_for_a_level() {
    let at = |n: usize, seed: u64, noise: Noise| {
        let (series, _) = noise.series(n, &mut Rng::from_seed(seed));
        interval::mean(&series.iter().map(|x| 100.0 + x).collect::<Vec<_>>())
    };
    let independent = Noise::Ar1 { phi: 0.0 };
    let short = at(series::DRIFT_WINDOWS - 1, 2, independent);
    assert!(short.at_least && short.level == Some(0.95), "{short:?}");
    assert!(
        short.method.ends_with(
            "wider than needed if the level drifted, which fewer than 300 windows cannot tell from noise"
        ),
        "{short:?}"
    );
    let long = at(series::DRIFT_WINDOWS, 2, independent);
    assert!(!long.at_least && long.level == Some(0.95), "{long:?}");
    // Of series that drift, 300 windows and more, hardly any keeps a level that is not a floor.
    let unsaid = (0..500)
        .map(|seed| at(400, seed, Noise::Drifting { phi: 0.999, size: 3.0 }))
        .filter(|estimate| estimate.level.is_some() && !estimate.at_least)
        .count();
    assert!(unsaid <= 15, "{unsaid} of 500");
}

#[test]
fn ordinary_runs_of_a_minute_and_more_keep_their_interval() {
    for phi in [0.0, 0.3, 0.5] {
        for n in [60, 90, 120, 300] {
            let promised = means(Noise::Ar1 { phi }, n, 1000).promised_share();
            assert!(promised >= 0.93, "φ {phi}, {n} windows: {promised}");
        }
    }
}

#[test]
fn steady_series_are_seldom_called_unsteady() {
    for phi in [0.0, 0.3, 0.5, 0.7, 0.9, 0.95] {
        for n in [16, 60, 300] {
            let unsteady = means(Noise::Ar1 { phi }, n, 1000).unsteady_share();
            // Short and strongly correlated series wander like unsteady ones; 1,000 seeds add ± 1.5 %.
            let allowed = if phi >= 0.9 && n < 60 { 0.09 } else { 0.065 };
            assert!(unsteady <= allowed, "φ {phi}, {n} windows: called unsteady in {unsteady}");
        }
    }
}

#[test]
fn fewer_than_60_windows_promise_nothing_and_say_so() {
    for (name, noise) in Noise::ALL {
        for n in [series::MIN_WINDOWS, 30, series::RELIABLE_WINDOWS - 1] {
            let tally = means(noise, n, 100);
            assert_eq!(tally.promised, 0, "{name}, {n} windows");
            assert!(tally.provisional >= 70, "{name}, {n} windows: {tally:?}");
        }
    }
    let (series, _) = Noise::Ar1 { phi: 0.3 }.series(30, &mut Rng::from_seed(2));
    let estimate = interval::mean(&series.iter().map(|x| 100.0 + x).collect::<Vec<_>>());
    assert!(estimate.is_provisional(), "{estimate:?}");
    assert!(estimate.method.contains("provisional: fewer than 60 windows"), "{estimate:?}");
}

#[test]
fn drift_is_said_or_too_weak_to_matter() {
    let noise = Noise::Drifting { phi: 0.999, size: 3.0 };
    // As long as the walk's own steps can be told from noise, nearly every series says so.
    for n in [300, 600] {
        let tally = measured("drifting", noise, n);
        assert!(tally.promised_share() <= 0.12, "{n} windows: {tally:?}");
    }
    // Shorter, it cannot be told from correlated noise; then the level of the window is inside, on the safe side.
    for n in [60, 120] {
        let tally = measured("drifting", noise, n);
        assert!(tally.coverage().unwrap() >= 0.92, "{n} windows: {tally:?}");
        assert!(tally.unsteady_share() >= 0.25, "{n} windows: {tally:?}");
    }
    // A trend of one and a half standard deviations over the window is mostly seen.
    let seen = (0..300)
        .filter(|seed| {
            let (series, _) = Noise::Ar1 { phi: 0.3 }.series(120, &mut Rng::stream(*seed, &[7]));
            let series: Vec<f64> =
                (0..120).map(|t| 100.0 + 4.0 * series[t] + 6.0 * t as f64 / 120.0).collect();
            steady::assess(&series).steady == Some(false)
        })
        .count();
    assert!(seen >= 225, "{seen} of 300");
}

#[test]
fn percentiles_hold_the_truth_as_often_as_they_promise() {
    for phi in [0.0, 0.5, 0.9] {
        for (n, seeds) in [(60, 1000), (90, 1000), (300, 300)] {
            for (q, tally) in
                [0.5, 0.95, 0.99].into_iter().zip(percentiles(phi, n, 100, &[0.5, 0.95, 0.99], seeds))
            {
                let held = tally.coverage().unwrap();
                // Two and a half standard errors of a share of 95 % on top of the band.
                let margin = 2.5 * (0.95 * 0.05 / seeds as f64).sqrt() / 3.0;
                assert!(
                    (BAND.start() - margin..=BAND.end() + margin).contains(&held),
                    "φ {phi}, {n} windows, {q}: {held}"
                );
                let wanted = if phi < 0.9 { 0.88 } else { 0.7 };
                assert!(tally.promised_share() >= wanted, "φ {phi}, {n} windows, {q}: {tally:?}");
            }
        }
        let short = percentiles(phi, 20, 100, &[0.5], 50);
        assert!(short[0].promised == 0 && short[0].provisional >= 35, "{short:?}");
    }
}

#[test]
fn a_percentile_with_too_few_values_beyond_it_has_no_interval() {
    let latency = Latency { median_ns: 200e3, shared: 0.1, own: 0.5, phi: 0.0 };
    let windows = latency.windows(30, 50, &mut Rng::from_seed(1));
    let estimate = interval::percentile(&windows, 0.999);
    assert!(estimate.low.is_none() && estimate.method.contains("lie beyond it"), "{estimate:?}");
    let estimate = interval::percentile(&windows, 0.5);
    let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
    assert!(low < estimate.value && estimate.value < high, "{estimate:?}");
    let few = interval::percentile(&windows[..5], 0.5);
    assert!(few.low.is_none() && few.method.contains("too short: 5 windows"), "{few:?}");
    assert_eq!(interval::percentile::<mydyno_stats::Histogram>(&[], 0.5).method, "no values");
}
