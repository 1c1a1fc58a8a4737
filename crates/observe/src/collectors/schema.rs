//! Tables, keys and types, within bounds: what the server holds ready is read for all tables, what makes it open a
//! table only for a sample. A server with 100,000 tables is not asked to open them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::bag::Bag;
use crate::catalogue::{Collector, Cost, Depth, Run, fact};
use crate::collect::Context;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError, quoted};
use crate::wording::{Since, Wording, first_of, mariadb, mysql};

/// Schemas and tables.
pub static COLLECTOR: Collector = Collector {
    name: "schema",
    cost: Cost { host_ms: 10, server_ms: 80 },
    deadline_ms: 6000,
    depth: Depth::Audit,
    facts: &[
        fact("schema.tables", "count", "tables of users, partitions counted as tables"),
        fact("schema.tables_read", "count", "tables whose columns and indexes were read"),
        fact("schema.sampled", "", "whether these are a sample, chosen by a hash of their names"),
        fact("schema.rows", "count", "rows, as the server's statistics estimate them"),
        fact("schema.data_bytes", "bytes", "size of the clustered indexes, by the same statistics"),
        fact("schema.index_bytes", "bytes", "size of the other indexes, likewise"),
        fact("schema.statistics_oldest_s", "s", "age of the oldest statistics"),
        fact("schema.largest", "", "the largest tables: name, rows, data_bytes, index_bytes"),
        fact("schema.without_primary_key", "count", "InnoDB tables without a primary key that is of use"),
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
            "indexes that begin another: table, index, covered_by; among those that were read",
        ),
        fact(
            "schema.text_primary_keys",
            "",
            "primary keys that begin with a text column: table, type; among those that were read",
        ),
        fact(
            "schema.unused_indexes",
            "",
            "indexes that no statement has used since the start: table, index; among those that were read, without unique ones and those of foreign keys",
        ),
        fact(
            "schema.reclaimable",
            "",
            "tables of which 100 MiB or more and half the file or more are free: table, free_bytes, used_bytes; among those that were read",
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
            "the column nearest to the end of its type: table, type, used as a share; among those that were read",
        ),
    ],
    run: Run::Server(run),
};

/// Tables that are read in detail.
const SAMPLE: usize = 128;

/// Tables up to which the server counts engines: older servers read a file for each.
const COUNTED: usize = 5000;

/// Free space within a table's file from which on a rebuild may be worth its while, in bytes.
const WORTH_RECLAIMING: u64 = 100 * 1024 * 1024;

/// Names kept in a list.
const LISTED: usize = 20;

/// Names that are fetched to choose from; beyond it the choice is among these.
const NAMES: usize = 200_000;

const OURS: &str = "('mysql', 'information_schema', 'performance_schema', 'sys')";

/// Why tables are not looked at one by one.
const RECOMPUTES: &str = "not asked, because innodb_stats_on_metadata is ON and the server would compute the statistics of each table anew; SET GLOBAL innodb_stats_on_metadata = OFF, which newer servers have by default, permits it";

/// Servers that keep InnoDB's statistics in tables of their own.
const STATISTICS: [Since; 2] = [mysql(50_606..), mariadb(100_000..)];

/// InnoDB's dictionary.
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

