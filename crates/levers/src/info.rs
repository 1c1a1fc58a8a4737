//! Entries of the list of levers.

use mydyno_model::lever::{LeverInfo, LeverScope};

/// An entry without values, state and price.
pub(crate) fn entry(id: &str, what: &str, takes: &str, scope: LeverScope) -> LeverInfo {
    LeverInfo {
        id: id.to_owned(),
        what: what.to_owned(),
        scope,
        takes: takes.to_owned(),
        values: vec![],
        now: None,
        lacks: None,
        ledger: None,
    }
}

/// An entry of a lever that takes effect when a private server starts.
pub(crate) fn at_start(id: &str, what: &str, takes: &str) -> LeverInfo {
    entry(id, what, takes, LeverScope::ServerStart)
}

/// The reason why a check failed, if it did.
pub(crate) fn reason<T, E: std::fmt::Display>(checked: Result<T, E>) -> Option<String> {
    checked.err().map(|error| error.to_string())
}
