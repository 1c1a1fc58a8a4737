//! Further properties of tables that were read: keys in random order, indexes that no statement can use, tables that cannot be
//! opened.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::by_name::ByName;
use super::described::Column;
use super::indexes::Index;
use super::rows::{LISTED, text};
use super::shapes::Shapes;
use crate::readings::Readings;
use crate::source::Read;
use crate::sql::Row;

/// Findings of all tables.
#[derive(Default)]
pub struct More {
    unusable: Vec<Value>,
    binary_keys: Vec<Value>,
    hidden: Vec<Value>,
    disabled: Vec<Value>,
    with_key: Vec<Value>,
    pub short_prefixes: Vec<Value>,
    /// Indexes on the first characters of texts as addresses of pages, which may all begin alike: table, index, column, characters.
    pub prefixes: Vec<Value>,
    unique_with_null: Vec<Value>,
    by_name: ByName,
    own_statistics: Vec<Value>,
    leftovers: Vec<Value>,
    versioned: Vec<Value>,
    /// Findings that follow from a table's columns and indexes together.
    pub shapes: Shapes,
    deprecated: Vec<Value>,
    of_charset: BTreeMap<String, Vec<Value>>,
    of_collation: BTreeMap<String, Vec<Value>>,
    /// Collations of utf8mb4 by schema.
    of_schema: BTreeMap<String, BTreeSet<String>>,
    compressed: Vec<Value>,
    collations: BTreeMap<String, u64>,
    widest: Option<(usize, String)>,
    /// AUTO_INCREMENT columns that have used half of their numbers or more, with the share.
    pub filling: Vec<(f64, Value)>,
}

/// Words that tables which were meant for a while begin with. Others, as in `old_masters`, are words of their subject there.
const FIRST: [&str; 8] = ["bak", "bkp", "tmp", "tmp1", "tmp2", "bak1", "bak2", "deleteme"];

/// Parts of names of tables that are copies or were meant for a while.
const LEFTOVER: [&str; 14] = [
    "bak", "bkp", "backup", "old", "copy", "orig", "tmp", "temp", "tmp1", "tmp2", "bak1", "bak2", "deleteme",
    "todelete",
];

/// Ends of the names of tables that programs of online changes make, with an underscore in front of the name.
const OF_CHANGES: [&str; 4] = ["_new", "_gho", "_ghc", "_del"];

