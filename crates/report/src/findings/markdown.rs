//! Findings as Markdown, for tickets and wikis.

use mydyno_model::finding::{Finding, Findings, State};

use super::{
    address, by_severity, counted, evidence, instance, lasting, ledger, of_state, places, proof, proved,
    seen, step,
};
use crate::answer::of_findings;
use crate::text::{markdown as safe, markdown_code as code};

/// The findings as a Markdown document.
pub fn markdown(findings: &Findings) -> String {
    let mut out = format!("# Audit\n\n**{}**\n\n{}\n\n", safe(&of_findings(findings)), safe(&seen(findings)));
    let instance = instance(findings);
    if !instance.is_empty() {
        out.push_str(&format!("{}\n\n", safe(&instance)));
    }
    out.push_str(&format!("{}.\n", counted(findings)));
    for note in &findings.scope.notes {
        out.push_str(&format!("\n{}\n", safe(note)));
    }
    overview(findings, &mut out);
    for finding in of_state(findings, State::Violated) {
        let severity = finding.severity.name();
        out.push_str(&format!(
            "\n## {} ({severity}, {})\n\n{}\n\n{}\n",
            safe(&finding.claim),
            safe(&finding.area),
            safe(&finding.summary),
            safe(&finding.why)
        ));
        let mut block = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                out.push_str(&format!("\n{title}:\n\n{}", code(&lines.join("\n"))));
            }
        };
        block(
            "Evidence",
            finding.evidence.iter().map(evidence).chain(finding.arithmetic.iter().cloned()).collect(),
        );
        if let Some(remedy) = &finding.remedy {
            block("Now", remedy.now.iter().map(step).collect());
            block("Lasting", remedy.persistent.iter().map(lasting).collect());
            block("Undo", finding.undo.iter().map(step).collect());
            out.push_str(&format!("\nRisk: {}\n", safe(&remedy.risk)));
        }
        if let Some(entry) = &finding.ledger {
            out.push_str(&format!("\nLedger: {}\n", safe(&ledger(entry))));
        }
        for trap in &finding.traps {
            out.push_str(&format!("\nBut: {}\n", safe(trap)));
        }
        out.push_str(&format!("\nProof: {}\n", safe(&proof(&finding.proof))));
        for verdict in &finding.proved {
            out.push_str(&format!("\nProved here: {}\n", safe(&proved(verdict))));
        }
        out.push_str("\nSources:\n\n");
        for source in &finding.sources {
            let (text, address) = address(source);
            let link = if address.is_empty() { String::new() } else { format!("<{address}>") };
            out.push_str(&format!("- {}{link}\n", safe(text)));
        }
    }
    let unknown: Vec<_> = of_state(findings, State::Unknown).collect();
    if !unknown.is_empty() {
        out.push_str("\n## Cannot be told\n\n");
        for finding in unknown {
            let missing: Vec<_> =
                finding.missing.iter().map(|m| format!("{} ({})", safe(&m.fact), safe(&m.why))).collect();
            out.push_str(&format!("- {}: {}\n", safe(&finding.claim), missing.join("; ")));
        }
    }
    let accepted: Vec<_> = findings.findings.iter().filter_map(|f| Some((f, f.accepted.as_ref()?))).collect();
    if !accepted.is_empty() {
        out.push_str("\n## Accepted\n\n");
        for (finding, reason) in accepted {
            out.push_str(&format!(
                "- {} until {}: {}\n",
                safe(&finding.claim),
                safe(&reason.until),
                safe(&reason.reason)
            ));
        }
    }
    out
}

/// One line for each finding, most severe first.
fn overview(findings: &Findings, out: &mut String) {
    let by_severity = by_severity(findings);
    if by_severity.is_empty() {
        return;
    }
    out.push_str(&format!("\nViolated: {by_severity}.\n\n"));
    let violated: Vec<&Finding> = of_state(findings, State::Violated).collect();
    for (finding, place) in violated.iter().zip(places(&violated)) {
        let (severity, claim) = (finding.severity.name(), safe(&finding.claim));
        let item = place.map_or("    -".to_owned(), |place| format!("{place}."));
        out.push_str(&format!("{item} {severity}, {claim}: {}\n", safe(&finding.summary)));
    }
}
