//! Known answers from other implementations, and rates of error on servers with a known truth.
#![allow(clippy::unwrap_used)]

mod coverage;
mod decisions;
mod experiments;
mod journal;
mod oracle;
mod readmes;
mod recorded;
mod runs;
mod samples;
