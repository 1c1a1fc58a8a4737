//! Indexes: those that others make superfluous, and those that no statement uses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rows::{LISTED, OURS, text, whole};
use super::statistics::{STATISTICS, statistics};
use crate::context::Context;
use crate::dialect::Dialect;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError, quoted};
use crate::wording::{mariadb, mysql};

/// An index: its columns, each with the length of its prefix.
#[derive(Debug, PartialEq)]
pub struct Index {
    pub name: String,
    pub unique: bool,
    pub kind: String,
    pub parts: Vec<(String, Option<String>)>,
    /// Invisible (MySQL 8.0), or ignored (MariaDB 10.6): statements do not use it.
    pub hidden: bool,
}

/// The condition that an index in information_schema.STATISTICS is hidden, by what the server knows.
pub fn hidden(dialect: Option<Dialect>) -> &'static str {
    match dialect {
        Some(dialect) if dialect.is(&[mysql(80_000..)]) => "IS_VISIBLE = 'NO'",
        Some(dialect) if dialect.is(&[mariadb(100_600..)]) => "IGNORED = 'YES'",
        _ => "0",
    }
}

/// The column that says whether an index is disabled. MySQL 8.0 works it out for each row, and has hardly any MyISAM tables.
pub fn disabled(dialect: Option<Dialect>) -> &'static str {
    match dialect {
        Some(dialect) if dialect.is(&[mysql(80_000..)]) => "''",
        _ => "COMMENT",
    }
}

/// Rows of STATISTICS, in order, by index.
pub fn grouped(rows: &[Row]) -> Vec<Index> {
    let mut indexes: Vec<Index> = Vec::new();
    for row in rows {
        let [Some(name), Some(non_unique), column, prefix, kind, hidden, ..] = &row[..] else { continue };
        // An expression has no column; it equals nothing but itself.
        let column = column.clone().unwrap_or_else(|| format!("expression of {name}"));
        let part = (column, prefix.clone());
        match indexes.last_mut().filter(|index| index.name == *name) {
            Some(index) => index.parts.push(part),
            None => indexes.push(Index {
                name: name.clone(),
                unique: non_unique == "0",
                kind: kind.clone().unwrap_or_default(),
                parts: vec![part],
                hidden: hidden.as_deref() == Some("1"),
            }),
        }
    }
    indexes
}

/// Indexes that another one makes superfluous: the same columns at its beginning. A unique index is more than a way to
/// find rows, so only a unique one with the same columns makes it superfluous.
pub fn duplicates(indexes: &[Index]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (place, index) in indexes.iter().enumerate() {
        let covers = |(other_place, other): &(usize, &Index)| {
            *other_place != place
                // An index that is hidden from the optimizer is being tried for removal.
                && !other.hidden
                && !index.hidden
                && other.kind == index.kind
                && index.kind == "BTREE"
                && other.parts.starts_with(&index.parts)
                && (other.parts.len() > index.parts.len()
                    // Of two equal ones the later goes, and a plain one before a unique one.
                    || match (other.unique, index.unique) {
                        (true, false) => true,
                        (false, true) => false,
                        _ => *other_place < place || other.name == "PRIMARY",
                    })
                && (!index.unique || (other.unique && other.parts.len() == index.parts.len()))
                && index.name != "PRIMARY"
        };
        if let Some((_, other)) = indexes.iter().enumerate().find(covers) {
            found.push((index.name.as_str(), other.name.as_str()));
        }
    }
    found
}

/// Adds the sizes of superfluous indexes, by InnoDB's statistics, the largest first; of as many as are named.
pub fn add_sizes(sql: &mut ReadOnly<'_>, found: &mut [Value]) {
    let of = |entry: &Value| {
        let (schema, table) = entry["table"].as_str()?.split_once('.')?;
        Some([quoted(schema)?, quoted(table)?, quoted(entry["index"].as_str()?)?])
    };
    let conditions: Vec<String> = found
        .iter()
        .take(LISTED)
        .filter_map(of)
        .map(|[schema, table, index]| {
            format!("database_name = {schema} AND table_name = {table} AND index_name = {index}")
        })
        .collect();
    if conditions.is_empty() {
        return;
    }
    let statement = format!(
        "SELECT CONCAT(database_name, '.', table_name), index_name, stat_value * @@innodb_page_size FROM mysql.innodb_index_stats WHERE stat_name = 'size' AND ({})",
        conditions.join(" OR ")
    );
    let rows = statistics(sql, &statement).unwrap_or_default();
    for entry in found.iter_mut() {
        let is = |row: &&Row| entry["table"] == text(row, 0) && entry["index"] == text(row, 1);
        if let Some(bytes) = rows.iter().find(is).and_then(|row| whole(row, 2).ok()) {
            entry["size_bytes"] = bytes.into();
        }
    }
    found.sort_by_key(|entry| std::cmp::Reverse(entry["size_bytes"].as_u64().unwrap_or(0)));
}

