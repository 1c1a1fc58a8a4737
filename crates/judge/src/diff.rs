//! Changes between two audits.

use mydyno_model::finding::{Finding, Findings, State};
use serde::Serialize;

/// A claim whose state differs between the audits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The claim.
    pub claim: String,
    /// The state in the earlier audit; `None` if that audit did not include the claim.
    pub before: Option<State>,
    /// The state in this audit; `None` if this audit does not include the claim.
    pub after: Option<State>,
}

/// The claims whose state has changed: newly violated ones first, then those that are violated no more.
pub fn diff(before: &Findings, after: &Findings) -> Vec<Change> {
    let (was, is) = (&before.findings[..], &after.findings[..]);
    let one = |claim: &str| Change {
        claim: claim.to_owned(),
        before: state_of(was, claim),
        after: state_of(is, claim),
    };
    let is_in = |findings: &[Finding], claim: &str| findings.iter().any(|f| f.claim == claim);
    let gone = was.iter().filter(|f| f.state == State::Violated && !is_in(is, &f.claim));
    let mut changes: Vec<Change> = is
        .iter()
        .filter(|f| !stands_for_others(was, &f.claim))
        .chain(gone)
        .map(|f| one(&f.claim))
        .filter(|change| change.before != change.after)
        .collect();
    changes.sort_by_key(|change| (change.after.is_none(), change.after, change.before));
    changes
}

/// Whether the audit has findings of this check that name their subjects; they determine the state of subjects that are
/// not named.
fn stands_for_others(findings: &[Finding], check: &str) -> bool {
    findings.iter().any(|f| of_check(&f.claim) == Some(check))
}

/// The check of a finding about one subject, as `option-removed` of `option-removed/query_cache_size`.
fn of_check(claim: &str) -> Option<&str> {
    claim.split_once('/').map(|(check, _)| check)
}

/// State of a claim in an audit. A check with a finding for each violating subject lists no others: if the check was
/// made, subjects without a finding hold.
fn state_of(findings: &[Finding], claim: &str) -> Option<State> {
    if let Some(finding) = findings.iter().find(|f| f.claim == claim) {
        return Some(finding.state);
    }
    let check = of_check(claim)?;
    let whole = findings.iter().find(|f| f.claim == check).map(|f| f.state);
    let of_others = || stands_for_others(findings, check).then_some(State::Holds);
    whole.or_else(of_others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::Knobs;
    use crate::lint::lint;
    use mydyno_model::Header;
    use mydyno_model::facts::{Fact, FactSet};
    use mydyno_model::finding::Scope;
    use serde_json::{Map, Value, json};
    use time::OffsetDateTime;

    /// Findings of the lint for a file with these lines, or for a server whose files were not seen.
    fn audit(lines: Option<&[&str]>) -> Findings {
        let set = |lines: &[&str]| -> Vec<Value> {
            let one = |(at, name): (usize, &&str)| json!({"file": "/etc/my.cnf", "line": at + 1, "group": "mysqld", "name": name, "written": name, "value": "1", "secret": false});
            lines.iter().enumerate().map(one).collect()
        };
        let seen = lines.map(|lines| ("server.options.set".to_owned(), Fact::ok(set(lines), "", "t")));
        let header = Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH);
        let facts = FactSet { header, facts: seen.into_iter().collect(), extra: Map::new() };
        Findings {
            header: Header::of::<Findings>(OffsetDateTime::UNIX_EPOCH),
            scope: Scope::default(),
            facts_digest: String::new(),
            facts_created: String::new(),
            counts: indexmap::IndexMap::new(),
            findings: lint(&facts, &Knobs::embedded().unwrap(), &"mysql-9.7".parse().unwrap()),
            extra: Map::new(),
        }
    }

    fn changes(
        before: Option<&[&str]>,
        after: Option<&[&str]>,
    ) -> Vec<(String, Option<State>, Option<State>)> {
        diff(&audit(before), &audit(after)).into_iter().map(|c| (c.claim, c.before, c.after)).collect()
    }

    #[test]
    fn what_was_put_right_in_an_option_file_is_shown_and_so_is_what_was_broken() {
        let removed = |name: &str| format!("option-removed/{name}");
        let (both, one, none) = (["query_cache_size", "expire_logs_days"], ["query_cache_size"], []);
        let (is, is_not) = (Some(State::Violated), Some(State::Holds));
        assert_eq!(
            changes(Some(&both), Some(&one)),
            [(removed("expire_logs_days"), is, is_not)],
            "one of two"
        );
        assert_eq!(changes(Some(&one), Some(&none)), [(removed("query_cache_size"), is, is_not)], "the last");
        assert_eq!(
            changes(Some(&none), Some(&one)),
            [(removed("query_cache_size"), is_not, is)],
            "a new one"
        );
        assert_eq!(changes(Some(&both), Some(&both)), []);
    }

    #[test]
    fn what_is_not_looked_at_any_more_is_not_said_to_be_right() {
        let found = changes(Some(&["query_cache_size"]), None);
        assert!(
            found.contains(&("option-removed/query_cache_size".to_owned(), Some(State::Violated), None)),
            "{found:?}"
        );
    }
}
