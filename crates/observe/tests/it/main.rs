//! Facts and samples against live systems and against hostile ones.
#![allow(clippy::unwrap_used)]

mod hostile;
mod live_host;
mod live_schema;
mod live_server;
mod live_state;
mod support;
