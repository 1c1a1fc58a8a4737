//! The outcome of restoring one change.

use mydyno_model::change::RestoreState;
use serde::{Deserialize, Serialize};

/// The outcome of restoring one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The state afterwards.
    pub state: RestoreState,
    /// The action, or the reason why there was none.
    pub why: String,
}

impl Outcome {
    /// The previous state is restored.
    pub fn restored(why: impl Into<String>) -> Self {
        Self { state: RestoreState::Restored, why: why.into() }
    }

    /// The change is not, or no longer, mydyno's to restore.
    pub fn left_alone(why: impl Into<String>) -> Self {
        Self { state: RestoreState::LeftAlone, why: why.into() }
    }

    /// It is mydyno's change and could not be restored.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { state: RestoreState::Failed, why: why.into() }
    }

    /// The end that the journal records; `None` when the entry stays open.
    pub fn closing(&self) -> Option<Closing> {
        match self.state {
            RestoreState::Restored => Some(Closing::Restored),
            RestoreState::LeftAlone => Some(Closing::LeftAlone),
            RestoreState::Failed => None,
        }
    }
}

/// The end of an entry as the journal records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// The previous state is restored.
    Restored,
    /// It was no longer mydyno's to restore.
    LeftAlone,
    /// The change was never made, or it was made permanent on purpose (a finished template).
    Released,
}
