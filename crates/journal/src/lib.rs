//! The journal of changes to a host.
//!
//! A command appends each change to the [`Journal`] and syncs it before it makes the change. [`restore::restore`]
//! restores the changes of commands that have ended: after SIGKILL, a crash or a reboot. The journal knows changes by
//! the trait [`Change`] only; the crate that makes changes registers their kinds ([`Kind`]).

pub mod change;
pub mod error;
pub mod lease;
pub mod machine;
pub mod restore;

mod dependencies;
mod ending;
mod file;
mod line;
mod outcome;
mod replay;

pub use change::{Change, Context, Hooks, Kind, Kinds, NoHooks, Preparation, UnknownChange};
pub use error::JournalError;
pub use file::{Journal, refusal};
pub use lease::{Lease, LeaseIdentity, Liveness};
pub use line::{Entry, Line, StoredChange};
pub use machine::{Machine, Place, Presence, ProcessIdentity};
pub use outcome::{Closing, Outcome};
pub use replay::{Open, Replay, replay};