fn run(context: &Context, sql: &mut ReadOnly<'_>, bag: &Bag) {
    totals(sql, bag);
    primary_keys(sql, bag);
    let recomputes =
        context.variable("innodb_stats_on_metadata").is_some_and(|v| v.eq_ignore_ascii_case("ON"));
    if recomputes {
        return bag.rest_is("information_schema.TABLES", &Missing::Error(RECOMPUTES.to_owned()));
    }
    let names = match names(sql) {
        Ok(names) => names,
        Err(missing) => return bag.rest_is("information_schema.TABLES", &missing),
    };
    let Names { tables: names, of_innodb } = names;
    let engines = if names.len() <= COUNTED { engines(sql) } else { None };
    let chosen = sample(&names, SAMPLE);
    let mut read = Census::default();
    for (schema, table) in &chosen {
        match read.table(sql, schema, table) {
            Ok(()) => read.looked_at += 1,
            // Out of time or connection: what was read so far is a smaller sample.
            Err(Missing::Error(_)) => break,
            Err(_) => {}
        }
    }
    let unseen = of_innodb.saturating_sub(names.len() as u64);
    let unused = unused_indexes(context, sql, &read.droppable);
    bag.put("schema.unused_indexes", INDEX_USAGE, unused);
    read.put(names.len(), unseen, engines, bag);
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

/// What the persistent statistics know of all InnoDB tables, without opening one.
fn totals(sql: &mut ReadOnly<'_>, bag: &Bag) {
    let statement = format!(
        "SELECT COALESCE(SUM(n_rows), 0), COALESCE(SUM(clustered_index_size) * @@innodb_page_size, 0), COALESCE(SUM(sum_of_other_index_sizes) * @@innodb_page_size, 0), COALESCE(TIMESTAMPDIFF(SECOND, MIN(last_update), NOW()), 0) FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS}"
    );
    let row = statistics(sql, &statement)
        .map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"))
        .map(|rows| rows.into_iter().next().unwrap_or_default());
    for (place, id) in ["rows", "data_bytes", "index_bytes", "statistics_oldest_s"].iter().enumerate() {
        let value = row.clone().and_then(|row| whole(&row, place));
        bag.put(&format!("schema.{id}"), "mysql.innodb_table_stats", value);
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
    bag.put("schema.largest", "mysql.innodb_table_stats", largest);
}

/// Rows of a statement on InnoDB's statistics, where the server has them.
fn statistics(sql: &mut ReadOnly<'_>, statement: &str) -> Result<Vec<Row>, SqlError> {
    match sql.dialect() {
        Some(dialect) if !dialect.is(&STATISTICS) => Err(SqlError::NotInThisVersion),
        _ => sql.rows(statement),
    }
}

/// InnoDB tables with the index that it makes when there is no primary key, from its own dictionary.
fn primary_keys(sql: &mut ReadOnly<'_>, bag: &Bag) {
    let (asked, found) = first_of(sql, &DICTIONARY);
    let tables = found.map_err(|e| e.missing("PROCESS")).map(|table| {
        let rows = table.rows;
        let name = |row: Row| row.into_iter().next().flatten().map(|n| n.replacen('/', ".", 1));
        // Full-text search keeps tables of its own; those of the server are not the user's.
        let users = |n: &String| {
            let system = ["mysql.", "sys.", "sys/"].iter().any(|s| n.starts_with(s));
            !system && n.contains('.') && !n.contains(".FTS_") && !n.contains(".fts_")
        };
        let all: BTreeSet<String> =
            rows.into_iter().filter_map(name).filter(users).map(|n| without_partition(&n)).collect();
        all
    });
    bag.put("schema.without_primary_key", asked, tables.as_ref().map(BTreeSet::len).map_err(Clone::clone));
    let some = tables.map(|all| all.into_iter().take(LISTED).collect::<Vec<String>>());
    bag.put("schema.without_primary_key_tables", asked, some);
}

/// `t#P#p0` and `t#p#p0#sp#s1` are partitions of `t`.
fn without_partition(name: &str) -> String {
    let end = name.to_ascii_lowercase().find("#p#").unwrap_or(name.len());
    name[..end].to_owned()
}

/// What tables there are.
struct Names {
    /// Those that the account sees, or some of many.
    tables: Vec<(String, String)>,
    /// How many InnoDB tables the statistics know, partitions not counted apart.
    of_innodb: u64,
}

/// Names of all tables. The statistics are asked first: one scan of an index, where the other way reads every folder.
fn names(sql: &mut ReadOnly<'_>) -> Read<Names> {
    let counted = format!(
        "SELECT COUNT(*), COUNT(DISTINCT database_name, SUBSTRING_INDEX(LOWER(table_name), '#p#', 1)) FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} AND LEFT(LOWER(table_name), 4) NOT IN ('fts_', '#sql')"
    );
    let counted = statistics(sql, &counted);
    let refused = matches!(&counted, Err(e) if matches!(e.missing(""), Missing::Denied(_)));
    let known =
        |place: usize| counted.as_ref().ok().and_then(|rows| whole(rows.first()?, place).ok()).unwrap_or(0);
    let (many, of_innodb) = (known(0) > 5000, known(1));
    let statement = if many {
        format!(
            "SELECT database_name, table_name FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} LIMIT {NAMES}"
        )
    } else {
        format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN {OURS} LIMIT {NAMES}"
        )
    };
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
    let tables = rows.into_iter().filter_map(|row| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()??))
    });
    Ok(Names { tables: tables.collect(), of_innodb })
}

