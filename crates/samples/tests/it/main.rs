//! Samples of live systems and of hostile ones.
#![allow(clippy::unwrap_used)]

#[path = "../../../facts/tests/it/garbage.rs"]
mod garbage;
mod hostile;
mod live_server;
#[allow(dead_code)]
#[path = "../../../facts/tests/it/support.rs"]
mod support;
#[path = "../../../../tests/template.rs"]
mod template;
#[allow(dead_code)]
#[path = "../../../facts/src/tree.rs"]
mod tree;
#[path = "../../../../tests/until.rs"]
mod until;

// tree.rs uses `crate::Source`.
use mydyno_facts::Source;
