//! The binary as its users meet it, against real servers.
#![allow(clippy::unwrap_used)]

mod bench;
mod docs;
mod fixture;
mod home;
mod host;
mod house;
mod kills;
mod server;
