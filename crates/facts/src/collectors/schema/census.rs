//! Properties of tables that were read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::indexes::{disabled, duplicates, grouped, hidden};
use super::more;
use super::references::References;
use super::rows::{LISTED, LISTED_OF_TABLES, text, whole};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError, quoted};

/// Free space within a table's file from which on a rebuild may be worth its while, in bytes.
const WORTH_RECLAIMING: u64 = 100 * 1024 * 1024;

/// The tables are judged by those that were read where at most one of so many was left out.
const FEW_UNREAD: u64 = 20;

/// Sums over the tables that were read.
#[derive(Default)]
pub struct Census {
    /// Tables and views.
    pub looked_at: usize,
    read: usize,
    seen: BTreeSet<(String, String)>,
    engines: BTreeMap<String, u64>,
    /// Bytes of data and of indexes by engine.
    pub sizes: BTreeMap<String, [u64; 2]>,
    references: References,
    /// Names of tables of engines other than InnoDB.
    named: BTreeMap<String, Vec<Value>>,
    /// Partitioned tables: schema and name.
    pub partitioned: Vec<(String, String)>,
    charsets: BTreeMap<String, u64>,
    types: BTreeMap<String, BTreeSet<String>>,
    blobs: u64,
    duplicates: Vec<Value>,
    /// Indexes that only speed things up: schema, table, index, first column.
    pub droppable: Vec<[String; 4]>,
    reclaimable: Vec<Value>,
    row_formats: BTreeMap<String, u64>,
    text_keys: Vec<Value>,
    most_indexes: Option<(usize, String)>,
    fullest: Option<(f64, Value)>,
    more: more::More,
    /// Whether only what servers tell without statistics of the tables is read: engines and columns.
    bare: bool,
    /// Next numbers of AUTO_INCREMENT columns, by schema and table, where the server keeps them beside its statistics.
    numbers: BTreeMap<(String, String), f64>,
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
    /// One that also knows the next numbers of AUTO_INCREMENT columns.
    pub fn with(numbers: BTreeMap<(String, String), f64>) -> Self {
        Self { numbers, ..Self::default() }
    }

    /// One of what servers tell without statistics of the tables: engines and columns.
    pub fn bare() -> Self {
        Self { bare: true, ..Self::default() }
    }

    /// Reads columns and indexes of some tables of a schema. An answer that is too large is asked for in halves.
    pub fn tables(&mut self, sql: &mut ReadOnly<'_>, schema: &str, names: &[&str]) -> Read<()> {
        match self.piece(sql, schema, names) {
            Err(SqlError::TooLarge { .. }) if names.len() > 1 => {
                let (one, other) = names.split_at(names.len() / 2);
                self.tables(sql, schema, one)?;
                self.tables(sql, schema, other)
            }
            answer => answer.map_err(|e| e.missing("SELECT on the tables")),
        }
    }

    fn piece(&mut self, sql: &mut ReadOnly<'_>, schema: &str, names: &[&str]) -> Result<(), SqlError> {
        let listed: Vec<String> = names.iter().filter_map(|name| quoted(name)).collect();
        let (Some(in_schema), false) = (quoted(schema), listed.is_empty()) else { return Ok(()) };
        // Servers look up a table by its name only where one name is given.
        let named = match listed.as_slice() {
            [one] => format!("= {one}"),
            _ => format!("IN ({})", listed.join(", ")),
        };
        let of = |columns: &str, view: &str, order: &str| {
            format!(
                "SELECT TABLE_NAME, {columns} FROM information_schema.{view} WHERE TABLE_SCHEMA = {in_schema} AND TABLE_NAME {named}{order}"
            )
        };
        let dialect = sql.dialect();
        let told = match self.bare {
            true => "ENGINE, NULL, TABLE_TYPE, NULL, NULL, NULL, NULL, TABLE_COMMENT",
            false => {
                "ENGINE, AUTO_INCREMENT, TABLE_TYPE, ROW_FORMAT, DATA_FREE, DATA_LENGTH, INDEX_LENGTH, TABLE_COMMENT, CREATE_OPTIONS"
            }
        };
        let tables = by_table(sql.rows(&of(told, "TABLES", ""))?);
        if tables.is_empty() {
            return Ok(());
        }
        let mut columns = by_table(sql.rows(&of(
            "COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA",
            "COLUMNS",
            "",
        ))?);
        let parts = format!(
            "INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, INDEX_TYPE, {}, {}",
            hidden(dialect),
            disabled(dialect)
        );
        let mut indexes = match self.bare {
            true => BTreeMap::new(),
            false => by_table(sql.rows(&of(
                &parts,
                "STATISTICS",
                " ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
            ))?),
        };
        for (table, found) in tables {
            let columns = columns.remove(&table).unwrap_or_default();
            let indexes = indexes.remove(&table).unwrap_or_default();
            if let Some(found) = found.first() {
                self.table(schema, &table, found, columns, &indexes);
            }
        }
        Ok(())
    }

