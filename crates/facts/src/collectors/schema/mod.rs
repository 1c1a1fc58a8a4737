//! Tables, keys and types, within bounds: sums that the server holds ready are read for all tables. Where there are more than 5,000
//! tables, their definitions are read for up to seven seconds, and what the server opens a table for is read of some only: of those
//! with AUTO_INCREMENT columns of few values, of other engines, and of the 512 largest, within a second.

mod by_name;
mod census;
mod defaults;
mod described;
mod drift;
mod files;
pub(super) mod indexes;
mod many;
pub(super) mod more;
mod partitions;
mod reading;
mod references;
pub(super) mod rows;
pub(super) mod shapes;
pub(crate) mod statistics;
mod tenants;
mod unkeyed;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use self::census::Census;
use self::files::Files;
use self::indexes::INDEX_USAGE;
use self::rows::{COUNTED, text};
use self::statistics::{Names, behind, by_files, engines, names, recomputes, sizes, totals};
use self::unkeyed::primary_keys;
use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::Missing;
use crate::sql::{ReadOnly, Row};
use crate::table_files::Listing;

/// Schemas and tables.
pub static COLLECTOR: Collector = Collector {
    name: "schema",
    cost: Cost { host_ms: 20, server_ms: 100 },
    deadline_ms: 13_000,
    depth: Depth::Audit,
    facts: &[
        fact("schema.tables", "count", "tables of users, partitions counted as tables"),
        fact("schema.tables_read", "count", "tables whose columns and indexes were read"),
        fact("schema.unread", "count", "tables whose columns and indexes were not read"),
        fact("schema.sampled", "", "whether there are any; the largest tables are read first"),
        fact("schema.rows", "count", "rows, as the server's statistics estimate them"),
        fact(
            "schema.data_bytes",
            "bytes",
            "size of the clustered indexes, by the same statistics; where the server keeps none, that of the data of the InnoDB tables that were read; where the tables' files are far larger, theirs",
        ),
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
            "yes where 95 % of the tables or more were read, by which the rest is judged; missing, with the reason, where fewer were",
        ),
        fact(
            "schema.all_opened",
            "",
            "yes where what only an open table tells (AUTO_INCREMENT, sizes, free space) was read of 95 % of the tables or more; missing, with the reason, where it was not",
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
            "schema.engine.ENGINE.data_bytes",
            "bytes",
            "size of the data of an engine's tables, among those that were read",
        ),
        fact(
            "schema.of_engine.ENGINE",
            "",
            "names of the tables of an engine other than InnoDB, likewise; 20 at most",
        ),
        fact(
            "schema.reference_conflicts",
            "",
            "columns whose names end in _id or _uuid and tell a table of the same schema, or in _no, _code and the like and tell a unique column of it, to which they do not compare by an index: column, type, refers_to, key_type; 20 at most",
        ),
        fact(
            "schema.references_narrow",
            "",
            "columns of integers that tell a table of the same schema by such names or by ones as customer_no and are narrower than its key of one column: column, type, refers_to, key_type; 20 at most",
        ),
        fact("schema.engine.ENGINE.index_bytes", "bytes", "size of their indexes, likewise"),
        fact(
            "schema.duplicate_indexes",
            "",
            "indexes that begin another: table, index, covered_by, size_bytes (of the first 20); among those that were read, 500 at most",
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
            "tables of which 50 MiB or more and half the file or more are free: table, free_bytes, used_bytes; among those that were read, 500 at most",
        ),
        fact(
            "schema.shared_tablespaces_told",
            "",
            "whether the server tells which tables share a tablespace with others; asked where tables could be made smaller",
        ),
        fact(
            "schema.statistics_behind",
            "",
            "open InnoDB tables of 10,000 rows or more of which half have changed since their statistics were made: table, rows, changed; 20 at most, asked for where innodb_stats_auto_recalc is OFF",
        ),
        fact(
            "schema.beyond_statistics",
            "",
            "tables whose files have 64 MiB or more and ten times what InnoDB's statistics of ten minutes' age or more (two days in MySQL 8.0) tell, where less than half is free room: table, file_bytes, told_bytes, told_rows, made_s (age of the statistics); 20 at most",
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
            "names of columns that refer to other tables (ending in _id, _uuid or _code) and occur with several types or collations, among those that were read",
        ),
        fact(
            "schema.unusable",
            "",
            "tables that the server cannot open, or that are marked as crashed: table, reason; this and what follows among those that were read, 20 at most",
        ),
        fact(
            "schema.binary_primary_keys",
            "",
            "InnoDB tables whose primary key begins with an id of 16 binary bytes or more: table, type",
        ),
        fact("schema.hidden_indexes", "", "indexes that are invisible or ignored: table, index"),
        fact("schema.disabled_indexes", "", "indexes that DISABLE KEYS switched off: table, index"),
        fact(
            "schema.indexes_with_key",
            "",
            "indexes of InnoDB tables that end in the primary key, which InnoDB adds by itself: table, index",
        ),
        fact(
            "schema.short_prefixes",
            "",
            "indexes on the first few characters of a text: table, index, column, characters, unique; not unique ones of 4 characters at most, unique ones of 20; of addresses of pages up to 12, where they know one value for a hundred rows or more (values, rows)",
        ),
        fact(
            "schema.unique_with_null",
            "",
            "unique indexes on several columns of which one may be NULL: table, index, column (that one)",
        ),
        fact("schema.inexact_money", "", "FLOAT, DOUBLE and text columns whose names speak of money"),
        fact("schema.text_dates", "", "text columns whose names speak of a date or a time"),
        fact(
            "schema.created_overwritten",
            "",
            "TIMESTAMP and DATETIME columns whose names speak of a beginning and that each UPDATE sets to the current time",
        ),
        fact(
            "schema.logins_not_unique",
            "",
            "tables of users by name without a unique index on what people log in by: table, column; among those that were read, 20 at most",
        ),
        fact(
            "schema.option_tables",
            "",
            "tables with the columns option_name, option_value and autoload of 5 MiB or more: table, bytes, rows, by InnoDB's statistics; 5 at most",
        ),
        fact(
            "schema.rows_too_wide",
            "",
            "InnoDB tables in the row formats COMPACT and REDUNDANT whose columns may need twice what a row may have in a page, or more: table, row_bytes, columns; among those that were opened, 20 at most",
        ),
        fact(
            "schema.rows_beyond_packet",
            "",
            "tables whose rows have a mean size of more than half of max_allowed_packet: table, row_bytes, rows, by InnoDB's statistics; 20 at most",
        ),
        fact("schema.timestamps_ahead", "", "TIMESTAMP columns whose names speak of a time ahead"),
        fact(
            "schema.codes_as_numbers",
            "",
            "integer columns whose names speak of digits that are no number, as those of a phone",
        ),
        fact("schema.reserved_later", "", "columns named by a word that MySQL 8.0 reserves and 5.7 does not"),
        fact("schema.ids_in_a_text", "", "text columns whose names end in _ids"),
        fact(
            "schema.passwords_hashed_fast",
            "",
            "columns of passwords, by their names, that are as long as a hash of MD5, SHA-1 or SHA-256 in hexadecimal",
        ),
        fact(
            "schema.passwords_in_clear",
            "",
            "text columns for passwords that are too short for a hash or say that they are in clear, and columns for numbers and verification values of cards",
        ),
        fact(
            "schema.addresses_too_short",
            "",
            "text columns of 7 to 38 characters whose names speak of an IP address",
        ),
        fact(
            "schema.own_statistics",
            "",
            "tables whose options switch persistent statistics or their renewal off, or sample fewer than 8 pages: table, option",
        ),
        fact(
            "schema.references_without_index",
            "",
            "columns whose names end in _id or _uuid and tell a table of the same schema, and that no index begins with: column, refers_to, inside (an index that has it behind another column); likewise columns of a tenant that are inside an index; among the tables that were read, 20 at most",
        ),
        fact(
            "schema.of_odd_engines",
            "",
            "tables of engines that are gone, keep no rows, or keep them elsewhere or without indexes and transactions: table, type (the engine); 20 at most",
        ),
        fact(
            "schema.same_but_for_case",
            "",
            "names of tables of a schema that differ in their case only: schema, tables; this and what follows among those that were read, 20 at most",
        ),
        fact(
            "schema.unlike_namesakes",
            "",
            "tables whose columns or indexes differ from those of nine in ten tables of the same name, of which there are ten or more: table (the first), tables (how many), schemas (20 at most), lacks, has, others (how many)",
        ),
        fact(
            "schema.versioned",
            "",
            "tables that keep every version of their rows in the same file: no option tells that they are partitioned",
        ),
        fact(
            "schema.deprecated_types",
            "",
            "columns of a type that MySQL no longer advises: FLOAT and DOUBLE with a number of digits, ZEROFILL",
        ),
        fact("schema.collation.NAME.columns", "count", "columns by collation, among those that were read"),
        fact(
            "schema.of_collation.NAME",
            "",
            "columns of utf8mb4 with this collation, where another one is more frequent: 20 at most",
        ),
        fact(
            "schema.of_two_collations",
            "",
            "schemas whose columns of utf8mb4 have several collations, without binary ones: schema, collations; among the tables that were read, 20 at most",
        ),
        fact(
            "schema.system_free_bytes",
            "bytes",
            "free room within the system tablespace, which a table in it tells; missing where there is none with as much of it as it has data, and in MySQL 8.0",
        ),
        fact("schema.compressed", "", "InnoDB tables in the row format COMPRESSED: 20 at most"),
        fact("schema.most_columns", "", "the table with the most columns: table, columns"),
        fact(
            "server.columns.zero_dates",
            "",
            "columns whose default is a date of zeros: schema, table and column; among those that were read, 20 at most",
        ),
        fact(
            "schema.default_differs",
            "",
            "schemas whose default character set is not that of most of their tables: schema, charset (the default), tables (those of another one); 20 at most; with more than 5,000 tables they are not asked for",
        ),
        fact(
            "schema.filling",
            "",
            "AUTO_INCREMENT columns that have used half of their numbers or more, the fullest first: table, column, type, used",
        ),
        fact(
            "schema.partitions_ending",
            "",
            "tables partitioned by ranges of time without a last partition for all that follows: table, partition, left_s (until its end; negative since)",
        ),
        fact(
            "schema.partitions_overflowing",
            "",
            "tables partitioned by ranges of time whose last partition, for all that follows, takes the new rows: table, partition, rows (in it, estimated), before (the partition before), left_s (until that one's end, which is past)",
        ),
        fact(
            "schema.leftovers",
            "",
            "tables whose names speak of a copy or of something temporary: a word as bak, old, tmp, or a date at the end; among those that were read, 20 at most",
        ),
        fact(
            "schema.of_charset.NAME",
            "",
            "columns by character set, where there are two or more: schema, table and column; 20 at most",
        ),
        fact(
            "schema.auto_increment",
            "",
            "the column nearest to the end of its type: table, column, type, used as a share, rows, numbers_a_row (where it gave more than 20 for each row); among those that were read",
        ),
    ],
    run: Run::Server(run),
};

