//! Measures on simulated servers how often intervals hold the truth and verdicts are right, and prints the page of the journal that
//! holds it (docs/journal/statistics-measured.md).
//!
//! `cargo run --release -p mydyno-sim --example measure [SEEDS]`
#![allow(clippy::print_stdout)]

use mydyno_stats::Error;

fn main() -> Result<(), Error> {
    let seeds: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1000);
    print!("{}", mydyno_sim::page::page(seeds)?);
    Ok(())
}
