//! Findings as SARIF 2.1.0, which continuous integration displays beside code.
//!
//! Violated claims are results; accepted ones are suppressed results with their justification. Undecided claims are
//! notifications of the run, so that a missing observation does not pass for a good one.

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
    mydyno_model::text::json(&serde_json::to_string_pretty(&document).unwrap_or_default()).into_owned() + "\n"
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

/// Stand-in location for findings about a server, which belong to no file: the file in which an administrator accepts findings.
/// Code scanning refuses results without a location.
const STAND_IN: &str = "mydyno.toml";

/// Location of a finding: the line of the option file that it concerns, otherwise the stand-in.
fn physical(finding: &Finding) -> Value {
    let found = finding.evidence.iter().find_map(|e| file_and_line(&e.source));
    let (uri, line) = match found.filter(|_| finding.area == OPTIONS) {
        Some((file, line)) => (file_uri(file), line),
        None => (STAND_IN.to_owned(), 1),
    };
    json!({"artifactLocation": {"uri": uri}, "region": {"startLine": line}})
}

/// The area of findings about option files.
const OPTIONS: &str = "options";

/// `/etc/my.cnf:12 [mysqld]`, `/etc/my.cnf:12` or `/etc/my.cnf`.
fn file_and_line(source: &str) -> Option<(&str, u64)> {
    let place = source.rsplit_once(" [").map_or(source, |(place, _)| place);
    let numbered = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u64>().ok()?)));
    let (file, line) = numbered.unwrap_or((place, 1));
    file.starts_with('/').then_some((file, line.max(1)))
}

/// A path as a URI. Code scanning strips the folder of the checkout from it.
fn file_uri(path: &str) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

fn result(index: usize, finding: &Finding) -> Value {
    let shown: Vec<String> = finding.evidence.iter().map(evidence).collect();
    let mut result = json!({
        "ruleId": finding.claim,
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": {"text": format!("{}\n{}", finding.summary, shown.join("\n"))},
        "locations": [{
            "physicalLocation": physical(finding),
            "logicalLocations": [{"fullyQualifiedName": format!("{}/{}", finding.area, finding.claim), "kind": "module"}],
        }],
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
