//! InnoDB's persistent statistics and dictionary tables, which describe all tables without opening them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::rows::{COUNTED, OURS, SAMPLE, text, whole};
use crate::collectors::counted;
use crate::context::Context;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError};
use crate::table_files::of_file_name;
use crate::wording::{Since, Wording, first_of, mariadb, mysql};

/// Servers that keep InnoDB's statistics in tables of their own.
pub const STATISTICS: [Since; 2] = [mysql(50_606..), mariadb(100_000..)];

/// Sums of the persistent statistics over all InnoDB tables; returns those of the sizes of data and of indexes.
pub fn totals(sql: &mut ReadOnly<'_>, readings: &Readings) -> Read<[u64; 2]> {
    let statement = format!(
        "SELECT COALESCE(SUM(n_rows), 0), COALESCE(SUM(clustered_index_size) * @@innodb_page_size, 0), COALESCE(SUM(sum_of_other_index_sizes) * @@innodb_page_size, 0), COALESCE(TIMESTAMPDIFF(SECOND, MIN(last_update), NOW()), 0) FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS}"
    );
    let row = statistics(sql, &statement)
        .map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"))
        .map(|rows| rows.into_iter().next().unwrap_or_default());
    for (place, id) in [(0, "rows"), (3, "statistics_oldest_s")] {
        let value = row.clone().and_then(|row| whole(&row, place));
        readings.put(&format!("schema.{id}"), "mysql.innodb_table_stats", value);
    }
    let statement = format!(
        "SELECT CONCAT(database_name, '.', table_name), n_rows, clustered_index_size * @@innodb_page_size, sum_of_other_index_sizes * @@innodb_page_size FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} ORDER BY clustered_index_size + sum_of_other_index_sizes DESC LIMIT 10"
    );
    let largest = statistics(sql, &statement).map_err(|e| e.missing("SELECT on mysql.innodb_table_stats")).and_then(|rows| {
        let one = |row: &Row| -> Read<Value> {
            Ok(json!({"table": text(row, 0), "rows": whole(row, 1)?, "data_bytes": whole(row, 2)?, "index_bytes": whole(row, 3)?}))
        };
        rows.iter().map(one).collect::<Read<Vec<Value>>>()
    });
    readings.put("schema.largest", "mysql.innodb_table_stats", largest);
    row.and_then(|row| Ok([whole(&row, 1)?, whole(&row, 2)?]))
}

/// The sizes, where the files of the tables bear them out. Statistics that are not renewed tell of tables as they were: where the
/// files take more than twice as much, and 64 MiB beyond that, the data are as large as the files.
pub fn by_files(sql: &mut ReadOnly<'_>, sizes: Read<[u64; 2]>) -> Read<[u64; 2]> {
    const FILES: [Wording; 2] = [
        (
            "SELECT COALESCE(SUM(FILE_SIZE), 0) FROM information_schema.INNODB_TABLESPACES WHERE SPACE_TYPE = 'Single' AND NAME NOT LIKE 'mysql/%' AND NAME NOT LIKE 'sys/%'",
            &[mysql(80_000..)],
        ),
        (
            "SELECT COALESCE(SUM(FILE_SIZE), 0) FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE '%/%' AND NAME NOT LIKE 'mysql/%' AND NAME NOT LIKE 'sys/%'",
            &[mysql(50_700..).until(80_000), mariadb(100_200..)],
        ),
    ];
    let [data, index] = sizes?;
    let rows = first_of(sql, &FILES).1.map(|table| table.rows).unwrap_or_default();
    let files = rows.first().and_then(|row| whole(row, 0).ok()).unwrap_or(0);
    Ok(borne_out([data, index], files))
}

fn borne_out([data, index]: [u64; 2], files: u64) -> [u64; 2] {
    const BEYOND: u64 = 64 << 20;
    let believed = data.saturating_add(index);
    if files > believed.saturating_mul(2).saturating_add(BEYOND) {
        [files - index, index]
    } else {
        [data, index]
    }
}

/// Puts the sizes of InnoDB's data and indexes: those of the statistics, or, where the server keeps none for its tables
/// (innodb_stats_persistent = OFF), those of the tables that were `read`.
pub fn sizes(statistics: &Read<[u64; 2]>, read: Read<Option<[u64; 2]>>, readings: &Readings) {
    let known = matches!(statistics, Ok([data, index]) if *data > 0 || *index > 0);
    let (from, sizes) = match read {
        Ok(Some(read)) if !known => ("information_schema.TABLES", Ok(read)),
        Err(missing) if !known => ("information_schema.TABLES", Err(missing)),
        _ => ("mysql.innodb_table_stats", statistics.clone()),
    };
    for (place, id) in ["schema.data_bytes", "schema.index_bytes"].into_iter().enumerate() {
        readings.put(id, from, sizes.clone().map(|sizes| sizes[place]));
    }
}

