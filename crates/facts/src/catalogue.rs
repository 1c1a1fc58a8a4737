//! The table of facts: each collector with what it gives, what it costs and how long it may take.

use crate::bag::Bag;
use crate::collect::Context;
use crate::collectors;
use crate::sql::ReadOnly;

/// One fact, or a family of facts, that a collector gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactInfo {
    /// Its id. A part in capitals stands for a name; as the last part it may hold dots, as in
    /// `server.variable.NAME`.
    pub id: &'static str,
    /// Unit of the value; empty for text, switches, lists and where units differ.
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

    /// Whether it is a family: which members there are is known only when they are read.
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
    /// From the host's files; runs beside the others in a thread of its own.
    Host(fn(&Context, &Bag)),
    /// From the server; one after the other on the connection.
    Server(fn(&Context, &mut ReadOnly<'_>, &Bag)),
}

/// A group of facts that are read together.
#[derive(Clone, Copy)]
pub struct Collector {
    /// Short name, as in `cpu`.
    pub name: &'static str,
    /// Its usual cost.
    pub cost: Cost,
    /// When it is given up, in milliseconds. What it had read by then is kept.
    pub deadline_ms: u64,
    /// When it is wanted.
    pub depth: Depth,
    /// The facts that it provides.
    pub facts: &'static [FactInfo],
    /// Its function.
    pub run: Run,
}

/// The amount of facts that are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Depth {
    /// The facts of a run's record: a few milliseconds and a handful of statements.
    #[default]
    Record,
    /// The additional facts of an audit.
    Audit,
}

impl Collector {
    /// The entry of the table that covers a fact.
    pub fn info(&self, id: &str) -> Option<&'static FactInfo> {
        // A plain name wins over a family that would cover it too.
        let plain = self.facts.iter().find(|f| f.id == id);
        plain.or_else(|| self.facts.iter().find(|f| f.covers(id)))
    }
}

/// All collectors, in the order in which their facts stand in a fact set.
pub fn all() -> Vec<&'static Collector> {
    collectors::ALL.to_vec()
}

/// The unit of a fact that some collector gives, empty where it has none; nothing for an id that no collector gives.
pub fn unit_of(id: &str) -> Option<&'static str> {
    // The kernel settings are a family with members that are known.
    if let Some(name) = id.strip_prefix("host.sysctl.") {
        return collectors::sysctl::SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit);
    }
    collectors::ALL.iter().find_map(|collector| collector.info(id)).map(|info| info.unit)
}

/// The table of all facts as Markdown: the reference is generated from it.
pub fn markdown() -> String {
    let mut text = String::from("| fact | unit | what it is | collector |\n|---|---|---|---|\n");
    for collector in all() {
        for fact in collector.facts {
            let unit = if fact.unit.is_empty() { "–" } else { fact.unit };
            text.push_str(&format!("| `{}` | {unit} | {} | {} |\n", fact.id, fact.what, collector.name));
        }
    }
    text
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

    #[test]
    fn every_fact_is_declared_once_and_says_what_it_is() {
        let mut seen = std::collections::BTreeSet::new();
        for collector in all() {
            assert!(!collector.facts.is_empty() && collector.deadline_ms > 0, "{}", collector.name);
            for fact in collector.facts {
                assert!(seen.insert(fact.id), "{} is declared twice", fact.id);
                assert!(!fact.what.is_empty(), "{}", fact.id);
                assert!(!fact.what.contains('|'), "{}: a bar would break the table", fact.id);
            }
        }
    }

    #[test]
    fn units_stand_last_in_the_names_of_facts_that_have_one() {
        for collector in all() {
            for fact in collector.facts {
                for (unit, ending) in [("bytes", "_bytes"), ("s", "_s")] {
                    if fact.id.ends_with(ending) {
                        assert_eq!(fact.unit, unit, "{}", fact.id);
                    }
                }
            }
        }
    }

    #[test]
    fn the_unit_of_a_fact_is_found_by_its_id() {
        assert_eq!(unit_of("host.memory.total_bytes"), Some("bytes"));
        assert_eq!(unit_of("host.sysctl.vm.dirty_ratio"), Some("percent"));
        assert_eq!(unit_of("host.sysctl.vm.swapiness"), None);
        assert_eq!(unit_of("server.variable.sync_binlog"), Some(""));
        assert_eq!(unit_of("host.no.such"), None);
    }

    #[test]
    fn the_reference_table_has_a_line_for_every_fact() {
        let facts: usize = all().iter().map(|c| c.facts.len()).sum();
        assert_eq!(markdown().lines().count(), facts + 2);
    }
}
