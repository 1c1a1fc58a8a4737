//! Nominal 95 % intervals must hold the truth 92 to 98 % of the time wherever they promise it, on servers whose truth is known. Fast
//! subsets; the whole page is made by the example `measure`.
//!
//! Seeds are fixed, so each share here is a constant of the code. 1,000 seeds know a share of 95 % to ± 1.4 %, so that a cell
//! that stays in the band with them is, with a chance of 97.5 %, truly inside 90.6 to 98.9 %.

use std::ops::RangeInclusive;

use mydyno_sim::coverage::{CORRELATED, LENGTHS, PLACES, Tally, cell, found, percentiles};
use mydyno_sim::latency::Latency;
use mydyno_sim::noise::Noise;
use mydyno_stats::{Rng, interval, slow, steady};

use super::cells::{counts, means};
use super::journal::{alike, cells_of};

/// Shares that hold.
const BAND: RangeInclusive<f64> = 0.92..=0.98;

/// Seeds of the page of the journal.
const SEEDS: u64 = 1000;

/// Noises on which nothing changes more slowly than a quarter of 240 s, and pink noise, whose slow part is made up for.
fn stationary() -> impl Iterator<Item = (&'static str, Noise)> {
    const SLOWER: [&str; 2] = ["drifting", "levels of 2 min"];
    Noise::ALL.into_iter().chain(Noise::FURTHER).filter(|(name, _)| !SLOWER.contains(name))
}

fn noise(name: &str) -> Noise {
    Noise::ALL.into_iter().chain(Noise::FURTHER).find(|(n, _)| *n == name).unwrap().1
}

/// Asserts that the journal's cell is the one of the tally.
fn kept(page_section: &str, name: &str, n: usize, tally: &Tally) {
    let at = LENGTHS.iter().position(|length| *length == n).unwrap();
    let kept = &cells_of("statistics-measured.md", page_section, name)[at];
    let found = cell(tally);
    assert!(alike(kept, &found), "{name}, {n}: the journal has {kept}, measured {found}");
}

#[test]
fn means_hold_the_truth_as_often_as_they_promise_where_the_assumption_holds() {
    for (name, noise) in stationary() {
        for n in [240, 600] {
            let tally = means(noise, n, SEEDS);
            kept("## Coverage of nominal 95 % intervals of a mean", name, n, &tally);
            let held = tally.coverage().unwrap();
            assert!(BAND.contains(&held), "{name}, {n} windows: {held}");
        }
    }
}

#[test]
fn throughputs_of_poisson_counts_do_so_too() {
    for (name, noise) in stationary() {
        for n in [240, 600] {
            let tally = counts(noise, n, SEEDS);
            kept("## The same of Poisson counts", name, n, &tally);
            let held = tally.coverage().unwrap();
            assert!(BAND.contains(&held), "{name}, {n} windows: {held}");
        }
    }
}

#[test]
fn what_changes_more_slowly_than_a_quarter_of_the_run_is_mostly_told() {
    for (name, n) in [("levels of 2 min", 240), ("drifting", 240), ("drifting", 300), ("drifting", 600)] {
        for (is_counts, tally) in [(false, means(noise(name), n, 400)), (true, counts(noise(name), n, SEEDS))]
        {
            // 4,000 other series of drifting counts of 240 s keep their level in 19 %, these in 21 %.
            let most = if is_counts && name == "drifting" && n == 240 { 0.22 } else { 0.2 };
            assert!(tally.promised_share() <= most, "{name}, {n} windows: {tally:?}");
        }
    }
}

#[test]
fn the_label_keeps_no_intervals_that_are_narrow_by_luck() {
    // Those with a level hold as often as all together, to within three per cent.
    for (name, noise) in stationary() {
        let tally = counts(noise, 240, 400);
        let all = (tally.held + tally.provisional_held) as f64 / (tally.promised + tally.provisional) as f64;
        assert!(tally.coverage().unwrap() >= all - 0.03, "{name}: {tally:?}");
    }
}

#[test]
fn ordinary_runs_of_four_minutes_and_more_keep_their_level() {
    for phi in [0.0, 0.3, 0.5] {
        for n in [240, 600] {
            let promised = means(Noise::Ar1 { phi }, n, SEEDS).promised_share();
            assert!(promised >= 0.92, "φ {phi}, {n} windows: {promised}");
        }
    }
}

#[test]
fn steady_series_are_seldom_called_unsteady() {
    let others = [Noise::Pink, noise("bimodal"), noise("stalls"), noise("checkpoints")];
    let noises = [0.0, 0.5, 0.7, 0.9].map(|phi| Noise::Ar1 { phi }).into_iter().chain(others);
    for noise in noises {
        for n in [60, 240, 600] {
            for tally in [means(noise, n, SEEDS), counts(noise, n, SEEDS)] {
                assert!(tally.unsteady_share() <= 0.07, "{noise:?}, {n} windows: {tally:?}");
            }
        }
    }
}

#[test]
fn a_lasting_fall_by_a_fifth_is_found_wherever_it_is() {
    for (name, noise) in CORRELATED {
        for at in PLACES {
            for n in [60, 120, 240] {
                let share = found(noise, n, at, -0.2, 200);
                assert!(share >= 0.9, "{name}, {n} windows, at {at}: {share}");
            }
        }
    }
}

