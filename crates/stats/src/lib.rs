//! Histograms, estimators, intervals, tests and verdict arithmetic: pure functions.
//!
//! - What a run says: [`histogram`], [`interval`] (throughput, means, percentiles), [`steady`], [`slow`] (the error of
//!   a mean), [`little`], [`usl`] (a sweep over connections).
//! - What an experiment says: [`design`] → [`compare`] → [`sequential`] and [`verdict`], together [`decision`]; [`power`] (what it
//!   could show, blocks still needed), [`factorial`], [`twosample`].
//! - Below them: [`rng`], [`special`], [`linear`]. Simulated servers with a known truth, to try all this on: the crate `mydyno-sim`.
//!
//! Where data cannot carry an interval, the estimate has none and says why. What others have implemented too has vectors from
//! them (tests/oracle); rates of error are measured on simulated and recorded servers (crates/sim/tests); the designs, the rejected ones
//! too, stand in docs/journal/statistics.md.

pub mod compare;
pub mod decision;
pub mod design;
pub mod error;
pub mod factorial;
pub mod histogram;
pub mod interval;
pub mod linear;
pub mod little;
pub mod power;
pub mod rng;
pub mod sequential;
pub mod slow;
pub mod special;
pub mod steady;
pub mod twosample;
pub mod usl;
pub mod verdict;

pub use error::Error;
pub use histogram::{Distribution, Histogram, SparseHistogram};
pub use rng::Rng;
