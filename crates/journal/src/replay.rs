//! From the journal's bytes to the changes in force: a pure function, so that a crash at every instant can be tested.

use crate::change::{Change, Kinds};
use crate::lease::LeaseIdentity;
use crate::line::{Entry, Line, SCHEMA};

/// A change in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// The change as it was recorded.
    pub entry: Box<Entry>,
    /// The lease of its current owner.
    pub lease: LeaseIdentity,
    /// The command that ends it, when it is kept on purpose.
    pub kept_until: Option<String>,
}

impl Open {
    /// The change as a kind of a known type; `None` when it is another kind.
    pub fn as_kind<T: Change>(&self) -> Option<&T> {
        self.entry.as_kind()
    }
}

/// The state that the journal's bytes describe.
#[derive(Debug, Default, PartialEq)]
pub struct Replay {
    /// Changes in force, oldest first.
    pub open: Vec<Open>,
    /// More than any number in the file.
    pub next_id: u64,
    /// Length of the file up to the end of its last complete line. A crash tore what follows before its sync returned,
    /// so the change that it would have announced was never made.
    pub sound_bytes: u64,
    /// Numbers (from 1) of lines before the last that cannot be parsed: no crash of mydyno causes that.
    pub damaged_lines: Vec<usize>,
    /// All bytes are NUL: a crash of the machine, or a fault of the disk, destroyed the entries. Line 1 then counts as
    /// damaged.
    pub only_nul: bool,
    /// The format that the first line names, if this build does not know it.
    pub other_form: Option<String>,
}

/// Parses the journal, with its changes as the registered kinds.
pub fn replay(bytes: &[u8], kinds: Kinds) -> Replay {
    let mut state = Replay { next_id: 1, ..Replay::default() };
    if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0) {
        return Replay { only_nul: true, damaged_lines: vec![1], ..state };
    }
    let mut at = 0;
    let mut number = 0;
    while let Some(length) = bytes[at..].iter().position(|b| *b == b'\n') {
        number += 1;
        let line = &bytes[at..at + length];
        at += length + 1;
        match serde_json::from_slice::<Line>(line) {
            Ok(line) => state.apply(line, kinds),
            // A complete last line that cannot be parsed was torn as well: its pages reached the disk out of order.
            Err(_) if at == bytes.len() => break,
            Err(_) => state.damaged_lines.push(number),
        }
        state.sound_bytes = at as u64;
        if state.other_form.is_some() {
            break;
        }
    }
    state
}

impl Replay {
    fn apply(&mut self, line: Line, kinds: Kinds) {
        match line {
            Line::Journal { schema } => {
                if schema != SCHEMA {
                    self.other_form = Some(schema);
                }
            }
            Line::Change(entry) => {
                self.next_id = self.next_id.max(entry.id.saturating_add(1));
                let entry = Box::new(entry.parsed(kinds));
                self.open.push(Open { lease: entry.lease.clone(), entry, kept_until: None });
            }
            Line::Along { id, values, .. } => {
                for open in self.named(&[id]) {
                    open.entry.change.note_side_effects(&values);
                }
            }
            Line::Kept { ids, until, .. } => {
                for open in self.named(&ids) {
                    open.kept_until = Some(until.clone());
                }
            }
            Line::Taken { ids, lease, .. } => {
                for open in self.named(&ids) {
                    open.lease = lease.clone();
                    open.kept_until = None;
                }
            }
            Line::Closed { id, .. } => self.open.retain(|open| open.entry.id != id),
        }
    }

    fn named<'a>(&'a mut self, ids: &'a [u64]) -> impl Iterator<Item = &'a mut Open> {
        self.open.iter_mut().filter(|open| ids.contains(&open.entry.id))
    }
}