    fn table(&mut self, schema: &str, table: &str, found: &Row, columns: Vec<Row>, indexes: &[Row]) {
        // Names that differ in case only may be found twice. A view has no indexes.
        if text(found, 2) != "BASE TABLE" || !self.seen.insert((schema.to_owned(), table.to_owned())) {
            return;
        }
        let columns: Vec<Column> = columns.into_iter().filter_map(column).collect();
        let name = format!("{schema}.{table}");
        self.read += 1;
        *self.engines.entry(text(found, 0).to_owned()).or_default() += 1;
        self.size(found);
        if !["InnoDB", ""].contains(&text(found, 0)) {
            let named = self.named.entry(text(found, 0).to_owned()).or_default();
            if named.len() < LISTED {
                named.push(name.as_str().into());
            }
        }
        if text(found, 8).to_ascii_lowercase().contains("partitioned") {
            self.partitioned.push((schema.to_owned(), table.to_owned()));
        }
        self.more.unusable(&name, found);
        self.more.own_statistics(&name, text(found, 8));
        self.columns(&columns);
        let described: Vec<more::Column<'_>> = columns
            .iter()
            .map(|c| more::Column {
                name: &c.name,
                data_type: &c.data_type,
                column_type: &c.column_type,
                collation: c.collation.as_deref(),
                auto_increment: c.auto_increment,
            })
            .collect();
        let by_name = grouped(indexes);
        let key = by_name.iter().find(|index| index.name == "PRIMARY");
        let key: Vec<&str> = key.map_or(vec![], |key| key.parts.iter().map(|(c, _)| c.as_str()).collect());
        self.references.table(schema, table, &described, &key, &by_name);
        self.more.table(&name, text(found, 0) == "InnoDB", &described, &by_name, indexes);
        self.indexes(&name, indexes, &columns);
        if text(found, 0) == "InnoDB" {
            self.space(&name, found);
            for index in grouped(indexes).iter().filter(|i| !i.unique && i.kind == "BTREE") {
                let Some((first, _)) = index.parts.first() else { continue };
                let names = [schema, table, &index.name, first];
                self.droppable.push(names.map(str::to_owned));
            }
        }
        let told = found.get(1).cloned().flatten().and_then(|n| n.parse::<f64>().ok());
        let kept = self.numbers.get(&(schema.to_owned(), table.to_owned())).copied();
        if let Some(next) = told.into_iter().chain(kept).reduce(f64::max) {
            self.auto_increment(&name, next, &columns);
        }
    }

