//! How often nominal 95 % intervals hold the truth, and how often a steady series is called unsteady.
//!
//! `cargo run --release -p mydyno-stats --example coverage [SEEDS]`
#![allow(clippy::print_stdout)]

use mydyno_stats::sim::noise::Noise;
use mydyno_stats::{Rng, interval, steady};

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2000);
    let lengths = [16, 20, 30, 60, 120, 300, 600];
    println!(
        "mean: share of seeds with an interval / of these: share that holds the truth / unsteady / half width"
    );
    println!("{:12} {lengths:?}", "noise");
    for (name, noise) in Noise::ALL {
        print!("{name:12}");
        for n in lengths {
            let (mut given, mut held, mut unsteady, mut width) = (0u64, 0u64, 0u64, 0.0);
            for seed in 0..seeds {
                let mut rng = Rng::stream(seed, &[n as u64]);
                let series: Vec<f64> = noise.series(n, &mut rng).iter().map(|x| 100.0 + 4.0 * x).collect();
                if steady::assess(&series).steady == Some(false) {
                    unsteady += 1;
                }
                let estimate = interval::mean(&series);
                if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                    given += 1;
                    held += u64::from(low <= 100.0 && 100.0 <= high);
                    width += (high - low) / 2.0;
                }
            }
            let share = |k: u64, of: u64| k as f64 / of.max(1) as f64;
            print!(
                "  {:.2}/{:.3}/{:.3}/{:4.1}",
                share(given, seeds),
                share(held, given),
                share(unsteady, seeds),
                width / given.max(1) as f64
            );
        }
        println!();
    }
}
