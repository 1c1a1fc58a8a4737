//! Judges the facts of an audit: pure but for the clock.

use mydyno_judge::{accept, audit_shown, diff, grouped};
use mydyno_model::facts::FactSet;
use mydyno_model::finding::Findings;
use time::OffsetDateTime;

use super::lint;
use super::plan::{Audited, Facts, Judging};
use crate::error::RunError;

/// Judges facts that were collected.
///
/// # Errors
/// The embedded table of server options cannot be read.
pub fn judge(judging: &Judging<'_>, facts: Facts) -> Result<Audited, RunError> {
    // A redacted audit hides the files and values that findings of the lint name, but counts the findings.
    let withheld =
        |findings: Findings| if facts.redacted.is_some() { lint::withhold(findings) } else { findings };
    // Claims are judged by the open facts: a token is not the option that a claim looks for.
    let mut findings = findings(judging, &facts.open, facts.shown(), facts.of_option_file)?;
    let now = OffsetDateTime::now_utc().date();
    let notes = accept::apply(&mut findings, &judging.accepted, now).into_iter().collect();
    let mut findings = withheld(findings);
    findings.findings = grouped(findings.findings, judging.claims);
    let changes = match &judging.before {
        Some(before) => {
            Some(diff(&withheld(self::findings(judging, before, before, facts.of_option_file)?), &findings))
        }
        None => None,
    };
    if let Some(changes) = &changes {
        findings.extra.insert("diff".to_owned(), serde_json::to_value(changes).unwrap_or_default());
    }
    Ok(Audited { facts, findings, changes, notes })
}

fn findings(
    judging: &Judging<'_>,
    open: &FactSet,
    shown: &FactSet,
    of_option_file: bool,
) -> Result<Findings, RunError> {
    let digest = mydyno_facts::digest(shown);
    // An option file alone decides no claim.
    let wanted = judging.wanted.iter().filter(|_| !of_option_file);
    let wanted = wanted.filter_map(|id| judging.claims.find(id).ok());
    let mut findings = audit_shown(wanted, open, shown, &digest, OffsetDateTime::now_utc());
    if of_option_file {
        findings.scope = lint::scope(open);
    }
    lint::add(&mut findings, open, judging)?;
    Ok(findings)
}
