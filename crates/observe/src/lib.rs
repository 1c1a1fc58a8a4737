//! Facts and samples of host and server.
//!
//! [`collect()`] takes one look and always returns: each fact carries where it was read, and one that could not be had
//! says why and what would permit it. [`Sampler`] reads counters again and again and costs next to nothing; [`rates`]
//! are derived from two samples. Everything reads through a [`Source`], so a test can put files of its own in the place
//! of /proc and /sys. Nothing here changes a host or a server.

mod bag;
mod block;
pub mod bundle;
pub mod catalogue;
mod cgroup;
pub mod collect;
mod collectors;
mod digest;
mod error;
mod mounts;
pub mod option_files;
mod parse;
pub mod process;
pub mod rates;
mod redact;
mod remote;
mod sampler;
mod secrets;
mod source;
pub mod sql;
mod sql_wire;
mod sys;
mod taskstats;
#[cfg(test)]
mod tree;
mod wording;

pub use collect::{Options, collect, collect_of, collect_with};
pub use digest::digest;
pub use error::ObserveError;
pub use process::Process;
pub use redact::redact;
pub use remote::Remote;
pub use sampler::Sampler;
pub use source::{LARGEST_FILE, Missing, Read, Source};
pub use sql::{Row, Sql, SqlError, Table};
