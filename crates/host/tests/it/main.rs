//! The journal, its changes and their restore, on a real file system with real processes and simulated machines.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod between;
mod emulated;
mod fixture;
mod folders;
mod journal;
mod levers;
mod processes;
mod recorded;
mod restoring;
mod settings;
mod sync_delay;
mod turned;
#[path = "../../../../tests/until.rs"]
mod until;
mod users;
#[path = "../../../../tests/whole_host.rs"]
mod whole_host;
mod zram;
