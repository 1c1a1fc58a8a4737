//! Triggers whose texts tell a mistake: two that do the same, one that counts its whole table with each row.

use serde_json::{Value, json};

use crate::collectors::schema::shapes::rows;
use crate::collectors::stored_code::Code;
use crate::sql::ReadOnly;

/// Triggers that fire together and do the same: by equal texts, or by a statement that adds to a sum.
pub(super) fn alike(triggers: &[Code]) -> Vec<Value> {
    let mut found = Vec::new();
    for (place, one) in triggers.iter().enumerate() {
        let beside = |other: &&Code| other.schema == one.schema && other.fires == one.fires;
        let same = |other: &&Code| {
            let (own, of_other) = (statements(&one.words), statements(&other.words));
            // Texts are not kept, and may differ.
            let texts = one.words.iter().any(|word| word == "'");
            own == of_other && !own.is_empty() && !texts
                || own.iter().any(|s| adds(s) && of_other.contains(s))
        };
        if let Some(other) = triggers[place + 1..].iter().filter(beside).find(same) {
            found.push(json!({
                "trigger": format!("{}.{}", one.schema, one.name), "other": other.name, "fires": one.fires,
            }));
        }
    }
    found.truncate(20);
    found
}

/// Triggers of INSERT that count or add up all rows of the table that they are on.
pub(super) fn counting(sql: &mut ReadOnly<'_>, triggers: &[Code]) -> Vec<Value> {
    let mut found = Vec::new();
    for trigger in triggers {
        let Some(table) = trigger.fires.as_deref().and_then(|fires| fires.strip_prefix("INSERT ON ")) else {
            continue;
        };
        if found.len() < 20 && statements(&trigger.words).iter().any(|one| counts_all(one, table)) {
            let table = format!("{}.{table}", trigger.schema);
            let rows = rows(sql, &table).unwrap_or(0);
            let name = format!("{}.{}", trigger.schema, trigger.name);
            found.push(json!({"trigger": name, "table": table, "rows": rows}));
        }
    }
    found
}

/// Whether a statement, in lower case, counts or adds up all rows of a table: without a condition, and alone. The largest value may
/// come from an index.
fn counts_all(statement: &[String], table: &str) -> bool {
    let is = |at: usize, name: &str| statement.get(at).is_some_and(|word| word == name);
    let counts = (0..statement.len())
        .any(|at| ["count", "sum", "avg"].iter().any(|function| is(at, function)) && is(at + 1, "("));
    let all = (0..statement.len()).any(|at| {
        let qualified = is(at + 2, ".");
        let name = if qualified { at + 3 } else { at + 1 };
        let ends = statement.get(name + 1).is_none_or(|word| [")", "into"].contains(&word.as_str()));
        is(at, "from") && is(name, &table.to_lowercase()) && ends
    });
    counts && all
}

/// The statements of a text, in lower case, without the words around them.
fn statements(words: &[String]) -> Vec<Vec<String>> {
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let one = |words: &[String]| {
        let start = words.iter().position(|word| word != "begin").unwrap_or(words.len());
        words[start..].to_vec()
    };
    let all = lower.split(|word| word == ";").map(one);
    all.filter(|statement| !statement.is_empty() && *statement != ["end"]).collect()
}

/// Whether a statement sets a column to itself and something more or less; texts in it, which are not kept, may differ.
fn adds(statement: &[String]) -> bool {
    let sum = |w: &[String]| w[1] == "=" && w[0] == w[2] && (w[3] == "+" || w[3] == "-");
    statement.first().is_some_and(|verb| verb == "update")
        && statement.windows(4).any(sum)
        && !statement.iter().any(|word| word == "'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::stored_code::words;

    #[test]
    fn a_trigger_that_counts_all_rows_is_told_from_one_that_counts_some() {
        let counts = |text: &str| statements(&words(text)).iter().any(|one| counts_all(one, "Lines"));
        assert!(counts("BEGIN UPDATE t SET n = (SELECT COUNT(*) FROM lines) WHERE id = 1; END"));
        assert!(counts("SELECT SUM(n) FROM `shop`.`Lines` INTO @n"));
        assert!(!counts("UPDATE t SET n = (SELECT COUNT(*) FROM lines WHERE o = NEW.o)"));
        assert!(!counts("UPDATE t SET n = (SELECT COUNT(*) FROM others)"));
        assert!(!counts("SELECT MAX(id) FROM lines INTO @n"));
    }

    #[test]
    fn triggers_that_do_the_same_are_told() {
        let trigger = |name: &str, fires: &str, text: &str| Code {
            schema: "d".into(),
            name: name.into(),
            words: words(text),
            runs_as: None,
            definer: String::new(),
            lax: false,
            fires: Some(fires.into()),
        };
        let add = "UPDATE stock SET n = n - NEW.n WHERE id = NEW.id";
        let all = [
            trigger("a", "INSERT ON lines", &format!("BEGIN {add}; END")),
            trigger(
                "b",
                "INSERT ON lines",
                &format!("BEGIN INSERT INTO log VALUES (1); {}; END", add.to_lowercase()),
            ),
            trigger("c", "DELETE ON lines", add),
            trigger("d", "DELETE ON lines", "INSERT INTO log VALUES (1)"),
            trigger("e", "UPDATE ON lines", "SET NEW.a = 1"),
            trigger("f", "UPDATE ON lines", "BEGIN SET NEW.a = 1; END"),
        ];
        let pairs: Vec<Value> = alike(&all);
        assert_eq!(pairs.len(), 2, "{pairs:?}");
        assert_eq!(pairs[0], json!({"trigger": "d.a", "other": "b", "fires": "INSERT ON lines"}));
        assert_eq!(pairs[1]["trigger"], "d.e");
    }
}
