//! Histograms, estimators, intervals, tests and verdict arithmetic: pure functions.
//!
//! - For a run: [`histogram`], [`interval`] (throughput, means, percentiles), [`steady`], [`slow`] (the error of a mean),
//!   [`little`], [`usl`] (a sweep over connections).
//! - For an experiment: [`design`] → [`compare`] → [`sequential`] and [`verdict`], combined in [`decision`]; [`power`]
//!   (detectable effect, blocks still needed), [`twosample`]; of several experiments: [`pooled`]; of several factors: [`two_level`] →
//!   [`factorial`].
//! - Foundations: [`rng`], [`special`], [`linear`]. The crate `mydyno-sim` has simulated servers with a known truth, for trying
//!   all of this.
//!
//! Where data do not support an interval, the estimate has none and gives the reason. Statistics that others have implemented
//! too are tested with vectors from those implementations (tests/oracle); error rates are measured on simulated and recorded
//! servers (crates/sim/tests); docs/journal/statistics.md describes the designs, including the rejected ones.

pub mod compare;
pub mod decision;
pub mod design;
pub mod error;
pub mod factorial;
pub mod histogram;
pub mod interval;
pub mod linear;
pub mod little;
pub mod pooled;
pub mod power;
pub mod rng;
pub mod sequential;
pub mod slow;
pub mod special;
pub mod steady;
pub mod two_level;
pub mod twosample;
pub mod usl;
pub mod verdict;

pub use error::Error;
pub use histogram::{Distribution, Histogram, SparseHistogram};
pub use rng::Rng;
