//! Samples of host and server: counters and gauges, read again and again at a small cost.
//!
//! [`Sampler`] reads one sample; [`rates`] derives rates from two of them. All files are read through a
//! [`mydyno_facts::Source`], so a test can replace /proc and /sys by a folder of its own.

mod cgroup;
mod cpu_clock;
mod disk;
mod host;
pub mod rates;
mod reader;
mod sampler;
mod server;
mod taskstats;
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../facts/src/tree.rs"]
mod tree;
mod values;

// The tree of files for tests reads by the crate's `Source`.
#[cfg(test)]
use mydyno_facts::Source;
pub use sampler::Sampler;