/// Where the server counts the use of indexes.
pub const INDEX_USAGE: &str = "performance_schema.table_io_waits_summary_by_index_usage";

/// Those of some indexes that no statement has used since the server started. A table that was not opened since has
/// no line there, so that nothing is said of it.
pub fn unused(context: &Context, sql: &mut ReadOnly<'_>, indexes: &[[String; 4]]) -> Read<Value> {
    if !context.variable("performance_schema").is_some_and(|v| v.eq_ignore_ascii_case("ON")) {
        return Err(Missing::Absent(
            "performance_schema is off: nothing counts the use of indexes".to_owned(),
        ));
    }
    if sql.dialect().is_some_and(|dialect| !dialect.is(&STATISTICS)) {
        return Err(SqlError::NotInThisVersion.missing(""));
    }
    let counts = "SELECT ENABLED FROM performance_schema.setup_instruments WHERE NAME = 'wait/io/table/sql/handler' AND ENABLED = 'YES'";
    let counts = sql.rows(counts).map_err(|e| e.missing("SELECT on performance_schema"))?;
    if counts.is_empty() {
        return Err(Missing::Absent(
            "the instrument wait/io/table/sql/handler is off: nothing counts the use of indexes".to_owned(),
        ));
    }
    // Lines of tables that were not read would only take their way through both programs.
    let tables: BTreeSet<String> = indexes.iter().filter_map(|[_, table, ..]| quoted(table)).collect();
    if tables.is_empty() {
        return Ok(Vec::<Value>::new().into());
    }
    let statement = format!(
        "SELECT OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME FROM {INDEX_USAGE} WHERE INDEX_NAME IS NOT NULL AND COUNT_STAR = 0 AND OBJECT_SCHEMA NOT IN {OURS} AND OBJECT_NAME IN ({})",
        tables.into_iter().collect::<Vec<_>>().join(", ")
    );
    let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on performance_schema"))?;
    let idle: BTreeSet<[&str; 3]> = rows.iter().map(|r| [text(r, 0), text(r, 1), text(r, 2)]).collect();
    let mut found = Vec::new();
    let mut asked = 0;
    for [schema, table, index, column] in indexes {
        if !idle.contains(&[schema.as_str(), table.as_str(), index.as_str()])
            || found.len() == LISTED
            || asked == 3 * LISTED
        {
            continue;
        }
        asked += 1;
        let (Some(in_schema), Some(is_table)) = (quoted(schema), quoted(table)) else { continue };
        let keys = sql
            .rows(&format!(
                "SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = {in_schema} AND TABLE_NAME = {is_table} AND REFERENCED_TABLE_NAME IS NOT NULL"
            ))
            .map_err(|e| e.missing("SELECT on the tables"))?;
        if !keys.iter().any(|key| text(key, 0).eq_ignore_ascii_case(column)) {
            found.push(json!({"table": format!("{schema}.{table}"), "index": index}));
        }
    }
    Ok(found.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(name: &str, unique: bool, columns: &[&str]) -> Index {
        let parts = columns.iter().map(|c| ((*c).to_owned(), None)).collect();
        Index { name: name.to_owned(), unique, kind: "BTREE".to_owned(), parts, hidden: false }
    }

    #[test]
    fn an_index_that_begins_another_is_superfluous_unless_it_is_unique() {
        let indexes = [
            index("PRIMARY", true, &["id"]),
            index("a", false, &["a"]),
            index("a_again", false, &["a"]),
            index("ab", false, &["a", "b"]),
            index("u", true, &["c"]),
            index("cd", false, &["c", "d"]),
            index("id", false, &["id"]),
        ];
        assert_eq!(duplicates(&indexes), [("a", "ab"), ("a_again", "a"), ("id", "PRIMARY")]);
    }

    #[test]
    fn a_hidden_index_covers_none_and_the_primary_key_covers_a_unique_one() {
        let primary = || index("PRIMARY", true, &["id"]);
        let mut wide = index("ab", false, &["a", "b"]);
        wide.hidden = true;
        assert!(duplicates(&[primary(), index("a", false, &["a"]), wide]).is_empty());
        let unique = [index("again", true, &["id"]), primary()];
        assert_eq!(duplicates(&unique), [("again", "PRIMARY")]);
    }

    #[test]
    fn a_prefix_of_a_column_is_not_the_column() {
        let mut short = index("short", false, &["a"]);
        short.parts[0].1 = Some("10".to_owned());
        assert!(duplicates(&[short, index("long", false, &["a", "b"])]).is_empty());
    }
}
