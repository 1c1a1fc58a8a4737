//! How often nominal 95 % intervals hold the truth, and how often a steady series is called unsteady.
//!
//! `cargo run --release -p mydyno-stats --example coverage [SEEDS]`
#![allow(clippy::print_stdout)]

use mydyno_stats::sim::latency::Latency;
use mydyno_stats::sim::noise::Noise;
use mydyno_stats::{Rng, SparseHistogram, interval, steady};

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2000);
    means(seeds);
    percentiles(seeds.div_ceil(4));
}

fn share(k: u64, of: u64) -> f64 {
    k as f64 / of.max(1) as f64
}

fn means(seeds: u64) {
    let lengths = [16, 20, 30, 60, 120, 300, 600];
    println!(
        "mean: share of seeds with an interval / of these: share that holds the truth / unsteady / half width"
    );
    println!("{:12} {lengths:?}", "noise");
    for (name, noise) in Noise::ALL {
        print!("{name:12}");
        for n in lengths {
            let (mut given, mut held, mut unsteady, mut widths) = (0u64, 0u64, 0u64, Vec::new());
            for seed in 0..seeds {
                let mut rng = Rng::stream(seed, &[n as u64]);
                let (series, level) = noise.series(n, &mut rng);
                let series: Vec<f64> = series.iter().map(|x| 100.0 + 4.0 * x).collect();
                let truth = 100.0 + 4.0 * level;
                if steady::assess(&series).steady == Some(false) {
                    unsteady += 1;
                }
                let estimate = interval::mean(&series);
                if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                    given += 1;
                    held += u64::from(low <= truth && truth <= high);
                    widths.push((high - low) / 2.0);
                }
            }
            widths.sort_by(f64::total_cmp);
            let width = widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN);
            let (given_share, held) = (share(given, seeds), share(held, given));
            print!("  {given_share:.2}/{held:.3}/{:.3}/{width:4.1}", share(unsteady, seeds));
        }
        println!();
    }
}

fn percentiles(seeds: u64) {
    let qs = [0.5, 0.95, 0.99, 0.999];
    println!(
        "percentiles {qs:?}: share with an interval / of these: share that holds the truth / half width in %"
    );
    for phi in [0.0, 0.5, 0.9] {
        for (n, per_window) in [(20, 1000), (60, 100), (60, 5000), (300, 1000)] {
            let latency = Latency { median_ns: 200e3, shared: 0.15, own: 0.5, phi };
            let (mut given, mut held, mut width) = ([0u64; 4], [0u64; 4], [0.0; 4]);
            for seed in 0..seeds {
                let mut rng = Rng::stream(seed, &[n as u64, per_window]);
                let windows: Vec<SparseHistogram> = latency.windows(n, per_window, &mut rng);
                for (i, estimate) in interval::percentiles(&windows, &qs).into_iter().enumerate() {
                    let truth = latency.quantile_ns(qs[i]);
                    if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                        given[i] += 1;
                        held[i] += u64::from(low <= truth && truth <= high);
                        width[i] += (high - low) / 2.0 / truth * 100.0;
                    }
                }
            }
            print!("AR(1) {phi:<4} {n:3} windows of {per_window:5}:");
            for i in 0..qs.len() {
                let (g, h) = (share(given[i], seeds), share(held[i], given[i]));
                print!("  {g:.2}/{h:.3}/{:4.1}", width[i] / given[i].max(1) as f64);
            }
            println!();
        }
    }
}
