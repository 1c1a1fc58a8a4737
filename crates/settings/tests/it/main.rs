//! Tests of the data that is shipped.
#![allow(clippy::unwrap_used)]

mod knobs;
mod ledger;
mod table;
