//! A digest of a whole fact set.

use mydyno_model::facts::FactSet;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// SHA-256, in hexadecimal, over the facts in canonical form: one line a fact, sorted by id, as JSON without blanks
/// and with sorted keys. The header is left out, so the same facts have the same digest whenever they were written.
pub fn digest(set: &FactSet) -> String {
    let mut lines: Vec<String> = set
        .facts
        .iter()
        .map(|(id, fact)| {
            let mut text = String::new();
            let fact = serde_json::to_value(fact).unwrap_or(Value::Null);
            canonical(&Value::from(id.as_str()), &mut text);
            text.push(':');
            canonical(&fact, &mut text);
            text.push('\n');
            text
        })
        .collect();
    lines.sort_unstable();
    let mut hash = Sha256::new();
    for line in &lines {
        hash.update(line.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            text.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                canonical(&Value::from(key.as_str()), text);
                text.push(':');
                canonical(&map[key], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                canonical(item, text);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexmap::IndexMap;
    use mydyno_model::Header;
    use mydyno_model::facts::{Fact, Status};
    use serde_json::{Map, json};
    use time::OffsetDateTime;

    fn set(facts: &[(&str, Fact)]) -> FactSet {
        FactSet {
            header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
            facts: facts.iter().map(|(n, f)| ((*n).to_owned(), f.clone())).collect::<IndexMap<_, _>>(),
            extra: Map::new(),
        }
    }

    #[test]
    fn the_digest_of_two_facts_is_the_one_computed_by_hand() {
        // printf '%s\n' '"a":{"source":"/a","status":"ok","unit":"count","value":1}' \
        //   '"b":{"source":"/b","status":"absent","value":null,"why":"gone"}' | sha256sum
        let facts = set(&[
            ("b", Fact::missing(Status::Absent { why: "gone".to_owned() }, "/b")),
            ("a", Fact::ok(1, "count", "/a")),
        ]);
        assert_eq!(digest(&facts), "357fce35a517ef09993ea32e1bf5925ccf881fb251f81157ba4c4871767aabf1");
    }

    #[test]
    fn neither_order_nor_time_change_the_digest_and_every_value_does() {
        let one = Fact::ok(json!({"x": 1, "y": [1, 2]}), "", "/a");
        let turned = Fact::ok(json!({"y": [1, 2], "x": 1}), "", "/a");
        let two = Fact::ok("text", "", "/b");
        let mut a = set(&[("a", one), ("b", two.clone())]);
        let b = set(&[("b", two.clone()), ("a", turned)]);
        a.header.created = "2026-11-21T00:00:00Z".to_owned();
        assert_eq!(digest(&a), digest(&b));
        let c = set(&[("b", two), ("a", Fact::ok(json!({"x": 1, "y": [2, 1]}), "", "/a"))]);
        assert_ne!(digest(&a), digest(&c));
    }
}
