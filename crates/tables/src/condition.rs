//! Conditions on the rows, each a statement whose result says whether it holds.

/// A statement whose result says whether the data hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Subject, for messages.
    pub about: String,
    /// A SELECT; the first value of its first row counts.
    pub sql: String,
    /// The value that it must have.
    pub expected: String,
}
