//! Findings as SARIF 2.1.0, which continuous integration shows beside code.
//!
//! Violated claims are results; accepted ones are suppressed results with their justification. What cannot be told is a
//! notification of the run, so that nothing that was not seen passes for fine.

use mydyno_model::claim::Severity;
use mydyno_model::finding::{Finding, Findings, State};
use serde_json::{Value, json};

use super::{evidence, of_state};

/// The findings as a SARIF document.
pub fn sarif(findings: &Findings) -> String {
    let violated: Vec<&Finding> = findings.findings.iter().filter(|f| f.state == State::Violated).collect();
    let rules: Vec<Value> = violated.iter().map(|f| rule(f)).collect();
    let results: Vec<Value> = violated.iter().enumerate().map(|(index, f)| result(index, f)).collect();
    let notifications: Vec<Value> = of_state(findings, State::Unknown)
        .map(|f| {
            json!({
                "level": "note",
                "message": {"text": format!("{}: {}", f.claim, f.summary)},
                "descriptor": {"id": f.claim},
            })
        })
        .collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "mydyno",
                "version": findings.header.mydyno.version,
                "informationUri": "https://github.com/mydyno/mydyno",
                "rules": rules,
            }},
            "results": results,
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications,
            }],
            "properties": {"scope": findings.scope, "factsDigest": findings.facts_digest},
        }],
    });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    }
}

fn rule(finding: &Finding) -> Value {
    json!({
        "id": finding.claim,
        "shortDescription": {"text": finding.title},
        "fullDescription": {"text": finding.why},
        "help": {"text": finding.sources.join("\n")},
        "defaultConfiguration": {"level": level(finding.severity)},
        "properties": {"tags": [finding.area]},
    })
}

fn result(index: usize, finding: &Finding) -> Value {
    let shown: Vec<String> = finding.evidence.iter().map(evidence).collect();
    let mut result = json!({
        "ruleId": finding.claim,
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": {"text": format!("{}\n{}", finding.summary, shown.join("\n"))},
        // A server has no file and line; the logical place is its area.
        "locations": [{"logicalLocations": [{"fullyQualifiedName": format!("{}/{}", finding.area, finding.claim), "kind": "module"}]}],
        "partialFingerprints": {"claim/v1": finding.claim},
        "rank": finding.rank.clamp(0.0, 100.0),
    });
    if let Some(accepted) = &finding.accepted {
        result["suppressions"] = json!([{
            "kind": "external",
            "status": "accepted",
            "justification": format!("{} (until {})", accepted.reason, accepted.until),
        }]);
    }
    result
}