/// Whether the name of a table speaks of a copy: a word as tmp at its beginning, one as old at its end, or a date behind one, or
/// that of a table which an online change filled.
pub fn is_leftover(table: &str) -> bool {
    let name = table.to_ascii_lowercase();
    if name.starts_with('_') && OF_CHANGES.iter().any(|end| name.len() > end.len() + 1 && name.ends_with(end))
    {
        return true;
    }
    let parts: Vec<&str> = name.split(['_', '-', '$']).filter(|part| !part.is_empty()).collect();
    let is_word = |part: &&&str| LEFTOVER.contains(*part);
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    let dated = |part: &str| {
        part.len() == 8
            && ["19", "20"].iter().any(|century| part.starts_with(century))
            && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let before_date =
        parts.len() > 1 && dated(last) && parts[..parts.len() - 1].iter().any(|part| is_word(&part));
    let begins = FIRST.contains(first) || *first == "copy" && parts.get(1) == Some(&"of");
    parts.len() > 1 && (begins || is_word(&last)) || before_date
}

/// Whether the name of a schema speaks of a copy: with such a word anywhere in it, or as all of it.
pub fn is_leftover_schema(schema: &str) -> bool {
    let name = schema.to_ascii_lowercase();
    let mut parts = name.trim_start_matches("#mysql50#").split(['_', '-', '$', '.']);
    is_leftover(&name) || parts.any(|part| part != "temp" && LEFTOVER.contains(&part))
}

impl More {
    /// A table without an engine is one that the server could not open; its comment says why.
    pub fn unusable(&mut self, table: &str, row: &Row) {
        let comment = text(row, 7);
        let crashed = comment.contains("is marked as crashed") || comment.contains("Incorrect key file");
        if text(row, 0).is_empty() || crashed {
            let why = if comment.is_empty() { "the server tells no reason" } else { comment };
            self.unusable.push(json!({"table": table, "reason": why}));
        }
    }

    /// A table that keeps its history.
    pub fn versioned(&mut self, table: &str) {
        self.versioned.push(Value::from(table));
    }

    /// A table in the row format COMPRESSED.
    pub fn compressed(&mut self, table: &str) {
        self.compressed.push(Value::from(table));
    }

    /// A column's collation.
    pub fn collation(&mut self, name: &str) {
        *self.collations.entry(name.to_ascii_lowercase()).or_default() += 1;
    }

    /// Options of a table by which the optimizer's statistics of it differ from those of all others.
    pub fn own_statistics(&mut self, table: &str, options: &str) {
        let options = options.to_ascii_lowercase();
        let set = options.split_ascii_whitespace().find(|option| {
            let quiet = ["stats_persistent=0", "stats_auto_recalc=0"].contains(option);
            let pages = option.strip_prefix("stats_sample_pages=").and_then(|n| n.parse::<u64>().ok());
            quiet || pages.is_some_and(|pages| pages < 8)
        });
        if let Some(option) = set {
            self.own_statistics.push(json!({"table": table, "option": option}));
        }
    }

    /// One table, with its indexes and the rows that these were made of.
    pub fn table(
        &mut self,
        table: &str,
        of_innodb: bool,
        columns: &[Column<'_>],
        indexes: &[Index],
        rows: &[Row],
    ) {
        if self.widest.as_ref().is_none_or(|(most, _)| columns.len() > *most) && !columns.is_empty() {
            self.widest = Some((columns.len(), table.to_owned()));
        }
        let key = indexes.iter().find(|index| index.name == "PRIMARY");
        let first = key.and_then(|key| key.parts.first());
        let of_key = first.and_then(|(name, _)| columns.iter().find(|c| c.name == name));
        if let Some(column) = of_key.filter(|c| of_innodb && is_random(c)) {
            self.binary_keys.push(json!({"table": table, "type": column.column_type}));
        }
        for index in indexes {
            let entry = || json!({"table": table, "index": index.name});
            if index.hidden {
                self.hidden.push(entry());
            }
            if rows.iter().any(|row| text(row, 0) == index.name && text(row, 6) == "disabled") {
                self.disabled.push(entry());
            }
            if let Some(entry) = short_prefix(table, index) {
                self.short_prefixes.push(entry);
            } else if let Some(entry) = beginning_alike(table, index) {
                self.prefixes.push(entry);
            }
            // A generated column is NULL on purpose, where the key is not to hold.
            let generated = |name: &&str| columns.iter().any(|c| c.name == *name && c.generated);
            if let Some(column) = may_be_null(index, rows).filter(|name| !generated(name)) {
                self.unique_with_null.push(json!({"table": table, "index": index.name, "column": column}));
            }
            let ends = key.is_some_and(|key| {
                index.name != "PRIMARY"
                    && index.parts.len() > key.parts.len()
                    && index.parts.ends_with(&key.parts)
            });
            if of_innodb && ends && !index.unique && index.kind == "BTREE" {
                self.with_key.push(entry());
            }
        }
        self.shapes.table(table, columns, indexes);
        if table.split_once('.').is_some_and(|(_, name)| is_leftover(name)) {
            self.leftovers.push(Value::from(table));
        }
        for column in columns {
            if let Some(charset) = column.collation.and_then(|collation| collation.split('_').next()) {
                let listed = self.of_charset.entry(charset.to_ascii_lowercase()).or_default();
                if listed.len() < LISTED {
                    listed.push(Value::from(format!("{table}.{}", column.name)));
                }
            }
            let mixed = |collation: &&str| collation.starts_with("utf8mb4_") && !collation.ends_with("_bin");
            if let Some(collation) = column.collation.filter(mixed) {
                let schema = table.split_once('.').map_or(table, |(schema, _)| schema);
                // WordPress makes tables of both of these by itself.
                let kind = collation.to_ascii_lowercase().replace("_unicode_520_ci", "_unicode_ci");
                match self.of_schema.get_mut(schema) {
                    Some(kinds) if kinds.contains(&kind) => {}
                    Some(kinds) => _ = kinds.insert(kind),
                    None => _ = self.of_schema.insert(schema.to_owned(), BTreeSet::from([kind])),
                }
                let listed = self.of_collation.entry(collation.to_ascii_lowercase()).or_default();
                if listed.len() < LISTED {
                    listed.push(Value::from(format!("{table}.{}", column.name)));
                }
            }
            if is_deprecated(column) {
                self.deprecated.push(Value::from(format!("{table}.{}", column.name)));
            }
            self.by_name.column(table, column);
        }
    }

    /// Puts what follows from columns and comments alone; `from` is where that was read.
    pub fn put_columns(&mut self, readings: &Readings, from: &str, all: &Read<bool>, opened: &Read<bool>) {
        put("schema.unusable", std::mem::take(&mut self.unusable), readings, from, opened);
        for (id, list) in self.by_name.take() {
            put(id, list, readings, from, all);
        }
        for (id, list) in [
            ("schema.leftovers", &mut self.leftovers),
            ("schema.versioned", &mut self.versioned),
            ("schema.deprecated_types", &mut self.deprecated),
        ] {
            put(id, std::mem::take(list), readings, from, all);
        }
        let by_charset = std::mem::take(&mut self.of_charset);
        for (charset, columns) in by_charset {
            // A single character set is told by its number of columns, but for the old one.
            if self.collations.len() < 2 && !["utf8", "utf8mb3"].contains(&charset.as_str()) {
                continue;
            }
            readings.put(&format!("schema.of_charset.{charset}"), from, Ok(columns));
        }
        let of_schema = std::mem::take(&mut self.of_schema).into_iter().filter(|(_, kinds)| kinds.len() > 1);
        let several =
            of_schema.take(LISTED).map(|(schema, kinds)| json!({"schema": schema, "collations": kinds}));
        readings.put("schema.of_two_collations", from, Ok(several.collect::<Vec<Value>>()));
        // The columns of the most frequent collation are those that the others differ from.
        let most = self.collations.iter().max_by_key(|(_, columns)| **columns).map(|(name, _)| name.clone());
        for (collation, columns) in std::mem::take(&mut self.of_collation) {
            if most.as_ref() != Some(&collation) {
                readings.put(&format!("schema.of_collation.{collation}"), from, Ok(columns));
            }
        }
        for (collation, columns) in std::mem::take(&mut self.collations) {
            readings.put(&format!("schema.collation.{collation}.columns"), from, Ok(columns));
        }
        if let Some((columns, table)) = self.widest.take() {
            readings.put("schema.most_columns", from, Ok(json!({"table": table, "columns": columns})));
        }
    }

    /// Puts the facts; `from` is where they were read, and `all`, `opened` and `options` why not all tables were read or opened, or
    /// their options not read.
    pub fn put(
        mut self,
        readings: &Readings,
        from: &str,
        all: &Read<bool>,
        opened: &Read<bool>,
        options: &Read<bool>,
    ) {
        self.put_columns(readings, from, all, opened);
        self.filling.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let filling: Vec<Value> = self.filling.into_iter().map(|(_, entry)| entry).collect();
        for (id, list) in [
            ("schema.binary_primary_keys", self.binary_keys),
            ("schema.hidden_indexes", self.hidden),
            ("schema.indexes_with_key", self.with_key),
            ("schema.short_prefixes", self.short_prefixes),
            ("schema.unique_with_null", self.unique_with_null),
            ("schema.logins_not_unique", self.shapes.without_unique()),
        ] {
            put(id, list, readings, from, all);
        }
        put("schema.own_statistics", self.own_statistics, readings, from, options);
        put("schema.compressed", self.compressed, readings, from, options);
        put("schema.disabled_indexes", self.disabled, readings, from, opened);
        put("schema.rows_too_wide", self.shapes.too_wide(), readings, from, opened);
        put("schema.filling", filling, readings, from, opened);
    }
}

/// Puts a list. Where it is empty and not all tables were read, nothing can be said.
fn put(id: &str, mut list: Vec<Value>, readings: &Readings, from: &str, all: &Read<bool>) {
    list.truncate(LISTED);
    let found = if list.is_empty() { all.clone().map(|_| list) } else { Ok(list) };
    readings.put(id, from, found);
}

/// An index whose first column is held by its first characters alone, and by few of them: four where it finds rows, twenty where it
/// forbids equal values as well, since different texts that begin alike are refused.
fn short_prefix(table: &str, index: &Index) -> Option<Value> {
    let (column, prefix) = index.parts.first()?;
    let characters: u64 = prefix.as_ref()?.parse().ok()?;
    let short = characters <= if index.unique { 20 } else { 4 };
    (short && index.kind == "BTREE" && !index.hidden).then(|| {
        json!({"table": table, "index": index.name, "column": column, "characters": characters, "unique": index.unique})
    })
}

/// An index on the first twelve characters or fewer of a text whose name says that many values begin alike.
fn beginning_alike(table: &str, index: &Index) -> Option<Value> {
    const NAMES: [&str; 7] = ["url", "uri", "link", "href", "path", "referer", "referrer"];
    let (column, prefix) = index.parts.first()?;
    let characters: u64 = prefix.as_ref()?.parse().ok()?;
    let name = column.to_ascii_lowercase();
    let alike = name.split('_').any(|part| NAMES.contains(&part));
    (alike && characters <= 12 && index.kind == "BTREE" && !index.hidden).then(
        || json!({"table": table, "index": index.name, "column": column, "characters": characters, "unique": index.unique}),
    )
}

/// The first column that may be NULL of a unique index on several columns: rows that have NULL there may be equal in the others.
fn may_be_null<'a>(index: &Index, rows: &'a [Row]) -> Option<&'a str> {
    let of_index = rows.iter().filter(|row| text(row, 0) == index.name);
    let mut nullable = of_index.filter(|row| text(row, 8) == "YES" && !text(row, 2).is_empty());
    (index.unique && index.parts.len() > 1).then(|| nullable.next().map(|row| text(row, 2))).flatten()
}

