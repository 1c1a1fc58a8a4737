//! Warnings are values: an id that scripts can match, a sentence, and what to do next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that makes a result worth less than it looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name, as in `client-bound`.
    pub id: String,
    /// What was seen, with its figures.
    pub text: String,
    /// What the reader can do about it.
    pub next_step: String,
    /// The step of the run that it is about; absent when it is about the whole run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<usize>,
}

impl Warning {
    /// A warning about the whole run.
    pub fn new(id: &str, text: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { id: id.to_owned(), text: text.into(), next_step: next_step.into(), step: None }
    }

    /// The same warning, about one step.
    #[must_use]
    pub fn at_step(mut self, step: usize) -> Self {
        self.step = Some(step);
        self
    }
}
