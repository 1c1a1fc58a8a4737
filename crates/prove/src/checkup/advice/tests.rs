//! Findings of the form of a real audit's, and their classification.

use mydyno_model::Header;
use mydyno_model::facts::Fact;
use mydyno_model::finding::Findings;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::*;

/// A violated claim whose remedy is one persistent line of an option file or one statement.
fn finding(claim: &str, severity: &str, now: &[&str], cnf: &[&str], proof: Value) -> Value {
    let steps = |kind: &str, texts: &[&str]| -> Vec<Value> {
        texts.iter().map(|text| json!({"kind": kind, "text": text})).collect()
    };
    json!({
        "claim": claim, "area": "innodb", "title": "t", "state": "violated", "severity": severity,
        "confidence": "certain", "rank": 1.0, "summary": "s", "why": "w", "evidence": [], "arithmetic": [],
        "remedy": {"cost": "dynamic", "now": steps("sql", now), "persistent": steps("cnf", cnf), "risk": ""},
        "sources": [], "proof": proof
    })
}

fn sorted(findings: Vec<Value>, variables: &[(&str, Value)]) -> Sorted {
    let document = json!({
        "schema": "mydyno.findings/1", "created": "2026-01-01T00:00:00Z",
        "mydyno": {"version": "0.1.0", "commit": "unknown"},
        "scope": {"server": "mariadb 10.11.6", "host": "vm", "server_process": true, "notes": []},
        "facts_digest": "", "facts_created": "", "counts": {}, "findings": findings
    });
    let findings: Findings = serde_json::from_value(document).unwrap();
    let facts = variables
        .iter()
        .map(|(name, value)| (format!("server.variable.{name}"), Fact::ok(value.clone(), "", "test")));
    let header = Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH);
    sort(&findings, &FactSet { header, facts: facts.collect(), extra: Map::new() })
}

fn whys(sorted: &Sorted) -> Vec<(&str, &str)> {
    sorted.others.iter().map(|a| (a.claim.as_str(), a.why.as_deref().unwrap_or_default())).collect()
}

#[test]
fn lines_and_statements_become_levers() {
    let sorted = sorted(
        vec![
            finding("a", "low", &[], &["innodb-io-capacity = 2000"], json!({"factor": "option.x"})),
            finding("b", "low", &["SET GLOBAL sort_buffer_size = 262144"], &[], json!({"experiment": "x"})),
        ],
        &[("innodb_io_capacity", json!(200)), ("sort_buffer_size", json!(67108864))],
    );
    let changes: Vec<String> = sorted.candidates.iter().map(|c| c.advice.changes.join(",")).collect();
    assert_eq!(changes, ["option.innodb_io_capacity=2000", "option.sort_buffer_size=262144"]);
    // The first takes effect at a start only, according to its remedy.
    let live: Vec<Option<String>> = sorted
        .candidates
        .iter()
        .map(|c| c.change.live.as_ref().map(|now| format!("{}={}", now[0].lever, now[0].value)))
        .collect();
    assert_eq!(live, [None, Some("option.sort_buffer_size=67108864".to_owned())]);
    assert!(sorted.others.is_empty());
}

#[test]
fn what_no_private_server_can_take_has_its_reason() {
    let sorted = sorted(
        vec![
            finding("same", "low", &[], &["sort_buffer_size = 256K"], json!({"experiment": "x"})),
            finding("again", "low", &[], &["sort_buffer_size = 256K"], json!({"experiment": "x"})),
            finding("other", "low", &[], &["sort_buffer_size = 1M"], json!({"experiment": "x"})),
            finding("host", "low", &[], &[], json!({"experiment": "dirty-limits"})),
            finding("path", "medium", &[], &["datadir = /srv"], json!({"experiment": "x"})),
            finding(
                "untestable",
                "medium",
                &[],
                &["slow_query_log = ON"],
                json!({"not_testable": "It is no speed."}),
            ),
            finding("security", "high", &[], &[], json!({"not_testable": "It is no speed."})),
        ],
        &[],
    );
    assert_eq!(sorted.candidates.len(), 1);
    assert_eq!(
        whys(&sorted),
        [
            ("again", "same asks for the same change."),
            ("other", "same changes the same setting, to another value."),
            (
                "host",
                "Its remedy sets no value at a server's start: `mydyno prove dirty-limits` measures the advice by itself."
            ),
            (
                "path",
                "Its remedy sets no value at a server's start: `mydyno prove x` measures the advice by itself."
            ),
            ("untestable", "It is no speed."),
        ]
    );
}

#[test]
fn nothing_is_proposed_that_costs_durability() {
    let relaxed =
        finding("relaxed", "low", &[], &["innodb_flush_log_at_trx_commit = 2"], json!({"experiment": "x"}));
    let sorted = sorted(vec![relaxed], &[("innodb_flush_log_at_trx_commit", json!(1))]);
    assert!(sorted.candidates.is_empty());
    assert!(
        whys(&sorted)[0].1.starts_with("A check-up proposes nothing that has a price"),
        "{:?}",
        whys(&sorted)
    );
}

#[test]
fn advice_that_makes_data_safer_comes_last_and_is_marked() {
    let sorted = sorted(
        vec![
            finding(
                "safe",
                "critical",
                &[],
                &["innodb_flush_log_at_trx_commit = 1"],
                json!({"experiment": "x"}),
            ),
            finding("fast", "low", &[], &["innodb_io_capacity = 2000"], json!({"experiment": "x"})),
        ],
        &[("innodb_flush_log_at_trx_commit", json!(0))],
    );
    let order: Vec<(&str, bool)> =
        sorted.candidates.iter().map(|c| (c.advice.claim.as_str(), c.advice.for_safety)).collect();
    assert_eq!(order, [("fast", false), ("safe", true)]);
}