/// Whether MySQL advises against the type: FLOAT and DOUBLE with a number of digits, and ZEROFILL.
fn is_deprecated(column: &Column<'_>) -> bool {
    let kind = column.column_type.to_ascii_lowercase();
    let digits = ["float(", "double("].iter().any(|start| kind.starts_with(start)) && kind.contains(',');
    digits || kind.contains("zerofill")
}

/// Whether values of a key column come in no order as a rule: an id of 16 bytes, or a hash.
fn is_random(column: &Column<'_>) -> bool {
    let kind = column.column_type.to_ascii_lowercase();
    let binary = kind.strip_prefix("binary(").or_else(|| kind.strip_prefix("varbinary("));
    let bytes = binary.and_then(|rest| rest.trim_end_matches(')').parse::<u64>().ok());
    !column.auto_increment && (kind == "uuid" || bytes.is_some_and(|bytes| bytes >= 16))
}

#[cfg(test)]
mod tests {
    use super::super::indexes::grouped;
    use super::*;

    fn index(cells: [&str; 7]) -> Row {
        cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec()
    }

    #[test]
    fn keys_in_random_order_hidden_and_disabled_indexes_and_those_that_end_in_the_key_are_listed() {
        let rows = [
            index(["PRIMARY", "0", "id", "", "BTREE", "0", ""]),
            index(["by_name", "1", "name", "", "BTREE", "1", "disabled"]),
            index(["by_both", "1", "name", "", "BTREE", "0", ""]),
            index(["by_both", "1", "id", "", "BTREE", "0", ""]),
        ];
        let columns = [Column::of("id", "binary(16)", None), Column::of("name", "varchar(20)", None)];
        let mut more = More::default();
        more.table("shop.t", true, &columns, &grouped(&rows), &rows);
        assert_eq!(more.binary_keys, [json!({"table": "shop.t", "type": "binary(16)"})]);
        assert_eq!(more.hidden, [json!({"table": "shop.t", "index": "by_name"})]);
        assert_eq!(more.disabled, more.hidden);
        assert_eq!(more.with_key, [json!({"table": "shop.t", "index": "by_both"})]);
        assert_eq!(more.widest, Some((2, "shop.t".to_owned())));
    }

