//! A server that never was: series of measurements with a known truth, from a seed, to try the statistics on.

pub mod coverage;
pub mod experiment;
pub mod latency;
mod markdown;
pub mod noise;
pub mod page;
pub mod rates;
