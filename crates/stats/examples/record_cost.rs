//! Cost of recording, reading and merging histograms on this machine.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mydyno_model::record::HistogramData;
use mydyno_stats::{Histogram, Rng, SparseHistogram};

/// The same with the hdrhistogram crate, and exact sum, minimum and maximum kept beside it.
fn theirs(values: &[u64], rounds: usize, data: &HistogramData) {
    let per = |n: usize, start: Instant| start.elapsed().as_secs_f64() * 1e9 / n as f64;
    let Ok(mut histogram) = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 2) else {
        return;
    };
    let (mut sum, mut min, mut max) = (0u64, u64::MAX, 0u64);
    let start = Instant::now();
    for _ in 0..rounds {
        for &ns in values {
            let ns = std::hint::black_box(ns);
            let _ = histogram.record(ns);
            sum = sum.saturating_add(ns);
            min = min.min(ns);
            max = max.max(ns);
        }
    }
    std::hint::black_box((sum, min, max));
    println!("crate, record: {:.2} ns", per(rounds * values.len(), start));
    let mut reader = hdrhistogram::serialization::Deserializer::new();
    let (start, n) = (Instant::now(), 20_000);
    for _ in 0..n {
        let Ok(bytes) = STANDARD.decode(&data.hdr) else { return };
        let Ok(window) = reader.deserialize::<u64, _>(&mut bytes.as_slice()) else { return };
        let _ = std::hint::black_box(histogram.add(&window));
    }
    println!("crate, decode and add: {:.0} ns", per(n, start));
}

fn main() {
    let mut rng = Rng::from_seed(1);
    // Service times like those of a busy server: log-normal around 200 µs.
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
    theirs(&values, rounds / 10, &data);
}
