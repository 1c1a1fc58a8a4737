//! Properties of tables that were read.

mod column;
mod telling;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use self::column::{Column, column, largest};
use super::defaults::Defaults;
use super::described;
use super::indexes::{Index, disabled, duplicates, grouped, hidden};
use super::more;
use super::references::References;
use super::rows::{LISTED, by_table, in_order, text, whole};
use super::tenants::Tenants;
use crate::source::Read;
use crate::sql::{ReadOnly, Row, SqlError, quoted};
use crate::wording::mysql;

/// Free space within a table's file from which on a rebuild may be worth its while, in bytes.
const WORTH_RECLAIMING: u64 = 50 * 1024 * 1024;

/// Values that are read of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// All of it, for which the server opens the table.
    #[default]
    Whole,
    /// Its definition: engine, options, columns and indexes without their kinds. A server without a dictionary reads one small file
    /// for it.
    Definition,
    /// Values that servers have without computing statistics: engine and columns.
    Bare,
}

/// Words by which information_schema tells a table; MariaDB has a word of its own for one that keeps its history.
const TABLES: [&str; 2] = ["BASE TABLE", VERSIONED];
const VERSIONED: &str = "SYSTEM VERSIONED";

/// Types of the keys of countries, currencies and the like, which are no longer than a number.
const SHORT_CODES: [&str; 4] = ["char(1)", "char(2)", "char(3)", "char(4)"];

/// Tables that are listed for a second look.
const AGAIN: usize = 500;

/// Sums over the tables that were read.
#[derive(Default)]
pub struct Census {
    /// Tables and views.
    pub looked_at: usize,
    read: usize,
    seen: BTreeSet<(String, String)>,
    opened: BTreeSet<(String, String)>,
    /// Whether all tables of other engines than InnoDB are known.
    pub engines_known: bool,
    /// Whether there are tables whose options were not read with their definitions.
    without_options: bool,
    /// Values that are read of the tables that follow.
    pub part: Part,
    /// Tables to be opened before others: AUTO_INCREMENT columns of few values, tables without InnoDB, and indexes that look
    /// superfluous, each with its rank.
    again: BTreeSet<(u8, String, String)>,
    engines: BTreeMap<String, u64>,
    /// Bytes of data and of indexes by engine.
    pub sizes: BTreeMap<String, [u64; 2]>,
    references: References,
    /// Columns of finished schemas that do not fit the key that they refer to, and those that hold fewer numbers than it.
    conflicts: Vec<Value>,
    narrow: Vec<Value>,
    /// Those that refer to a table and that no index begins with.
    without_index: Vec<Value>,
    /// Names of tables of engines other than InnoDB.
    named: BTreeMap<String, Vec<Value>>,
    /// Partitioned tables: schema and name.
    pub partitioned: Vec<(String, String)>,
    charsets: BTreeMap<String, u64>,
    /// Character sets of tables by schema.
    defaults: Defaults,
    /// Types of columns by name, each with the first column that has it.
    types: BTreeMap<String, BTreeMap<String, Rarity>>,
    /// Tables of the same name in many schemas.
    tenants: Tenants,
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
    /// Next numbers of AUTO_INCREMENT columns, by schema and table, where the server keeps them beside its statistics.
    numbers: BTreeMap<(String, String), f64>,
}

/// How many columns have a type, and the first of them.
struct Rarity {
    columns: u64,
    first: String,
}

impl Census {
    /// One that also knows the next numbers of AUTO_INCREMENT columns.
    pub fn with(numbers: BTreeMap<(String, String), f64>) -> Self {
        Self { numbers, ..Self::default() }
    }

    /// Schemas in which most tables have another character set than a new one would get.
    pub fn default_differs(&self, sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
        self.defaults.differing(sql)
    }

    /// One of what servers tell without statistics of the tables: engines and columns.
    pub fn bare() -> Self {
        Self { part: Part::Bare, ..Self::default() }
    }

    /// Tables whose definitions were read, or tables and views that were asked for.
    pub fn defined(&self) -> usize {
        self.looked_at.max(self.read)
    }