/// Tables in the system tablespace or in another one that several share, as `schema.table`; partitions by their table.
///
/// # Errors
/// The server refuses the statement, or does not end it in time.
pub fn shared(sql: &mut ReadOnly<'_>) -> Read<BTreeSet<String>> {
    const TABLES: [Wording; 2] = [
        (
            "SELECT NAME FROM information_schema.INNODB_SYS_TABLES WHERE SPACE = 0 LIMIT 20000",
            &[mysql(50_600..).until(80_000), mariadb(100_000..)],
        ),
        (
            "SELECT NAME FROM information_schema.INNODB_TABLES WHERE SPACE_TYPE <> 'Single' LIMIT 20000",
            &[mysql(80_000..)],
        ),
    ];
    let names = first_of(sql, &TABLES).1.map_err(|e| e.missing("PROCESS"))?.rows;
    Ok(names.into_iter().flatten().flatten().filter_map(|name| table_of(&name)).collect())
}

/// The table that a name in InnoDB's dictionary stands for; a partition is its table's.
fn table_of(name: &str) -> Option<String> {
    let (schema, table) = name.split_once('/')?;
    let end = ["#P#", "#p#"].iter().filter_map(|mark| table.find(mark)).min().unwrap_or(table.len());
    Some(format!("{}.{}", of_file_name(schema), of_file_name(&table[..end])))
}

/// Open InnoDB tables of 10,000 rows or more of which half have changed since their statistics were made.
///
/// # Errors
/// The server refuses the statement, or does not end it in time.
pub fn behind(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    const TABLES: [Wording; 2] = [
        (
            "SELECT NAME, NUM_ROWS, MODIFIED_COUNTER FROM information_schema.INNODB_SYS_TABLESTATS WHERE NUM_ROWS >= 10000 AND MODIFIED_COUNTER * 2 >= NUM_ROWS AND NAME NOT LIKE 'mysql/%' ORDER BY MODIFIED_COUNTER DESC LIMIT 20",
            &[mysql(50_600..).until(80_000), mariadb(100_000..)],
        ),
        (
            "SELECT NAME, NUM_ROWS, MODIFIED_COUNTER FROM information_schema.INNODB_TABLESTATS WHERE NUM_ROWS >= 10000 AND MODIFIED_COUNTER * 2 >= NUM_ROWS AND NAME NOT LIKE 'mysql/%' ORDER BY MODIFIED_COUNTER DESC LIMIT 20",
            &[mysql(80_000..)],
        ),
    ];
    let rows = first_of(sql, &TABLES).1.map_err(|e| e.missing("PROCESS"))?.rows;
    let told = |row: &Row| -> Option<Read<Value>> {
        let table = table_of(text(row, 0))?;
        let numbers = whole(row, 1).and_then(|rows| Ok([rows, whole(row, 2)?]));
        Some(numbers.map(|[rows, changed]| json!({"table": table, "rows": rows, "changed": changed})))
    };
    let mut tables = rows.iter().filter_map(told).collect::<Read<Vec<Value>>>()?;
    // Each partition has a line of its own.
    tables.dedup_by(|one, other| one["table"] == other["table"]);
    Ok(tables)
}

/// Whether the server would compute the statistics of a table anew where information_schema is read. Persistent statistics,
/// the default since MySQL 5.6 and MariaDB 10.0, are left alone.
pub fn recomputes(context: &Context) -> bool {
    let is_on = |name: &str| context.variable(name).is_some_and(|v| v.eq_ignore_ascii_case("ON"));
    is_on("innodb_stats_on_metadata") && !is_on("innodb_stats_persistent")
}

/// Rows of a statement on InnoDB's statistics, where the server has them.
pub fn statistics(sql: &mut ReadOnly<'_>, statement: &str) -> Result<Vec<Row>, SqlError> {
    match sql.dialect() {
        Some(dialect) if !dialect.is(&STATISTICS) => Err(SqlError::NotInThisVersion),
        _ => sql.rows(statement),
    }
}

/// Numbers of tables.
pub struct Names {
    /// Number of user tables that the account sees.
    pub count: u64,
    /// Those that are read: all, or a sample.
    pub chosen: Vec<(String, String)>,
    /// Number of InnoDB tables in the statistics, partitions not counted apart; 0 where the names are theirs.
    pub of_innodb: u64,
    /// Lines of the statistics.
    pub in_statistics: u64,
}

/// Neither tables that full-text search keeps nor those of an unfinished ALTER.
const USERS: &str = "AND LEFT(LOWER(table_name), 4) NOT IN ('fts_', '#sql')";

