//! Facts and samples against live systems and against hostile ones.
#![allow(clippy::unwrap_used)]

mod hostile;
mod live_host;
mod live_schema;
mod live_server;
mod live_state;
mod support;
#[allow(dead_code)]
#[path = "../../src/tree.rs"]
mod tree;

// The trees of unit tests are read by what is theirs there.
use mydyno_observe::Source;
