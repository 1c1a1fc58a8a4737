//! The kinds of change: what each is called, what identifies it, and the value before and after.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::folder::MarkedFolder;
use crate::machine::{Machine, ProcessIdentity};
use crate::setting::ChangedSetting;

/// Something that mydyno changes on a host. The journal holds it before it happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// A folder that did not exist.
    Folder(MarkedFolder),
    /// A process that did not run.
    Process(StartedProcess),
    /// A kernel setting with another value.
    Setting(ChangedSetting),
    /// A kind that this build does not know; a newer mydyno wrote it. It is kept and left alone.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// A process that mydyno started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedProcess {
    /// Which process.
    #[serde(flatten)]
    pub identity: ProcessIdentity,
    /// What it runs.
    pub program: PathBuf,
}

impl Change {
    /// What was changed, for people.
    pub fn what(&self) -> String {
        match self {
            Self::Folder(folder) => format!("folder {}", folder.path.display()),
            Self::Process(process) => {
                format!("process {} ({})", process.identity.pid, process.program.display())
            }
            Self::Setting(setting) => format!("kernel setting {}", setting.name),
            Self::Unknown(fields) => {
                format!(
                    "{} (of a newer mydyno)",
                    fields.get("kind").and_then(Value::as_str).unwrap_or("change")
                )
            }
        }
    }

    /// What two commands must not change at the same time.
    pub fn key(&self) -> String {
        match self {
            Self::Folder(folder) => format!("folder:{}", folder.path.display()),
            Self::Process(process) => {
                format!("process:{}:{}", process.identity.pid, process.identity.start_ticks)
            }
            Self::Setting(setting) => setting.key(),
            Self::Unknown(fields) => format!("unknown:{}", Value::Object(fields.clone())),
        }
    }

    /// Why it cannot be put back from here, though it can from elsewhere: then the journal keeps it.
    pub(crate) fn out_of_reach(&self, machine: &Machine) -> Option<String> {
        match self {
            Self::Setting(setting) => setting.out_of_reach(machine),
            Self::Folder(_) | Self::Process(_) | Self::Unknown(_) => None,
        }
    }

    /// The value before the change.
    pub fn was(&self) -> Value {
        match self {
            Self::Folder(_) | Self::Process(_) => Value::from("absent"),
            Self::Setting(setting) => Value::from(setting.was.as_str()),
            Self::Unknown(fields) => fields.get("was").cloned().unwrap_or(Value::Null),
        }
    }

    /// The value that mydyno set.
    pub fn now(&self) -> Value {
        match self {
            Self::Folder(_) => Value::from("present"),
            Self::Process(_) => Value::from("running"),
            Self::Setting(setting) => Value::from(setting.now.as_str()),
            Self::Unknown(fields) => fields.get("now").cloned().unwrap_or(Value::Null),
        }
    }
}
