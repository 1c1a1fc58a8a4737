//! Rates of error on simulated and recorded servers.
#![allow(clippy::unwrap_used)]

mod cells;
mod coverage;
mod decisions;
mod journal;
mod recorded;
