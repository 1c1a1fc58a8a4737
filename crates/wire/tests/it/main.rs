//! The protocol against known answers, a scripted server and a real one.
#![allow(clippy::unwrap_used)]

mod auth;
mod certificates;
mod cut;
mod deadlines;
#[allow(dead_code)]
#[path = "../../../../tests/engines/engine.rs"]
mod engine;
mod engines;
mod fake;
mod hostile;
mod real;
mod reply_law;
mod scripted;
mod seeds;
mod server;
mod session;
mod target;
#[path = "../../../../tests/template.rs"]
mod template;
mod tls;
mod trust;
#[path = "../../../../tests/until.rs"]
mod until;
mod vectors;
