//! The end of putting one change back.

use mydyno_model::change::RestoreState;
use serde::{Deserialize, Serialize};

/// The end of putting one change back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The end.
    pub state: RestoreState,
    /// The action, or the reason why there was none.
    pub why: String,
}

impl Outcome {
    /// All is as before.
    pub fn restored(why: impl Into<String>) -> Self {
        Self { state: RestoreState::Restored, why: why.into() }
    }

    /// It is not, or no longer, ours to put back.
    pub fn left_alone(why: impl Into<String>) -> Self {
        Self { state: RestoreState::LeftAlone, why: why.into() }
    }

    /// It is ours and could not be put back.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { state: RestoreState::Failed, why: why.into() }
    }

    /// The end that the journal notes; `None` when the entry stays open.
    pub fn closing(&self) -> Option<Closing> {
        match self.state {
            RestoreState::Restored => Some(Closing::Restored),
            RestoreState::LeftAlone => Some(Closing::LeftAlone),
            RestoreState::Failed => None,
        }
    }
}

/// The end of an entry, as the journal notes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// All is as before.
    Restored,
    /// It was no longer ours to put back.
    LeftAlone,
    /// The change was never made, or it was made permanent on purpose (a finished template).
    Released,
}
