//! Measures the cost of one sample: `cargo run --release -p mydyno-samples --example sample_cost -- [PID] [DISK]…`

#![allow(clippy::print_stdout, reason = "an example speaks to its user")]

use std::time::Instant;

use mydyno_facts::{Options, Source, collect_with};
use mydyno_samples::Sampler;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().and_then(|a| a.parse().ok());
    let disks: Vec<String> = arguments.collect();
    let mut sampler = Sampler::new(&Source::live(), pid, &disks);
    let mut took: Vec<f64> = (0..2000).map(|n| sampler.sample(f64::from(n)).took_s * 1e6).collect();
    took.sort_by(f64::total_cmp);
    let last = sampler.sample(0.0);
    let cpu_us = last.values["observe.cpu_s"] / 2001.0 * 1e6;
    println!(
        "{} values; wall p50 {:.0} µs, p99 {:.0} µs; CPU {cpu_us:.0} µs a sample",
        last.values.len(),
        took[took.len() / 2],
        took[took.len() * 99 / 100]
    );
    for gap in sampler.gaps() {
        println!("not sampled: {gap}");
    }
    let started = Instant::now();
    let facts = collect_with(&Source::live(), None, pid, &Options::default());
    println!("{} facts in {:.1} ms", facts.facts.len(), started.elapsed().as_secs_f64() * 1e3);
    if std::env::var_os("SHOW").is_some() {
        for (id, fact) in &facts.facts {
            println!("{id} = {} {} [{}] {:?}", fact.value, fact.unit, fact.source, fact.status);
        }
        for (name, value) in &last.values {
            println!("{} {value}", &**name);
        }
    }
}
