//! Facts of host and server: configuration, limits and state, read once.
//!
//! [`collect()`] runs all collectors and always returns. Each fact carries the place where it was read; a fact that
//! could not be read carries the reason and the permission that it needs. All files are read through a [`Source`], so a
//! test can replace /proc and /sys by a folder of its own. Nothing in this crate changes a host or a server.

mod block;
mod bounds;
pub mod bundle;
mod cancel;
pub mod catalogue;
pub mod cgroup;
pub mod collect;
mod collector;
mod collectors;
mod context;
mod der;
mod dialect;
mod digest;
mod error;
mod mounts;
pub mod option_files;
pub mod parse;
pub mod process;
mod readings;
mod redact;
mod remote;
mod secrets;
mod sha_crypt;
mod source;
pub mod sql;
mod sql_form;
mod sql_text;
mod sql_wire;
mod table_files;
#[cfg(test)]
mod tree;
mod usable;
mod version;
mod wording;

pub use bounds::{open_regular, read_regular};
pub use cancel::Cancellation;
pub use collect::{Options, collect, collect_of, collect_with};
pub use collectors::status::is_gauge as is_status_gauge;
pub use digest::digest;
pub use error::FactsError;
pub use mydyno_linux::calls::{page_bytes, ticks_per_s};
pub use process::Process;
pub use redact::redact;
pub use remote::Remote;
pub use source::{LARGEST_FILE, Missing, Read, Source, reason};
pub use sql::{ReadOnly, Row, Sql, SqlError, Table};
pub use sql_wire::Renewing;
pub use usable::server_unusable;