/// At most `size` names, the same ones each time: those with the smallest hashes (FNV-1a, mixed).
fn sample(names: &[(String, String)], size: usize) -> Vec<&(String, String)> {
    let hash = |(schema, table): &&(String, String)| {
        let bytes = schema.bytes().chain([0]).chain(table.bytes());
        let fnv =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        // Names that differ in their last character only have near hashes without this.
        let mixed = (fnv ^ (fnv >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    };
    let mut chosen: Vec<&(String, String)> = names.iter().collect();
    chosen.sort_by_cached_key(hash);
    chosen.truncate(size);
    chosen
}

/// What was found in the tables that were read.
#[derive(Default)]
struct Census {
    /// Tables and views.
    looked_at: usize,
    read: usize,
    engines: BTreeMap<String, u64>,
    charsets: BTreeMap<String, u64>,
    types: BTreeMap<String, BTreeSet<String>>,
    blobs: u64,
    duplicates: Vec<Value>,
    /// Indexes that only speed things up: schema, table, index, first column.
    droppable: Vec<[String; 4]>,
    reclaimable: Vec<Value>,
    row_formats: BTreeMap<String, u64>,
    text_keys: Vec<Value>,
    most_indexes: Option<(usize, String)>,
    fullest: Option<(f64, Value)>,
}

/// A column as information_schema tells it.
struct Column {
    name: String,
    data_type: String,
    column_type: String,
    charset: Option<String>,
    collation: Option<String>,
    auto_increment: bool,
}

impl Census {
    fn table(&mut self, sql: &mut ReadOnly<'_>, schema: &str, table: &str) -> Read<()> {
        let (Some(in_schema), Some(is_table)) = (quoted(schema), quoted(table)) else { return Ok(()) };
        let of = |columns: &str, view: &str, order: &str| {
            format!(
                "SELECT {columns} FROM information_schema.{view} WHERE TABLE_SCHEMA = {in_schema} AND TABLE_NAME = {is_table}{order}"
            )
        };
        let mut rows =
            |statement: String| sql.rows(&statement).map_err(|e| e.missing("SELECT on the tables"));
        let tables = rows(of(
            "ENGINE, AUTO_INCREMENT, TABLE_TYPE, ROW_FORMAT, DATA_FREE, DATA_LENGTH, INDEX_LENGTH",
            "TABLES",
            "",
        ))?;
        // A view, or a table that was dropped since.
        let Some(found) = tables.first().filter(|row| text(row, 2) == "BASE TABLE") else { return Ok(()) };
        let columns = rows(of(
            "COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA",
            "COLUMNS",
            "",
        ))?;
        let indexes = rows(of(
            "INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, INDEX_TYPE",
            "STATISTICS",
            " ORDER BY INDEX_NAME, SEQ_IN_INDEX",
        ))?;
        let columns: Vec<Column> = columns.into_iter().filter_map(column).collect();
        let name = format!("{schema}.{table}");
        self.read += 1;
        *self.engines.entry(text(found, 0).to_owned()).or_default() += 1;
        self.columns(&columns);
        self.indexes(&name, &indexes, &columns);
        if text(found, 0) == "InnoDB" {
            self.space(&name, found);
            for index in grouped(&indexes).iter().filter(|i| !i.unique && i.kind == "BTREE") {
                let Some((first, _)) = index.parts.first() else { continue };
                let names = [schema, table, &index.name, first];
                self.droppable.push(names.map(str::to_owned));
            }
        }
        if let Some(next) = found.get(1).cloned().flatten().and_then(|n| n.parse::<f64>().ok()) {
            self.auto_increment(&name, next, &columns);
        }
        Ok(())
    }

    fn columns(&mut self, columns: &[Column]) {
        for column in columns {
            if let Some(charset) = &column.charset {
                *self.charsets.entry(charset.clone()).or_default() += 1;
            }
            let kind = column.data_type.to_ascii_lowercase();
            if kind.ends_with("blob") || kind.ends_with("text") || kind == "json" {
                self.blobs += 1;
            }
            let whole = match &column.collation {
                Some(collation) => format!("{} {collation}", column.column_type),
                None => column.column_type.clone(),
            };
            self.types.entry(column.name.clone()).or_default().insert(whole);
        }
    }

    fn indexes(&mut self, table: &str, rows: &[Row], columns: &[Column]) {
        let indexes = grouped(rows);
        if self.most_indexes.as_ref().is_none_or(|(most, _)| indexes.len() > *most) && !indexes.is_empty() {
            self.most_indexes = Some((indexes.len(), table.to_owned()));
        }
        for (index, by) in duplicates(&indexes) {
            self.duplicates.push(json!({"table": table, "index": index, "covered_by": by}));
        }
        let first = indexes.iter().find(|i| i.name == "PRIMARY").and_then(|i| i.parts.first());
        if let Some(key) = first.and_then(|part| columns.iter().find(|c| c.name == part.0))
            && key.charset.is_some()
        {
            self.text_keys.push(json!({"table": table, "type": key.column_type}));
        }
    }

    /// Row format, and what a rebuild would give back.
    fn space(&mut self, table: &str, row: &Row) {
        *self.row_formats.entry(text(row, 3).to_ascii_lowercase()).or_default() += 1;
        let (Ok(free), Ok(data), Ok(index)) = (whole(row, 4), whole(row, 5), whole(row, 6)) else { return };
        if free >= WORTH_RECLAIMING && free >= data.saturating_add(index) {
            self.reclaimable
                .push(json!({"table": table, "free_bytes": free, "used_bytes": data.saturating_add(index)}));
        }
    }

    fn auto_increment(&mut self, table: &str, next: f64, columns: &[Column]) {
        let Some(column) = columns.iter().find(|c| c.auto_increment) else { return };
        let Some(largest) = largest(&column.column_type) else { return };
        let used = (next - 1.0).max(0.0) / largest;
        if self.fullest.as_ref().is_none_or(|(most, _)| used > *most) {
            self.fullest = Some((used, json!({"table": table, "type": column.column_type, "used": used})));
        }
    }

    /// `tables` were named, and `unseen` more are known to the statistics.
    fn put(self, tables: usize, unseen: u64, engines: Option<BTreeMap<String, u64>>, bag: &Bag) {
        let from = "information_schema.TABLES, COLUMNS, STATISTICS";
        let put = |id: &str, value: Value| bag.put::<Value>(&format!("schema.{id}"), from, Ok(value));
        put("tables", tables.into());
        put("tables_read", self.read.into());
        let sampled = self.looked_at < tables;
        put("sampled", sampled.into());
        let hidden = || {
            Missing::Denied(format!(
                "this account does not see {unseen} or more of the tables; it needs SELECT on them (SELECT ON *.*)"
            ))
        };
        let all_read = match (unseen, sampled) {
            (0, false) => Ok(true),
            (0, true) => Err(Missing::Error(format!("{} of {tables} tables were read", self.looked_at))),
            _ => Err(hidden()),
        };
        let counted = match unseen {
            0 if engines.is_some() => Ok(true),
            _ => all_read.clone(),
        };
        bag.put("schema.all_read", from, all_read.clone());
        bag.put("schema.engines_counted", from, counted);
        put("duplicate_indexes", self.duplicates.into());
        put("text_primary_keys", self.text_keys.into());
        put("reclaimable", self.reclaimable.into());
        for (format, tables) in self.row_formats {
            put(&format!("row_format.{format}.tables"), tables.into());
        }
        put("blob_columns", self.blobs.into());
        let conflicts = self.types.into_iter().filter(|(_, types)| types.len() > 1);
        let conflicts = conflicts.map(|(name, types)| json!({"column": name, "types": types}));
        put("type_conflicts", conflicts.take(LISTED).collect::<Vec<Value>>().into());
        for (engine, tables) in engines.unwrap_or(self.engines) {
            put(&format!("engine.{engine}.tables"), tables.into());
        }
        for (charset, columns) in self.charsets {
            put(&format!("charset.{charset}.columns"), columns.into());
        }
        // Nothing can be said of tables that were not read.
        let none =
            || all_read.clone().err().unwrap_or_else(|| Missing::Absent("no table has one".to_owned()));
        let most = self.most_indexes.map(|(indexes, table)| json!({"table": table, "indexes": indexes}));
        bag.put("schema.most_indexes", from, most.ok_or_else(none));
        bag.put("schema.auto_increment", from, self.fullest.map(|(_, value)| value).ok_or_else(none));
    }
}

fn column(row: Row) -> Option<Column> {
    let mut cells = row.into_iter();
    let mut next = || cells.next().flatten();
    let (name, data_type, column_type) = (next()?, next()?, next()?);
    let (charset, collation) = (next(), next());
    let auto_increment = next().is_some_and(|extra| extra.contains("auto_increment"));
    Some(Column { name, data_type, column_type, charset, collation, auto_increment })
}

/// An index: its columns, each with the length of its prefix.
#[derive(Debug, PartialEq)]
struct Index {
    name: String,
    unique: bool,
    kind: String,
    parts: Vec<(String, Option<String>)>,
}

/// Rows of STATISTICS, in order, by index.
fn grouped(rows: &[Row]) -> Vec<Index> {
    let mut indexes: Vec<Index> = Vec::new();
    for row in rows {
        let [Some(name), Some(non_unique), column, prefix, kind] = &row[..] else { continue };
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
            }),
        }
    }
    indexes
}

