//! The kinds of change: what each is called, what identifies it, and the value before and after.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cgroup::MadeGroup;
use crate::folder::MarkedFolder;
use crate::loops::AttachedLoop;
use crate::machine::{Machine, ProcessIdentity};
use crate::mounts::Mounted;
use crate::setting::ChangedSetting;
use crate::swap::SwapFile;
use crate::task::ChangedTask;
use crate::zram::ZramSwap;

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
    /// A loop device with a file attached.
    Loop(AttachedLoop),
    /// A mount.
    Mount(Mounted),
    /// A file that is swapped to.
    Swap(SwapFile),
    /// A zram device that is swapped to.
    Zram(ZramSwap),
    /// A control group.
    Cgroup(MadeGroup),
    /// A process of ours that the scheduler treats otherwise.
    Task(ChangedTask),
    /// A variable of a private server with another value. Who can speak with servers puts it back.
    Variable(ChangedVariable),
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

impl ChangedVariable {
    /// What two commands must not change at the same time.
    pub fn key(&self) -> String {
        format!("variable:{}:{}:{}", self.process.pid, self.process.start_ticks, self.name)
    }
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
            Self::Loop(device) => {
                format!("loop device {} ({})", device.device.display(), device.backing.display())
            }
            Self::Mount(mount) => format!("mount of {} at {}", mount.device.display(), mount.point.display()),
            Self::Swap(swap) => format!("swap file {}", swap.path.display()),
            Self::Zram(swap) => format!("swap in compressed memory {}", swap.device),
            Self::Cgroup(group) => format!("control group {}", group.name),
            Self::Task(task) => format!("{} of process {}", task.attribute.name(), task.process.pid),
            Self::Variable(variable) => {
                format!("variable {} of the server in {}", variable.name, variable.folder.display())
            }
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
            Self::Loop(device) => format!("loop:{}:{}", device.device.display(), device.label),
            Self::Mount(mount) => format!("mount:{}", mount.point.display()),
            Self::Swap(swap) => format!("swap:{}", swap.path.display()),
            Self::Zram(swap) => format!("zram:{}", swap.device),
            Self::Cgroup(group) => format!("cgroup:{}", group.name),
            Self::Task(task) => task.key(),
            Self::Variable(variable) => variable.key(),
            Self::Unknown(fields) => format!("unknown:{}", Value::Object(fields.clone())),
        }
    }

    /// Why it cannot be put back from here, though it can from elsewhere: then the journal keeps it.
    pub fn out_of_reach(&self, machine: &Machine) -> Option<String> {
        match self {
            Self::Setting(setting) => setting.out_of_reach(machine),
            Self::Mount(mount) => mount.out_of_reach(machine),
            Self::Swap(swap) => swap.out_of_reach(machine),
            _ => None,
        }
    }

    /// The value before the change.
    pub fn was(&self) -> Value {
        match self {
            Self::Folder(_) | Self::Process(_) | Self::Cgroup(_) => Value::from("absent"),
            Self::Loop(_) => Value::from("free"),
            Self::Mount(_) => Value::from("not mounted"),
            Self::Swap(_) | Self::Zram(_) => Value::from("off"),
            Self::Setting(setting) => Value::from(setting.was.as_str()),
            Self::Task(task) => Value::from(task.was.as_str()),
            Self::Variable(variable) => Value::from(variable.was.as_str()),
            Self::Unknown(fields) => fields.get("was").cloned().unwrap_or(Value::Null),
        }
    }

    /// The value that mydyno set.
    pub fn now(&self) -> Value {
        match self {
            Self::Folder(_) | Self::Cgroup(_) => Value::from("present"),
            Self::Process(_) => Value::from("running"),
            Self::Loop(_) => Value::from("attached"),
            Self::Mount(mount) => Value::from(format!("{} {}", mount.file_system, mount.options).trim_end()),
            Self::Swap(swap) => Value::from(format!("{} bytes", swap.bytes)),
            Self::Zram(swap) => Value::from(format!("{} bytes", swap.bytes)),
            Self::Setting(setting) => Value::from(setting.now.as_str()),
            Self::Task(task) => Value::from(task.now.as_str()),
            Self::Variable(variable) => Value::from(variable.now.as_str()),
            Self::Unknown(fields) => fields.get("now").cloned().unwrap_or(Value::Null),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Place;

    #[test]
    fn every_kind_is_read_from_the_journal_as_it_was_written() {
        let place = Place {
            host: "db1".into(),
            machine_id: None,
            boot_id: "b1".into(),
            pid_namespace: "pid:[1]".into(),
        };
        let process = ProcessIdentity { pid: 7, start_ticks: 9, place };
        let text = || "x".to_owned();
        let changes = [
            Change::Folder(MarkedFolder { path: "/x".into(), mark: text() }),
            Change::Process(StartedProcess { identity: process.clone(), program: "/x".into() }),
            Change::Setting(ChangedSetting {
                name: text(),
                was: text(),
                now: text(),
                device: None,
                namespace: Some(text()),
                along: vec![(text(), text())],
                along_after: vec![(text(), text())],
            }),
            Change::Loop(AttachedLoop {
                device: "/dev/loop3".into(),
                backing: "/x".into(),
                inode: 1,
                label: text(),
            }),
            Change::Mount(Mounted {
                point: "/x".into(),
                device: "/dev/loop3".into(),
                file_system: text(),
                options: text(),
                namespace: None,
            }),
            Change::Swap(SwapFile {
                path: "/x".into(),
                inode: 1,
                device: Some(3),
                bytes: 2,
                namespace: None,
            }),
            Change::Zram(ZramSwap {
                device: text(),
                bytes: 2,
                label: text(),
                disk: Some(text()),
                chosen: vec![(text(), text())],
            }),
            Change::Cgroup(MadeGroup { name: text(), folders: vec!["/x".into()] }),
            Change::Task(ChangedTask {
                process: process.clone(),
                attribute: crate::task::Attribute::Nice,
                was: text(),
                now: text(),
            }),
            Change::Variable(ChangedVariable {
                process,
                folder: "/x".into(),
                name: text(),
                was: text(),
                now: text(),
                along: vec![(text(), text())],
            }),
        ];
        for change in changes {
            let written = serde_json::to_string(&change).unwrap();
            assert_eq!(serde_json::from_str::<Change>(&written).unwrap(), change, "{written}");
        }
    }

    #[test]
    fn swap_in_compressed_memory_is_read_as_it_was_written_before_it_held_what_was_chosen() {
        let written = r#"{"kind":"zram","device":"zram0","bytes":4096,"label":"x"}"#;
        let swap =
            ZramSwap { device: "zram0".into(), bytes: 4096, label: "x".into(), disk: None, chosen: vec![] };
        assert_eq!(serde_json::from_str::<Change>(written).unwrap(), Change::Zram(swap));
    }
}