/// Names of tables; of many, those of the largest by InnoDB's statistics.
pub fn names(sql: &mut ReadOnly<'_>) -> Read<Names> {
    let counted =
        format!("SELECT COUNT(*) FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} {USERS}");
    let counted = statistics(sql, &counted);
    let refused = matches!(&counted, Err(e) if matches!(e.missing(""), Missing::Denied(_)));
    let first = |rows: &[Row]| rows.first().and_then(|row| whole(row, 0).ok()).unwrap_or(0);
    let count = counted.as_deref().map_or(0, first);
    let about = counted::tables(sql).unwrap_or(count).max(count);
    if about > COUNTED {
        let all = counted::all_tables(sql).unwrap_or(count).max(count);
        return Ok(Names { count: all, chosen: sample_of_many(sql)?, of_innodb: 0, in_statistics: count });
    }
    let of_innodb = if count == 0 {
        0
    } else {
        let tables = format!(
            "SELECT COUNT(DISTINCT database_name, SUBSTRING_INDEX(LOWER(table_name), '#p#', 1)) FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} {USERS}"
        );
        statistics(sql, &tables).as_deref().map_or(0, first)
    };
    let statement = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN {OURS}"
    );
    let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on the tables"))?;
    if rows.is_empty() && of_innodb > 0 {
        return Err(Missing::Denied(format!(
            "this account sees none of the tables of users, though there are {of_innodb}; it needs SELECT on them (SELECT ON *.*), of which only information_schema is read"
        )));
    }
    if rows.is_empty() && refused {
        // The server lists only tables that the account may use, and says nothing of others.
        return Err(Missing::Denied(
            "this account sees no table of users; it needs SELECT on them, and on mysql.innodb_table_stats to know whether there are any".to_owned(),
        ));
    }
    Ok(Names {
        count: rows.len() as u64,
        chosen: largest_first(sql, pairs(rows)),
        of_innodb,
        in_statistics: count,
    })
}

/// Names in the order in which they are read. A few tables are read in any order, so their sizes are not asked for.
fn largest_first(sql: &mut ReadOnly<'_>, mut all: Vec<(String, String)>) -> Vec<(String, String)> {
    const FEW: usize = 1000;
    if all.len() <= FEW {
        return all;
    }
    let statement = format!(
        "SELECT database_name, table_name FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} {USERS} ORDER BY clustered_index_size + sum_of_other_index_sizes DESC LIMIT {FEW}"
    );
    let large: BTreeSet<(String, String)> =
        statistics(sql, &statement).map(pairs).unwrap_or_default().into_iter().collect();
    all.sort_by_cached_key(|name| !large.contains(name));
    all
}

/// Some of many tables, the largest ones, chosen by the server: 100,000 names would take as much work as all the rest of an
/// audit. Tables of one size are chosen by a hash of their names, the same ones each time.
fn sample_of_many(sql: &mut ReadOnly<'_>) -> Read<Vec<(String, String)>> {
    let statement = format!(
        "SELECT database_name, table_name FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} {USERS} ORDER BY clustered_index_size + sum_of_other_index_sizes DESC, CRC32(CONCAT(table_name, '/', database_name)), database_name, table_name LIMIT {SAMPLE}"
    );
    sql.rows(&statement).map(pairs).map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"))
}

fn pairs(rows: Vec<Row>) -> Vec<(String, String)> {
    let pair = |row: Row| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()??))
    };
    rows.into_iter().filter_map(pair).collect()
}

/// Tables of users by engine; none where the server refuses or takes too long.
pub(super) fn engines(sql: &mut ReadOnly<'_>) -> Option<BTreeMap<String, u64>> {
    let statement = format!(
        "SELECT ENGINE, COUNT(*) FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN {OURS} GROUP BY ENGINE"
    );
    let rows = sql.rows(&statement).ok()?;
    // A table that cannot be opened has no engine.
    rows.iter()
        .filter(|row| !text(row, 0).is_empty())
        .map(|row| Some((text(row, 0).to_owned(), whole(row, 1).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_far_larger_than_the_statistics_tell_are_believed() {
        const MIB: u64 = 1 << 20;
        assert_eq!(borne_out([10 * MIB, MIB], 112 * MIB), [111 * MIB, MIB]);
        assert_eq!(borne_out([10 * MIB, MIB], 80 * MIB), [10 * MIB, MIB]);
        assert_eq!(borne_out([100 * MIB, 50 * MIB], 300 * MIB), [100 * MIB, 50 * MIB]);
    }

    #[test]
    fn tables_without_persistent_statistics_have_the_sizes_that_the_server_tells_of_each() {
        let put = |statistics: Read<[u64; 2]>, read: Read<Option<[u64; 2]>>| {
            let readings = Readings::new(&super::super::COLLECTOR);
            sizes(&statistics, read, &readings);
            (readings.value("schema.data_bytes"), readings.value("schema.index_bytes"))
        };
        let of = |data: u64, index: u64| (Some(Value::from(data)), Some(Value::from(index)));
        assert_eq!(put(Ok([0, 0]), Ok(Some([160, 64]))), of(160, 64));
        assert_eq!(put(Ok([5, 0]), Ok(Some([160, 64]))), of(5, 0));
        assert_eq!(put(Ok([0, 0]), Ok(None)), of(0, 0));
        let unread = || Missing::Error("not asked".to_owned());
        assert_eq!(put(Ok([0, 0]), Err(unread())), (None, None));
        assert_eq!(put(Ok([5, 0]), Err(unread())), of(5, 0));
        assert_eq!(put(Err(unread()), Ok(Some([1, 2]))), of(1, 2));
    }
}
