//! The mark by which mydyno recognises its databases. mydyno creates and drops data only in databases that contain it.

use mydyno_wire::{Client, WireError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The table that serves as the mark.
pub const TABLE: &str = "mydyno_mark";

/// Comment of databases that mydyno made, on servers with such comments (MariaDB 10.5 and newer). It is created
/// together with the database, so that a database that a kill left without a mark is still recognised.
const COMMENT: &str = "made by mydyno";

/// Comments of the mark's table. They are created together with the table, so that a kill leaves both or neither.
const MADE: &str = "made by mydyno; mydyno drops this database on cleanup";
const ADOPTED: &str = "made by mydyno; the database was there before, and mydyno leaves it on cleanup";

/// Owner of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The database does not exist or is empty. An empty one may stem from a prepare that was killed before it created
    /// the mark, and may be used in any case.
    Missing,
    /// It holds mydyno's ownership mark.
    Ours,
    /// It has contents and no ownership mark.
    Foreign,
}

/// Entry of the mark about the tables of one family of workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataMark {
    /// Everything except the seed that determines the rows.
    pub shape: Value,
    /// Seed of the rows.
    pub seed: u64,
    /// Fingerprint of the rows as they were inserted.
    pub fingerprint: String,
    /// Whether all rows and indexes are complete.
    pub complete: bool,
    /// Whether a run has changed rows since.
    pub used: bool,
}