    #[test]
    fn indexes_on_the_first_few_characters_of_a_text_are_listed() {
        let rows = [
            index(["by_name", "1", "name", "3", "BTREE", "0", ""]),
            index(["by_mail", "0", "mail", "20", "BTREE", "0", ""]),
            index(["by_title", "1", "title", "20", "BTREE", "0", ""]),
            index(["by_note", "1", "note", "", "BTREE", "0", ""]),
            index(["by_url", "1", "page_url", "8", "BTREE", "0", ""]),
        ];
        let mut more = More::default();
        more.table("shop.t", true, &[], &grouped(&rows), &rows);
        let named: Vec<&Value> = more.short_prefixes.iter().map(|entry| &entry["index"]).collect();
        assert_eq!(named, ["by_name", "by_mail"]);
        assert_eq!(more.short_prefixes[1]["unique"], json!(true));
        assert_eq!(more.prefixes.iter().map(|entry| &entry["index"]).collect::<Vec<_>>(), ["by_url"]);
    }

    #[test]
    fn unique_indexes_on_several_columns_of_which_one_may_be_null_are_listed() {
        let part = |index: &str, unique: bool, column: &str, nullable: &str| -> Row {
            let cells = [index, if unique { "0" } else { "1" }, column, "", "BTREE", "0", "", "1", nullable];
            cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec()
        };
        let rows = [
            part("mail", true, "mail", ""),
            part("mail", true, "deleted_at", "YES"),
            part("phone", true, "phone", "YES"),
            part("both", false, "a", "YES"),
            part("both", false, "b", "YES"),
            part("pair", true, "a", ""),
            part("pair", true, "b", ""),
        ];
        let mut more = More::default();
        more.table("shop.t", true, &[], &grouped(&rows), &rows);
        let expected = json!({"table": "shop.t", "index": "mail", "column": "deleted_at"});
        assert_eq!(more.unique_with_null, [expected]);
    }

