//! Reads the work of a TPC-C driver from the tables that it loaded and ran on.
//!
//! [`Names`] finds the nine tables, [`questions`] are read-only statements about them, and [`judge`] compares the answers
//! with the specification and with the [profiles](super::profile) of public drivers. Nothing here does I/O.

mod judge;
mod names;
mod questions;
mod skew;
#[cfg(test)]
mod tests;

pub use judge::{Judged, judge};
pub use names::{Names, NamesError};
pub use questions::{Answers, Question, questions};
