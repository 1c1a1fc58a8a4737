//! The documents: what one stage of mydyno writes and the next one reads.
//!
//! Serde types, units and the rules of versions; no I/O. Every document is JSON (or JSON Lines), carries a
//! [`Header`], keeps fields that it does not know, and is refused when a newer major version wrote it.

pub mod arrivals;
pub mod change;
pub mod claim;
pub mod crash;
pub mod document;
pub mod estimate;
pub mod experiment;
pub mod facts;
pub mod finding;
pub mod knob;
pub mod lever;
pub mod plan;
pub mod probe;
pub mod record;
pub mod sample;
pub mod schema;
pub mod server;
pub mod summary;
pub mod text;
pub mod units;
pub mod warning;

pub use document::{Document, DocumentError, Header, Writer};
pub use estimate::Estimate;
pub use warning::Warning;
