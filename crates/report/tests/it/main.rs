//! The report over whole records.
#![allow(clippy::unwrap_used)]

#[path = "../fixtures/mod.rs"]
mod fixtures;

mod escaping;
mod golden;
mod of_runs;
mod page;
