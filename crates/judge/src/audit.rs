//! Evaluation of all claims over one set of facts.

use indexmap::IndexMap;
use mydyno_model::Header;
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Finding, Findings, State};
use serde_json::Map;
use time::OffsetDateTime;

use crate::claim::Claim;
use crate::judge::judge;
use crate::scope::scope;
use crate::shown::told_by;

/// Judges claims over facts whose digest is `digest`.
pub fn audit<'c>(
    claims: impl IntoIterator<Item = &'c Claim>,
    facts: &FactSet,
    digest: &str,
    now: OffsetDateTime,
) -> Findings {
    audit_shown(claims, facts, facts, digest, now)
}

/// Judges claims over facts, and reports the results with a second set of facts: the same with names redacted, whose digest is
/// `digest`.
pub fn audit_shown<'c>(
    claims: impl IntoIterator<Item = &'c Claim>,
    facts: &FactSet,
    shown: &FactSet,
    digest: &str,
    now: OffsetDateTime,
) -> Findings {
    let one = |claim| {
        let finding = judge(claim, facts);
        if std::ptr::eq(facts, shown) { finding } else { told_by(claim, finding, shown) }
    };
    let mut findings: Vec<Finding> = claims.into_iter().map(one).collect();
    findings.sort_by(|a, b| {
        let by_rank = b.rank.total_cmp(&a.rank);
        a.state.cmp(&b.state).then(by_rank).then_with(|| (&a.area, &a.claim).cmp(&(&b.area, &b.claim)))
    });
    Findings {
        header: Header::of::<Findings>(now),
        scope: scope(shown),
        facts_digest: digest.to_owned(),
        facts_created: facts.header.created.clone(),
        counts: counts(&findings),
        findings,
        extra: Map::new(),
    }
}

/// Number of findings in each state; accepted ones are counted separately.
pub fn counts(findings: &[Finding]) -> IndexMap<String, usize> {
    let mut counts = IndexMap::new();
    for state in [State::Violated, State::Unknown, State::Holds, State::NotApplicable] {
        let of_state = findings.iter().filter(|f| f.state == state && f.accepted.is_none());
        counts.insert(state.name().to_owned(), of_state.count());
    }
    counts.insert("accepted".to_owned(), findings.iter().filter(|f| f.accepted.is_some()).count());
    counts
}
