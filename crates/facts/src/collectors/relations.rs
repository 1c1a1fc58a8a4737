//! Things that changes of tables leave behind: foreign keys that followed a table to its copy, triggers of an online change. Beside
//! them rows that go with others, and indexes and names that statements do not reach.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::collectors::counted::few_tables;
use crate::collectors::schema::more::is_leftover;
use crate::collectors::triggers::TRIGGERS;
use crate::context::Context;
use crate::readings::Readings;
use crate::source::Read;
use crate::sql::{ReadOnly, Row, SqlError, quoted};
use crate::table_files::of_file_name;
use crate::wording::{Wording, first_of, mariadb, mysql, shared_of};

/// Foreign keys: key, its table, the table that it refers to, whether rows are deleted with those that they refer to.
pub(super) const KEYS: [Wording; 2] = [
    (
        "SELECT CONCAT(CONSTRAINT_SCHEMA, '/', CONSTRAINT_NAME), CONCAT(CONSTRAINT_SCHEMA, '/', TABLE_NAME), CONCAT(UNIQUE_CONSTRAINT_SCHEMA, '/', REFERENCED_TABLE_NAME), DELETE_RULE = 'CASCADE' FROM information_schema.REFERENTIAL_CONSTRAINTS LIMIT 20000",
        &[mysql(80_003..)],
    ),
    (SYS_KEYS, &[mysql(50_600..).until(80_003), mariadb(100_000..)]),
];

/// The same of servers without a dictionary, by names as those of files.
pub(super) const SYS_KEYS: &str =
    "SELECT ID, FOR_NAME, REF_NAME, TYPE & 1 FROM information_schema.INNODB_SYS_FOREIGN LIMIT 20000";

/// Statements that name a table which pt-online-schema-change makes.
const COPYING: &str = "SELECT LEFT(INFO, 4000) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND INFO LIKE '%|_new%' ESCAPE '|' LIMIT 500";

/// The optimizer uses a spatial index only where all values are in one system of coordinates.
const SPATIAL: [Wording; 1] = [(
    "SELECT CONCAT(g.TABLE_SCHEMA, '.', g.TABLE_NAME, '.', s.INDEX_NAME), g.COLUMN_NAME FROM information_schema.ST_GEOMETRY_COLUMNS g JOIN information_schema.STATISTICS s ON s.TABLE_SCHEMA = g.TABLE_SCHEMA AND s.TABLE_NAME = g.TABLE_NAME AND s.COLUMN_NAME = g.COLUMN_NAME WHERE s.INDEX_TYPE = 'SPATIAL' AND g.SRS_ID IS NULL ORDER BY 1 LIMIT 20",
    &[mysql(80_003..)],
)];

/// Tables whose names hold capitals, in InnoDB's dictionary; MySQL 8.0 fixes the rule when it makes the data directory.
const CAPITALS: [Wording; 1] = [(
    "SELECT NAME FROM information_schema.INNODB_SYS_TABLES WHERE BINARY NAME REGEXP '[A-Z]' AND NAME LIKE '%/%' AND NAME NOT LIKE '%#%' AND NAME NOT LIKE '%/FTS%' ORDER BY NAME LIMIT 20",
    &[mysql(50_600..).until(80_000), mariadb(100_000..)],
)];

/// Tablespaces that are not encrypted. MariaDB lists those that never were among the others, but not with the encrypted ones.
const IN_CLEAR: [Wording; 2] = [
    (
        "SELECT NAME FROM information_schema.INNODB_TABLESPACES WHERE ENCRYPTION = 'N' AND SPACE_TYPE = 'Single' AND NAME LIKE '%/%' AND NAME NOT LIKE 'mysql/%' AND NAME NOT LIKE 'sys/%' ORDER BY NAME LIMIT 20",
        &[mysql(80_016..)],
    ),
    (
        "SELECT t.NAME FROM information_schema.INNODB_SYS_TABLESPACES t LEFT JOIN information_schema.INNODB_TABLESPACES_ENCRYPTION e ON e.SPACE = t.SPACE WHERE t.NAME LIKE '%/%' AND t.NAME NOT LIKE 'mysql/%' AND t.NAME NOT LIKE 'sys/%' AND COALESCE(e.ENCRYPTION_SCHEME, 0) = 0 ORDER BY t.NAME LIMIT 20",
        &[mariadb(100_200..)],
    ),
];

