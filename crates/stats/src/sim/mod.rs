//! A server that never was: series of measurements with a known truth, from a seed, to try the statistics on.

pub mod experiment;
pub mod latency;
pub mod noise;
