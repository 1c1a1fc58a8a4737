//! Nominal 95 % intervals must hold the truth 92 to 98 % of the time, on servers whose truth is known. Fast subsets; the whole
//! tables are printed by the example `coverage`.

use mydyno_stats::sim::latency::Latency;
use mydyno_stats::sim::noise::Noise;
use mydyno_stats::{Rng, interval, steady};

/// Shares of seeds: with an interval, of these with the truth inside, called unsteady.
fn mean_coverage(noise: Noise, n: usize, seeds: u64) -> (f64, f64, f64) {
    let (mut given, mut held, mut unsteady) = (0.0, 0.0, 0.0);
    for seed in 0..seeds {
        let (series, level) = noise.series(n, &mut Rng::stream(seed, &[n as u64]));
        let series: Vec<f64> = series.iter().map(|x| 100.0 + 4.0 * x).collect();
        let truth = 100.0 + 4.0 * level;
        if steady::assess(&series).steady == Some(false) {
            unsteady += 1.0;
        }
        let estimate = interval::mean(&series);
        if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
            given += 1.0;
            held += f64::from(u8::from(low <= truth && truth <= high));
        }
    }
    (given / seeds as f64, held / given, unsteady / seeds as f64)
}

#[test]
fn means_of_autoregressive_series_are_covered_from_16_windows_on() {
    for phi in [0.0, 0.3, 0.5, 0.7, 0.9, 0.95] {
        for n in [16, 60, 300] {
            let (given, held, unsteady) = mean_coverage(Noise::Ar1 { phi }, n, 1000);
            assert!((0.92..=0.98).contains(&held), "φ {phi}, {n} windows: {held}");
            assert!(given >= 0.9, "φ {phi}, {n} windows: an interval in {given}");
            // Short and strongly correlated series wander like unsteady ones; 1,000 seeds add ± 1.5 %.
            let allowed = if phi >= 0.9 && n < 60 { 0.09 } else { 0.065 };
            assert!(unsteady <= allowed, "φ {phi}, {n} windows: called unsteady in {unsteady}");
        }
    }
}

#[test]
fn means_of_bimodal_and_spiky_series_are_covered_once_the_events_recur() {
    // Six stays at a level, six spikes: what comes more rarely than that in a window, no interval can know of.
    for (noise, lengths) in
        [(Noise::Bimodal { dwell: 10.0 }, [60, 300]), (Noise::Spiky { share: 0.05, depth: 5.0 }, [120, 300])]
    {
        for n in lengths {
            let (_, held, _) = mean_coverage(noise, n, 1000);
            assert!((0.92..=0.98).contains(&held), "{noise:?}, {n} windows: {held}");
        }
    }
}

#[test]
fn drift_is_called_unsteady_or_its_level_is_covered() {
    let noise = Noise::Drifting { phi: 0.999, size: 3.0 };
    for n in [60, 300] {
        let (_, held, unsteady) = mean_coverage(noise, n, 500);
        assert!(held >= 0.92, "{n} windows: {held}");
        assert!(unsteady >= 0.25, "{n} windows: called unsteady in {unsteady}");
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
fn percentiles_are_covered_where_windows_resemble_their_neighbours() {
    let qs = [0.5, 0.95, 0.99];
    for (phi, n) in [(0.0, 60), (0.5, 60), (0.9, 300)] {
        let latency = Latency { median_ns: 200e3, shared: 0.15, own: 0.5, phi };
        let (mut given, mut held) = ([0.0; 3], [0.0; 3]);
        for seed in 0..200 {
            let windows = latency.windows(n, 300, &mut Rng::stream(seed, &[n as u64, 300]));
            for (i, estimate) in interval::percentiles(&windows, &qs).into_iter().enumerate() {
                let truth = latency.quantile_ns(qs[i]);
                if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                    given[i] += 1.0;
                    held[i] += f64::from(u8::from(low <= truth && truth <= high));
                }
            }
        }
        for i in 0..qs.len() {
            // 200 seeds know a share of 95 % to ± 3 %.
            let share = held[i] / given[i];
            assert!((0.91..=0.995).contains(&share), "φ {phi}, {n} windows, {}: {share}", qs[i]);
            assert!(given[i] >= 170.0, "φ {phi}, {n} windows, {}: {} intervals", qs[i], given[i]);
        }
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
