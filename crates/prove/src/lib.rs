//! Controlled experiments: two servers that differ in one thing, loaded in turns, and what the difference is worth.
//!
//! [`comparison`] is the whole of it. The way through this room is [`design`] (the run table, written first) → [`alternate`] (servers up, load on one after the
//! other, slice by slice) → [`store`] (a folder that survives whatever ends the experiment) → [`analyse`] (pure: slices to
//! effects) → [`verdict`] (pure: effects to an answer).

pub mod alternate;
pub mod analyse;
pub mod budget;
pub mod comparison;
pub mod design;
mod error;
pub mod side;
mod slice;
pub mod statement;
pub mod store;
pub mod threats;
pub mod verdict;

pub use error::ProveError;
