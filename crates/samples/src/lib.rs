//! Samples of host and server: counters and gauges, read repeatedly at low cost.
//!
//! A [`Bus`] takes samples on a clock of its own: a [`Sampler`] reads files, and [`Counters`] with their own intervals,
//! such as those of [`watched_server`], are read beside it. Samples contain the values as read; [`rates`] and
//! [`growth`] are computed from two samples. All files are read through a [`mydyno_facts::Source`], so that a test can
//! replace /proc and /sys by a folder of its own.

mod bus;
mod cgroup;
mod clock;
mod details;
mod digests;
mod disk;
mod error;
pub mod figures;
mod followed;
pub mod growth;
mod host;
mod innodb_status;
pub mod kernel_files;
mod own_sessions;
pub mod rates;
mod reader;
mod replication;
mod sampler;
mod schedule;
#[cfg(test)]
mod scripted;
pub mod series;
mod server;
mod smaps;
mod statements;
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../facts/src/tree.rs"]
mod tree;
mod values;
mod waits;
pub mod watched_server;

// The tests' tree of files uses `crate::Source`.
pub use bus::{Bus, Counters};
pub use clock::{Clock, MachineClock, Stop};
pub use details::Details;
pub use error::SamplesError;
pub use followed::ServerPid;
#[cfg(test)]
use mydyno_facts::Source;
pub use own_sessions::OwnSessions;
pub use sampler::Sampler;
pub use schedule::{Interval, Schedule, Tick};
pub use smaps::Smaps;
pub use values::Values;
