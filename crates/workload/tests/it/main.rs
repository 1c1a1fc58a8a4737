//! The workloads on a real server, beside the original, and against recorded streams of operations.
#![allow(clippy::unwrap_used)]

mod behaviour;
mod beside_sysbench;
#[allow(dead_code)]
#[path = "../../../wire/tests/it/certificates.rs"]
mod certificates;
mod filling;
mod hot_path;
mod own;
mod ownership;
mod registered;
mod retries;
#[allow(dead_code)]
#[path = "../../../wire/tests/it/server.rs"]
mod server;
mod signals;
mod streams;
#[path = "../../../../tests/template.rs"]
mod template;
mod tpcc;
mod tpcc_killed;
mod tpcc_model;
#[path = "../../../../tests/until.rs"]
mod until;
