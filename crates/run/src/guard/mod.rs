//! The guard: conditions that a server must meet before mydyno loads it. All reasons to refuse are reported at once,
//! each with its remedy.

mod found;
mod judge;
mod look;

pub use found::{Found, Needs, Others};
pub use judge::judge;
pub(crate) use judge::room_for_samplers;
pub use look::{WATCH, look};
