//! Cost of analysing a record of one hour: windows of 1 s, 20 operations, response and service time of each.
//!
//! `cargo run --release -p mydyno-sim --example hour`
#![allow(clippy::print_stdout)]

use std::time::Instant;

use mydyno_model::record::HistogramData;
use mydyno_sim::noise::Noise;
use mydyno_stats::{Error, Histogram, Rng, SparseHistogram, interval};

const WINDOWS: usize = 3600;
const OPERATIONS: usize = 20;

fn main() -> Result<(), Error> {
    let mut rng = Rng::from_seed(1);
    let mut level = Noise::Ar1 { phi: 0.7 }.source(&mut rng);
    // As many values a window as a busy server gives an operation; a few hundred distinct windows, in turn.
    let distinct: Vec<HistogramData> = (0..400)
        .map(|_| {
            let shared = 0.1 * level.next(&mut rng);
            let mut window = Histogram::new();
            for _ in 0..1000 {
                window.record((300e3 * (shared + 0.5 * rng.normal()).exp()) as u64);
            }
            window.to_data()
        })
        .collect();
    let record: Vec<Vec<HistogramData>> = (0..2 * OPERATIONS)
        .map(|operation| {
            (0..WINDOWS).map(|w| distinct[(w + 7 * operation) % distinct.len()].clone()).collect()
        })
        .collect();

    if std::env::args().any(|a| a == "generate") {
        return Ok(());
    }
    let start = Instant::now();
    let mut intervals = 0;
    for histograms in &record {
        let windows: Vec<SparseHistogram> =
            histograms.iter().map(SparseHistogram::from_data).collect::<Result<_, _>>()?;
        let estimates = interval::percentiles(&windows, &[0.5, 0.95, 0.99, 0.999], WINDOWS as f64);
        let counts: Vec<u64> = histograms.iter().map(|h| h.count).collect();
        let rate = interval::throughput(&counts, &vec![1.0; counts.len()]);
        intervals += estimates.iter().chain([&rate]).filter(|e| e.low.is_some()).count();
    }
    println!(
        "{} histograms, {intervals} intervals: {:.2} s",
        2 * OPERATIONS * WINDOWS,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
