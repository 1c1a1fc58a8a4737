//! The language of claims: small and total, over facts, with units and three truth values.
//!
//! It has no loops except over facts and lists, no assignment, and no failure other than reporting which fact was missing.
//! `docs/guides/writing-a-claim.md` describes it for authors.

mod ast;
mod eval;
mod functions;
mod lexer;
mod mutate;
mod operators;
mod parser;
mod show;
pub(crate) mod size;
mod stop;
#[cfg(test)]
mod tests;
mod token;
mod trace;
mod unit;
mod value;

pub use ast::{Call, Compare, Expr, FactRef, Over, Part, Quantifier};
pub use eval::{Evaluation, Scope, domain, evaluate};
pub use lexer::Position;
pub use mutate::{Mutant, mutants};
pub use parser::{Bindings, ParseError, parse, parse_for, parse_with};
pub use stop::Stop;
pub use unit::Dimension;
pub use value::{CUT_AFTER, Value, Version};
