//! InnoDB tables without a usable key: InnoDB makes an index of its own for each.

use std::collections::BTreeSet;
use std::time::Duration;

use super::rows::{LISTED, OURS, text};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError, quoted};
use crate::table_files::of_file_name;
use crate::wording::{Since, Wording, first_of, mariadb, mysql};

/// Queries for the indexes that InnoDB makes for tables without a usable key, from its dictionary.
const UNKEYED: [Wording; 2] = [
    (
        "SELECT TABLE_ID FROM information_schema.INNODB_SYS_INDEXES WHERE NAME = 'GEN_CLUST_INDEX' LIMIT 1",
        &[mysql(50_600..).until(80_000), mariadb(100_000..)],
    ),
    (
        "SELECT TABLE_ID FROM information_schema.INNODB_INDEXES WHERE NAME = 'GEN_CLUST_INDEX' LIMIT 1",
        &[mysql(80_000..)],
    ),
];

/// Names of their tables.
const DICTIONARY: [Wording; 2] = [
    (
        "SELECT t.NAME FROM information_schema.INNODB_SYS_INDEXES i JOIN information_schema.INNODB_SYS_TABLES t ON t.TABLE_ID = i.TABLE_ID WHERE i.NAME = 'GEN_CLUST_INDEX' ORDER BY t.NAME",
        &[mysql(50_600..).until(80_000), mariadb(100_000..)],
    ),
    (
        "SELECT t.NAME FROM information_schema.INNODB_INDEXES i JOIN information_schema.INNODB_TABLES t ON t.TABLE_ID = i.TABLE_ID WHERE i.NAME = 'GEN_CLUST_INDEX' ORDER BY t.NAME",
        &[mysql(80_000..)],
    ),
];

/// The sources of tables without a primary key, for servers with many tables.
const INDEX_STATISTICS: &str = "mysql.innodb_index_stats";

/// Servers that have sequences, which are tables of one row and can have no key.
const WITH_SEQUENCES: [Since; 1] = [mariadb(100_300..)];

/// Tables that are looked at whether they are sequences: the type of one is read from its file, of all from 1,000 files.
const MOST_LOOKED_AT: usize = 50;

/// Takes sequences out of the first tables of a list.
fn without_sequences(sql: &mut ReadOnly<'_>, tables: BTreeSet<(String, String)>) -> Vec<String> {
    let asked = sql.dialect().is_some_and(|dialect| dialect.is(&WITH_SEQUENCES));
    let mut kept = Vec::new();
    for (number, (schema, table)) in tables.into_iter().enumerate() {
        let name = format!("{schema}.{table}");
        if asked && number < MOST_LOOKED_AT && is_users(&name) && is_sequence(sql, &schema, &table) {
            continue;
        }
        kept.push(name);
    }
    kept
}

fn is_sequence(sql: &mut ReadOnly<'_>, schema: &str, table: &str) -> bool {
    let (Some(schema), Some(table)) = (quoted(schema), quoted(table)) else { return false };
    let statement = format!(
        "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}"
    );
    sql.rows(&statement).is_ok_and(|rows| rows.first().is_some_and(|row| text(row, 0) == "SEQUENCE"))
}

/// Time that the dictionary is given: 1,000 tables take MySQL 9.7 some 10 ms.
const LONGEST: Duration = Duration::from_secs(1);

/// Number of tables whose statistics one statement reads: it takes the server some ten milliseconds.
const PIECE: usize = 4000;

/// Tables without a primary key. They are found by reading all of InnoDB's dictionary or, when there are `many`, by
/// reading its statistics in pieces: for 100,000 tables the dictionary takes one statement of 100 ms, which is
/// noticeable on a server at capacity. Tables with STATS_PERSISTENT = 0 have no statistics and are not found.
///
/// Where the server `keeps` no statistics, they cannot say that there is none.
pub fn primary_keys(sql: &mut ReadOnly<'_>, many: bool, keeps: bool, readings: &Readings) {
    let (asked, found) = if many && keeps {
        (INDEX_STATISTICS, of_statistics(sql))
    } else {
        // Each query reads a whole dictionary table, so the second is sent only when the first finds something.
        sql.at_most(Some(LONGEST));
        let (asked, found) = match first_of(sql, &UNKEYED) {
            (_, Ok(some)) if !some.rows.is_empty() => first_of(sql, &DICTIONARY),
            none => none,
        };
        sql.at_most(None);
        // MySQL 8.0 opens each table for its dictionary, and so waits for one behind a metadata lock.
        if found.as_ref().is_err_and(SqlError::is_late) {
            let kept = || {
                let why = "InnoDB keeps no statistics of tables (innodb_stats_persistent), and its dictionary is too large to be read";
                Err(Missing::Error(why.to_owned()))
            };
            let found = if keeps { of_statistics(sql) } else { kept() };
            return put(INDEX_STATISTICS, found, readings);
        }
        let names = |row: Row| {
            let name = row.into_iter().next().flatten()?;
            let (schema, table) = name.split_once('/')?;
            Some((of_file_name(schema), of_file_name(&without_partition(table))))
        };
        let found = found.map_err(|e| e.missing("PROCESS"));
        let found = found.map(|table| {
            let tables = table.rows.into_iter().filter_map(names).collect();
            without_sequences(sql, tables)
        });
        (asked, found)
    };
    put(asked, found, readings);
}

