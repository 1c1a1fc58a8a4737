//! What recording, reading and merging histograms costs on this machine.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use mydyno_stats::{Histogram, Rng, SparseHistogram};

fn main() {
    let mut rng = Rng::from_seed(1);
    // Service times as a busy server has them: log-normal around 200 µs.
    let values: Vec<u64> = (0..4096).map(|_| (200e3 * (0.6 * rng.normal()).exp()) as u64).collect();
    let mut histogram = Histogram::new();
    let rounds = 10_000;
    let start = Instant::now();
    for _ in 0..rounds {
        for &ns in &values {
            histogram.record(std::hint::black_box(ns));
        }
    }
    let per = |n: usize, start: Instant| start.elapsed().as_secs_f64() * 1e9 / n as f64;
    println!("record: {:.2} ns", per(rounds * values.len(), start));

    let mut second = Histogram::new();
    for &ns in &values {
        second.record(ns);
    }
    let (start, n) = (Instant::now(), 20_000);
    for _ in 0..n {
        std::hint::black_box(second.to_data());
    }
    println!("to_data: {:.0} ns, {} bytes of text", per(n, start), second.to_data().hdr.len());
    let data = second.to_data();
    let start = Instant::now();
    for _ in 0..n {
        let _ = std::hint::black_box(SparseHistogram::from_data(&data));
    }
    println!("from_data (sparse): {:.0} ns", per(n, start));
    let start = Instant::now();
    for _ in 0..n {
        histogram.merge(std::hint::black_box(&second));
    }
    println!("merge: {:.0} ns", per(n, start));
}
