//! The trait of a change, and the kinds that a program registers.

use std::any::Any;
use std::fmt;
use std::fs::File;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::JournalError;
use crate::machine::{Machine, Place, ProcessIdentity};
use crate::outcome::Outcome;

/// A change of a host. The journal stores it before it is made.
///
/// A kind is a struct with its serde fields, this trait, and a line in the list of kinds. Restoring uses this trait
/// only. Its order follows from [`rests_on`](Self::rests_on), which by default compares [`path`](Self::path) with
/// [`tree`](Self::tree).
pub trait Change: Any + fmt::Debug + Send + Sync + Fields {
    /// The value of the field `kind` in the journal.
    fn kind(&self) -> &str;

    /// The name of the change for people, as in `folder /var/lib/mydyno/servers/demo`.
    fn what(&self) -> String;

    /// Identifies the thing that is changed: two commands must not change it at the same time.
    fn key(&self) -> String;

    /// The value before the change.
    fn was(&self) -> Value;

    /// The new value.
    fn now(&self) -> Value;

    /// Restores the previous state if the current one is still what the change made. It must be idempotent: it is
    /// called again after an interruption.
    ///
    /// # Errors
    /// `/proc` cannot be read. A change that cannot be restored is an [`Outcome`], not an error.
    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError>;

    /// The reason why it cannot be restored from this process, though it can from another namespace.
    fn out_of_reach(&self, _machine: &Machine) -> Option<String> {
        None
    }

    /// Whether the change ends when the machine reboots, so that whatever has its name afterwards belongs to another
    /// program. Kinds that survive a reboot, or check this themselves, return `false`.
    fn ends_with_boot(&self) -> bool {
        true
    }

    /// The path that the change made.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// The folder below which everything exists because of this change.
    fn tree(&self) -> Option<&Path> {
        None
    }

    /// The block device that exists because of this change.
    fn device(&self) -> Option<&Path> {
        None
    }

    /// The process that was started.
    fn process(&self) -> Option<&ProcessIdentity> {
        None
    }

    /// Whether processes are started inside it (a control group).
    fn takes_processes(&self) -> bool {
        false
    }

    /// Whether this change depends on an earlier one of the same purpose.
    fn rests_on(&self, earlier: &dyn Change) -> bool {
        matches!((self.path(), earlier.tree()), (Some(path), Some(tree)) if path.starts_with(tree))
    }

    /// Whether [`rests_on`](Self::rests_on) is an assumption: a process may use every folder of its purpose. The
    /// dependency then holds between changes of one command only.
    fn rests_by_presumption(&self) -> bool {
        false
    }

    /// Whether a change of any purpose uses this one; this one then stays until that one is restored.
    fn carries(&self, _other: &dyn Change) -> bool {
        false
    }

    /// Whether the change ends by itself when another one is restored (a variable with its server).
    fn ends_with(&self, _other: &dyn Change) -> bool {
        false
    }

    /// The outcome when the change that this one [ends with](Self::ends_with) was restored.
    fn ended_with(&self, other: &Outcome) -> Outcome {
        other.clone()
    }

    /// Whether other commands may use it without a journal entry; [`Hooks::claim`] is called before it is restored.
    fn may_be_shared(&self) -> bool {
        false
    }

    /// Called before any change is restored.
    fn prepare(&self) -> Preparation {
        Preparation::Ready
    }

    /// Adds the values that other settings got through this change, from the line that the journal writes after it was
    /// made.
    fn note_side_effects(&mut self, _values: &[(String, String)]) {}
}

/// The environment in which a change is restored.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// This machine.
    pub machine: &'a Machine,
    /// Machine, boot and namespace in which the change was made.
    pub place: &'a Place,
    /// Steps of crates above.
    pub hooks: &'a dyn Hooks,
}

/// Steps of a restore that need a higher crate than the one that makes the changes: clients of private servers, locks
/// of kept data.
pub trait Hooks: fmt::Debug {
    /// Restores a change whose kind delegates to this hook.
    fn put_back(&self, change: &dyn Change) -> Outcome;

    /// Claims a change that [may be shared](Change::may_be_shared) before it is restored. A lock, where there is one,
    /// is held until all changes are restored, so that no other command begins to use it.
    ///
    /// # Errors
    /// The user of the change; it stays for now.
    fn claim(&self, _purpose: &str, _change: &dyn Change) -> Result<Option<File>, String> {
        Ok(None)
    }
}

/// No hooks: variables of running servers stay in the journal.
#[derive(Debug, Clone, Copy)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn put_back(&self, _change: &dyn Change) -> Outcome {
        Outcome::failed("its server runs: `mydyno host restore` can speak with it")
    }
}