    #[test]
    fn a_table_without_an_engine_cannot_be_used_and_a_short_binary_key_is_not_random() {
        let row = |engine: &str, comment: &str| -> Row {
            let cells = [engine, "", "BASE TABLE", "", "", "", "", comment];
            cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec()
        };
        let mut more = More::default();
        more.unusable("a.gone", &row("", "Table './a/gone' is marked as crashed"));
        more.unusable("a.fine", &row("InnoDB", "customers"));
        assert_eq!(more.unusable.len(), 1);
        more.own_statistics("a.fine", "row_format=DYNAMIC stats_persistent=1 stats_sample_pages=20");
        more.own_statistics("a.old", "stats_persistent=0 row_format=COMPACT");
        more.own_statistics("a.few", "STATS_SAMPLE_PAGES=1");
        assert_eq!(more.own_statistics.len(), 2);
        for name in [
            "_orders_new",
            "_orders_gho",
            "_orders_old",
            "orders_bak_20210301",
            "tmp_import2",
            "customers_old",
            "Copy_of_x",
            "orders_backup",
        ] {
            assert!(is_leftover(name), "{name}");
        }
        for name in ["backup_2023", "shop_old", "old_shop", "#mysql50#shop.bak", "backup"] {
            assert!(is_leftover_schema(name), "{name}");
        }
        for name in ["shop", "goldshop", "templates", "temp_readings"] {
            assert!(!is_leftover_schema(name), "{name}");
        }
        for name in [
            "orders",
            "old",
            "tmp",
            "_new",
            "orders_new",
            "soldier",
            "temperature",
            "backup_jobs",
            "copy_editors",
            "old_masters",
            "temp_readings",
            "orders_20210301",
            "holdings",
            "copyright_texts",
        ] {
            assert!(!is_leftover(name), "{name}");
        }
        assert!(!is_random(&Column::of("id", "binary(8)", None)));
        assert!(is_random(&Column::of("id", "uuid", None)));
    }
}
