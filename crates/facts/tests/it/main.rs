//! Facts of live systems and of hostile ones.
#![allow(clippy::unwrap_used)]

mod cancel;
mod garbage;
mod hostile;
mod live_host;
mod live_objects;
mod live_schema;
mod live_server;
mod live_state;
mod properties;
mod support;
#[path = "../../../../tests/template.rs"]
mod template;
#[allow(dead_code)]
#[path = "../../src/tree.rs"]
mod tree;
#[path = "../../../../tests/until.rs"]
mod until;

// tree.rs uses `crate::Source`.
use mydyno_facts::Source;
