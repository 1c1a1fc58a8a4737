//! Rates of error on simulated and recorded servers.
#![allow(clippy::unwrap_used)]

mod coverage;
mod decisions;
mod journal;
mod recorded;
