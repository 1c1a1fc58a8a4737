//! Histograms, estimators, intervals, tests and verdict arithmetic: pure functions.

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
pub mod series;
pub mod sim;
pub mod special;
pub mod steady;
pub mod twosample;
pub mod usl;
pub mod verdict;

pub use error::Error;
pub use histogram::{Distribution, Histogram, SparseHistogram};
pub use rng::Rng;
