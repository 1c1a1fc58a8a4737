//! Rows that are counts or names; numbers that decide what else is asked for.

use serde_json::Value;

use crate::collectors::schema::rows::COUNTED;
use crate::collectors::schema::statistics::STATISTICS;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError};

const TABLES_COUNTED: &str = "SELECT COUNT(*) FROM mysql.innodb_table_stats WHERE database_name <> 'mysql' AND LEFT(LOWER(table_name), 4) NOT IN ('fts_', '#sql')";
const FILES_COUNTED: &str = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')";

/// Schemas whose tables are listed by SHOW FULL TABLES.
const SCHEMAS_LISTED: usize = 200;
const SCHEMAS: &str = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') AND SCHEMA_NAME NOT LIKE '#mysql50#%'";

/// Views and sequences of users, by schema, name and type: a server without a dictionary reads the first bytes of a file for each
/// table, and is asked once.
pub(super) fn no_tables(sql: &mut ReadOnly<'_>) -> Read<Vec<[String; 3]>> {
    let refused = |e: SqlError| e.missing("SELECT on schema mysql, and SHOW VIEW");
    let schemas: Vec<String> =
        sql.shared(SCHEMAS).map_err(refused)?.iter().flatten().flatten().cloned().collect();
    if schemas.len() > SCHEMAS_LISTED {
        return Err(Missing::Error(format!("not asked for, because there are {} schemas", schemas.len())));
    }
    let mut found = Vec::new();
    for schema in schemas {
        let in_schema = schema.replace('`', "``");
        let statement =
            format!("SHOW FULL TABLES FROM `{in_schema}` WHERE Table_type IN ('VIEW', 'SEQUENCE')");
        for row in sql.shared(&statement).map_err(refused)?.iter() {
            if let [Some(name), Some(kind), ..] = &row[..] {
                found.push([schema.clone(), name.clone(), kind.clone()]);
            }
        }
    }
    Ok(found)
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