    fn columns(&mut self, columns: &[Column]) {
        for column in columns {
            if let Some(collation) = &column.collation {
                self.more.collation(collation);
            }
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
            // Columns as `id` and `name` of different tables have nothing to do with each other.
            let name = column.name.to_ascii_lowercase();
            if ["_id", "_uuid", "_code"].iter().any(|end| name.ends_with(end)) {
                self.types.entry(column.name.clone()).or_default().insert(whole);
            }
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

    /// Names of tables of other engines; of MyISAM also where there are none.
    fn named(&mut self) -> BTreeMap<String, Vec<Value>> {
        self.named.entry("MyISAM".to_owned()).or_default();
        std::mem::take(&mut self.named)
    }

    /// Adds a table to the sizes of its engine. A table that cannot be opened has no engine.
    fn size(&mut self, found: &Row) {
        if text(found, 0).is_empty() {
            return;
        }
        let sizes = self.sizes.entry(text(found, 0).to_owned()).or_default();
        for (sum, place) in sizes.iter_mut().zip([5, 6]) {
            *sum = sum.saturating_add(whole(found, place).unwrap_or(0));
        }
    }

    /// Tables whose rebuild may give space back.
    pub fn reclaimable(&mut self) -> &mut Vec<Value> {
        &mut self.reclaimable
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
        let given = (next - 1.0).max(0.0);
        let used = given / largest;
        let entry = json!({
            "table": table, "column": column.name, "type": column.column_type,
            "used": used, "left": (largest - given).max(0.0),
        });
        if used >= 0.5 {
            self.more.filling.push((used, entry.clone()));
        }
        if self.fullest.as_ref().is_none_or(|(most, _)| used > *most) {
            self.fullest = Some((used, entry));
        }
    }

    /// Puts what was read without statistics of the tables, and `why` the rest is missing.
    pub fn put_bare(mut self, tables: u64, why: &Missing, readings: &Readings) {
        let named = self.named();
        let from = "information_schema.TABLES, COLUMNS";
        let put = |id: &str, value: Value| readings.put::<Value>(&format!("schema.{id}"), from, Ok(value));
        put("tables", tables.into());
        put("unread", tables.saturating_sub(self.looked_at as u64).into());
        put("blob_columns", self.blobs.into());
        put("type_conflicts", conflicts(self.types));
        for (engine, tables) in self.engines {
            put(&format!("engine.{engine}.tables"), tables.into());
        }
        for (engine, tables) in named {
            put(&format!("of_engine.{engine}"), tables.into());
        }
        for (charset, columns) in self.charsets {
            put(&format!("charset.{charset}.columns"), columns.into());
        }
        self.more.put_columns(readings, from);
        let all = if (self.looked_at as u64) < tables { Err(why.clone()) } else { Ok(true) };
        readings.put("schema.engines_counted", from, all.clone());
        readings.put("schema.all_read", from, all);
        // Members of families, which are not missing by themselves.
        for id in [
            "row_format.redundant.tables",
            "row_format.compressed.tables",
            "engine.MyISAM.data_bytes",
            "engine.MyISAM.index_bytes",
        ] {
            readings.put::<Value>(&format!("schema.{id}"), from, Err(why.clone()));
        }
    }

    /// `tables` were named, and `unseen` more are known to the statistics.
    pub fn put(
        mut self,
        tables: u64,
        unseen: u64,
        engines: Option<BTreeMap<String, u64>>,
        readings: &Readings,
    ) {
        let named = self.named();
        let from = "information_schema.TABLES, COLUMNS, STATISTICS";
        let put = |id: &str, value: Value| readings.put::<Value>(&format!("schema.{id}"), from, Ok(value));
        put("tables", tables.into());
        put("tables_read", self.read.into());
        let unread = tables.saturating_sub(self.looked_at as u64);
        put("unread", unread.into());
        put("sampled", (unread > 0).into());
        let hidden = || {
            Missing::Denied(format!(
                "this account does not see {unseen} or more of the tables; it needs SELECT on them (SELECT ON *.*)"
            ))
        };
        let all_read = match unseen {
            0 if unread * FEW_UNREAD <= tables => Ok(true),
            0 => Err(Missing::Error(format!(
                "{} of {tables} tables were read, the largest first; nothing of the kind was found in them, and the others are unknown",
                self.looked_at
            ))),
            _ => Err(hidden()),
        };
        let counted = match unseen {
            0 if engines.is_some() => Ok(true),
            _ => all_read.clone(),
        };
        readings.put("schema.all_read", from, all_read.clone());
        readings.put("schema.engines_counted", from, counted);
        put("duplicate_indexes", bounded(self.duplicates));
        put("text_primary_keys", bounded(self.text_keys));
        put("reclaimable", bounded(self.reclaimable));
        self.more.put(readings, from);
        for (format, tables) in self.row_formats {
            put(&format!("row_format.{format}.tables"), tables.into());
        }
        put("blob_columns", self.blobs.into());
        put("type_conflicts", conflicts(self.types));
        for (engine, tables) in engines.unwrap_or(self.engines) {
            put(&format!("engine.{engine}.tables"), tables.into());
        }
        let mut references = self.references.conflicts();
        references.truncate(LISTED);
        put("reference_conflicts", references.into());
        for (engine, tables) in named {
            put(&format!("of_engine.{engine}"), tables.into());
        }
        for (engine, [data, index]) in self.sizes {
            put(&format!("engine.{engine}.data_bytes"), data.into());
            put(&format!("engine.{engine}.index_bytes"), index.into());
        }
        for (charset, columns) in self.charsets {
            put(&format!("charset.{charset}.columns"), columns.into());
        }
        // Nothing can be said of tables that were not read.
        let none =
            || all_read.clone().err().unwrap_or_else(|| Missing::Absent("no table has one".to_owned()));
        let most = self.most_indexes.map(|(indexes, table)| json!({"table": table, "indexes": indexes}));
        readings.put("schema.most_indexes", from, most.ok_or_else(none));
        readings.put("schema.auto_increment", from, self.fullest.map(|(_, value)| value).ok_or_else(none));
    }
}

/// Names of columns with several types.
fn conflicts(types: BTreeMap<String, BTreeSet<String>>) -> Value {
    let several = types.into_iter().filter(|(_, types)| types.len() > 1);
    several.map(|(name, types)| json!({"column": name, "types": types})).take(LISTED).collect()
}

/// At most [`LISTED_OF_TABLES`] entries.
fn bounded(mut entries: Vec<Value>) -> Value {
    entries.truncate(LISTED_OF_TABLES);
    entries.into()
}

/// Rows by their first cell, the name of the table, without it.
fn by_table(rows: Vec<Row>) -> BTreeMap<String, Vec<Row>> {
    let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let mut cells = row.into_iter();
        if let Some(Some(table)) = cells.next() {
            tables.entry(table).or_default().push(cells.collect());
        }
    }
    tables
}

fn column(row: Row) -> Option<Column> {
    let mut cells = row.into_iter();
    let mut next = || cells.next().flatten();
    let (name, data_type, column_type) = (next()?, next()?, next()?);
    let (charset, collation) = (next(), next());
    let auto_increment = next().is_some_and(|extra| extra.contains("auto_increment"));
    Some(Column { name, data_type, column_type, charset, collation, auto_increment })
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn sizes_are_summed_by_engine_and_partitioned_tables_are_noted() {
        let row = |engine: &str, data: &str, options: &str| -> Row {
            let cells = [engine, "", "BASE TABLE", "", "0", data, "7", "", options];
            cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec()
        };
        let mut census = Census::default();
        census.table("shop", "a", &row("InnoDB", "10", "row_format=DYNAMIC partitioned"), vec![], &[]);
        census.table("shop", "b", &row("InnoDB", "20", ""), vec![], &[]);
        census.table("shop", "c", &row("MyISAM", "40", ""), vec![], &[]);
        census.table("shop", "gone", &row("", "", ""), vec![], &[]);
        assert_eq!(census.sizes["InnoDB"], [30, 14]);
        assert_eq!(census.sizes["MyISAM"], [40, 7]);
        assert_eq!(census.sizes.len(), 2);
        assert_eq!(census.partitioned, [("shop".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn a_few_tables_that_were_not_read_leave_the_others_judged() {
        use mydyno_model::facts::Status;
        let judged = |looked_at: usize, tables: u64| {
            let readings = Readings::new(&super::super::COLLECTOR);
            let census = Census { looked_at, ..Census::default() };
            census.put(tables, 0, None, &readings);
            let facts = readings.take();
            let all_read = facts.iter().find(|(id, _)| id == "schema.all_read").unwrap();
            all_read.1.status == Status::Ok
        };
        assert!(judged(1001, 1006) && judged(95, 100) && judged(3, 3));
        assert!(!judged(94, 100) && !judged(512, 20_000));
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
}
