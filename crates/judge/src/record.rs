//! Recording of a live system's facts as a fixture of a claim.

use mydyno_model::facts::{Fact, FactSet, Status};
use serde_json::Value;

use crate::claim::Claim;
use crate::expr::Expr;
use crate::judge::judge;

/// The fixture, as text for the claim's file: the facts that the claim needs, as read.
pub fn record(claim: &Claim, facts: &FactSet) -> String {
    let finding = judge(claim, facts);
    let mut text = format!("[[fixture]]\nstate = \"{}\"\n", finding.state.name());
    if !claim.cases.is_empty() {
        text.push_str(&format!("severity = \"{}\"\n", finding.severity.name()));
    }
    text.push_str(&format!("recorded = {}\n", written(&Value::from(system(facts)))));
    text.push_str("[fixture.facts]\n");
    let patterns = patterns(claim);
    for (id, fact) in facts.facts.iter().filter(|(id, _)| patterns.iter().any(|p| fits(p, id))) {
        let value = match &fact.status {
            Status::Ok => read(fact),
            Status::Denied { why } => format!("{{ denied = {} }}", written(&Value::from(why.as_str()))),
            Status::Absent { why } => format!("{{ absent = {} }}", written(&Value::from(why.as_str()))),
            Status::Error { why } => format!("{{ error = {} }}", written(&Value::from(why.as_str()))),
        };
        text.push_str(&format!("{} = {value}\n", written(&Value::from(id.as_str()))));
    }
    text
}

/// Description of the system that the facts come from.
fn system(facts: &FactSet) -> String {
    let server = facts.text("server.version").unwrap_or("no server");
    let system = facts.text("host.distribution.name").unwrap_or("a host that is not visible");
    // The text after the version number may name a private build, so it is omitted.
    let kernel = facts.text("host.kernel.release").and_then(crate::expr::Version::read);
    let kernel = kernel.map(|k| format!(", Linux {k}")).unwrap_or_default();
    format!("{server} on {system}{kernel}")
}

/// All facts that the claim names, also in its texts.
fn patterns(claim: &Claim) -> Vec<String> {
    let texts =
        claim.finding.iter().chain(claim.steps().flat_map(|s| [Some(&s.text), s.undo.as_ref()]).flatten());
    let conditions = claim.steps().filter_map(|s| s.when.as_ref());
    let mut patterns = claim.needs();
    patterns.extend(texts.flat_map(|t| t.expressions()).chain(conditions).flat_map(Expr::facts));
    patterns
}

/// Whether an id matches a pattern in which each star stands for one part.
fn fits(pattern: &str, id: &str) -> bool {
    let (pattern, id): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), id.split('.').collect());
    pattern.len() == id.len() && pattern.iter().zip(&id).all(|(p, i)| *p == "*" || p == i)
}

fn read(fact: &Fact) -> String {
    match &fact.value {
        Value::Object(_) => format!("{{ value = {} }}", written(&fact.value)),
        other => written(other),
    }
}

/// JSON as TOML. TOML supports the escapes of JSON strings; null values are omitted.
fn written(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().filter(|i| !i.is_null()).map(written).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let fields = map.iter().filter(|(_, v)| !v.is_null());
            let fields: Vec<String> =
                fields.map(|(k, v)| format!("{} = {}", Value::from(k.as_str()), written(v))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Claims;
    use crate::proving::examine;
    use mydyno_model::Header;
    use serde_json::{Map, json};
    use time::OffsetDateTime;

    #[test]
    fn what_is_recorded_is_a_fixture_that_comes_out_the_same() {
        let list = [
            ("server.uptime_s", json!(864_000), "s"),
            ("server.status.connection_errors_max_connections", json!(60), ""),
            ("host.distribution.name", json!("A \"distribution\""), ""),
        ];
        let facts = list.into_iter().map(|(id, v, unit)| (id.to_owned(), Fact::ok(v, unit, "t"))).collect();
        let set =
            FactSet { header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH), facts, extra: Map::new() };
        let claims = Claims::embedded().unwrap();
        let claim = claims.find("connections-refused").unwrap();
        let text = record(claim, &set);
        assert!(
            text.contains("state = \"violated\"")
                && text.contains("\"server.status.connection_errors_max_connections\" = 60"),
            "{text}"
        );
        let mut document = claim.document.clone();
        let more: mydyno_model::claim::Claim = {
            #[derive(serde::Deserialize)]
            struct Only {
                fixture: Vec<mydyno_model::claim::Fixture>,
            }
            let only: Only = toml::from_str(&text).unwrap();
            document.fixtures.extend(only.fixture);
            document
        };
        let extended = Claim { document: more, ..claim.clone() };
        let found = examine(&extended, &mydyno_facts::catalogue::unit_of);
        assert_eq!((found.problems, found.recorded), (vec![], 1));
    }
}
