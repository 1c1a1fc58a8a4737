//! The reasons why an expression has no value.

use mydyno_model::finding::MissingFact;

use super::value::Value;

/// A value, or the reason why there is none.
pub type Found = Result<Value, Stop>;

/// The reason why there is no value.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// Facts are missing, or a calculation has no result.
    Missing(Vec<MissingFact>),
    /// The expression cannot process the values: a mistake in the claim, or an unusual answer of the server.
    Fault(String),
}

impl Stop {
    /// One missing fact, its status and the reason.
    pub(super) fn missing(fact: impl Into<String>, status: &str, why: impl Into<String>) -> Self {
        Self::Missing(vec![MissingFact { fact: fact.into(), status: status.to_owned(), why: why.into() }])
    }

    /// A calculation without a result.
    pub fn undefined(what: impl Into<String>, why: &str) -> Self {
        Self::missing(what, "undefined", why)
    }

    /// Combines two reasons: a fault wins, missing facts are joined without repetition.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fault(text), _) | (_, Self::Fault(text)) => Self::Fault(text),
            (Self::Missing(mut a), Self::Missing(b)) => {
                for fact in b {
                    if !a.contains(&fact) {
                        a.push(fact);
                    }
                }
                Self::Missing(a)
            }
        }
    }
}
