//! Filters of a replica that name tables by a pattern, and match tables that they do not seem to.

use serde_json::{Value, json};

use crate::collectors::counted::few_tables;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, quoted};

/// Entries of a list.
const LISTED: usize = 20;

/// Patterns that are looked at.
const LOOKED_AT: usize = 20;

/// Notes the patterns of an option that may match more than one table.
pub(super) fn note(option: &'static str, value: &str, patterns: &mut Vec<(&'static str, String)>) {
    for pattern in value.split(',').map(str::trim) {
        let known = patterns.iter().any(|(_, p)| p == pattern);
        let is_one =
            |literal: String| literal == escaped(pattern) && !pattern.replace("\\%", "").contains('%');
        if !known && patterns.len() < LOOKED_AT && literal(pattern).is_some_and(|l| !is_one(l)) {
            patterns.push((option, pattern.to_owned()));
        }
    }
}

/// The pattern with `|` in place of the backslash, which no statement has.
fn escaped(pattern: &str) -> String {
    pattern.replace('\\', "|")
}

/// The pattern whose every `_` stands for itself; `None` where it has a `|` of its own.
fn literal(pattern: &str) -> Option<String> {
    if pattern.contains('|') {
        return None;
    }
    let mut out = String::new();
    let mut after = false;
    for c in escaped(pattern).chars() {
        if c == '_' && !after {
            out.push('|');
        }
        after = c == '|' && !after;
        out.push(c);
    }
    Some(out)
}

/// Tables that patterns match here.
#[derive(Debug, Default)]
struct Matched {
    /// Patterns with tables that they match by a `_` that is another character there: option, pattern, tables (20).
    wildcards: Vec<Value>,
    /// Patterns of names with several tables: option, pattern, number, tables (5), mixed.
    several: Vec<Value>,
}

/// Puts what patterns match.
pub(super) fn put(
    sql: &mut ReadOnly<'_>,
    from: &'static str,
    patterns: &[(&'static str, String)],
    readings: &Readings,
) {
    match matched(sql, patterns) {
        Ok(found) => {
            readings.put("server.replication_wildcards", from, Ok(found.wildcards));
            readings.put("server.replication_patterns", from, Ok(found.several));
        }
        Err(missing) => put_missing(from, &missing, readings),
    }
}

/// Puts why nothing is known.
pub(super) fn put_missing(from: &str, missing: &Missing, readings: &Readings) {
    for id in ["server.replication_wildcards", "server.replication_patterns"] {
        readings.put::<Value>(id, from, Err(missing.clone()));
    }
}

/// Looks up the tables that patterns match.
fn matched(sql: &mut ReadOnly<'_>, patterns: &[(&'static str, String)]) -> Read<Matched> {
    let mut found = Matched::default();
    if patterns.is_empty() {
        return Ok(found);
    }
    few_tables(sql)?;
    for (option, pattern) in patterns {
        let both = literal(pattern).and_then(|literal| Some((quoted(&escaped(pattern))?, quoted(&literal)?)));
        let Some((any, literal)) = both else { continue };
        let name = "CONCAT(TABLE_SCHEMA, '.', TABLE_NAME)";
        let statement = format!(
            "SELECT {name}, {name} NOT LIKE {literal} ESCAPE '|' FROM information_schema.TABLES WHERE {name} LIKE {any} ESCAPE '|' AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 2 DESC, 1 LIMIT 100"
        );
        let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on the tables"))?;
        let cell = |row: &Row, place: usize| row.get(place).cloned().flatten().unwrap_or_default();
        let other = rows.iter().filter(|row| cell(row, 1) == "1").map(|row| Value::from(cell(row, 0)));
        let other: Vec<Value> = other.take(LISTED).collect();
        if !other.is_empty() {
            found.wildcards.push(json!({"option": option, "pattern": pattern, "tables": other}));
        }
        let names: Vec<String> = rows.iter().map(|row| cell(row, 0)).collect();
        found.several.extend(several(option, pattern, &names));
    }
    Ok(found)
}

/// A pattern that begins the names of several tables of a schema. A whole schema is meant by `schema.%`.
fn several(option: &str, pattern: &str, names: &[String]) -> Option<Value> {
    let (_, of_table) = pattern.split_once('.')?;
    let begins = of_table.split('%').next().is_some_and(|stem| !stem.is_empty());
    if !begins || names.len() < 2 {
        return None;
    }
    let aside = names.iter().filter(|name| is_aside(name)).count();
    let some: Vec<&String> = names.iter().take(5).collect();
    let mixed = aside > 0 && aside < names.len();
    Some(json!({"option": option, "pattern": pattern, "number": names.len(), "tables": some, "mixed": mixed}))
}

/// Whether the name of a table says that a replica can do without it.
fn is_aside(name: &str) -> bool {
    const WORDS: [&str; 22] = [
        "tmp", "temp", "cache", "caches", "log", "logs", "session", "sessions", "queue", "jobs", "old",
        "bak", "backup", "test", "import", "staging", "stats", "audit", "history", "archive", "trace",
        "debug",
    ];
    let lower = name.to_ascii_lowercase();
    let table = lower.split_once('.').map_or(lower.as_str(), |(_, table)| table);
    table.split('_').any(|word| WORDS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_looked_at_where_an_underscore_is_a_wildcard() {
        let mut patterns = Vec::new();
        note("ignore", "%.tmp_%,shop.a%, crm.t\\_1,%.tmp_%,a|b._", &mut patterns);
        let expected = ["%.tmp_%", "shop.a%"].map(|pattern| ("ignore", pattern.to_owned()));
        assert_eq!(patterns, expected);
        assert_eq!(literal("%.tmp_%").as_deref(), Some("%.tmp|_%"));
        assert_eq!(literal("crm.t\\_1_").as_deref(), Some("crm.t|_1|_"));
    }

    #[test]
    fn a_pattern_that_begins_the_names_of_several_tables_is_told() {
        let names = |tables: &[&str]| tables.iter().map(|&table| table.to_owned()).collect::<Vec<String>>();
        let stock = names(&["shop.stock_move", "shop.stock_reservation", "shop.stock_tmp"]);
        let expected = json!({
            "option": "ignore", "pattern": "shop.stock%", "number": 3, "tables": stock, "mixed": true,
        });
        assert_eq!(several("ignore", "shop.stock%", &stock), Some(expected));
        assert_eq!(several("do", "shop.stock%", &stock[..2]).unwrap()["mixed"], false);
        assert_eq!(several("ignore", "%.tmp%", &names(&["a.tmp1", "b.tmp_2"])).unwrap()["mixed"], false);
        assert_eq!(several("ignore", "shop.%", &stock), None);
        assert_eq!(several("ignore", "shop.stock%", &stock[..1]), None);
    }
}
