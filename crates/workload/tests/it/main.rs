//! The workloads on a real server, beside the original, and against recorded streams of operations.
#![allow(clippy::unwrap_used)]

mod behaviour;
mod beside_sysbench;
mod filling;
mod hot_path;
mod own;
mod ownership;
mod server;
mod streams;
