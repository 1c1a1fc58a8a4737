//! Measures on simulated servers how often intervals hold the truth and verdicts are right, and prints the page of the journal that
//! holds it (docs/journal/statistics-measured.md).
//!
//! `cargo run --release -p mydyno-sim --example measure [SEEDS [PART]]`, a part of `series`, `percentiles`, `experiments`
#![allow(clippy::print_stdout)]

use mydyno_sim::page::{PARTS, part};
use mydyno_stats::Error;

fn main() -> Result<(), Error> {
    let seeds: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1000);
    let wanted = std::env::args().nth(2);
    let parts = PARTS.iter().filter(|name| wanted.as_deref().is_none_or(|wanted| wanted == **name));
    let texts = parts.map(|name| part(name, seeds)).collect::<Result<Vec<_>, _>>()?;
    print!("{}", texts.join("\n"));
    Ok(())
}
