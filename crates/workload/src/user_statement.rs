//! Statements written by a user.

use mydyno_tables::sql_text::Class;

/// How a column of a result is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// As a whole number of 64 bits.
    Int,
    /// As a text.
    Text,
}

/// A statement of the user, with its position and effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserStatement {
    /// Position, as in `shop.toml:12:3`, or the name of an option.
    pub place: String,
    /// Its text, with `?` for parameters.
    pub sql: String,
    /// How the first columns of its result are kept; empty when they are not.
    pub keeps: Vec<Keep>,
    /// Its effect.
    pub class: Class,
}
