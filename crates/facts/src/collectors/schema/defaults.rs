//! Schemas in which most tables have another character set than a table that is made now would get.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rows::text;
use crate::source::Read;
use crate::sql::{ReadOnly, Row};

const DEFAULTS: &str = "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME LIMIT 10000";

/// Numbers of tables by schema and character set.
#[derive(Default)]
pub struct Defaults(BTreeMap<String, BTreeMap<String, u64>>);

impl Defaults {
    /// Counts a table; one that cannot be opened has no collation.
    pub fn table(&mut self, schema: &str, collation: &str) {
        let charset = collation.split('_').next().unwrap_or_default();
        if !charset.is_empty() {
            *self.0.entry(schema.to_owned()).or_default().entry(as_before(charset)).or_default() += 1;
        }
    }

    /// The schemas.
    ///
    /// # Errors
    /// The server refuses their list.
    pub fn differing(&self, sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let rows = sql.rows(DEFAULTS).map_err(|e| e.missing("SELECT on the tables"))?;
        Ok(rows.iter().filter_map(|row| self.of(row)).take(20).collect())
    }

    fn of(&self, row: &Row) -> Option<Value> {
        let (schema, default) = (text(row, 0), text(row, 1));
        let tables = self.0.get(schema)?;
        let all: u64 = tables.values().sum();
        let others = all - tables.get(&as_before(default)).copied().unwrap_or(0);
        (others * 2 > all).then(|| json!({"schema": schema, "charset": default, "tables": others}))
    }
}

/// The name that a character set had before it got its length.
fn as_before(charset: &str) -> String {
    if charset == "utf8mb3" { "utf8".to_owned() } else { charset.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_told_where_more_than_half_of_its_tables_differ() {
        let mut defaults = Defaults::default();
        for (schema, collation) in [
            ("shop", "utf8mb4_general_ci"),
            ("shop", "utf8mb4_bin"),
            ("shop", "latin1_swedish_ci"),
            ("shop", ""),
            ("old", "utf8mb3_general_ci"),
        ] {
            defaults.table(schema, collation);
        }
        let of = |schema: &str, default: &str| {
            defaults.of(&vec![Some(schema.to_owned()), Some(default.to_owned())])
        };
        assert_eq!(of("shop", "latin1"), Some(json!({"schema": "shop", "charset": "latin1", "tables": 2})));
        assert_eq!((of("shop", "utf8mb4"), of("old", "utf8"), of("empty", "utf8")), (None, None, None));
    }
}
