//! Triggers whose texts tell a mistake: two that do the same, one that counts its whole table with each row.

use serde_json::{Value, json};

use crate::collectors::schema::shapes::rows;
use crate::collectors::stored_text::Code;
use crate::sql::{ReadOnly, quoted};

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

/// Triggers that count or add up rows of the table that they are on: all of them, or those of a column that no index begins with.
pub(super) fn counting(sql: &mut ReadOnly<'_>, triggers: &[Code]) -> Vec<Value> {
    let mut found = Vec::new();
    for trigger in triggers {
        let Some((_, table)) = trigger.fires.as_deref().and_then(|fires| fires.split_once(" ON ")) else {
            continue;
        };
        let statements = statements(&trigger.words);
        let place = format!("{}.{table}", trigger.schema);
        let of_all = statements.iter().any(|one| counts_all(one, table));
        let by = statements.iter().filter(|_| !of_all).find_map(|one| counted_by(one, table));
        if !of_all && by.as_ref().is_none_or(|columns| begins_an_index(sql, &trigger.schema, table, columns))
        {
            continue;
        }
        let rows = rows(sql, &place).unwrap_or(0);
        if found.len() >= 20 || !of_all && rows < FEW_ROWS {
            continue;
        }
        let mut entry = json!({
            "trigger": format!("{}.{}", trigger.schema, trigger.name), "table": place, "rows": rows,
        });
        if let Some(columns) = by {
            entry["by"] = columns.join(", ").into();
        }
        found.push(entry);
    }
    found
}

/// Rows of a table up to which reading all of them costs little.
const FEW_ROWS: u64 = 1000;

/// Whether an index begins with one of the columns, or the server does not tell it.
fn begins_an_index(sql: &mut ReadOnly<'_>, schema: &str, table: &str, columns: &[String]) -> bool {
    let (Some(schema), Some(table)) = (quoted(schema), quoted(table)) else { return true };
    let columns: Vec<String> = columns.iter().filter_map(|column| quoted(column)).collect();
    let statement = format!(
        "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table} AND SEQ_IN_INDEX = 1 AND COLUMN_NAME IN ({}) LIMIT 1",
        columns.join(", ")
    );
    sql.rows(&statement).map_or(true, |rows| !rows.is_empty())
}

/// The columns by which a statement, in lower case, chooses the rows of the table that it counts or adds up, where it compares them by
/// `=` and AND alone.
fn counted_by(statement: &[String], table: &str) -> Option<Vec<String>> {
    let is = |at: usize, name: &str| statement.get(at).is_some_and(|word| word == name);
    let from = (0..statement.len()).find(|at| {
        let name = if is(at + 2, ".") { at + 3 } else { at + 1 };
        is(*at, "from") && is(name, &table.to_lowercase())
    })?;
    let select = statement[..from].iter().rposition(|word| word == "select")?;
    let counts = (select..from)
        .any(|at| ["count", "sum", "avg"].iter().any(|function| is(at, function)) && is(at + 1, "("));
    let start = (from..statement.len().min(from + 7)).find(|at| is(*at, "where"))? + 1;
    let end = (start..statement.len()).find(|at| is(*at, ")") || is(*at, "into") || is(*at, "group"));
    let condition = &statement[start..end.unwrap_or(statement.len())];
    if !counts || condition.iter().any(|word| ["or", "in", "(", "select", "join"].contains(&word.as_str())) {
        return None;
    }
    let columns: Vec<String> = condition
        .split(|word| word == "and")
        .filter_map(|part| {
            let equals = part.iter().position(|word| word == "=")?;
            equals.checked_sub(1).map(|at| part[at].clone())
        })
        .collect();
    (!columns.is_empty()).then_some(columns)
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
    use crate::collectors::stored_text::words;

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
    fn the_columns_by_which_a_trigger_counts_are_told() {
        let by = |text: &str| {
            statements(&words(text))
                .iter()
                .find_map(|one| counted_by(one, "Parcels"))
                .map(|all| all.join(" "))
        };
        let text = "UPDATE depot_stats SET parcels = (SELECT COUNT(*) FROM parcels WHERE depot_id = NEW.depot_id) WHERE id = NEW.depot_id";
        assert_eq!(by(text).as_deref(), Some("depot_id"));
        let text =
            "SELECT SUM(n) INTO @n FROM t.parcels p WHERE p.depot_id=NEW.depot_id AND p.open = 1 GROUP BY x";
        assert_eq!(by(text).as_deref(), Some("depot_id open"));
        for text in [
            "SELECT COUNT(*) FROM others WHERE depot_id = NEW.depot_id",
            "SELECT MAX(id) FROM parcels WHERE depot_id = NEW.depot_id",
            "SELECT COUNT(*) FROM parcels WHERE depot_id = NEW.depot_id OR open = 1",
            "SELECT COUNT(*) FROM parcels",
        ] {
            assert_eq!(by(text), None, "{text}");
        }
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
