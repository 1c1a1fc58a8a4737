//! Routines and triggers that call a routine which is not there. Names are taken from their texts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::collectors::stored_text::Code;
use crate::source::Read;
use crate::sql::{ReadOnly, quoted};

/// Names that are looked up.
const LOOKED_UP: usize = 50;

/// Beginnings of names that people give to stored functions. Others may be functions of the server.
const FUNCTIONS: [&str; 4] = ["fn_", "f_", "fnc_", "func_"];

/// Words in front of a name with a bracket behind it that is no function's.
const BEFORE: [&str; 24] = [
    "INSERT",
    "REPLACE",
    "IGNORE",
    "DELAYED",
    "LOW_PRIORITY",
    "CURSOR",
    "INTO",
    "TABLE",
    "EXISTS",
    "JOIN",
    "FROM",
    "WITH",
    "RECURSIVE",
    "INDEX",
    "KEY",
    "CONSTRAINT",
    "UNIQUE",
    "VIEW",
    "ON",
    "UPDATE",
    "REFERENCES",
    "USING",
    "PROCEDURE",
    "FUNCTION",
];

/// Words after which a statement begins.
const STARTS: [&str; 7] = [";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"];

/// Schemas of the server.
const OURS: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];

/// The routines that a text calls: schema, where it is given, name, and whether it is a procedure.
fn calls(words: &[String]) -> BTreeSet<(Option<String>, String, bool)> {
    let is = |at: usize, names: &[&str]| {
        words.get(at).is_some_and(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
    };
    let plain =
        |at: usize| words.get(at).filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    let mut found = BTreeSet::new();
    for at in 0..words.len() {
        if is(at, &["CALL"]) && (at == 0 || is(at - 1, &STARTS) || is(at - 1, &[":"])) {
            let place = match (plain(at + 1), is(at + 2, &["."]), plain(at + 3)) {
                (Some(schema), true, Some(name)) => (Some(schema.clone()), name.clone(), true),
                (Some(name), false, _) => (None, name.clone(), true),
                _ => continue,
            };
            found.insert(place);
        } else if let Some(name) = plain(at).filter(|_| is(at + 1, &["("])) {
            let lower = name.to_ascii_lowercase();
            let named = FUNCTIONS.iter().any(|start| lower.starts_with(start) && lower.len() > start.len());
            let qualified = at >= 2 && is(at - 1, &["."]);
            let before = if qualified { at.checked_sub(3) } else { at.checked_sub(1) };
            let is_other = before.is_some_and(|at| is(at, &BEFORE) || is(at, &["CALL", "."]));
            let is_expression =
                (at..words.len()).any(|at| is(at, &[")"]) && is(at + 1, &["AS"]) && is(at + 2, &["("]));
            if named && !is_other && !is_expression {
                let schema = if qualified { plain(at - 2).cloned() } else { None };
                if schema.is_some() || !qualified {
                    found.insert((schema, name.clone(), false));
                }
            }
        }
    }
    found.retain(|(schema, ..)| {
        schema.as_ref().is_none_or(|s| !OURS.contains(&s.to_ascii_lowercase().as_str()))
    });
    found
}

/// Those that call a routine which is not there.
///
/// # Errors
/// The server refuses to list its routines.
pub(super) fn without_routine(sql: &mut ReadOnly<'_>, all: &[&Code]) -> Read<Vec<Value>> {
    let mut there: BTreeMap<(String, String), bool> = BTreeMap::new();
    let mut found = Vec::new();
    for code in all {
        // Packages of MariaDB define what they call.
        let defines =
            |word: &String| ["PROCEDURE", "FUNCTION"].iter().any(|kind| word.eq_ignore_ascii_case(kind));
        if code.words.iter().any(defines) {
            continue;
        }
        for (schema, name, is_procedure) in calls(&code.words) {
            let place = (schema.unwrap_or_else(|| code.schema.clone()), name.to_lowercase());
            let read = |one: &&&Code| {
                one.fires.is_none() && one.schema == place.0 && one.name.to_lowercase() == place.1
            };
            let is_there = match there.get(&place) {
                Some(known) => *known,
                None => all.iter().any(|one| read(&one)) || there.len() >= LOOKED_UP || exists(sql, &place)?,
            };
            there.insert(place.clone(), is_there);
            if !is_there {
                let kind = if is_procedure { "procedure" } else { "function" };
                found.push(json!({
                    "code": format!("{}.{}", code.schema, code.name), "routine": format!("{}.{name}", place.0), "kind": kind,
                }));
                break;
            }
        }
    }
    found.truncate(20);
    Ok(found)
}

/// Whether there is such a routine, or a loaded function of the name. A package of MariaDB looks like a schema.
fn exists(sql: &mut ReadOnly<'_>, (schema, name): &(String, String)) -> Read<bool> {
    let (Some(schema), Some(name)) = (quoted(schema), quoted(name)) else { return Ok(true) };
    let statement = format!(
        "SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_NAME = {name} AND ROUTINE_SCHEMA = {schema} UNION ALL SELECT 1 FROM mysql.func WHERE name = {name} UNION ALL SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_NAME = {schema} AND ROUTINE_TYPE LIKE 'PACKAGE%' LIMIT 1"
    );
    let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on the routines (SHOW_ROUTINE)"))?;
    Ok(!rows.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::stored_text::words;
    use super::*;

    #[test]
    fn the_routines_that_a_text_calls_are_told() {
        let called = |text: &str| {
            let name = |(schema, name, _): (Option<String>, String, bool)| {
                schema.map_or(name.clone(), |schema| format!("{schema}.{name}"))
            };
            calls(&words(text)).into_iter().map(name).collect::<Vec<String>>()
        };
        let text = "BEGIN CALL p_log('CALL x'); IF fn_age(NEW.born) > his.fn_limit() THEN CALL crm.p_sync(); END IF; END";
        assert_eq!(called(text), ["fn_age", "p_log", "crm.p_sync", "his.fn_limit"]);
        for text in [
            "BEGIN INSERT INTO f_sales (a, b) VALUES (1, 2); END",
            "BEGIN WITH f_x (a) AS (SELECT 1) SELECT a FROM f_x; END",
            "BEGIN SELECT call FROM phones WHERE f_a IN (1); CALL sys.table_exists('a', 'b', @c); END",
            "BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS f_tmp (a INT); SELECT COUNT(*) FROM t JOIN f_tmp USING (a); END",
        ] {
            assert_eq!(called(text), Vec::<String>::new(), "{text}");
        }
    }
}
