//! The mark: how mydyno tells a database of its own from somebody's. Data is only created in, and dropped from,
//! databases that hold it.

use mydyno_wire::{Client, WireError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The table that is the mark.
pub const TABLE: &str = "mydyno_mark";

/// Whose a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// There is no such database.
    Missing,
    /// It holds our mark.
    Ours,
    /// It exists without our mark.
    Foreign,
}

/// What the mark says about the tables of one family of workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataMark {
    /// Everything but the seed that decides the rows.
    pub shape: Value,
    /// Seed of the rows.
    pub seed: u64,
    /// Fingerprint of the rows as they were made.
    pub fingerprint: String,
    /// Whether all rows and indexes are in.
    pub complete: bool,
    /// Whether a run has changed rows since.
    pub used: bool,
}

/// A name as SQL quotes it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as SQL quotes it, for servers in any `sql_mode`: quotes are doubled, and a backslash, which means
/// different things in different modes, forces the hexadecimal form.
pub fn literal(text: &str) -> String {
    if text.contains('\\') {
        let hex: String = text.bytes().map(|b| format!("{b:02x}")).collect();
        return format!("x'{hex}'");
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// Whose the database is.
///
/// # Errors
/// What the server or the connection said.
pub fn owner(client: &mut Client, database: &str) -> Result<Owner, WireError> {
    let name = literal(database);
    let exists = format!("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {name}");
    if client.query(&exists)?.rows.is_empty() {
        return Ok(Owner::Missing);
    }
    let mark = format!(
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = {name} AND TABLE_NAME = '{TABLE}'"
    );
    Ok(if client.query(&mark)?.rows.is_empty() { Owner::Foreign } else { Owner::Ours })
}

/// Creates a database with the mark in it.
///
/// # Errors
/// What the server or the connection said.
pub fn create(client: &mut Client, database: &str) -> Result<(), WireError> {
    let database = quoted(database);
    client.execute(&format!("CREATE DATABASE {database} CHARACTER SET latin1"))?;
    client.execute(&format!(
        "CREATE TABLE {database}.{TABLE} (name VARCHAR(64) NOT NULL PRIMARY KEY, value TEXT NOT NULL) \
         COMMENT 'made by mydyno; mydyno drops this database on cleanup'"
    ))?;
    Ok(())
}

/// Drops a database of ours and everything in it.
///
/// # Errors
/// What the server or the connection said.
pub fn drop(client: &mut Client, database: &str) -> Result<(), WireError> {
    client.execute(&format!("DROP DATABASE {}", quoted(database))).map(|_| ())
}

/// What the mark says about a family's tables; `None` when it says nothing that can be read.
///
/// # Errors
/// What the server or the connection said.
pub fn data(client: &mut Client, database: &str, family: &str) -> Result<Option<DataMark>, WireError> {
    let sql = format!("SELECT value FROM {}.{TABLE} WHERE name = {}", quoted(database), literal(family));
    let rows = client.query(&sql)?.rows;
    let text = rows.first().and_then(|row| row.first()).and_then(|v| v.as_deref());
    Ok(text.and_then(|text| serde_json::from_slice(text).ok()))
}

/// Writes what the mark says about a family's tables.
///
/// # Errors
/// What the server or the connection said.
pub fn set_data(client: &mut Client, database: &str, family: &str, mark: &DataMark) -> Result<(), WireError> {
    let value = serde_json::to_string(mark).unwrap_or_default();
    client.execute(&format!(
        "REPLACE INTO {}.{TABLE} (name, value) VALUES ({}, {})",
        quoted(database),
        literal(family),
        literal(&value)
    ))?;
    Ok(())
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
