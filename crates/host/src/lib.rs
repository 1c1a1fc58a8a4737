//! Settings of a Linux host, each behind the journal that puts it back.
//!
//! Law 4, leave no trace: whatever changes a host is first written to the [`Journal`] and synced, then done, and
//! put back afterwards, also after `kill -9`, a crash or a reboot ([`restore::restore`]). Each kind of change is
//! a variant of [`Change`] that knows what it is called, what identifies it, and how to put it back only if it
//! is still what we made.

pub mod allocator;
pub mod cgroup;
pub mod change;
pub mod data_directory;
pub mod disk;
pub mod emulated;
pub mod error;
pub mod file_system;
pub mod folder;
pub mod host;
pub mod journal;
pub mod lease;
pub mod limit;
pub mod loops;
pub mod lost;
pub mod machine;
pub mod mounts;
pub mod named_disk;
pub mod process;
pub mod restore;
pub mod room;
pub mod setting;
pub mod state;
pub mod swap;
pub mod sync_delay;
mod sys;
pub mod task;
pub mod user;
mod view;
mod whitelist;
pub mod zram;

pub use change::Change;
pub use error::HostError;
pub use host::Host;
pub use journal::{Entry, Journal};
pub use lease::{Lease, LeaseIdentity, Liveness};
pub use machine::Machine;
pub use state::StateDir;
pub use sys::effective_uid;