/// Indexes that another one makes superfluous: the same columns at its beginning. A unique index is more than a way to
/// find rows, so only an equal unique one makes it superfluous.
fn duplicates(indexes: &[Index]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (place, index) in indexes.iter().enumerate() {
        let covers = |(other_place, other): &(usize, &Index)| {
            *other_place != place
                && other.kind == index.kind
                && index.kind == "BTREE"
                && other.parts.starts_with(&index.parts)
                && (other.parts.len() > index.parts.len()
                    // Of two equal ones the later goes, and a plain one before a unique one.
                    || if other.unique == index.unique { *other_place < place } else { other.unique })
                && (!index.unique || (other.unique && other.parts.len() == index.parts.len()))
                && index.name != "PRIMARY"
        };
        if let Some((_, other)) = indexes.iter().enumerate().find(covers) {
            found.push((index.name.as_str(), other.name.as_str()));
        }
    }
    found
}

const INDEX_USAGE: &str = "performance_schema.table_io_waits_summary_by_index_usage";

/// Those of some indexes that no statement has used since the server started. A table that was not opened since has
/// no line there, so that nothing is said of it.
fn unused_indexes(context: &Context, sql: &mut ReadOnly<'_>, indexes: &[[String; 4]]) -> Read<Value> {
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
    let statement = format!(
        "SELECT OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME FROM {INDEX_USAGE} WHERE INDEX_NAME IS NOT NULL AND COUNT_STAR = 0 AND OBJECT_SCHEMA NOT IN {OURS} LIMIT {NAMES}"
    );
    let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on performance_schema"))?;
    let idle: BTreeSet<[&str; 3]> = rows.iter().map(|r| [text(r, 0), text(r, 1), text(r, 2)]).collect();
    let mut found = Vec::new();
    for [schema, table, index, column] in indexes {
        if !idle.contains(&[schema.as_str(), table.as_str(), index.as_str()]) || found.len() == LISTED {
            continue;
        }
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

/// The largest value of an integer type.
fn largest(column_type: &str) -> Option<f64> {
    let kind = column_type.to_ascii_lowercase();
    let name: String = kind.chars().take_while(char::is_ascii_alphabetic).collect();
    let bits = match name.as_str() {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        "bigint" => 64,
        _ => return None,
    };
    let sign = i32::from(!kind.contains("unsigned"));
    Some(2f64.powi(bits - sign) - 1.0)
}

fn text(row: &Row, place: usize) -> &str {
    row.get(place).and_then(Option::as_deref).unwrap_or_default()
}

fn whole(row: &Row, place: usize) -> Read<u64> {
    let digits = text(row, place).split('.').next().unwrap_or_default();
    digits.parse().map_err(|_| Missing::Error(format!("expected a number, found {:?}", text(row, place))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(name: &str, unique: bool, columns: &[&str]) -> Index {
        let parts = columns.iter().map(|c| ((*c).to_owned(), None)).collect();
        Index { name: name.to_owned(), unique, kind: "BTREE".to_owned(), parts }
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
    fn a_file_can_be_made_smaller_when_much_of_it_and_half_or_more_is_free() {
        const MIB: u64 = 1024 * 1024;
        let row = |free: u64, data: u64, index: u64| -> Row {
            let cells = ["InnoDB", "", "BASE TABLE", "Dynamic"].map(|text| Some(text.to_owned()));
            let sizes = [free, data, index].map(|bytes| Some(bytes.to_string()));
            cells.into_iter().chain(sizes).collect()
        };
        let mut census = Census::default();
        census.space("shop.emptied", &row(100 * MIB, 60 * MIB, 40 * MIB));
        census.space("shop.small", &row(99 * MIB, MIB, 0));
        census.space("shop.full", &row(100 * MIB, 61 * MIB, 40 * MIB));
        let named: Vec<&Value> = census.reclaimable.iter().map(|entry| &entry["table"]).collect();
        assert_eq!(named, ["shop.emptied"]);
        assert_eq!(census.row_formats["dynamic"], 3);
    }

    #[test]
    fn a_prefix_of_a_column_is_not_the_column() {
        let mut short = index("short", false, &["a"]);
        short.parts[0].1 = Some("10".to_owned());
        assert!(duplicates(&[short, index("long", false, &["a", "b"])]).is_empty());
    }

    #[test]
    fn the_end_of_integer_types_is_known() {
        for (kind, end) in [
            ("tinyint(4)", 127.0),
            ("int(10) unsigned", 4_294_967_295.0),
            ("int", 2_147_483_647.0),
            ("mediumint unsigned", 16_777_215.0),
        ] {
            assert_eq!(largest(kind), Some(end), "{kind}");
        }
        assert_eq!(largest("varchar(10)"), None);
    }

    #[test]
    fn a_sample_is_the_same_each_time_and_spread_over_the_names() {
        let names: Vec<(String, String)> = (0..1000).map(|n| ("d".to_owned(), format!("t{n:04}"))).collect();
        let chosen = sample(&names, 100);
        assert_eq!(chosen, sample(&names, 100));
        let early = chosen.iter().filter(|(_, t)| t.as_str() < "t0500").count();
        // 100 of 1,000 without replacement: the standard deviation is 4.7; this is five of them.
        assert!((26..=74).contains(&early), "{early}");
    }

    #[test]
    fn partitions_are_parts_of_their_table() {
        assert_eq!(without_partition("d.t#P#p0#SP#s"), "d.t");
        assert_eq!(without_partition("d.t"), "d.t");
    }
}
