//! Filters of a replica that name tables by a pattern, and match tables that they do not seem to.

use serde_json::{Value, json};

use crate::collectors::counted::{few_tables, names};
use crate::source::Read;
use crate::sql::{ReadOnly, quoted};

/// Patterns that are looked at.
const LOOKED_AT: usize = 20;

/// Notes the patterns of an option whose `_` stands for any character.
pub(super) fn note(option: &'static str, value: &str, patterns: &mut Vec<(&'static str, String)>) {
    for pattern in value.split(',').map(str::trim) {
        let known = patterns.iter().any(|(_, p)| p == pattern);
        if !known && patterns.len() < LOOKED_AT && literal(pattern).is_some_and(|l| l != escaped(pattern)) {
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

/// The patterns that match tables by a `_` that is another character there.
pub(super) fn matched(sql: &mut ReadOnly<'_>, patterns: &[(&'static str, String)]) -> Read<Vec<Value>> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    few_tables(sql)?;
    let mut found = Vec::new();
    for (option, pattern) in patterns {
        let both = literal(pattern).and_then(|literal| Some((quoted(&escaped(pattern))?, quoted(&literal)?)));
        let Some((any, literal)) = both else { continue };
        let name = "CONCAT(TABLE_SCHEMA, '.', TABLE_NAME)";
        let statement = format!(
            "SELECT {name} FROM information_schema.TABLES WHERE {name} LIKE {any} ESCAPE '|' AND {name} NOT LIKE {literal} ESCAPE '|' AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 1 LIMIT 20"
        );
        let tables = sql.rows(&statement).map(names).map_err(|e| e.missing("SELECT on the tables"))?;
        if !tables.is_empty() {
            found.push(json!({"option": option, "pattern": pattern, "tables": tables}));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_looked_at_where_an_underscore_is_a_wildcard() {
        let mut patterns = Vec::new();
        note("ignore", "%.tmp_%,shop.a%, crm.t\\_1,%.tmp_%,a|b._", &mut patterns);
        assert_eq!(patterns, [("ignore", "%.tmp_%".to_owned())]);
        assert_eq!(literal("%.tmp_%").as_deref(), Some("%.tmp|_%"));
        assert_eq!(literal("crm.t\\_1_").as_deref(), Some("crm.t|_1|_"));
    }
}
