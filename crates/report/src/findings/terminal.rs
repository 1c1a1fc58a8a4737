//! The audit's terminal page: violated claims, most severe first, then undecided claims with reasons.

use mydyno_model::claim::Severity;
use mydyno_model::finding::{Finding, Findings, State};

use super::{counted, evidence, lasting, ledger, of_state, proof, seen, step, takes, unknown_by_reason};
use crate::text::terminal as safe;

/// Minimum width of the layout, in columns; on a narrower terminal lines wrap.
const NARROWEST: usize = 40;
/// Column at which the text of a labelled line begins.
const INDENT: usize = 10;

/// Layout of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Whether to use ANSI colours.
    pub color: bool,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to list also claims that hold or do not apply.
    pub all: bool,
}

/// The findings as plain text.
pub fn terminal(findings: &Findings, page: Page) -> String {
    let mut out = Writer { out: String::new(), page: Page { width: page.width.max(NARROWEST), ..page } };
    out.line(&out.bold(&safe(&seen(findings))));
    for note in &findings.scope.notes {
        out.wrapped("", &safe(note));
    }
    out.line(&counted(findings));
    for finding in of_state(findings, State::Violated) {
        out.violated(finding);
    }
    out.unknown(findings);
    out.accepted(findings);
    if page.all {
        out.list(findings, State::Holds, "Holds");
        out.list(findings, State::NotApplicable, "Does not apply");
    }
    out.out
}

struct Writer {
    out: String,
    page: Page,
}

impl Writer {
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
        for (n, part) in wrap(text, self.page.width.saturating_sub(indent)).into_iter().enumerate() {
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

    fn violated(&mut self, finding: &Finding) {
        let colour = match finding.severity {
            Severity::Critical | Severity::High => "1;31",
            Severity::Medium => "1;33",
            Severity::Low | Severity::Info => "1",
        };
        let severity = self.style(colour, &finding.severity.name().to_uppercase());
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
            self.wrapped("Takes", takes(remedy.cost));
            self.wrapped("Risk", &safe(&remedy.risk));
        }
        if let Some(entry) = &finding.ledger {
            self.wrapped("Ledger", &safe(&ledger(entry)));
        }
        for trap in &finding.traps {
            self.wrapped("But", &safe(trap));
        }
        self.wrapped("Proof", &safe(&proof(&finding.proof)));
        self.listed("Source", finding.sources.iter().cloned());
    }

    fn unknown(&mut self, findings: &Findings) {
        let reasons = unknown_by_reason(findings);
        if reasons.is_empty() {
            return;
        }
        self.line("");
        self.line(&self.bold("Cannot be told"));
        for (why, claims) in reasons {
            self.wrapped("", &safe(&format!("{why}:")));
            self.wrapped(" ", &safe(&claims.join(", ")));
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
        let names: Vec<String> = of_state(findings, state).map(|f| safe(&f.claim)).collect();
        if !names.is_empty() {
            self.line("");
            self.line(&self.bold(title));
            self.wrapped("", &names.join(", "));
        }
    }
}

/// Lines of at most `width` characters, broken at spaces; a longer word has its own line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