/// How long the dictionary of InnoDB's open tables may take; it waits for tables behind a metadata lock.
const DICTIONARY: Duration = Duration::from_millis(500);

/// How long tables are read. Half of it is pauses, so that it costs the server half a second of CPU at most.
const READING: Duration = Duration::from_secs(1);

/// Why tables are not looked at one by one.
const RECOMPUTES: &str = "indexes and sizes of tables were not asked for, because innodb_stats_on_metadata is ON and the server would compute the statistics of each table anew; SET GLOBAL innodb_stats_on_metadata = OFF, which newer servers have by default, permits it";

/// Whether InnoDB keeps its statistics of tables, as it does by default from MySQL 5.6 and MariaDB 10.0 on.
fn keeps_statistics(context: &Context) -> bool {
    context.variable("innodb_stats_persistent").is_none_or(|v| v.eq_ignore_ascii_case("ON") || v == "1")
}

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let sums = totals(sql, readings);
    if recomputes(context) {
        let missing = Missing::Error(RECOMPUTES.to_owned());
        sizes(&sums, Err(missing.clone()), readings);
        primary_keys(sql, false, keeps_statistics(context), readings);
        bare(context, sql, &missing, readings);
        return readings.rest_is("information_schema.TABLES", &missing);
    }
    let names = names(sql);
    let many = names.as_ref().is_ok_and(|names| names.count > COUNTED);
    primary_keys(sql, many, keeps_statistics(context), readings);
    let names = match names {
        Ok(names) => names,
        Err(missing) => {
            sizes(&sums, Err(missing.clone()), readings);
            return readings.rest_is("information_schema.TABLES", &missing);
        }
    };
    let Names { count, mut chosen, of_innodb, in_statistics } = names;
    let many = count > COUNTED;
    let sums = match many {
        false => by_files(sql, sums),
        true if in_statistics * 2 < count.saturating_sub(of_other_engines(context)) => {
            Err(Missing::Error(format!("InnoDB's statistics know {in_statistics} of {count} tables")))
        }
        true => sums,
    };
    sql.at_most(Some(DICTIONARY));
    let mut census = Census::with(if many { BTreeMap::new() } else { numbers(sql) });
    sql.at_most(None);
    let within = |time: Duration| Instant::now() + time.mul_f64(context.options.patience);
    let of_files = files::look(context, sql, many);
    if many {
        census = first_of_many(context, sql, of_files.as_ref().ok(), census, &mut chosen);
    }
    let mut read = reading::read(sql, &chosen, many, within(READING), census);
    sql.at_most(None);
    read.ask_statistics(sql);
    readings.put("schema.beyond_statistics", "the sizes of files", files::beyond(sql, &of_files));
    // Where all were read, their engines are known.
    let engines = if many || read.looked_at as u64 >= count { None } else { engines(sql) };
    let differing = if many { Err(too_many(count)) } else { read.default_differs(sql) };
    readings.put("schema.default_differs", "information_schema.SCHEMATA, TABLES", differing);
    readings.put("schema.option_tables", "mysql.innodb_table_stats", read.options(sql));
    readings.put("schema.rows_beyond_packet", "mysql.innodb_table_stats", shapes::beyond_packet(sql));
    sizes(&sums, Ok(read.sizes.get("InnoDB").copied()), readings);
    let unseen = of_innodb.saturating_sub(count);
    let unused = indexes::unused(context, sql, &read.droppable);
    readings.put("schema.unused_indexes", INDEX_USAGE, unused);
    let partitioned = match !many && read.looked_at as u64 >= count {
        true => Ok(read.partitioned.clone()),
        // Statistics lack tables that were not opened yet, and all where InnoDB keeps none.
        false => match Listing::of(context) {
            Ok(files) => Ok(files.partitioned.iter().cloned().collect()),
            Err(_) if keeps_statistics(context) => partitions::of_statistics(sql),
            Err(missing) => Err(missing),
        },
    };
    let ends = partitioned.and_then(|tables| partitions::ends(sql, &tables));
    sql.at_most(Some(DICTIONARY));
    // The server loads the definition of each table for it, and renews statistics by itself where it may.
    let renewed = context.variable("innodb_stats_auto_recalc").is_none_or(|v| v.eq_ignore_ascii_case("ON"));
    let behind = match (renewed, many) {
        (true, _) => Err(Missing::Absent("innodb_stats_auto_recalc is not OFF".to_owned())),
        (false, true) => Err(Missing::Absent(format!("not asked for, because there are {count} tables"))),
        (false, false) => behind(sql),
    };
    readings.put("schema.statistics_behind", "INNODB_TABLESTATS", behind);
    files::without_shared(sql, &mut read, readings);
    sql.at_most(None);
    read.put(count, unseen, engines, readings);
    let from = "information_schema.PARTITIONS";
    readings.put(
        "schema.partitions_ending",
        from,
        ends.as_ref().map(|e| e.ending.clone()).map_err(Clone::clone),
    );
    readings.put("schema.partitions_overflowing", from, ends.map(|e| e.overflowing));
}

