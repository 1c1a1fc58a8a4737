//! The first sentence of a page: what its reader should know who reads nothing else. And how much a warning matters.

use mydyno_model::claim::Severity;
use mydyno_model::finding::{Findings, State};
use mydyno_model::summary::StepSummary;

use crate::RunView;
use crate::charts::step_name;
use crate::figures::{Unit, interval, number, us};
use crate::words::{self, GroupedWarning};

/// How much a warning matters, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The figures are not those of the server, or not of what was asked for.
    Spoils,
    /// The figures are right within limits that have to be kept in mind.
    Mind,
    /// A condition of the figures.
    Note,
}

/// Warnings that make the figures those of something else than the server under its load.
const SPOILS: &[&str] = &[
    "client-bound",
    "client-stalled",
    "client-throttled",
    "damaged-record",
    "emulated-disk-hurried",
    "foreign-load",
    "misnumbered-answers",
    "no-transactions",
    "nothing-done",
    "sold-out",
    "stolen",
    "swapping",
    "unequal-work",
];
/// Warnings that name a condition under which the figures hold.
const NOTES: &[&str] = &["coalesced", "delayed-syncs", "emulated-disk", "not-observed", "server-throttled"];

impl Grade {
    /// The grade of a warning; one that is not known is to be kept in mind.
    pub fn of(id: &str) -> Self {
        match id {
            id if SPOILS.contains(&id) => Self::Spoils,
            id if NOTES.contains(&id) => Self::Note,
            _ => Self::Mind,
        }
    }

    /// Its name on a page.
    pub fn label(self) -> &'static str {
        match self {
            Self::Spoils => "spoils the figures",
            Self::Mind => "mind",
            Self::Note => "note",
        }
    }

    /// Its class on a page.
    pub fn class(self) -> &'static str {
        match self {
            Self::Spoils => "spoils",
            Self::Mind => "mind",
            Self::Note => "note",
        }
    }
}

/// Warnings with the worst first; those of one grade keep their order.
pub fn graded(mut warnings: Vec<GroupedWarning>) -> Vec<GroupedWarning> {
    warnings.sort_by_key(|warning| Grade::of(&warning.id));
    warnings
}

/// The answer of a run: its throughput and response time, of several loads the one with the most transactions, and what spoils it.
pub fn of_run(run: &RunView<'_>) -> String {
    let summary = run.summary;
    let spoiled: Vec<String> = graded(words::warnings(run))
        .into_iter()
        .map(|warning| warning.id)
        .filter(|id| Grade::of(id) == Grade::Spoils)
        .collect();
    let but = match spoiled.as_slice() {
        [] => String::new(),
        ids => format!(" Do not rely on it: {}.", ids.join(", ")),
    };
    if let Some(capacity) = &summary.capacity {
        return words::capacity(capacity) + &but;
    }
    let most = |a: &&StepSummary, b: &&StepSummary| {
        let rate = |step: &StepSummary| step.throughput.transactions_per_s.value;
        rate(a).total_cmp(&rate(b))
    };
    let Some(best) = summary.steps.iter().max_by(most) else {
        return "Nothing was measured.".to_owned();
    };
    let rate = &best.throughput.transactions_per_s;
    let ends = interval(Unit::PerSecond, rate).map(|ends| format!(" ({ends})")).unwrap_or_default();
    let p99 = best.response_us.percentiles.get("p99");
    let response = p99.map(|p| format!(", 99 of 100 within {}", us(p.value))).unwrap_or_default();
    let figures = format!("{} transactions/s{ends}{response}", number(rate.value));
    let name = step_name(best);
    match summary.steps.len() {
        1 => format!("{name}: {figures}.{but}"),
        n => format!("Of {n} steps the one with {name} makes the most: {figures}.{but}"),
    }
}

/// The answer of an audit: how many claims are violated, how many of them of the worst severity, and the first one.
pub fn of_findings(findings: &Findings) -> String {
    let violated: Vec<_> =
        findings.findings.iter().filter(|f| f.state == State::Violated && f.accepted.is_none()).collect();
    let Some(first) = violated.first() else {
        return "No claim is violated, of those that could be told.".to_owned();
    };
    let severities = [Severity::Critical, Severity::High, Severity::Medium, Severity::Low, Severity::Info];
    let count = |severity| violated.iter().filter(|f| f.severity == severity).count();
    let worst = severities.into_iter().map(|s| (count(s), s.name())).find(|(n, _)| *n > 0);
    let (n, name) = worst.unwrap_or((violated.len(), ""));
    let summary = first.summary.trim_end_matches('.');
    match violated.len() {
        1 => format!("One claim is violated ({name}): {summary}."),
        all if n == all => format!("{all} claims are violated, all {name}. The first: {summary}."),
        all => format!("{all} claims are violated, {n} of them {name}. The first: {summary}."),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grade, NOTES, SPOILS};

    #[test]
    fn a_warning_has_one_grade_and_the_worst_comes_first() {
        assert!(SPOILS.iter().all(|id| !NOTES.contains(id)));
        assert!(Grade::Spoils < Grade::Mind && Grade::Mind < Grade::Note);
        assert_eq!(Grade::of("client-bound"), Grade::Spoils);
        assert_eq!(Grade::of("wide-interval"), Grade::Mind);
        assert_eq!(Grade::of("emulated-disk"), Grade::Note);
    }
}
