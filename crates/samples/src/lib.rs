//! Samples of host and server: counters and gauges, read repeatedly at low cost.
//!
//! A [`Bus`] takes samples on a clock of its own: a [`Sampler`] reads files, and [`Counters`] with their own intervals,
//! such as those of [`watched_server`], are read beside it. Samples contain the values as read; [`rates`] and
//! [`growth`] are computed from two samples. All files are read through a [`mydyno_facts::Source`], so that a test can
//! replace /proc and /sys by a folder of its own.

mod bus;
mod cgroup;
mod clock;
mod disk;
mod error;
pub mod figures;
mod followed;
pub mod growth;
mod host;
pub mod kernel_files;
pub mod rates;
mod reader;
mod sampler;
mod schedule;
pub mod series;
mod server;
mod statements;
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../facts/src/tree.rs"]
mod tree;
mod values;
pub mod watched_server;

// The tests' tree of files uses `crate::Source`.
pub use bus::{Bus, Counters};
pub use clock::{Clock, MachineClock, Stop};
pub use error::SamplesError;
pub use followed::ServerPid;
#[cfg(test)]
use mydyno_facts::Source;
pub use sampler::Sampler;
pub use schedule::{Interval, Schedule, Tick};
pub use values::Values;
