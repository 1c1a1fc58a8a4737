//! What has changed between two audits.

use mydyno_model::finding::{Finding, Findings, State};
use serde::Serialize;

/// A claim whose state is another one now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The claim.
    pub claim: String,
    /// What came of it then; none when that audit did not have it.
    pub before: Option<State>,
    /// What came of it now.
    pub after: State,
}

/// The claims whose state has changed, those first that are violated now.
pub fn diff(before: &Findings, after: &Findings) -> Vec<Change> {
    let was = |finding: &Finding| before.findings.iter().find(|f| f.claim == finding.claim).map(|f| f.state);
    let mut changes: Vec<Change> = after
        .findings
        .iter()
        .map(|f| Change { claim: f.claim.clone(), before: was(f), after: f.state })
        .filter(|change| change.before != Some(change.after))
        .collect();
    changes.sort_by_key(|change| change.after);
    changes
}
