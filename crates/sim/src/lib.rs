//! Simulated servers: series of measurements with a known truth, from a seed, to try the statistics on. For tests and examples
//! only; no crate of the product depends on it.

pub mod coverage;
pub mod experiment;
pub mod latency;
mod markdown;
pub mod noise;
pub mod page;
pub mod rates;
