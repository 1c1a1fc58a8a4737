//! Judges series of counts a second that another program made (tests/sim/other_noises.py): reads a series a line from standard
//! input, counts separated by spaces, and prints for each the kind of the throughput's interval (`level`, `provisional`,
//! `none`), its ends, whether the series is steady (`true`, `false`, `none`), the change as a share and the words for it,
//! separated by tabs.
//!
//! `cargo run --release -p mydyno-sim --example judge < FILE`
#![allow(clippy::print_stdout)]

use std::io::BufRead as _;

use mydyno_stats::interval::{steadiness, throughput};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let counts = line?.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let widths_s = vec![1.0; counts.len()];
        let estimate = throughput(&counts, &widths_s);
        let kind = match (estimate.low, estimate.level) {
            (None, _) => "none",
            (Some(_), None) => "provisional",
            (Some(_), Some(_)) => "level",
        };
        let (low, high) = (estimate.low.unwrap_or(f64::NAN), estimate.high.unwrap_or(f64::NAN));
        let verdict = steadiness(&counts, &widths_s);
        let steady = verdict.steady.map_or("none".to_owned(), |steady| steady.to_string());
        println!("{kind}\t{low}\t{high}\t{steady}\t{}\t{}", verdict.change, verdict.why);
    }
    Ok(())
}
