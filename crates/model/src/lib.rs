//! The documents that one stage of mydyno writes and the next one reads.
//!
//! Serde types, units and version rules; no I/O. Every document is JSON (or JSON Lines), carries a [`Header`] and keeps fields
//! that it does not know. A reader refuses a document that a newer major version wrote.

pub mod arrivals;
pub mod catalogue;
pub mod change;
pub mod checkup;
pub mod claim;
pub mod comparison;
pub mod config;
pub mod crash;
pub mod diagnosis;
pub mod document;
pub mod embedded;
pub mod estimate;
pub mod experiment;
pub mod facts;
pub mod finding;
pub mod knob;
pub mod latency;
pub mod lever;
pub mod plan;
pub mod probe;
pub mod profile;
pub mod record;
pub mod run_list;
pub mod sample;
pub mod schema;
pub mod server;
mod shared_text;
pub mod summary;
pub mod text;
pub mod tpcc;
pub mod tpcc_lint;
pub mod units;
pub mod warning;
pub mod watch;
pub mod work;
pub mod wrap;

pub use document::{Document, DocumentError, Header, Writer};
pub use estimate::Estimate;
pub use warning::Warning;
