//! Warnings as values: an id for scripts, a sentence, and the next step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason to trust a result less than it seems to deserve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name, as in `client-bound`.
    pub id: String,
    /// The observation, with its figures.
    pub text: String,
    /// Advice for the reader.
    pub next_step: String,
    /// The step of the run that the warning concerns; absent when it concerns the whole run.
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