/// A name as SQL quotes it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as an SQL literal for any `sql_mode`: quotes are doubled, and a text with a backslash, whose meaning depends
/// on the mode, is written in hexadecimal.
pub fn literal(text: &str) -> String {
    if text.contains('\\') {
        let hex: String = text.bytes().map(|b| format!("{b:02x}")).collect();
        return format!("x'{hex}'");
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// Determines the owner of a database.
///
/// # Errors
/// The server's or the connection's error.
pub fn owner(client: &mut Client, database: &str) -> Result<Owner, WireError> {
    let name = literal(database);
    let exists = format!("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {name}");
    if client.query(&exists)?.rows.is_empty() {
        return Ok(Owner::Missing);
    }
    let tables = format!(
        "SELECT COUNT(*), COALESCE(SUM(TABLE_NAME = '{TABLE}'), 0) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {name}"
    );
    let tables = client.query(&tables)?;
    Ok(match (tables.number(0, 0), tables.number(0, 1)) {
        (_, Some(1)) => Owner::Ours,
        (Some(0), _) => Owner::Missing,
        _ => Owner::Foreign,
    })
}

/// Whether a database exists, and whether its comment states that mydyno made it.
fn exists(client: &mut Client, database: &str) -> Result<Option<bool>, WireError> {
    let of = |column: &str| {
        format!("SELECT {column} FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {}", literal(database))
    };
    match client.query(&of("SCHEMA_COMMENT")) {
        Ok(rows) => Ok((!rows.is_empty()).then(|| rows.scalar().as_deref() == Some(COMMENT))),
        // Servers without comments of databases.
        Err(WireError::Server(_)) => Ok((!client.query(&of("1"))?.is_empty()).then_some(false)),
        Err(e) => Err(e),
    }
}

/// Creates a database with the mark, or creates the mark in an empty database.
///
/// # Errors
/// The server's or the connection's error.
pub fn create(client: &mut Client, database: &str) -> Result<(), WireError> {
    let name = quoted(database);
    let found = exists(client, database)?;
    if found.is_none() {
        let create = format!("CREATE DATABASE {name} CHARACTER SET latin1");
        match client.execute(&format!("{create} COMMENT {}", literal(COMMENT))) {
            // A server without comments of databases, which may return any error for that; an error with another cause
            // occurs again.
            Err(WireError::Server(_)) => client.execute(&create)?,
            other => other?,
        };
    }
    let comment = literal(if found == Some(false) { ADOPTED } else { MADE });
    let table = |engine: &str| {
        format!(
            "CREATE TABLE {name}.{TABLE} (name VARBINARY(64) NOT NULL PRIMARY KEY, value MEDIUMTEXT NOT NULL) ENGINE={engine} COMMENT {comment}"
        )
    };
    // The server's default engine may lose its rows at a restart.
    match client.execute(&table("InnoDB")) {
        Err(WireError::Server(error)) if error.code == UNKNOWN_ENGINE => client.execute(&table("MyISAM"))?,
        other => other?,
    };
    let written = if found == Some(false) { ADOPTED } else { MADE };
    if comment_of(client, database)?.is_empty() {
        // A server without comments of tables: the origin is stored as a row of the mark.
        note(client, database, ORIGIN, Some(written))?;
    }
    Ok(())
}

/// Name of the row that replaces the comment of the mark's table on servers without such comments.
const ORIGIN: &str = "mydyno.origin";

/// `ER_UNKNOWN_STORAGE_ENGINE`: the engine is not built in, or is disabled.
const UNKNOWN_ENGINE: u16 = 1286;

/// Origin of a database, according to its mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// mydyno made it.
    Made,
    /// The database existed before and was empty.
    Adopted,
    /// The mark has this comment, which mydyno does not write: it was changed, or the table is not mydyno's.
    Unclear(String),
}

/// Reads the origin of a database that has a mark.
///
/// # Errors
/// The server's or the connection's error.
pub fn origin(client: &mut Client, database: &str) -> Result<Origin, WireError> {
    let mut comment = comment_of(client, database)?;
    if comment.is_empty() {
        comment = notes(client, database, ORIGIN)?.pop().map(|(_, value)| value).unwrap_or_default();
    }
    Ok(match comment.as_str() {
        MADE => Origin::Made,
        ADOPTED => Origin::Adopted,
        _ => Origin::Unclear(comment),
    })
}

/// The comment of the mark's table; empty on servers that keep none.
fn comment_of(client: &mut Client, database: &str) -> Result<String, WireError> {
    let comment = format!(
        "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = '{TABLE}'",
        literal(database)
    );
    match client.query(&comment) {
        Ok(rows) => Ok(rows.scalar().unwrap_or_default().into_owned()),
        // A server without the column.
        Err(WireError::Server(_)) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Drops a database that mydyno made; in one that existed before, drops only the tables that the marks list. Drops
/// nothing if the mark is unclear.
///
/// # Errors
/// The server's or the connection's error.
pub fn drop(client: &mut Client, database: &str) -> Result<Origin, WireError> {
    let name = quoted(database);
    let origin = origin(client, database)?;
    match origin {
        Origin::Made => {
            client.execute(&format!("DROP DATABASE {name}"))?;
        }
        Origin::Adopted => drop_marked(client, &name)?,
        Origin::Unclear(_) => {}
    }
    Ok(origin)
}

/// Beginning of the notes that name stored procedures.
const ROUTINE: &str = "routine.";

/// Notes that mydyno makes this stored procedure.
///
/// # Errors
/// The server's or the connection's error.
pub fn note_routine(client: &mut Client, database: &str, routine: &str) -> Result<(), WireError> {
    note(client, database, &format!("{ROUTINE}{routine}"), Some("yes"))
}

/// Drops the tables and procedures that the marks list, then the mark.
fn drop_marked(client: &mut Client, name: &str) -> Result<(), WireError> {
    let marks = client.query(&format!("SELECT value FROM {name}.{TABLE}"))?.rows;
    let marks = marks.iter().filter_map(|row| serde_json::from_slice(row.first()?.as_deref()?).ok());
    client.execute("SET SESSION foreign_key_checks = 0")?;
    for table in marks.flat_map(tables_of) {
        client.execute(&format!("DROP TABLE IF EXISTS {name}.{}", quoted(&table)))?;
    }
    client.execute("SET SESSION foreign_key_checks = DEFAULT")?;
    let routines = client.query(&format!("SELECT name FROM {name}.{TABLE}{}", beginning_with(ROUTINE)))?;
    for row in 0..routines.len() {
        let routine = routines.text(row, 0).unwrap_or_default();
        let routine = routine.strip_prefix(ROUTINE).unwrap_or_default();
        client.execute(&format!("DROP PROCEDURE IF EXISTS {name}.{}", quoted(routine)))?;
    }
    client.execute(&format!("DROP TABLE {name}.{TABLE}")).map(|_| ())
}

/// Drops a database that a killed prepare left empty and whose comment states that mydyno made it. Returns whether
/// there was one.
///
/// # Errors
/// The server's or the connection's error.
pub fn drop_empty(client: &mut Client, database: &str) -> Result<bool, WireError> {
    if exists(client, database)? != Some(true) {
        return Ok(false);
    }
    client.execute(&format!("DROP DATABASE {}", quoted(database))).map(|_| true)
}

/// Names of the tables of a mark, which lists them or, for sysbench's tables, contains their number.
pub(crate) fn tables_of(mark: DataMark) -> Vec<String> {
    match mark.shape.get("tables") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(count) => (1..=count.as_u64().unwrap_or(0)).map(|n| format!("sbtest{n}")).collect(),
        None => Vec::new(),
    }
}

/// Reads the entry of a family's tables; `None` without a readable entry.
///
/// # Errors
/// The server's or the connection's error.
pub fn data(client: &mut Client, database: &str, family: &str) -> Result<Option<DataMark>, WireError> {
    let sql = format!("SELECT value FROM {}.{TABLE} WHERE name = {}", quoted(database), literal(family));
    let rows = client.query(&sql)?.rows;
    let text = rows.first().and_then(|row| row.first()).and_then(|v| v.as_deref());
    Ok(text.and_then(|text| serde_json::from_slice(text).ok()))
}

/// Writes the entry of a family's tables.
///
/// # Errors
/// The server's or the connection's error.
pub fn set_data(client: &mut Client, database: &str, family: &str, mark: &DataMark) -> Result<(), WireError> {
    let value = serde_json::to_string(mark).unwrap_or_default();
    client.execute(&format!(
        "REPLACE INTO {}.{TABLE} (name, value) VALUES ({}, {})",
        quoted(database),
        literal(family),
        literal(&value)
    ))?;
    // A server without strict mode truncates values that are too long, with a warning at most.
    if data(client, database, family)?.as_ref() == Some(mark) {
        return Ok(());
    }
    Err(WireError::Io {
        during: "writing the mark",
        source: std::io::Error::other(format!(
            "the server keeps another value than the {} bytes that were written into {}.{TABLE}",
            value.len(),
            quoted(database)
        )),
    })
}

/// Writes a note into the mark; `None` deletes it.
///
/// # Errors
/// The server's or the connection's error.
pub fn note(client: &mut Client, database: &str, name: &str, value: Option<&str>) -> Result<(), WireError> {
    let (database, name) = (quoted(database), literal(name));
    let sql = match value {
        Some(value) => {
            format!("REPLACE INTO {database}.{TABLE} (name, value) VALUES ({name}, {})", literal(value))
        }
        None => format!("DELETE FROM {database}.{TABLE} WHERE name = {name}"),
    };
    client.execute(&sql).map(|_| ())
}

/// Whether there is a note of this name in the mark.
///
/// # Errors
/// The server's or the connection's error.
pub fn is_noted(client: &mut Client, database: &str, name: &str) -> Result<bool, WireError> {
    let sql = format!("SELECT 1 FROM {}.{TABLE} WHERE name = {}", quoted(database), literal(name));
    Ok(!client.query(&sql)?.is_empty())
}

/// Names and values of the notes whose names begin with `prefix`.
///
/// # Errors
/// The server's or the connection's error.
pub fn notes(client: &mut Client, database: &str, prefix: &str) -> Result<Vec<(String, String)>, WireError> {
    let sql = format!("SELECT name, value FROM {}.{TABLE}{}", quoted(database), beginning_with(prefix));
    let rows = client.query(&sql)?;
    let text = |row, column| rows.text(row, column).unwrap_or_default().into_owned();
    Ok((0..rows.len()).map(|row| (text(row, 0), text(row, 1))).collect())
}

/// Deletes the notes whose names begin with `prefix`.
///
/// # Errors
/// The server's or the connection's error.
pub fn forget(client: &mut Client, database: &str, prefix: &str) -> Result<(), WireError> {
    client.execute(&format!("DELETE FROM {}.{TABLE}{}", quoted(database), beginning_with(prefix))).map(|_| ())
}

fn beginning_with(prefix: &str) -> String {
    format!(" WHERE LEFT(name, {}) = {}", prefix.chars().count(), literal(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_cannot_leave_their_quotes() {
        assert_eq!(quoted("a`b"), "`a``b`");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("\\' OR 1"), "x'5c27204f522031'");
    }
}
