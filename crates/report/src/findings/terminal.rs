//! The audit's terminal page: an overview with one line a finding, most severe first, details of some, undecided claims.

use mydyno_model::claim::Severity;
use mydyno_model::finding::{Finding, Findings, State};
use mydyno_model::wrap::wrapped;

use super::{
    by_severity, counted, evidence, instance, lasting, ledger, of_state, places, proof, proved, seen, step,
    takes, unknown_by_reason,
};
use crate::text::terminal as safe;

/// Minimum width of the layout, in columns; on a narrower terminal lines wrap.
const NARROWEST: usize = 40;
/// Column at which the text of a labelled line begins.
const INDENT: usize = 10;

/// Number of findings whose details are shown by default.
const WORST: usize = 3;
/// Number of reasons for undecided claims that are shown by default.
const REASONS: usize = 5;

/// The mark in place of the number of a finding that tells the same cause as the one above it.
const SAME_CAUSE: &str = "  +";

/// Findings whose details are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Details<'a> {
    /// The three of the highest rank.
    Worst,
    /// All violated claims.
    Every,
    /// These claims and no overview.
    Of(&'a [String]),
}

/// Layout of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<'a> {
    /// Whether to use ANSI colours.
    pub color: bool,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether the overview's lines are cut to the width, as on a terminal; in a file they are whole.
    pub cut: bool,
    /// Whether to list also claims that hold or do not apply.
    pub all: bool,
    /// Findings whose details are shown.
    pub details: Details<'a>,
}

/// The findings as plain text.
pub fn terminal(findings: &Findings, page: Page<'_>) -> String {
    let mut out = Writer { out: String::new(), page: Page { width: page.width.max(NARROWEST), ..page } };
    out.head(findings);
    if let Details::Of(claims) = page.details {
        let is =
            |f: &&Finding| claims.iter().any(|id| f.claim == *id || f.claim.starts_with(&format!("{id}/")));
        for finding in findings.findings.iter().filter(is) {
            out.detailed(finding);
        }
        return out.out;
    }
    let violated: Vec<&Finding> = of_state(findings, State::Violated).collect();
    out.overview(&violated);
    let every = page.details == Details::Every;
    let shown: Vec<&&Finding> = match every {
        true => violated.iter().collect(),
        false => violated.iter().filter(|finding| finding.same_cause_as.is_none()).take(WORST).collect(),
    };
    shown.iter().for_each(|finding| out.detailed(finding));
    out.unknown(findings);
    out.accepted(findings);
    if page.all {
        out.list(findings, State::Holds, "Holds");
        out.list(findings, State::NotApplicable, "Does not apply");
    }
    if violated.len() > shown.len() {
        out.line("");
        out.wrapped(
            "",
            "Details of all findings: --details; of one: --explain CLAIM; a page to pass on: --html -o FILE.",
        );
    }
    out.out
}

struct Writer<'a> {
    out: String,
    page: Page<'a>,
}

