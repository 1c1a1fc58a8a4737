//! The lines of the journal's file.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::change::{Change, Kinds, parse};
use crate::lease::LeaseIdentity;
use crate::machine::{Machine, Place};
use crate::outcome::Closing;

/// The format of the file, which its first line names.
pub const SCHEMA: &str = "mydyno.journal/1";

/// One line. It is appended and synced as a whole before the change that it announces is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Line {
    /// The first line of the file.
    Journal {
        /// The format of the following lines.
        schema: String,
    },
    /// A change that is about to be made.
    Change(Box<Entry<StoredChange>>),
    /// The values of other settings after a change of one.
    Along {
        /// The entry.
        id: u64,
        /// Names and values.
        values: Vec<(String, String)>,
        /// Time, RFC 3339.
        at: String,
    },
    /// Changes are kept until the user runs a command.
    Kept {
        /// The entries.
        ids: Vec<u64>,
        /// The command that ends them, as in `mydyno server down demo`.
        until: String,
        /// Time, RFC 3339.
        at: String,
    },
    /// Another command owns changes from now on.
    Taken {
        /// The entries.
        ids: Vec<u64>,
        /// The lease of the new owner.
        lease: LeaseIdentity,
        /// Time, RFC 3339.
        at: String,
    },
    /// The change is no longer in force.
    Closed {
        /// The entry.
        id: u64,
        /// The outcome.
        how: Closing,
        /// The outcome in words.
        why: String,
        /// Time, RFC 3339.
        at: String,
    },
}

/// A change as the journal stores it: an object with the field `kind`.
pub type StoredChange = Map<String, Value>;

/// A change as it is recorded before it is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry<C = Box<dyn Change>> {
    /// A number that no other entry has or had; later ones are larger.
    pub id: u64,
    /// The purpose, as in `server demo`; all entries of one purpose are restored together.
    pub purpose: String,
    /// The change.
    pub change: C,
    /// The value before.
    pub was: Value,
    /// The new value.
    pub now: Value,
    /// Machine, boot and PID namespace in which it was made.
    pub place: Place,
    /// The lease of its owner.
    pub lease: LeaseIdentity,
    /// Time, RFC 3339.
    pub at: String,
}

impl<C> Entry<C> {
    fn with<D>(self, change: D) -> (Entry<D>, C) {
        let Self { id, purpose, change: former, was, now, place, lease, at } = self;
        (Entry { id, purpose, change, was, now, place, lease, at }, former)
    }
}

impl Entry<StoredChange> {
    /// The entry with its change as one of the registered kinds.
    pub(crate) fn parsed(self, kinds: Kinds) -> Entry {
        let change = parse(kinds, self.change.clone());
        self.with(change).0
    }
}

impl Entry {
    /// The entry as the journal stores it, with its change as an object.
    pub(crate) fn stored(self) -> serde_json::Result<Entry<StoredChange>> {
        let stored = self.change.stored()?;
        Ok(self.with(stored).0)
    }

    /// The change as a kind of a known type; `None` when it is another kind.
    pub fn as_kind<T: Change>(&self) -> Option<&T> {
        self.change.as_kind()
    }

    /// The reason why it cannot be restored from this process, though it can from another namespace. Namespaces end
    /// with their boot, and their numbers are reused.
    pub fn out_of_reach(&self, machine: &Machine) -> Option<String> {
        let this_boot = self.place.boot_id == machine.place().boot_id;
        this_boot.then(|| self.change.out_of_reach(machine)).flatten()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        let rest = |e: &Self| (e.id, e.was.clone(), e.now.clone());
        rest(self) == rest(other)
            && *self.change == *other.change
            && (&self.purpose, &self.place, &self.lease, &self.at)
                == (&other.purpose, &other.place, &other.lease, &other.at)
    }
}