/// Parts of the names of tables whose rows are to stay when what they are about goes. Payments of a cart that was left do not.
const KEPT: [&str; 10] = [
    "invoice",
    "invoices",
    "ledger",
    "accounting",
    "rechnung",
    "rechnungen",
    "buchung",
    "buchungen",
    "beleg",
    "belege",
];

/// Keys in a row from which on one DELETE reaches further than who writes it looks.
const FAR: usize = 3;

/// A foreign key.
struct Key {
    name: String,
    table: String,
    refers_to: String,
    cascades: bool,
}

/// Puts all of it.
pub(super) fn put(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let keys = few_tables(sql).and_then(|()| keys(sql));
    let copies =
        keys.as_ref().map_err(Clone::clone).and_then(|keys| on_copies(keys, |name| exists(sql, name)));
    readings.put("schema.keys_on_copies", "InnoDB's dictionary", copies);
    readings.put("schema.cascades", "InnoDB's dictionary", keys.map(|keys| cascades(&keys)));
    let few = if sql.has_dictionary() { Ok(()) } else { few_tables(sql) };
    let changes = few.and_then(|()| changes_left(sql));
    readings.put("schema.online_changes_left", "information_schema.TRIGGERS", changes);
    // The columns of all tables are looked through for those of a place.
    let spatial = few_tables(sql).and_then(|()| match first_of(sql, &SPATIAL).1 {
        // Other servers use such an index whatever its values are.
        Err(SqlError::NotInThisVersion) => Ok(Vec::new()),
        other => pairs(other.map(|table| table.rows), "SELECT on the tables", ["index", "column"]),
    });
    readings.put("schema.spatial_without_srid", "information_schema.ST_GEOMETRY_COLUMNS", spatial);
    readings.put("schema.in_clear", "InnoDB's tablespaces", in_clear(context, sql));
    readings.put("schema.names_out_of_reach", "InnoDB's dictionary", out_of_reach(context, sql));
}

/// Triggers of pt-online-schema-change, whose names it begins so, without those of a change that copies rows at this moment.
fn changes_left(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let refused = |e: SqlError| e.missing("TRIGGER and PROCESS");
    let all = sql.shared(TRIGGERS).map_err(refused)?;
    let mut left = Vec::new();
    for row in all.iter() {
        let cell = |place: usize| row.get(place).and_then(Option::as_deref).unwrap_or_default();
        if cell(1).starts_with("pt_osc_") {
            left.push((format!("{}.{}", cell(0), cell(1)), cell(8).to_owned(), cell(7).to_owned()));
        }
    }
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let statements: Vec<String> =
        sql.rows(COPYING).map_err(refused)?.into_iter().flatten().flatten().collect();
    left.retain(|(_, _, table)| !statements.iter().any(|text| text.contains(&format!("_{table}_new"))));
    left.sort();
    let entry = |(trigger, schema, table): (String, String, String)| json!({"trigger": trigger, "table": format!("{schema}.{table}")});
    Ok(left.into_iter().take(20).map(entry).collect())
}

/// Rows of two cells as records.
fn pairs(rows: Result<Vec<Row>, SqlError>, privilege: &str, keys: [&str; 2]) -> Read<Vec<Value>> {
    let rows = rows.map_err(|e| e.missing(privilege))?;
    let entry = |row: Row| {
        let mut cells = row.into_iter();
        Some(json!({(keys[0]): cells.next()??, (keys[1]): cells.next()??}))
    };
    Ok(rows.into_iter().filter_map(entry).collect())
}

