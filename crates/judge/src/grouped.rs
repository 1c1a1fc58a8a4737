//! Findings that tell the same cause, one behind the other.

use std::collections::HashMap;

use mydyno_model::claim::Severity;
use mydyno_model::finding::{Finding, State};

use crate::claims::Claims;

/// The findings in their order, those of the same cause as another one behind it. A finding stays at its place where the other
/// one is accepted, less severe, or not violated.
pub fn grouped(findings: Vec<Finding>, claims: &Claims) -> Vec<Finding> {
    let listed = |f: &&Finding| f.state == State::Violated && f.accepted.is_none();
    let severities: HashMap<String, Severity> =
        findings.iter().filter(listed).map(|f| (f.claim.clone(), f.severity)).collect();
    let mut leading = Vec::with_capacity(findings.len());
    let mut following: HashMap<String, Vec<Finding>> = HashMap::new();
    for finding in findings {
        let first = if listed(&&finding) { first(&finding.claim, &severities, claims) } else { None };
        match first {
            Some(first) => {
                let finding = Finding { same_cause_as: Some(first.clone()), ..finding };
                following.entry(first).or_default().push(finding);
            }
            None => leading.push(finding),
        }
    }
    let mut all = Vec::with_capacity(leading.len());
    for finding in leading {
        let behind = if listed(&&finding) { following.remove(&finding.claim) } else { None };
        all.push(finding);
        all.extend(behind.into_iter().flatten());
    }
    all
}

/// The finding that the one of `claim` follows: where its cause follows another one, that one. Claims that name each other in a
/// circle follow none.
fn first(claim: &str, severities: &HashMap<String, Severity>, claims: &Claims) -> Option<String> {
    let mut seen = vec![claim];
    loop {
        let now = seen[seen.len() - 1];
        match leader(now, severities, claims) {
            None if seen.len() == 1 => return None,
            None => return Some(now.to_owned()),
            Some(next) if seen.contains(&next) => return None,
            Some(next) => seen.push(next),
        }
    }
}

/// The first claim of the same cause that is violated and no less severe.
fn leader<'c>(claim: &str, severities: &HashMap<String, Severity>, claims: &'c Claims) -> Option<&'c str> {
    let severity = severities.get(claim)?;
    let same = &claims.find(claim).ok()?.document.same_cause_as;
    let other = same.iter().find(|other| severities.get(*other).is_some_and(|of_other| of_other >= severity));
    other.map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::judge;

    /// Claims a, b and c: b is of a's cause, c of b's, and all are violated.
    fn claims(severities: [&str; 3]) -> Claims {
        let same = ["[]", "['a']", "['b']"];
        let texts: Vec<(String, String)> = ["a", "b", "c"].iter().enumerate().map(|(n, id)| {
            let text = format!(
                "id = '{id}'\ntitle = 't'\nwhat = 'w'\nwhy = 'y'\nsources = ['s: https://example.org/']\nsince = '0.1'\ncheck = 'false'\nfinding = 'f'\nseverity = '{}'\nsame_cause_as = {}\nconfidence = 'certain'\n[remedy]\ncost = 'dynamic'\npersistent = [{{ text = 'x' }}]\nrisk = 'r'\n[proof]\nnot_testable = 'n'\n",
                severities[n], same[n]
            );
            (format!("server/{id}.toml"), text)
        }).collect();
        Claims::read(texts.iter().map(|(file, text)| (file.as_str(), text.as_str()))).unwrap()
    }

    fn order(findings: &[Finding]) -> Vec<(&str, Option<&str>)> {
        findings.iter().map(|f| (f.claim.as_str(), f.same_cause_as.as_deref())).collect()
    }

    fn all(claims: &Claims, ids: [&str; 3]) -> Vec<Finding> {
        let facts =
            crate::fixture_facts(&indexmap::IndexMap::new(), &indexmap::IndexMap::new(), &|_| None).unwrap();
        ids.iter().map(|id| judge(claims.find(id).unwrap(), &facts)).collect()
    }

    #[test]
    fn findings_of_one_cause_follow_the_first_that_tells_it() {
        let claims = claims(["high", "low", "low"]);
        let found = grouped(all(&claims, ["c", "a", "b"]), &claims);
        assert_eq!(order(&found), [("a", None), ("c", Some("a")), ("b", Some("a"))]);
    }

    #[test]
    fn claims_that_name_each_other_stay_where_they_are() {
        let circle = |id: &str, same: &str| {
            let text = format!(
                "id = '{id}'\ntitle = 't'\nwhat = 'w'\nwhy = 'y'\nsources = ['s: https://example.org/']\nsince = '0.1'\ncheck = 'false'\nfinding = 'f'\nseverity = 'low'\nsame_cause_as = ['{same}']\nconfidence = 'certain'\n[remedy]\ncost = 'dynamic'\npersistent = [{{ text = 'x' }}]\nrisk = 'r'\n[proof]\nnot_testable = 'n'\n"
            );
            (format!("server/{id}.toml"), text)
        };
        let texts = [circle("a", "b"), circle("b", "a"), circle("c", "a")];
        let claims = Claims::read(texts.iter().map(|(file, text)| (file.as_str(), text.as_str()))).unwrap();
        let found = grouped(all(&claims, ["a", "b", "c"]), &claims);
        assert_eq!(order(&found), [("a", None), ("b", None), ("c", None)]);
    }

    #[test]
    fn a_more_severe_one_and_one_whose_cause_is_accepted_stay_where_they_are() {
        let claims = claims(["low", "high", "low"]);
        let mut findings = all(&claims, ["b", "a", "c"]);
        let found = grouped(findings.clone(), &claims);
        assert_eq!(order(&found), [("b", None), ("c", Some("b")), ("a", None)]);
        findings[0].accepted =
            Some(mydyno_model::finding::Accepted { reason: "r".into(), until: "2999-01-01".into() });
        assert_eq!(order(&grouped(findings, &claims)), [("b", None), ("a", None), ("c", None)]);
    }
}
