//! Errors of the sampling plan.

use std::time::Duration;

use thiserror::Error;

/// Why the requested sampling is not possible.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SamplesError {
    /// The interval is out of bounds.
    #[error("an interval of {0:?} between samples: give one from 100 ms to 10 min")]
    Interval(Duration),
}
