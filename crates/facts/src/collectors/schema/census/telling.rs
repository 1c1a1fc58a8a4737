//! The facts that follow from the tables that were read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::indexes;
use super::super::rows::{LISTED, LISTED_OF_TABLES};
use super::super::shapes;
use super::{Census, Rarity, largest};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::ReadOnly;

/// The tables are judged by those that were read where at most one of so many was left out.
const FEW_UNREAD: u64 = 20;

/// Numbers that an AUTO_INCREMENT column has given for each row that is there, from which on the table is no queue that is emptied
/// now and then, or not that alone.
const MANY_A_ROW: f64 = 20.0;

impl Census {
    /// Asks InnoDB's statistics for what the definitions do not tell: rows of tables whose numbers run out, values of indexes on the
    /// first characters of texts.
    pub fn ask_statistics(&mut self, sql: &mut ReadOnly<'_>) {
        let filling = &mut self.more.filling;
        filling.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        for (used, entry) in filling.iter_mut().take(LISTED) {
            let Some(rows) = shapes::rows(sql, entry["table"].as_str().unwrap_or_default()) else { continue };
            let given = largest(entry["type"].as_str().unwrap_or_default()).unwrap_or(0.0) * *used;
            entry["rows"] = rows.into();
            if given > MANY_A_ROW * rows.max(1) as f64 {
                entry["numbers_a_row"] = ((given / rows.max(1) as f64).round() as u64).into();
            }
        }
        if let (Some((used, entry)), Some((most, fullest))) = (filling.first(), &mut self.fullest)
            && used >= most
        {
            *fullest = entry.clone();
        }
        indexes::add_sizes(sql, &mut self.duplicates);
        let alike = shapes::few_values(sql, std::mem::take(&mut self.more.prefixes));
        self.more.short_prefixes.extend(alike);
    }

    /// Tables of options that take much room, among those that were read.
    pub fn options(&mut self, sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
        let tables = self.more.shapes.options();
        shapes::options_sizes(sql, &tables)
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
        put("of_odd_engines", odd(&named));
        for (engine, tables) in named {
            put(&format!("of_engine.{engine}"), tables.into());
        }
        for (charset, columns) in self.charsets {
            put(&format!("charset.{charset}.columns"), columns.into());
        }
        let all = if (self.looked_at as u64) < tables { Err(why.clone()) } else { Ok(true) };
        self.more.put_columns(readings, from, &all, &all);
        readings.put("schema.all_opened", from, all.clone());
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
        self.finish_schema();
        let references = std::mem::take(&mut self.conflicts);
        let from = "information_schema.TABLES, COLUMNS, STATISTICS";
        let put = |id: &str, value: Value| readings.put::<Value>(&format!("schema.{id}"), from, Ok(value));
        put("tables", tables.into());
        put("tables_read", self.read.into());
        // Of many tables the definitions are read first, and only some are opened.
        let opened = self.looked_at as u64;
        let unread = tables.saturating_sub(self.defined() as u64);
        put("unread", unread.into());
        put("sampled", (unread > 0).into());
        let hidden = || {
            Missing::Denied(format!(
                "this account does not see {unseen} or more of the tables; it needs SELECT on them (SELECT ON *.*)"
            ))
        };
        let judged = |read: u64, how: &str| match unseen {
            0 if tables.saturating_sub(read) * FEW_UNREAD <= tables => Ok(true),
            0 => Err(Missing::Error(format!(
                "{read} of {tables} tables were {how}; nothing of the kind was found in them, and the others are unknown"
            ))),
            _ => Err(hidden()),
        };
        let all_read = judged(tables - unread, "read");
        let all_opened = judged(opened, "opened");
        let counted = match unseen {
            0 if engines.is_some() || self.engines_known => Ok(true),
            _ => all_read.clone(),
        };
        readings.put("schema.all_read", from, all_read.clone());
        readings.put("schema.all_opened", from, all_opened.clone());
        readings.put("schema.engines_counted", from, counted.clone());
        if let (Err(missing), None) = (&counted, self.engines.get("MyISAM")) {
            readings.put::<Value>("schema.engine.MyISAM.tables", from, Err(missing.clone()));
        }
        put("duplicate_indexes", bounded(self.duplicates));
        put("text_primary_keys", bounded(self.text_keys));
        put("reclaimable", bounded(self.reclaimable));
        let with_options = if self.without_options { &all_opened } else { &all_read };
        self.more.put(readings, from, &all_read, &all_opened, with_options);
        for format in ["redundant", "compressed"] {
            if let (Err(missing), None) = (with_options, self.row_formats.get(format)) {
                let id = format!("schema.row_format.{format}.tables");
                readings.put::<Value>(&id, from, Err(missing.clone()));
            }
        }
        for (format, tables) in self.row_formats {
            put(&format!("row_format.{format}.tables"), tables.into());
        }
        put("blob_columns", self.blobs.into());
        put("type_conflicts", conflicts(self.types));
        for (engine, tables) in engines.unwrap_or(self.engines) {
            put(&format!("engine.{engine}.tables"), tables.into());
        }
        put("of_odd_engines", odd(&named));
        put("reference_conflicts", references.into());
        let without_index = std::mem::take(&mut self.without_index);
        let narrow = std::mem::take(&mut self.narrow);
        for (id, list) in [
            ("same_but_for_case", twins(&self.seen)),
            ("unlike_namesakes", self.tenants.unlike()),
            ("references_without_index", without_index),
            ("references_narrow", narrow),
        ] {
            let found = if list.is_empty() { all_read.clone().map(|_| list) } else { Ok(list) };
            readings.put(&format!("schema.{id}"), from, found);
        }
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
        let none =
            || all_opened.clone().err().unwrap_or_else(|| Missing::Absent("no table has one".to_owned()));
        readings.put("schema.auto_increment", from, self.fullest.map(|(_, value)| value).ok_or_else(none));
    }
}

