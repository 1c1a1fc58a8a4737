//! Collectors: groups of facts that are read together.

use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::sql::ReadOnly;

/// One fact, or a family of facts, that a collector gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactInfo {
    /// Its id. A part in capitals stands for a name; a name in the last part may contain dots, as in
    /// `server.variable.NAME`.
    pub id: &'static str,
    /// Unit of the value; empty for text, switches and lists, and for families whose members have different units.
    pub unit: &'static str,
    /// Its meaning, for people.
    pub what: &'static str,
}

/// Shorthand for the tables of the collectors.
pub const fn fact(id: &'static str, unit: &'static str, what: &'static str) -> FactInfo {
    FactInfo { id, unit, what }
}

impl FactInfo {
    /// Whether `id` is this fact or one of this family.
    pub fn covers(&self, id: &str) -> bool {
        let mut parts = self.id.split('.').peekable();
        let mut rest = Some(id);
        while let Some(part) = parts.next() {
            let Some(found) = rest else { return false };
            if is_name(part) && parts.peek().is_none() {
                return !found.is_empty();
            }
            let (head, tail) = found.split_once('.').map_or((found, None), |(h, t)| (h, Some(t)));
            if head.is_empty() || !(is_name(part) || part == head) {
                return false;
            }
            rest = tail;
        }
        rest.is_none()
    }

    /// Whether it is a family: its members are known only after reading.
    pub fn is_family(&self) -> bool {
        self.id.split('.').any(is_name)
    }
}

fn is_name(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Cost of collecting on an ordinary machine and server. The figures are measured and maintained by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// CPU on the host, in milliseconds.
    pub host_ms: u32,
    /// CPU of the server, in milliseconds.
    pub server_ms: u32,
}

/// The function of a collector, by its source.
#[derive(Clone, Copy)]
pub enum Run {
    /// Reads files of the host; runs in a thread of its own, in parallel with other collectors.
    Host(fn(&Context, &Readings)),
    /// Queries the server; these collectors run one after the other on the connection.
    Server(fn(&Context, &mut ReadOnly<'_>, &Readings)),
}

/// A group of facts that are read together.
#[derive(Clone, Copy)]
pub struct Collector {
    /// Short name, as in `cpu`.
    pub name: &'static str,
    /// Its usual cost.
    pub cost: Cost,
    /// Its time limit in milliseconds. The facts read before the limit are kept.
    pub deadline_ms: u64,
    /// The smallest depth that includes it.
    pub depth: Depth,
    /// The facts that it provides.
    pub facts: &'static [FactInfo],
    /// Its function.
    pub run: Run,
}

impl Collector {
    /// The entry of the table that covers a fact.
    pub fn info(&self, id: &str) -> Option<&'static FactInfo> {
        // A plain name wins over a family that would cover it too.
        let plain = self.facts.iter().find(|f| f.id == id);
        plain.or_else(|| self.facts.iter().find(|f| f.covers(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_covers_its_members_and_nothing_else() {
        let variable = fact("server.variable.NAME", "", "");
        assert!(variable.covers("server.variable.validate_password.policy"));
        assert!(!variable.covers("server.variable"));
        assert!(!variable.covers("server.variable."));
        let disk = fact("block.DISK.size_bytes", "", "");
        assert!(disk.covers("block.sda.size_bytes"));
        assert!(!disk.covers("block.sda.b.size_bytes"));
        assert!(!disk.covers("block..size_bytes"));
        let plain = fact("host.cpu.count", "", "");
        assert!(plain.covers("host.cpu.count") && !plain.is_family() && disk.is_family());
        assert!(!plain.covers("host.cpu") && !plain.covers("host.cpu.count.x"));
    }
}