fn keys(sql: &mut ReadOnly<'_>) -> Read<Vec<Key>> {
    let (statement, rows) = shared_of(sql, &KEYS);
    let rows = rows.map_err(|e| e.missing("PROCESS, and SELECT on all tables"))?;
    let as_files = statement == SYS_KEYS;
    let name = |name: String| {
        let (schema, table) = name.split_once('/').unwrap_or(("", &name));
        match as_files {
            true => format!("{}.{}", of_file_name(schema), of_file_name(table)),
            false => format!("{schema}.{table}"),
        }
    };
    let key = |row: &Row| {
        let mut cells = row.iter().cloned();
        let mut next = || cells.next().flatten();
        let (id, table, refers_to) = (name(next()?), name(next()?), name(next()?));
        Some(Key { name: id, table, refers_to, cascades: next().as_deref() == Some("1") })
    };
    Ok(rows.iter().filter_map(key).collect())
}

/// Keys of tables in use that refer to a copy of a table that `is_there`.
fn on_copies(keys: &[Key], mut is_there: impl FnMut(&str) -> Read<bool>) -> Read<Vec<Value>> {
    let copy = |name: &str| name.split_once('.').is_some_and(|(_, table)| is_leftover(table));
    let mut originals: BTreeMap<&str, bool> = BTreeMap::new();
    let mut found = Vec::new();
    for key in keys.iter().filter(|key| copy(&key.refers_to) && !copy(&key.table)) {
        let known = originals.get(key.refers_to.as_str()).copied();
        let stands = match (known, original(&key.refers_to)) {
            (Some(stands), _) => stands,
            (None, Some(name)) if originals.len() < 50 => is_there(&name)?,
            _ => false,
        };
        originals.insert(&key.refers_to, stands);
        if stands {
            found.push(json!({"key": key.name, "table": key.table, "refers_to": key.refers_to}));
        }
    }
    found.truncate(20);
    Ok(found)
}

/// The table that a name with an ending as `_old` is the copy of. A copy of a book is a thing of its own.
fn original(name: &str) -> Option<String> {
    const ENDS: [&str; 10] = ["old", "bak", "bkp", "backup", "new", "gho", "ghc", "del", "tmp", "orig"];
    let (schema, table) = name.split_once('.')?;
    let mut rest = table.trim_start_matches('_');
    while let Some((before, last)) = rest.rsplit_once('_') {
        let is_date = last.len() >= 6 && last.bytes().all(|byte| byte.is_ascii_digit());
        if !is_date && !ENDS.contains(&last.to_ascii_lowercase().as_str()) {
            break;
        }
        rest = before;
    }
    (rest != table && !rest.is_empty()).then(|| format!("{schema}.{rest}"))
}

fn exists(sql: &mut ReadOnly<'_>, name: &str) -> Read<bool> {
    let Some((schema, table)) = name.split_once('.').and_then(|(s, t)| Some((quoted(s)?, quoted(t)?))) else {
        return Ok(false);
    };
    let statement = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}"
    );
    Ok(!sql.rows(&statement).map_err(|e| e.missing("SELECT on the tables"))?.is_empty())
}

/// Chains of keys by which a deleted row takes rows of tables with it that are to be kept: the longest to each.
fn cascades(keys: &[Key]) -> Vec<Value> {
    let mut children: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for key in keys.iter().filter(|key| key.cascades && key.table != key.refers_to) {
        children.entry(&key.refers_to).or_default().insert(&key.table);
    }
    let all: BTreeSet<&str> = children.values().flatten().copied().collect();
    let is_child = |table: &str| all.contains(table);
    let mut longest: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut open: Vec<Vec<&str>> =
        children.keys().filter(|table| !is_child(table)).map(|table| vec![*table]).collect();
    // Tables that refer to each other in many ways have more chains than are looked at.
    for _ in 0..10_000 {
        let Some(chain) = open.pop() else { break };
        let Some(last) = chain.last().copied() else { continue };
        let known = longest.get(last).map_or(0, Vec::len);
        if chain.len() > known && chain.len() > FAR && is_kept(last) {
            longest.insert(last, chain.clone());
        }
        // Longer ones tell no more.
        if chain.len() >= 12 {
            continue;
        }
        for child in children.get(last).into_iter().flatten().filter(|child| !chain.contains(*child)) {
            open.push(chain.iter().copied().chain([*child]).collect());
        }
    }
    longest
        .into_iter()
        .map(|(table, chain)| json!({"table": table, "chain": chain.join(" > ")}))
        .take(20)
        .collect()
}

