//! Rows that are counts or names; numbers that decide what else is asked for.

use serde_json::Value;

use crate::collectors::schema::rows::COUNTED;
use crate::collectors::schema::statistics::STATISTICS;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError};

const TABLES_COUNTED: &str = "SELECT COUNT(*) FROM mysql.innodb_table_stats WHERE database_name <> 'mysql' AND LEFT(LOWER(table_name), 4) NOT IN ('fts_', '#sql')";
const FILES_COUNTED: &str = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')";

/// Tables and views by schema, type, engine and collation. A server without a dictionary opens the file of each for it.
const KINDS: &str = "SELECT TABLE_SCHEMA, TABLE_TYPE, COALESCE(ENGINE, ''), COALESCE(TABLE_COLLATION, ''), COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') GROUP BY TABLE_SCHEMA, TABLE_TYPE, ENGINE, TABLE_COLLATION LIMIT 50000";

/// Tables of a schema that are alike.
pub(super) struct Kind {
    /// Name of the schema.
    pub schema: String,
    /// As `BASE TABLE`, `VIEW` or `SEQUENCE`.
    pub kind: String,
    /// Empty for a view, and for a table that cannot be opened.
    pub engine: String,
    /// Empty for a view.
    pub collation: String,
    /// Their number.
    pub count: u64,
}

/// The tables of users by their kinds, which the server is asked for once.
pub(super) fn kinds(sql: &mut ReadOnly<'_>) -> Result<Vec<Kind>, SqlError> {
    let rows = sql.shared(KINDS)?;
    let kind = |row: &Row| {
        let text = |place: usize| row.get(place).cloned().flatten();
        Some(Kind {
            schema: text(0)?,
            kind: text(1)?,
            engine: text(2)?,
            collation: text(3)?,
            count: text(4)?.parse().ok()?,
        })
    };
    Ok(rows.iter().filter_map(kind).collect())
}

/// That there are no more tables than [`COUNTED`].
pub(super) fn few_tables(sql: &mut ReadOnly<'_>) -> Read<()> {
    few_enough(&tables(sql)?.into(), COUNTED)
}

/// About how many tables there are. InnoDB's statistics tell it at once, but know only tables that were opened since they are
/// kept; where they tell of few, the server lists the names of its files or looks into its dictionary, and opens no table.
pub(super) fn tables(sql: &mut ReadOnly<'_>) -> Read<u64> {
    if let Some(known) = sql.tables {
        return Ok(known);
    }
    let told = match sql.dialect().is_none_or(|dialect| dialect.is(&STATISTICS)) {
        true => number(sql, TABLES_COUNTED)?,
        false => 0,
    };
    let all = if told > COUNTED { told } else { told.max(all_tables(sql)?) };
    sql.tables = Some(all);
    Ok(all)
}

/// How many tables and views there are, by the server's list of names.
pub(super) fn all_tables(sql: &mut ReadOnly<'_>) -> Read<u64> {
    number(sql, FILES_COUNTED)
}

fn number(sql: &mut ReadOnly<'_>, statement: &str) -> Read<u64> {
    let rows = sql.rows(statement).map_err(|e| e.missing("SELECT on schema mysql"))?;
    Ok(count(&rows)?.as_u64().unwrap_or(0))
}

/// That a number is no larger than what is asked for.
pub(super) fn few_enough(number: &Value, most: u64) -> Read<()> {
    match number.as_u64().unwrap_or(0) {
        found if found <= most => Ok(()),
        found => Err(Missing::Error(format!("not asked for, because there are {found}"))),
    }
}

/// The number in the only cell.
pub(super) fn count(rows: &[Row]) -> Read<Value> {
    let text = rows.first().and_then(|row| row.first()).cloned().flatten().unwrap_or_default();
    let number = text.parse::<u64>();
    number.map(Value::from).map_err(|_| Missing::Error(format!("expected a number, found {text:?}")))
}

/// The texts of all cells: names, where a statement gives one column.
pub(super) fn names(rows: Vec<Row>) -> Vec<Value> {
    rows.into_iter().flatten().flatten().map(Value::from).collect()
}
