//! The table of facts: each collector with what it gives, what it costs and how long it may take.

pub use crate::collector::{Collector, Cost, FactInfo, Run, fact};
use crate::collectors;
pub use crate::context::Depth;

/// All collectors, in the order in which their facts stand in a fact set.
pub fn all() -> Vec<&'static Collector> {
    collectors::ALL.to_vec()
}

/// The unit of a fact, empty when it has none; `None` when no collector gives a fact with this id.
pub fn unit_of(id: &str) -> Option<&'static str> {
    // The kernel settings are a family with members that are known.
    if let Some(name) = id.strip_prefix("host.sysctl.") {
        return collectors::sysctl::settings().find(|(known, _)| *known == name).map(|(_, unit)| unit);
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
