//! Variables of private servers that were changed while the servers run. A client of the server puts them back.

use std::path::PathBuf;

use mydyno_journal::{Change, Context, JournalError, Outcome, Presence, ProcessIdentity};
use mydyno_model::change::RestoreState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
/// A variable that was changed while a private server runs. It ends with the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedVariable {
    /// The server's process.
    pub process: ProcessIdentity,
    /// The server's folder.
    pub folder: PathBuf,
    /// As in `innodb_io_capacity`.
    pub name: String,
    /// The value before, as the server shows it.
    pub was: String,
    /// The value that was set, as the server shows it: one that it rounds is refused.
    pub now: String,
    /// Variables that the server may change along with it, with their values before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<(String, String)>,
}

impl Change for ChangedVariable {
    fn kind(&self) -> &str {
        "variable"
    }

    fn what(&self) -> String {
        format!("variable {} of the server in {}", self.name, self.folder.display())
    }

    fn key(&self) -> String {
        format!("variable:{}:{}:{}", self.process.pid, self.process.start_ticks, self.name)
    }

    fn was(&self) -> Value {
        Value::from(self.was.as_str())
    }

    fn now(&self) -> Value {
        Value::from(self.now.as_str())
    }

    /// When the server is ended too, no client is needed, and the server may be one that does not answer.
    fn ends_with(&self, other: &dyn Change) -> bool {
        other.process() == Some(&self.process)
    }

    fn ended_with(&self, server: &Outcome) -> Outcome {
        match server.state {
            RestoreState::Failed => Outcome::failed(format!("its server could not be ended: {}", server.why)),
            RestoreState::Restored | RestoreState::LeftAlone => {
                Outcome::restored("its server is ended, and its value with it")
            }
        }
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(match context.machine.presence(&self.process)? {
            Presence::Running => context.hooks.put_back(self),
            Presence::Unseen => Outcome::left_alone("its server belongs to another machine or container"),
            Presence::Ended | Presence::Recycled | Presence::OtherBoot => {
                Outcome::restored("its server ended, and its value with it")
            }
        })
    }
}
