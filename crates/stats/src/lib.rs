//! Histograms, estimators, intervals, tests and verdict arithmetic: pure functions.

pub mod error;
pub mod histogram;
pub mod interval;
pub mod rng;
pub mod series;
pub mod sim;
pub mod special;
pub mod steady;

pub use error::Error;
pub use histogram::{Distribution, Histogram, SparseHistogram};
pub use rng::Rng;