/// Reads the definitions of many tables, and opens those of which the files or the definitions tell that they are worth it, which are
/// taken out of `chosen`.
fn first_of_many(
    context: &Context,
    sql: &mut ReadOnly<'_>,
    of_files: Option<&Files>,
    mut census: Census,
    chosen: &mut Vec<(String, String)>,
) -> Census {
    let within = |time: Duration| Instant::now() + time.mul_f64(context.options.patience);
    let unlisted = Listing::default();
    let files = Listing::of(context).unwrap_or(&unlisted);
    for file in &files.of_indexes {
        census.other_engine(&file.schema, &file.table);
    }
    many::definitions(sql, files, within(context.options.tables_within), &mut census);
    let mut again: Vec<(String, String)> = Vec::new();
    if let Some(of_files) = of_files {
        again.extend(of_files.filling.iter().cloned().chain(of_files.largest()));
    }
    let mut known: BTreeSet<(String, String)> = again.iter().cloned().collect();
    again.extend(census.again().into_iter().filter(|table| !known.contains(table)));
    census = reading::read(sql, &again, true, within(READING), census);
    known.extend(again);
    chosen.retain(|table| !known.contains(table));
    census
}

fn too_many(tables: u64) -> Missing {
    Missing::Error(format!("not asked for, because there are {tables} tables"))
}

