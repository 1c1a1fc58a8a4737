//! Tables, keys and types, within bounds: sums that the server holds ready are read for all tables. Columns and indexes, for
//! which it opens a table, are read for up to 5,000 tables within a second, and for the 512 largest where there are more.

mod census;
mod indexes;
mod reading;
mod rows;
pub(crate) mod statistics;
mod unkeyed;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use self::indexes::INDEX_USAGE;
use self::rows::{COUNTED, OURS, text, whole};
use self::statistics::{Names, names, totals};
use self::unkeyed::primary_keys;
use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::Missing;
use crate::sql::ReadOnly;

/// Schemas and tables.
pub static COLLECTOR: Collector = Collector {
    name: "schema",
    cost: Cost { host_ms: 20, server_ms: 100 },
    deadline_ms: 6000,
    depth: Depth::Audit,
    facts: &[
        fact("schema.tables", "count", "tables of users, partitions counted as tables"),
        fact("schema.tables_read", "count", "tables whose columns and indexes were read"),
        fact("schema.sampled", "", "whether these are a part of the tables, the largest ones"),
        fact("schema.rows", "count", "rows, as the server's statistics estimate them"),
        fact("schema.data_bytes", "bytes", "size of the clustered indexes, by the same statistics"),
        fact("schema.index_bytes", "bytes", "size of the other indexes, likewise"),
        fact("schema.statistics_oldest_s", "s", "age of the oldest statistics"),
        fact("schema.largest", "", "the largest tables: name, rows, data_bytes, index_bytes"),
        fact(
            "schema.without_primary_key",
            "count",
            "InnoDB tables without a primary key that is of use; with more than 5,000 tables, among those with persistent statistics",
        ),
        fact("schema.without_primary_key_tables", "", "some of them"),
        fact(
            "schema.all_read",
            "",
            "yes where all tables were read; missing, with the reason, where some were not",
        ),
        fact(
            "schema.engines_counted",
            "",
            "yes where the tables of all engines were counted; missing where only a sample was",
        ),
        fact(
            "schema.engine.ENGINE.tables",
            "count",
            "tables by engine, among all or among those that were read",
        ),
        fact(
            "schema.duplicate_indexes",
            "",
            "indexes that begin another: table, index, covered_by; among those that were read, 500 at most",
        ),
        fact(
            "schema.text_primary_keys",
            "",
            "primary keys that begin with a text column: table, type; among those that were read, 500 at most",
        ),
        fact(
            "schema.unused_indexes",
            "",
            "indexes that no statement has used since the start: table, index; among those that were read, without unique ones and those of foreign keys",
        ),
        fact(
            "schema.reclaimable",
            "",
            "tables of which 100 MiB or more and half the file or more are free: table, free_bytes, used_bytes; among those that were read, 500 at most",
        ),
        fact(
            "schema.row_format.NAME.tables",
            "count",
            "InnoDB tables by row format, among those that were read",
        ),
        fact("schema.most_indexes", "", "the table with the most indexes, among those that were read"),
        fact("schema.charset.NAME.columns", "count", "columns by character set, among those that were read"),
        fact("schema.blob_columns", "count", "BLOB, TEXT and JSON columns, among those that were read"),
        fact(
            "schema.type_conflicts",
            "",
            "column names that occur with several types or collations, among those that were read",
        ),
        fact(
            "schema.auto_increment",
            "",
            "the column nearest to the end of its type: table, column, type, used as a share; among those that were read",
        ),
    ],
    run: Run::Server(run),
};

/// How long tables are read. Half of it is pauses, so that it costs the server half a second of CPU at most.
const READING: Duration = Duration::from_secs(1);

/// Why tables are not looked at one by one.
const RECOMPUTES: &str = "not asked, because innodb_stats_on_metadata is ON and the server would compute the statistics of each table anew; SET GLOBAL innodb_stats_on_metadata = OFF, which newer servers have by default, permits it";

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    totals(sql, readings);
    let recomputes =
        context.variable("innodb_stats_on_metadata").is_some_and(|v| v.eq_ignore_ascii_case("ON"));
    if recomputes {
        primary_keys(sql, false, readings);
        return readings.rest_is("information_schema.TABLES", &Missing::Error(RECOMPUTES.to_owned()));
    }
    let names = names(sql);
    primary_keys(sql, names.as_ref().is_ok_and(|names| names.count > COUNTED), readings);
    let names = match names {
        Ok(names) => names,
        Err(missing) => return readings.rest_is("information_schema.TABLES", &missing),
    };
    let Names { count, chosen, of_innodb } = names;
    let engines = if count <= COUNTED { engines(sql) } else { None };
    let until = Instant::now() + READING.mul_f64(context.options.patience);
    let read = reading::read(sql, &chosen, count > COUNTED, until);
    let unseen = of_innodb.saturating_sub(count);
    let unused = indexes::unused(context, sql, &read.droppable);
    readings.put("schema.unused_indexes", INDEX_USAGE, unused);
    read.put(count, unseen, engines, readings);
}

/// Tables of users by engine; none where the server refuses or takes too long.
fn engines(sql: &mut ReadOnly<'_>) -> Option<BTreeMap<String, u64>> {
    let statement = format!(
        "SELECT ENGINE, COUNT(*) FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN {OURS} GROUP BY ENGINE"
    );
    let rows = sql.rows(&statement).ok()?;
    // A table that cannot be opened has no engine.
    rows.iter()
        .filter(|row| !text(row, 0).is_empty())
        .map(|row| Some((text(row, 0).to_owned(), whole(row, 1).ok()?)))
        .collect()
}
