//! Settings of a Linux host, each behind the journal that puts it back.
//!
//! Law 4, leave no trace: every change to a host is first written to the journal and synced, then made, and put back afterwards,
//! also after SIGKILL, a crash or a reboot ([`restore::restore`]). Each kind of change is a file with a type that implements
//! [`Change`], and a line in [`kinds::KINDS`].

pub mod allocator;
pub mod cgroup;
pub mod data_directory;
pub mod disk;
pub mod emulated;
pub mod error;
pub mod features;
pub mod file_system;
pub mod folder;
pub mod host;
pub mod kinds;
pub mod limit;
pub mod loops;
pub mod lost;
pub mod mounts;
pub mod named_disk;
mod neighbours;
pub mod numa;
mod privilege;
pub mod process;
pub mod room;
pub mod server_variable;
pub mod setting;
pub mod state;
pub mod swap;
pub mod sync_delay;
pub mod task;
pub mod user;
pub mod variable;
mod view;
mod whitelist;
pub mod zram;

pub use error::HostError;
pub use host::Host;
pub use mydyno_journal as journal;
pub use mydyno_journal::{
    Change, Entry, Journal, JournalError, Lease, LeaseIdentity, Liveness, Machine, machine, restore,
};
pub use mydyno_linux::calls::effective_uid;
pub use neighbours::Reservation;
pub use state::StateDir;