impl Writer<'_> {
    fn style(&self, code: &str, text: &str) -> String {
        if self.page.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.style("1", text)
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn wrapped(&mut self, name: &str, text: &str) {
        let indent = if name.is_empty() { 0 } else { INDENT };
        for (n, part) in wrapped(text, self.page.width.saturating_sub(indent), 0).into_iter().enumerate() {
            let margin = match n {
                0 if !name.is_empty() => format!("{name:<INDENT$}"),
                _ => " ".repeat(indent),
            };
            self.line(&(margin + &part));
        }
    }

    /// Lines for copying are not wrapped.
    fn whole(&mut self, name: &str, text: &str) {
        self.line(&format!("{name:<INDENT$}{}", safe(text)));
    }

    fn listed(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        for (n, line) in lines.into_iter().enumerate() {
            self.whole(if n == 0 { name } else { "" }, &line);
        }
    }

    /// The server, the host, and the number of findings of each severity.
    fn head(&mut self, findings: &Findings) {
        self.line(&self.bold(&safe(&seen(findings))));
        let instance = instance(findings);
        if !instance.is_empty() {
            self.wrapped("", &safe(&instance));
        }
        for note in &findings.scope.notes {
            self.wrapped("", &safe(note));
        }
        self.line(&counted(findings));
        let by_severity = by_severity(findings);
        if !by_severity.is_empty() {
            self.line(&format!("Violated: {by_severity}"));
        }
    }

    /// One line for each finding: place, severity, claim and the beginning of its summary.
    fn overview(&mut self, violated: &[&Finding]) {
        if violated.is_empty() {
            return;
        }
        self.line("");
        let longest = violated.iter().map(|f| f.claim.chars().count()).max().unwrap_or(0).min(32);
        for (finding, place) in violated.iter().zip(places(violated)) {
            let severity = finding.severity.name().to_uppercase();
            // A check of option files that names a path says it in its summary.
            let name = safe(finding.claim.split("//").next().unwrap_or_default());
            let place = place.map_or(SAME_CAUSE.to_owned(), |place| format!("{place:>3}"));
            let start = format!("{place}  {severity:<8}  {name:<longest$}  ");
            let left = self.page.width.saturating_sub(start.chars().count());
            let summary = safe(&finding.summary);
            let line = match left {
                _ if !self.page.cut => start + &summary,
                0..20 => start,
                left => start + &shortened(&summary, left),
            };
            let severity = format!("{severity:<8}");
            let coloured = self.style(colour(finding.severity), &severity);
            self.line(&line.replacen(&severity, &coloured, 1));
        }
    }

    fn detailed(&mut self, finding: &Finding) {
        let severity = match finding.state {
            State::Violated => finding.severity.name().to_uppercase(),
            State::Unknown => "CANNOT BE TOLD".to_owned(),
            State::Holds => "HOLDS".to_owned(),
            State::NotApplicable => "DOES NOT APPLY".to_owned(),
        };
        let severity = self.style(colour(finding.severity), &severity);
        self.line("");
        self.line(&format!("{severity}  {} ({})", self.bold(&safe(&finding.claim)), safe(&finding.area)));
        self.wrapped("", &safe(&finding.summary));
        self.wrapped("Why", &safe(&finding.why));
        self.listed("Evidence", finding.evidence.iter().map(evidence));
        self.listed("Shown by", finding.arithmetic.iter().cloned());
        if let Some(remedy) = &finding.remedy {
            self.listed("Now", remedy.now.iter().map(step));
            self.listed("Lasting", remedy.persistent.iter().map(lasting));
            self.listed("Undo", finding.undo.iter().map(step));
            self.wrapped("Takes", &takes(remedy));
            self.wrapped("Risk", &safe(&remedy.risk));
        }
        if let Some(entry) = &finding.ledger {
            self.wrapped("Ledger", &safe(&ledger(entry)));
        }
        for trap in &finding.traps {
            self.wrapped("But", &safe(trap));
        }
        self.wrapped("Proof", &safe(&proof(&finding.proof)));
        for verdict in &finding.proved {
            self.wrapped("Proved", &safe(&proved(verdict)));
        }
        self.listed("Source", finding.sources.iter().cloned());
    }

    fn unknown(&mut self, findings: &Findings) {
        let reasons = unknown_by_reason(findings);
        if reasons.is_empty() {
            return;
        }
        let every = self.page.all || self.page.details == Details::Every;
        let shown = if every { reasons.len() } else { REASONS };
        self.line("");
        self.line(&self.bold("Cannot be told"));
        for (why, claims) in reasons.iter().take(shown) {
            self.wrapped("", &safe(&format!("{why}:")));
            self.wrapped(" ", &safe(&claims.join(", ")));
        }
        if reasons.len() > shown {
            self.line(&format!("and for {} other reasons: --all", reasons.len() - shown));
        }
    }

    fn accepted(&mut self, findings: &Findings) {
        let accepted: Vec<&Finding> = findings.findings.iter().filter(|f| f.accepted.is_some()).collect();
        if accepted.is_empty() {
            return;
        }
        self.line("");
        self.line(&self.bold("Accepted"));
        for finding in accepted {
            let Some(reason) = &finding.accepted else { continue };
            let text = format!("{} until {}: {}", finding.claim, reason.until, reason.reason);
            self.wrapped("", &safe(&text));
        }
    }

    fn list(&mut self, findings: &Findings, state: State, title: &str) {
        if of_state(findings, state).next().is_none() {
            return;
        }
        self.line("");
        self.line(&self.bold(title));
        for finding in of_state(findings, state) {
            let text = format!("{}: {}", finding.claim, finding.summary);
            self.wrapped("", &safe(&text));
        }
    }
}

const fn colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "1;31",
        Severity::Medium => "1;33",
        Severity::Low | Severity::Info => "1",
    }
}

/// The text up to the last word that fits into `width` characters, with an ellipsis where something is left out.
fn shortened(text: &str, width: usize) -> String {
    match wrapped(text, width, 0).as_slice() {
        [] => String::new(),
        [line] => line.clone(),
        _ => wrapped(text, width.saturating_sub(2), 0)
            .first()
            .map(|line| format!("{line} …"))
            .unwrap_or_default(),
    }
}
