//! The kernel's files and system calls, parsed and called in one place.
//!
//! Parsers take the text of a file, so that callers read it in their own way: from this machine, from a made-up tree in a test, or
//! from another host. None of them panics on any text. [`Root`] reads from this machine.

pub mod block;
pub mod calls;
pub mod cgroup;
pub mod cpus;
pub mod hypervisor;
pub mod mounts;
pub mod process;
pub mod text;

mod root;

pub use mounts::Mount;
pub use process::Stat;
pub use root::Root;