/// Tables and views without a file of InnoDB, as far as the files of the data directory are seen.
fn of_other_engines(context: &Context) -> u64 {
    let files = Listing::of(context).ok();
    files.and_then(|files| files.beside_innodb.as_ref().map(Vec::len)).unwrap_or(0) as u64
}

/// Facts of tables for which the server needs no statistics.
fn bare(context: &Context, sql: &mut ReadOnly<'_>, missing: &Missing, readings: &Readings) {
    let Ok(Names { count, chosen, .. }) = names(sql) else { return };
    if count > COUNTED {
        return;
    }
    let until = Instant::now() + READING.mul_f64(context.options.patience);
    let census = Census::bare();
    let read = reading::read(sql, &chosen, false, until, census);
    sql.at_most(None);
    readings.put("schema.partitions_ending", "SHOW CREATE TABLE", partitions::ending_by_definition(sql));
    readings.put("schema.default_differs", "information_schema.SCHEMATA, TABLES", read.default_differs(sql));
    read.put_bare(count, missing, readings);
}

/// Next numbers of AUTO_INCREMENT columns. MySQL 8.0 keeps what information_schema.TABLES tells of a table for a day; InnoDB
/// tells the number of each table that is open.
fn numbers(sql: &mut ReadOnly<'_>) -> BTreeMap<(String, String), f64> {
    if !sql.has_dictionary() {
        return BTreeMap::new();
    }
    let statement = "SELECT NAME, AUTOINC FROM information_schema.INNODB_TABLESTATS WHERE AUTOINC > 100";
    let rows = sql.rows(statement).unwrap_or_default();
    let number = |row: &Row| {
        let (schema, table) = text(row, 0).split_once('/')?;
        Some(((schema.to_owned(), table.to_owned()), text(row, 1).parse::<f64>().ok()?))
    };
    rows.iter().filter_map(number).collect()
}
