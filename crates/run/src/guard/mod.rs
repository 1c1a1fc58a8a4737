//! The guard: what must be true of a server before mydyno loads it. All reasons to refuse are named at once, each with
//! the way out.

mod found;
mod judge;
mod look;

pub use found::{Found, Needs, Others};
pub(crate) use judge::has_room_for_observer;
pub use judge::judge;
pub use look::{WATCH, look};