    /// The tables to be opened before others, worst first.
    pub fn again(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.again).into_iter().map(|(_, schema, table)| (schema, table)).collect()
    }

    /// Lets go of what is compared within a schema only.
    pub fn finish_schema(&mut self) {
        let references = std::mem::take(&mut self.references);
        for (found, list) in [
            (references.without_index(), &mut self.without_index),
            (references.conflicts(), &mut self.conflicts),
            (references.narrow(), &mut self.narrow),
        ] {
            let room = LISTED.saturating_sub(list.len());
            list.extend(found.into_iter().take(room));
        }
    }

    /// Lists a table of another engine to be opened before others.
    pub fn other_engine(&mut self, schema: &str, table: &str) {
        self.look_again(1, schema, table);
    }

    fn look_again(&mut self, rank: u8, schema: &str, table: &str) {
        if self.again.len() < AGAIN || rank == 0 {
            self.again.insert((rank, schema.to_owned(), table.to_owned()));
        }
    }

    /// Reads columns and indexes of some tables of a schema, and returns of how many it did. An answer that is too large or too
    /// late is asked for in halves, so that a table that waits for a lock leaves out itself only.
    pub fn tables(&mut self, sql: &mut ReadOnly<'_>, schema: &str, names: &[&str]) -> Read<usize> {
        match self.piece(sql, schema, names) {
            Ok(()) => Ok(names.len()),
            Err(error) if error.is_late() && names.len() <= 1 => Ok(0),
            Err(error)
                if names.len() > 1 && (error.is_late() || matches!(error, SqlError::TooLarge { .. })) =>
            {
                let (one, other) = names.split_at(names.len() / 2);
                Ok(self.tables(sql, schema, one)? + self.tables(sql, schema, other)?)
            }
            Err(error) => Err(error.missing("SELECT on the tables")),
        }
    }

    fn piece(&mut self, sql: &mut ReadOnly<'_>, schema: &str, names: &[&str]) -> Result<(), SqlError> {
        let listed: Vec<String> = names.iter().filter_map(|name| quoted(name)).collect();
        if listed.is_empty() {
            return Ok(());
        }
        // Servers without a dictionary look up a table by its name only where one name is given, and else look through all names of
        // the schema, which costs less where most of them are asked for.
        let by_name = listed.len() == 1 || (self.part == Part::Definition && !sql.has_dictionary());
        let conditions = if by_name {
            listed.iter().map(|name| format!(" AND TABLE_NAME = {name}")).collect()
        } else {
            vec![format!(" AND TABLE_NAME IN ({})", listed.join(", "))]
        };
        self.among(sql, schema, &conditions)
    }

    /// Reads the tables of a schema for whose names one of the conditions is true; an empty one is true for all.
    pub fn among(
        &mut self,
        sql: &mut ReadOnly<'_>,
        schema: &str,
        conditions: &[String],
    ) -> Result<(), SqlError> {
        let Some(in_schema) = quoted(schema) else { return Ok(()) };
        let of = |columns: &str, view: &str| {
            let one = |condition: &String| {
                format!(
                    "SELECT TABLE_NAME, {columns} FROM information_schema.{view} WHERE TABLE_SCHEMA = {in_schema}{condition}"
                )
            };
            conditions.iter().map(one).collect::<Vec<_>>().join(" UNION ALL ")
        };
        let dialect = sql.dialect();
        let has_dictionary = sql.has_dictionary();
        let told = match self.part {
            Part::Bare => {
                "ENGINE, NULL, TABLE_TYPE, NULL, NULL, NULL, NULL, TABLE_COMMENT, '', TABLE_COLLATION"
            }
            Part::Definition if has_dictionary => {
                "ENGINE, NULL, TABLE_TYPE, ROW_FORMAT, NULL, NULL, NULL, '', CREATE_OPTIONS"
            }
            // MariaDB opens a table to tell its options.
            Part::Definition if dialect.is_some_and(|dialect| dialect.is(&[mysql(0..)])) => {
                "ENGINE, NULL, TABLE_TYPE, NULL, NULL, NULL, NULL, '', CREATE_OPTIONS"
            }
            Part::Definition => {
                self.without_options = true;
                "ENGINE, NULL, TABLE_TYPE, NULL, NULL, NULL, NULL, '', ''"
            }
            Part::Whole => {
                "ENGINE, AUTO_INCREMENT, TABLE_TYPE, ROW_FORMAT, DATA_FREE, DATA_LENGTH, INDEX_LENGTH, TABLE_COMMENT, CREATE_OPTIONS, TABLE_COLLATION"
            }
        };
        let tables = by_table(sql.rows(&of(told, "TABLES"))?);
        if tables.is_empty() {
            return Ok(());
        }
        let mut columns = by_table(sql.rows(&of(column::TOLD, "COLUMNS"))?);
        // The kind of an index, and whether it is disabled, are told by its open table.
        let parts = match self.part {
            Part::Definition if !has_dictionary => {
                format!(
                    "INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, 'BTREE', {}, '', SEQ_IN_INDEX, NULLABLE",
                    hidden(dialect)
                )
            }
            _ => format!(
                "INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, INDEX_TYPE, {}, {}, SEQ_IN_INDEX, NULLABLE",
                hidden(dialect),
                disabled(dialect)
            ),
        };
        let mut indexes = match self.part {
            Part::Bare => BTreeMap::new(),
            _ => by_table(sql.rows(&of(&parts, "STATISTICS"))?),
        };
        for (table, found) in tables {
            let columns = columns.remove(&table).unwrap_or_default();
            let mut indexes = indexes.remove(&table).unwrap_or_default();
            indexes.sort_by_cached_key(in_order);
            if let Some(found) = found.first() {
                self.table(schema, &table, found, columns, &indexes);
            }
        }
        Ok(())
    }

    fn table(&mut self, schema: &str, table: &str, found: &Row, columns: Vec<Row>, indexes: &[Row]) {
        if !TABLES.contains(&text(found, 2)) {
            return;
        }
        let place = (schema.to_owned(), table.to_owned());
        let columns: Vec<Column> = columns.into_iter().filter_map(column).collect();
        // Names that differ in case only may be found twice, and a table whose definition was read before is opened later.
        let is_new = self.seen.insert(place.clone());
        if is_new {
            self.define(schema, table, found, &columns, indexes);
        }
        if self.part != Part::Definition && self.opened.insert(place) {
            self.open(schema, table, found, &columns, indexes, is_new);
        }
    }

    /// Values of a table from its definition.
    fn define(&mut self, schema: &str, table: &str, found: &Row, columns: &[Column], indexes: &[Row]) {
        let name = format!("{schema}.{table}");
        let of_innodb = text(found, 0) == "InnoDB";
        self.read += 1;
        *self.engines.entry(text(found, 0).to_owned()).or_default() += 1;
        if !["InnoDB", ""].contains(&text(found, 0)) {
            let named = self.named.entry(text(found, 0).to_owned()).or_default();
            if named.len() < LISTED {
                named.push(name.as_str().into());
            }
        }
        if text(found, 2) == TABLES[0] {
            self.defaults.table(schema, text(found, 9));
        }
        let options = text(found, 8).to_ascii_lowercase();
        if options.contains("partitioned") {
            self.partitioned.push((schema.to_owned(), table.to_owned()));
        }
        if text(found, 2) == VERSIONED && !options.contains("partitioned") {
            self.more.versioned(&name);
        }
        self.more.own_statistics(&name, &options);
        self.columns(&name, columns);
        let described: Vec<described::Column<'_>> = columns.iter().map(Column::described).collect();
        let by_name = grouped(indexes);
        let key = by_name.iter().find(|index| index.name == "PRIMARY");
        let key: Vec<&str> = key.map_or(vec![], |key| key.parts.iter().map(|(c, _)| c.as_str()).collect());
        self.references.table(schema, table, &described, &key, &by_name);
        self.more.table(&name, of_innodb, &described, &by_name, indexes);
        self.indexes(&name, &by_name, columns);
        self.tenants.table(
            schema,
            table,
            columns.iter().map(|c| format!("{} {}", c.name, c.whole())),
            &by_name,
        );
        if self.part != Part::Definition {
            return;
        }
        if of_innodb {
            let told = options.split_ascii_whitespace().find_map(|option| option.strip_prefix("row_format="));
            let format = Some(text(found, 3).to_ascii_lowercase()).filter(|format| !format.is_empty());
            if let Some(format) = format.or_else(|| told.map(str::to_owned)) {
                if format == "compressed" {
                    self.more.compressed(&format!("{schema}.{table}"));
                }
                *self.row_formats.entry(format).or_default() += 1;
            }
        }
        let numbered = columns.iter().find(|c| c.auto_increment).map(|c| c.column_type.to_ascii_lowercase());
        let small = |kind: &String| ["tiny", "small", "medium"].iter().any(|start| kind.starts_with(start));
        if numbered.as_ref().is_some_and(small) {
            self.look_again(0, schema, table);
        } else if ["MyISAM", "Aria", ""].contains(&text(found, 0)) {
            self.look_again(1, schema, table);
        } else if !duplicates(&by_name).is_empty() {
            self.look_again(2, schema, table);
        }
    }

    /// Values of a table that is opened.
    fn open(
        &mut self,
        schema: &str,
        table: &str,
        found: &Row,
        columns: &[Column],
        indexes: &[Row],
        is_new: bool,
    ) {
        let name = format!("{schema}.{table}");
        if !is_new && self.without_options {
            self.more.own_statistics(&name, &text(found, 8).to_ascii_lowercase());
        }
        self.size(found);
        self.more.unusable(&name, found);
        let by_name = grouped(indexes);
        for (index, by) in duplicates(&by_name) {
            self.duplicates.push(json!({"table": name, "index": index, "covered_by": by}));
        }
        if text(found, 0) == "InnoDB" {
            if is_new {
                let format = text(found, 3).to_ascii_lowercase();
                if format == "compressed" {
                    self.more.compressed(&name);
                }
                *self.row_formats.entry(format).or_default() += 1;
            }
            self.space(&name, found);
            let columns: Vec<described::Column<'_>> = columns.iter().map(Column::described).collect();
            self.more.shapes.width(&name, text(found, 3), &columns);
            for index in by_name.iter().filter(|i| !i.unique && i.kind == "BTREE") {
                let Some((first, _)) = index.parts.first() else { continue };
                let names = [schema, table, &index.name, first];
                self.droppable.push(names.map(str::to_owned));
            }
        }
        let told = found.get(1).cloned().flatten().and_then(|n| n.parse::<f64>().ok());
        let kept = self.numbers.get(&(schema.to_owned(), table.to_owned())).copied();
        if let Some(next) = told.into_iter().chain(kept).reduce(f64::max) {
            self.auto_increment(&name, next, columns);
        }
    }

    fn columns(&mut self, table: &str, columns: &[Column]) {
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
            // Columns as `id` and `name` of different tables have nothing to do with each other.
            let name = column.name.to_ascii_lowercase();
            if ["_id", "_uuid", "_code"].iter().any(|end| name.ends_with(end)) {
                let types = self.types.entry(column.name.clone()).or_default();
                let first = || Rarity { columns: 0, first: format!("{table}.{}", column.name) };
                types.entry(column.whole()).or_insert_with(first).columns += 1;
            }
        }
    }

    fn indexes(&mut self, table: &str, indexes: &[Index], columns: &[Column]) {
        if self.most_indexes.as_ref().is_none_or(|(most, _)| indexes.len() > *most) && !indexes.is_empty() {
            self.most_indexes = Some((indexes.len(), table.to_owned()));
        }
        let first = indexes.iter().find(|i| i.name == "PRIMARY").and_then(|i| i.parts.first());
        if let Some(key) = first.and_then(|part| columns.iter().find(|c| c.name == part.0))
            && key.charset.is_some()
            && !SHORT_CODES.contains(&key.column_type.to_ascii_lowercase().as_str())
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

    /// Notes the bytes that a rebuild would free.
    fn space(&mut self, table: &str, row: &Row) {
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
}