/// Names of columns with several types, with the first column of the rarest one.
fn conflicts(types: BTreeMap<String, BTreeMap<String, Rarity>>) -> Value {
    let several = types.into_iter().filter(|(_, types)| types.len() > 1);
    let entry = |(name, types): (String, BTreeMap<String, Rarity>)| {
        let rarest = types.values().min_by_key(|rarity| rarity.columns).map(|rarity| rarity.first.as_str());
        json!({"column": name, "types": types.keys().collect::<Vec<_>>(), "rarest": rarest})
    };
    several.map(entry).take(LISTED).collect()
}

/// Engines that are gone, or whose tables keep no rows, or keep them elsewhere, or without indexes and transactions.
const ODD: [&str; 8] =
    ["TokuDB", "BLACKHOLE", "FEDERATED", "CSV", "MRG_MyISAM", "ARCHIVE", "EXAMPLE", "CASSANDRA"];

/// The tables of these engines, with the engine.
fn odd(named: &BTreeMap<String, Vec<Value>>) -> Value {
    let of_engine = |engine: &&'static str| {
        let engine = *engine;
        let tables = named.get(engine).into_iter().flatten();
        tables.map(move |table| json!({"table": table, "type": engine})).collect::<Vec<Value>>()
    };
    ODD.iter().flat_map(of_engine).take(LISTED).collect()
}

/// Names of tables of one schema that differ in their case only.
fn twins(seen: &BTreeSet<(String, String)>) -> Vec<Value> {
    let mut alike: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for (schema, table) in seen {
        alike.entry((schema, table.to_lowercase())).or_default().push(table);
    }
    let several = alike.into_iter().filter(|(_, tables)| tables.len() > 1);
    several.map(|((schema, _), tables)| json!({"schema": schema, "tables": tables})).take(LISTED).collect()
}

/// At most [`LISTED_OF_TABLES`] entries.
fn bounded(mut entries: Vec<Value>) -> Value {
    entries.truncate(LISTED_OF_TABLES);
    entries.into()
}
