//! Known answers from other implementations.
#![allow(clippy::unwrap_used)]

mod experiments;
mod factorials;
mod oracle;
mod readmes;
mod runs;
mod samples;