/// Whether a change can be restored before the process that serves it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// It can.
    Ready,
    /// It cannot: that process, the next one of the same purpose, is ended first.
    AfterItsProcess,
}

/// Serialisation and copies of a change; every [`Change`] that is `Clone + Serialize` has it.
pub trait Fields {
    /// The fields in the journal, without `kind`.
    ///
    /// # Errors
    /// A field has no JSON form: a path that is not UTF-8.
    fn fields(&self) -> serde_json::Result<Map<String, Value>>;

    /// A copy.
    fn copy(&self) -> Box<dyn Change>;
}

impl<T: Change + Clone + Serialize> Fields for T {
    fn fields(&self) -> serde_json::Result<Map<String, Value>> {
        match serde_json::to_value(self)? {
            Value::Object(fields) => Ok(fields),
            other => Err(serde::ser::Error::custom(format!("{other} is not an object"))),
        }
    }

    fn copy(&self) -> Box<dyn Change> {
        Box::new(self.clone())
    }
}

impl dyn Change {
    /// The change as a kind of a known type; `None` when it is another kind.
    pub fn as_kind<T: Change>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// The object that the journal stores: `kind` first.
    pub(crate) fn stored(&self) -> serde_json::Result<Map<String, Value>> {
        let kind = ("kind".to_owned(), Value::from(self.kind()));
        match self.as_kind::<UnknownChange>() {
            Some(unknown) => Ok(unknown.0.clone()),
            None => Ok([kind].into_iter().chain(self.fields()?).collect()),
        }
    }
}

impl Clone for Box<dyn Change> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

impl PartialEq for dyn Change {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.fields().ok() == other.fields().ok()
    }
}

type ReadChange = fn(Map<String, Value>) -> serde_json::Result<Box<dyn Change>>;

/// A kind of change: its name in the journal and how to read it.
#[derive(Clone, Copy)]
pub struct Kind {
    name: &'static str,
    read: ReadChange,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Kind {
    /// Registers a kind under its name in the journal.
    pub const fn of<T: Change + DeserializeOwned>(name: &'static str) -> Self {
        Self { name, read: read::<T> }
    }

    /// The value of the field `kind`.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

fn read<T: Change + DeserializeOwned>(fields: Map<String, Value>) -> serde_json::Result<Box<dyn Change>> {
    Ok(Box::new(T::deserialize(Value::Object(fields))?))
}

/// The kinds that a program can read.
pub type Kinds = &'static [Kind];

/// Parses a stored change. A kind that is not registered, or whose fields do not match, becomes an [`UnknownChange`].
pub(crate) fn parse(kinds: Kinds, stored: Map<String, Value>) -> Box<dyn Change> {
    let name = stored.get("kind").and_then(Value::as_str).unwrap_or_default();
    let known = kinds.iter().find(|kind| kind.name == name).and_then(|kind| {
        let mut fields = stored.clone();
        fields.shift_remove("kind");
        (kind.read)(fields).ok()
    });
    known.unwrap_or_else(|| Box::new(UnknownChange(stored)))
}

/// A change of a kind that this build does not know; a newer mydyno made it. It is kept unchanged.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct UnknownChange(pub Map<String, Value>);

impl Change for UnknownChange {
    fn kind(&self) -> &str {
        self.0.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    fn what(&self) -> String {
        let kind = self.0.get("kind").and_then(Value::as_str).unwrap_or("change");
        format!("{kind} (of a newer mydyno)")
    }

    fn key(&self) -> String {
        format!("unknown:{}", Value::Object(self.0.clone()))
    }

    fn was(&self) -> Value {
        self.0.get("was").cloned().unwrap_or_default()
    }

    fn now(&self) -> Value {
        self.0.get("now").cloned().unwrap_or_default()
    }

    fn ends_with_boot(&self) -> bool {
        false
    }

    fn rests_on(&self, _earlier: &dyn Change) -> bool {
        true
    }

    fn rests_by_presumption(&self) -> bool {
        true
    }

    fn put_back(&self, _context: &Context) -> Result<Outcome, JournalError> {
        Ok(Outcome::failed("a newer mydyno made this change: run its `mydyno host restore`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_not_registered_is_stored_as_it_was_read() {
        let text = r#"{"kind":"teleport","to":"mars","was":"earth"}"#;
        let change = parse(&[], serde_json::from_str(text).unwrap());
        assert_eq!(serde_json::to_string(&change.stored().unwrap()).unwrap(), text);
        assert_eq!((change.kind(), change.was()), ("teleport", Value::from("earth")));
        assert_eq!(change.what(), "teleport (of a newer mydyno)");
        assert!(change.clone() == change);
    }
}
