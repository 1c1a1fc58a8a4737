//! Histograms, estimators, intervals, tests and verdict arithmetic: pure functions.

pub mod error;
pub mod histogram;
pub mod rng;

pub use error::Error;
pub use histogram::{Distribution, Histogram, SparseHistogram};
pub use rng::Rng;