fn put(asked: &str, found: Read<Vec<String>>, readings: &Readings) {
    let tables: Read<BTreeSet<String>> =
        found.map(|all| all.into_iter().filter(|name| is_users(name)).collect());
    readings.put(
        "schema.without_primary_key",
        asked,
        tables.as_ref().map(BTreeSet::len).map_err(Clone::clone),
    );
    let some = tables.map(|all| all.into_iter().take(LISTED).collect::<Vec<String>>());
    readings.put("schema.without_primary_key_tables", asked, some);
}

/// Whether a table is a user's: neither a system table nor an auxiliary table of full-text search.
fn is_users(name: &str) -> bool {
    let system = ["mysql.", "sys.", "sys/"].iter().any(|s| name.starts_with(s));
    !system && name.contains('.') && !name.contains(".FTS_") && !name.contains(".fts_")
}

/// The same from the statistics, which are read in the order of their primary key.
fn of_statistics(sql: &mut ReadOnly<'_>) -> Read<Vec<String>> {
    let mut found = Vec::new();
    let mut beyond = String::new();
    loop {
        let last = rows(
            sql,
            &format!(
                "SELECT database_name, table_name FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} {beyond} ORDER BY database_name, table_name LIMIT 1 OFFSET {}",
                PIECE - 1
            ),
        )?;
        let end = last.first().map(|row| place(row).ok_or_else(|| unquotable(row))).transpose()?;
        let until = match &end {
            Some((schema, table)) => format!(
                "AND (database_name < {schema} OR database_name = {schema} AND table_name <= {table})"
            ),
            None => String::new(),
        };
        let piece = rows(
            sql,
            &format!(
                "SELECT CONCAT(database_name, '.', table_name) FROM {INDEX_STATISTICS} WHERE database_name NOT IN {OURS} {beyond} {until} AND index_name = 'GEN_CLUST_INDEX' AND stat_name = 'size'"
            ),
        )?;
        found.extend(piece.iter().map(|row| without_partition(text(row, 0))));
        let Some((schema, table)) = end else { return Ok(found) };
        beyond =
            format!("AND (database_name > {schema} OR database_name = {schema} AND table_name > {table})");
    }
}

fn rows(sql: &mut ReadOnly<'_>, statement: &str) -> Read<Vec<Row>> {
    sql.rows(statement)
        .map_err(|e| e.missing("SELECT on mysql.innodb_table_stats and mysql.innodb_index_stats"))
}

/// A table's position in the key, as literals.
fn place(row: &Row) -> Option<(String, String)> {
    Some((quoted(text(row, 0))?, quoted(text(row, 1))?))
}

fn unquotable(row: &Row) -> Missing {
    Missing::Error(format!(
        "the name of {}.{} has a backslash, which this session may or may not escape",
        text(row, 0),
        text(row, 1)
    ))
}

/// `t#P#p0` and `t#p#p0#sp#s1` are partitions of `t`.
fn without_partition(name: &str) -> String {
    let end = name.to_ascii_lowercase().find("#p#").unwrap_or(name.len());
    name[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Sql, Table};
    use std::time::Instant;

    #[test]
    fn a_dictionary_that_waits_for_a_lock_gives_way_to_the_statistics() {
        /// Ends statements on the dictionary by the server's limit, and knows one table without a key.
        #[derive(Default)]
        struct Waiting(Vec<Option<Duration>>);
        impl Sql for Waiting {
            fn table(&mut self, sql: &str, limit: Option<Duration>) -> Result<Table, SqlError> {
                self.0.push(limit);
                if sql.contains("INNODB_INDEXES") {
                    return Err(SqlError::Refused { code: 3024, message: "interrupted".to_owned() });
                }
                let rows = match sql.contains("GEN_CLUST_INDEX") {
                    true => vec![vec![Some("crm.activity".to_owned())]],
                    false => vec![],
                };
                Ok(Table { columns: vec![], rows })
            }
        }
        let mut waiting = Waiting::default();
        let mut sql = ReadOnly::new(&mut waiting);
        sql.speaks_to("9.7.4");
        sql.until(Instant::now() + Duration::from_secs(3600));
        let readings = Readings::new(&super::super::COLLECTOR);
        primary_keys(&mut sql, false, true, &readings);
        assert_eq!(readings.value("schema.without_primary_key"), Some(1.into()));
        // It takes no more from what is read after it than its own second.
        assert!(waiting.0[0] < Some(2 * LONGEST), "{:?}", waiting.0);
        assert!(waiting.0[1] > Some(2 * LONGEST), "{:?}", waiting.0);
    }

    #[test]
    fn partitions_are_parts_of_their_table() {
        assert_eq!(without_partition("d.t#P#p0#SP#s"), "d.t");
        assert_eq!(without_partition("d.t"), "d.t");
    }
}