fn is_kept(table: &str) -> bool {
    let name = table.split_once('.').map_or(table, |(_, name)| name).to_ascii_lowercase();
    name.split('_').any(|part| KEPT.contains(&part))
}

/// Tables that a server which takes all names in lower case does not find, because their files have capitals.
fn out_of_reach(context: &Context, sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let is = |name: &str, value: &str| context.variable(name).is_some_and(|v| v.eq_ignore_ascii_case(value));
    if !is("lower_case_table_names", "1") || !is("lower_case_file_system", "OFF") {
        return Ok(Vec::new());
    }
    tables_named(sql, &CAPITALS)
}

/// Tables that are not encrypted, where the server is told to encrypt new ones and encrypts no old ones.
fn in_clear(context: &Context, sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let is = |name: &str, values: &[&str]| {
        context.variable(name).is_some_and(|v| values.iter().any(|value| v.eq_ignore_ascii_case(value)))
    };
    let left = is("innodb_encrypt_tables", &["ON", "FORCE", "1"]) && is("innodb_encryption_threads", &["0"]);
    if !left && !is("default_table_encryption", &["ON", "1"]) {
        return Ok(Vec::new());
    }
    tables_named(sql, &IN_CLEAR)
}

/// Tables that InnoDB names as their files.
fn tables_named(sql: &mut ReadOnly<'_>, wordings: &[Wording]) -> Read<Vec<Value>> {
    // The server looks at each tablespace for it.
    few_tables(sql)?;
    let names = first_of(sql, wordings).1.map(|table| table.rows).map_err(|e| e.missing("PROCESS"))?;
    let name = |name: String| {
        let (schema, table) = name.split_once('/')?;
        Some(Value::from(format!("{}.{}", of_file_name(schema), of_file_name(table))))
    };
    Ok(names.into_iter().flatten().flatten().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(table: &str, refers_to: &str, cascades: bool) -> Key {
        let name = format!("d.{table}_{refers_to}");
        Key { name, table: format!("d.{table}"), refers_to: format!("d.{refers_to}"), cascades }
    }

    #[test]
    fn a_chain_of_deletions_to_what_is_to_be_kept_is_told_and_a_circle_ends() {
        let keys = [
            key("orders", "customer", true),
            key("delivery", "orders", true),
            key("invoice", "delivery", true),
            key("invoice", "orders", true),
            key("payment", "customer", true),
            key("orders", "invoice", true),
            key("audit", "invoice", false),
            key("orders", "orders", true),
        ];
        let chain = "d.customer > d.orders > d.delivery > d.invoice";
        assert_eq!(cascades(&keys), [json!({"table": "d.invoice", "chain": chain})]);
        assert_eq!(cascades(&keys[1..2]), Vec::<Value>::new());
    }

    #[test]
    fn a_key_that_followed_a_table_to_its_copy_is_told() {
        let keys = [
            key("lines", "orders_old", false),
            key("lines_old", "orders_old", false),
            key("lines", "orders", false),
            key("loan", "book_copy", false),
            key("x", "_stock_20240101_bak", false),
        ];
        assert_eq!(original("d._stock_20240101_bak").as_deref(), Some("d.stock"));
        let found = on_copies(&keys, |name| Ok(name == "d.orders")).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&found[0]["table"], &found[0]["refers_to"]), (&json!("d.lines"), &json!("d.orders_old")));
    }
}
