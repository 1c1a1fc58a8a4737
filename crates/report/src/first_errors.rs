//! The first error of each code in a record.

use std::collections::HashMap;

use mydyno_model::record::{EventKind, RunRecord};

/// The first error of a code.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstError<'a> {
    /// SQLSTATE.
    pub sqlstate: &'a str,
    /// The server's message.
    pub message: &'a str,
    /// The operation that failed.
    pub operation: &'a str,
}

/// The first errors by their codes, found in one pass: a damaged record may have any number of codes.
pub fn first_errors(record: &RunRecord) -> HashMap<&str, FirstError<'_>> {
    let mut first = HashMap::new();
    for event in &record.events {
        if let EventKind::Error { code, sqlstate, message, operation, .. } = &event.what {
            first.entry(code.as_str()).or_insert(FirstError { sqlstate, message, operation });
        }
    }
    first
}