#[test]
fn a_lasting_rise_by_a_fifth_of_rate_and_noise_is_found_wherever_it_is() {
    for (name, noise) in CORRELATED {
        // 29 of 240 windows lie between two blocks only if these begin with the second window.
        for (n, change) in [(60, 6), (60, 30), (60, 54), (240, 29), (240, 120)] {
            let found = (0..400).filter(|seed| {
                let (series, _) = noise.series(n, &mut Rng::stream(*seed, &[n as u64, 4]));
                let level = |t: usize| if t < change { 100.0 } else { 120.0 };
                let series: Vec<f64> =
                    series.iter().enumerate().map(|(t, x)| level(t) * (1.0 + 0.04 * x)).collect();
                steady::assess(&series).steady == Some(false)
            });
            let share = found.count() as f64 / 400.0;
            assert!(share >= 0.9, "{name}, {n} windows, after {change}: {share}");
        }
    }
}

#[test]
fn less_than_240_seconds_promise_nothing_and_say_so() {
    for (name, noise) in Noise::ALL {
        for n in [slow::MIN_WINDOWS, 30, 60, 239] {
            let tally = means(noise, n, 100);
            assert_eq!(tally.promised, 0, "{name}, {n} windows");
            // Levels that last as long as half of the run are changes.
            let changes = name == "drifting" || (name, n) == ("bimodal", slow::MIN_WINDOWS);
            let wanted = if changes { 40 } else { 70 };
            assert!(tally.provisional >= wanted, "{name}, {n} windows: {tally:?}");
        }
    }
    let at = |n: usize, time_s: f64| {
        let (series, _) = Noise::Ar1 { phi: 0.3 }.series(n, &mut Rng::from_seed(2));
        interval::mean(&series.iter().map(|x| 100.0 + x).collect::<Vec<_>>(), time_s)
    };
    let short = at(239, 239.0);
    assert!(short.is_provisional(), "{short:?}");
    assert!(
        short.method.ends_with("provisional: less than 240 seconds cannot tell slow changes from noise"),
        "{short:?}"
    );
    let long = at(240, 240.0);
    assert!(long.level == Some(0.95) && !long.method.contains("provisional"), "{long:?}");
    // Many windows of a moment are a moment.
    let moment = at(252, 0.05);
    assert!(moment.is_provisional(), "{moment:?}");
}

#[test]
fn provisional_intervals_of_a_minute_mostly_hold_the_truth_of_stationary_noise() {
    const SLOWER: [&str; 2] = ["AR(1) 0.95", "levels of 30 s"];
    for (name, noise) in stationary().filter(|(name, _)| !SLOWER.contains(name)) {
        for n in [60, 120] {
            let held = means(noise, n, SEEDS).provisional_coverage().unwrap();
            assert!(held >= 0.88, "{name}, {n} windows: {held}");
        }
    }
}

#[test]
fn a_trend_is_mostly_seen() {
    // One and a half standard deviations over the window.
    let seen = (0..300)
        .filter(|seed| {
            let (series, _) = Noise::Ar1 { phi: 0.3 }.series(240, &mut Rng::stream(*seed, &[7]));
            let series: Vec<f64> =
                (0..240).map(|t| 100.0 + 4.0 * series[t] + 6.0 * t as f64 / 240.0).collect();
            steady::assess(&series).steady == Some(false)
        })
        .count();
    assert!(seen >= 225, "{seen} of 300");
}

#[test]
fn percentiles_hold_the_truth_as_often_as_they_promise() {
    const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];
    for phi in [0.0, 0.5, 0.9] {
        for (n, seeds) in [(240, SEEDS), (600, SEEDS)] {
            for (q, tally) in QUANTILES.into_iter().zip(percentiles(phi, n, 100, &QUANTILES, seeds)) {
                let held = tally.coverage().unwrap();
                assert!(BAND.contains(&held), "φ {phi}, {n} windows, {q}: {held}");
                let wanted = if phi < 0.9 { 0.93 } else { 0.7 };
                assert!(tally.promised_share() >= wanted, "φ {phi}, {n} windows, {q}: {tally:?}");
            }
        }
        let short = percentiles(phi, 60, 100, &[0.5], 50);
        assert!(short[0].promised == 0 && short[0].provisional >= 35, "{short:?}");
    }
}

#[test]
fn a_percentile_with_too_few_values_beyond_it_has_no_interval() {
    let latency = Latency { median_ns: 200e3, shared: 0.1, own: 0.5, phi: 0.0 };
    let windows = latency.windows(30, 50, &mut Rng::from_seed(1));
    let estimate = interval::percentile(&windows, 0.999, 30.0);
    assert!(estimate.low.is_none() && estimate.method.contains("lie beyond it"), "{estimate:?}");
    let estimate = interval::percentile(&windows, 0.5, 30.0);
    let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
    assert!(low < estimate.value && estimate.value < high, "{estimate:?}");
    let few = interval::percentile(&windows[..5], 0.5, 5.0);
    assert!(few.low.is_none() && few.method.contains("too short: 5 windows"), "{few:?}");
    assert_eq!(interval::percentile::<mydyno_stats::Histogram>(&[], 0.5, 0.0).method, "no values");
}
