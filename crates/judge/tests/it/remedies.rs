//! Remedies of different claims agree with each other.

use std::collections::BTreeMap;

use mydyno_judge::{fixture_facts, judge};
use mydyno_model::claim::StepKind;
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Finding, State};

use crate::shipped::claims;

/// Variables and the values that the steps of a finding set in option files and statements.
fn settings(finding: &Finding) -> Vec<(String, String)> {
    let remedy = finding.remedy.iter().flat_map(|r| r.now.iter().chain(&r.persistent));
    let lines = remedy.filter_map(|step| match step.kind {
        StepKind::Sql => step.text.strip_prefix("SET GLOBAL ").map(str::to_owned),
        StepKind::Cnf => Some(step.text.clone()),
        _ => None,
    });
    lines
        .filter_map(|line| {
            let (name, value) = line.split_once('=')?;
            let name = name.trim().to_ascii_lowercase().replace('-', "_");
            let name = name.strip_prefix("loose_").unwrap_or(&name).to_owned();
            Some((name, plain(value.trim())))
        })
        .collect()
}

/// A value in one spelling: `ON` equals 1, `64M` equals 67108864, and quotes are removed.
fn plain(value: &str) -> String {
    let value = value.trim_end_matches(';').trim().trim_matches(['\'', '"']);
    match value.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" => return "1".to_owned(),
        "OFF" | "FALSE" => return "0".to_owned(),
        _ => {}
    }
    let shift = match value.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        _ => 0,
    };
    let digits = if shift == 0 { value } else { &value[..value.len() - 1] };
    match digits.parse::<u64>() {
        Ok(number) => (number << shift).to_string(),
        Err(_) => value.to_ascii_lowercase(),
    }
}

/// Whether one server can have both sets of facts: no common fact differs.
fn agree(one: &FactSet, other: &FactSet) -> bool {
    one.facts.iter().all(|(id, fact)| other.facts.get(id).is_none_or(|o| o.value == fact.value))
}

/// The union of both sets of facts.
fn together(one: &FactSet, other: &FactSet) -> FactSet {
    let mut both = one.clone();
    both.facts.extend(other.facts.clone());
    both
}

#[test]
fn values_are_compared_in_one_spelling() {
    assert_eq!((plain("ON"), plain("64M"), plain("'ROW';")), ("1".into(), "67108864".into(), "row".into()));
}

#[test]
fn no_two_claims_set_a_variable_of_one_server_to_different_values() {
    let claims = claims();
    // Variable → claim, its facts: only claims that set the same variable can contradict each other.
    let mut setters: BTreeMap<String, Vec<(&str, FactSet)>> = BTreeMap::new();
    for claim in claims.iter() {
        for fixture in &claim.document.fixtures {
            let unit = &mydyno_facts::catalogue::unit_of;
            let facts = fixture_facts(&claim.document.facts, &fixture.facts, unit).unwrap();
            let finding = judge(claim, &facts);
            if finding.state == State::Violated {
                let mut names: Vec<String> = settings(&finding).into_iter().map(|(name, _)| name).collect();
                names.sort();
                names.dedup();
                for name in names {
                    setters.entry(name).or_default().push((&claim.document.id, facts.clone()));
                }
            }
        }
    }
    let (mut pairs, mut wrong) = (0, Vec::new());
    for (name, list) in &setters {
        for (place, (one, facts)) in list.iter().enumerate() {
            for (other, more) in list[place + 1..].iter().filter(|(other, _)| other != one) {
                if !agree(facts, more) {
                    continue;
                }
                let both = together(facts, more);
                let values = |id: &str| -> Vec<String> {
                    let finding = judge(claims.find(id).unwrap(), &both);
                    let all = settings(&finding).into_iter().filter(|(n, _)| n == name);
                    all.map(|(_, value)| value).collect()
                };
                pairs += 1;
                let (first, second) = (values(one), values(other));
                if first.iter().any(|value| second.iter().any(|v| v != value)) {
                    wrong.push(format!("{name}: {one} sets {first:?}, {other} {second:?}"));
                }
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(pairs > 0 && wrong.is_empty(), "{pairs} pairs, {}:\n{}", wrong.len(), wrong.join("\n"));
}
