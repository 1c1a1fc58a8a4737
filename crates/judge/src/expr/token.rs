//! Tokens of the language.

use super::ast::Part;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// A number with its unit as written.
    Number {
        /// Number as written, without the unit.
        digits: String,
        /// Unit as written; empty without one.
        unit: String,
    },
    /// A version with three parts.
    Version(String),
    /// A quoted text.
    Text(String),
    /// A dotted name of a fact, which may contain `$name` and `*`.
    Fact(Vec<Part>),
    /// A word without a dot.
    Word(String),
    /// `$name`.
    Local(String),
    /// `.name` directly after a value.
    Field(String),
    /// `== != <= >= < > + - * / ( ) [ ] , :`
    Symbol(&'static str),
    /// The end.
    End,
}

impl Token {
    /// Its name in error messages.
    pub fn shown(&self) -> String {
        match self {
            Self::Number { digits, unit } => format!("the number {digits}{unit}"),
            Self::Version(text) => format!("the version {text}"),
            Self::Text(text) => format!("the text {text:?}"),
            Self::Fact(parts) => format!("the fact {}", super::ast::shown_parts(parts)),
            Self::Word(word) => format!("{word:?}"),
            Self::Local(name) => format!("\"${name}\""),
            Self::Field(name) => format!("\".{name}\""),
            Self::Symbol(symbol) => format!("{symbol:?}"),
            Self::End => "the end".to_owned(),
        }
    }
}
