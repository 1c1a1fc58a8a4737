//! The lines of the journal's file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::Change;
use crate::lease::LeaseIdentity;
use crate::machine::{Machine, Place};

/// The form of the file; the first line says it.
pub const SCHEMA: &str = "mydyno.journal/1";

/// One line. A line is appended and synced as a whole before what it announces happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Line {
    /// The first line of the file.
    Journal {
        /// The form of the lines that follow.
        schema: String,
    },
    /// A change that is about to be made.
    Change(Box<Entry>),
    /// What other settings became with a change of a setting.
    Along {
        /// The entry.
        id: u64,
        /// Names and values.
        values: Vec<(String, String)>,
        /// When: RFC 3339.
        at: String,
    },
    /// Changes are handed over: they stay until a command of the user takes them away.
    Kept {
        /// The entries.
        ids: Vec<u64>,
        /// The command that ends them, as in `mydyno server down demo`.
        until: String,
        /// When: RFC 3339.
        at: String,
    },
    /// Another command answers for changes from now on.
    Taken {
        /// The entries.
        ids: Vec<u64>,
        /// Who answers.
        lease: LeaseIdentity,
        /// When: RFC 3339.
        at: String,
    },
    /// The change is no longer in force.
    Closed {
        /// The entry.
        id: u64,
        /// How that came.
        how: Closing,
        /// In words.
        why: String,
        /// When: RFC 3339.
        at: String,
    },
}

/// A change, as it is written down before it is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// A number that no other entry has or had; later ones are larger.
    pub id: u64,
    /// What it is for, as in `server demo`; all entries of one purpose are put back together.
    pub purpose: String,
    /// What is changed, how to find and read it, and what identifies it.
    pub change: Change,
    /// The value before.
    pub was: Value,
    /// The value that is set.
    pub now: Value,
    /// Machine, boot and PID namespace in which it was made.
    pub place: Place,
    /// Who answers for it.
    pub lease: LeaseIdentity,
    /// When: RFC 3339.
    pub at: String,
}

impl Entry {
    /// Why it cannot be put back from here, though it can from elsewhere. Namespaces end with their boot, and their numbers are
    /// used again.
    pub fn out_of_reach(&self, machine: &Machine) -> Option<String> {
        let this_boot = self.place.boot_id == machine.place().boot_id;
        this_boot.then(|| self.change.out_of_reach(machine)).flatten()
    }
}

/// How an entry ended.
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
