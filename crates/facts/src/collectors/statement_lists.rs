//! Further lists of statements by their digest.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::collectors::statement_digest::Digest;
use crate::collectors::statement_kinds::target;
use crate::collectors::statement_sums::{Digests, LISTED};
use crate::collectors::statement_tables::{Known, known, place, wrong_order};
use crate::context::Context;
use crate::sql::{ReadOnly, quoted};

/// Rows of another result for which a statement is run one by one: that other statement.
fn parent<'a>(digests: &'a Digests, child: &Digest) -> Option<&'a Digest> {
    let of_child = place(child);
    digests.all.iter().find(|other| {
        other.is(&["SELECT"])
            && other.schema == child.schema
            && !other.of_server()
            && other.count * 5.0 <= child.count
            && other.sent >= 2.0 * other.count
            && (0.8..=1.25).contains(&(other.sent / child.count))
            && place(other).is_some()
            && place(other) != of_child
    })
}

/// SELECT statements that are run for single rows: all of those that send one row at most, and those that send a few where another
/// statement sends as many rows as they are run.
pub(super) fn single_rows(digests: &Digests) -> Value {
    let least = 0.2 * digests.count;
    let often = |d: &Digest| d.count >= 1000.0 && d.count >= least && !d.of_server();
    let is = |d: &Digest| {
        let few = d.sent <= d.count || d.sent <= 20.0 * d.count && parent(digests, d).is_some();
        d.is(&["SELECT"]) && often(d) && d.has(" WHERE ") && few && d.without_index == 0.0 && !d.polls()
    };
    let found = digests.most(LISTED, |d| d.count, is);
    let entry = |digest: &Digest| {
        let mut entry = digests.entry(digest);
        entry["of_all"] = Value::from(digest.count / digests.count);
        let parent = parent(digests, digest).map(|other| digests.entry(other)["text"].clone());
        entry["parent"] = parent.unwrap_or_else(|| Value::from(""));
        entry
    };
    found.into_iter().map(entry).collect()
}

/// Statements that change very much at once.
pub(super) fn mass_changes(digests: &Digests) -> Value {
    let found = digests.most(LISTED, |d| d.affected, |d| d.changes_many() && !d.of_server());
    digests.entries(found, "rows_changed", |d| (d.affected / d.count).round().into())
}

/// Statements that take the next of a queue, and find none.
pub(super) fn polling(digests: &Digests) -> Value {
    let found =
        digests.most(LISTED, |d| d.count, |d| d.polls() && d.count >= 0.05 * digests.count && !d.of_server());
    digests.entries(found, "of_all", |d| (d.count / digests.count).into())
}

/// Statements that change definitions again and again.
pub(super) fn definitions(digests: &Digests) -> Value {
    let found = digests.most(LISTED, |d| d.count, |d| d.defines() && !d.of_server());
    found.into_iter().map(|digest| digests.entry(digest)).collect()
}

/// UPDATE statements that wait for one row.
pub(super) fn hot_rows(digests: &Digests) -> Value {
    let found = digests.most(LISTED, |d| d.time_s, |d| d.waits_for_one_row() && !d.of_server());
    digests.entries(found, "each_ms", |d| (d.time_s / d.count * 1000.0).round().into())
}

/// Tables of sessions that take two fifths of all writes or more: table, writes, share.
pub(super) fn session_writes(digests: &Digests) -> Value {
    let writes: f64 = digests.all.iter().filter(|d| d.writes() && !d.of_server()).map(|d| d.count).sum();
    let mut tables: BTreeMap<String, f64> = BTreeMap::new();
    for digest in digests.all.iter().filter(|d| d.writes_sessions() && !d.of_server()) {
        let Some((schema, name)) = target(&digest.text) else { continue };
        let schema = schema.unwrap_or(&digest.schema);
        *tables.entry(format!("{schema}.{name}")).or_default() += digest.count;
    }
    let large = tables.into_iter().filter(|(_, count)| *count >= 1000.0 && *count >= 0.4 * writes);
    large.map(|(table, count)| json!({"table": table, "writes": count, "share": count / writes})).collect()
}

/// Kinds of statement that look like an injection: text, schema, count, sign.
pub(super) fn injected(digests: &Digests) -> Value {
    let found = digests.most(LISTED, |d| d.count, |d| d.injected().is_some());
    digests.entries(found, "sign", |d| d.injected().unwrap_or_default().into())
}

/// Statements that always fail, with the table that is not there, where one is missing.
pub(super) fn failing(sql: &mut ReadOnly<'_>, digests: &Digests) -> Value {
    let is = |d: &Digest| (d.errors >= 10.0 || d.errors >= 5.0 && d.errors >= d.count) && !d.has("$$");
    // A look such as this one asks for tables that not every release has.
    let is = |d: &Digest| is(d) && !(d.is(&["SELECT"]) && d.of_server());
    let found = digests.most(LISTED, |d| d.errors, is);
    let entry = |digest: &Digest| {
        let mut entry = digests.entry(digest);
        let always = digest.errors >= digest.count && !digest.of_server();
        let missing = if always { missing_table(sql, digest) } else { None };
        entry["missing"] = missing.unwrap_or_default().into();
        entry
    };
    found.into_iter().map(entry).collect()
}

/// The table of a statement, where it is not there.
fn missing_table(sql: &mut ReadOnly<'_>, digest: &Digest) -> Option<String> {
    let places = [target(&digest.text), super::statement_hints::table(&digest.text)];
    places.into_iter().flatten().find_map(|(schema, name)| {
        let schema = schema.unwrap_or(&digest.schema);
        if schema.is_empty() {
            return None;
        }
        let rows = sql.rows(&format!(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = {0} AND TABLE_NAME = {1}",
            quoted(schema)?,
            quoted(name)?
        ));
        rows.is_ok_and(|rows| rows.is_empty()).then(|| format!("{schema}.{name}"))
    })
}

/// SELECT statements that walk a range of an index whose next column would have told the rows: with index and column.
pub(super) fn order_of_columns(context: &Context, sql: &mut ReadOnly<'_>, digests: &Digests) -> Value {
    let slow = |d: &Digest| {
        d.is(&["SELECT"])
            && d.count >= 20.0
            && d.time_s >= 0.005 * d.count
            && d.without_index == 0.0
            && d.full_scans == 0.0
            && d.has(" WHERE ")
            && !d.of_server()
    };
    let mut tables: BTreeMap<(String, String), Known> = BTreeMap::new();
    let mut found = Vec::new();
    for digest in digests.most(10, |d| d.time_s, slow) {
        let Some(at) = place(digest) else { continue };
        let of_table = tables.entry(at.clone()).or_insert_with(|| known(context, sql, &at.0, &at.1));
        if let Some((index, column)) = wrong_order(digest, of_table) {
            let mut entry = digests.entry(digest);
            entry["index"] = index.into();
            entry["column"] = column.into();
            entry["table"] = format!("{}.{}", at.0, at.1).into();
            found.push(entry);
        }
    }
    found.truncate(LISTED);
    found.into()
}

/// SELECT * of several rows each time from tables whose rows hold large columns: with table and bytes of a row.
pub(super) fn wide(context: &Context, sql: &mut ReadOnly<'_>, digests: &Digests) -> Value {
    let is = |d: &Digest| {
        d.is(&["SELECT"])
            && d.text.starts_with("SELECT *")
            && d.count >= 20.0
            && d.sent >= 2.0 * d.count
            && !d.of_server()
    };
    let page =
        context.variable("innodb_page_size").and_then(|text| text.parse::<u64>().ok()).unwrap_or(16_384);
    let mut found = Vec::new();
    for digest in digests.most(10, |d| d.sent, is) {
        let Some((schema, name)) = place(digest) else { continue };
        let (Some(of_schema), Some(of_name)) = (quoted(&schema), quoted(&name)) else { continue };
        let rows = sql.rows(&format!(
            "SELECT clustered_index_size * {page} / n_rows FROM mysql.innodb_table_stats WHERE database_name = {of_schema} AND table_name = {of_name} AND n_rows >= 100"
        ));
        let bytes = rows
            .ok()
            .and_then(|rows| rows.first()?.first()?.clone())
            .and_then(|text| text.parse::<f64>().ok());
        let Some(bytes) = bytes.filter(|bytes| *bytes >= 8192.0) else { continue };
        let columns = sql.rows(&format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {of_schema} AND TABLE_NAME = {of_name} AND DATA_TYPE IN ('blob', 'mediumblob', 'longblob', 'mediumtext', 'longtext', 'json') LIMIT 3"
        ));
        let columns: Vec<String> = columns.unwrap_or_default().into_iter().flatten().flatten().collect();
        if !columns.is_empty() {
            let mut entry = digests.entry(digest);
            entry["table"] = format!("{schema}.{name}").into();
            entry["columns"] = columns.into();
            entry["row_bytes"] = bytes.round().into();
            found.push(entry);
        }
    }
    found.truncate(LISTED);
    found.into()
}

#[cfg(test)]
mod tests {
    use super::super::statement_digest::digest;
    use super::*;

    #[test]
    fn a_statement_for_each_row_of_another_is_told_with_that_one() {
        let invoices =
            digest("SELECT * FROM `invoices` WHERE `tenant_id` = ? LIMIT ?", 100.0, 5000.0, 5000.0);
        let items =
            digest("SELECT * FROM `invoice_items` WHERE `invoice_id` = ?", 5000.0, 10_000.0, 10_000.0);
        let other = digest("SELECT * FROM `rates` WHERE `day` = ?", 3000.0, 9000.0, 9000.0);
        let digests =
            Digests { all: vec![invoices, items, other], time_s: 6.0, count: 8100.0, lost: 0.0, lost_s: 0.0 };
        let found = single_rows(&digests);
        assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
        assert!(found[0]["parent"].as_str().unwrap().contains("`invoices`"));
    }

    #[test]
    fn tables_of_sessions_are_told_where_they_take_most_writes() {
        let writes = digest("UPDATE `app_sessions` SET `data` = ? WHERE `sid` = ?", 2000.0, 0.0, 0.0);
        let others = digest("INSERT INTO `orders` VALUES (...)", 3000.0, 0.0, 0.0);
        let mut digests =
            Digests { all: vec![writes, others], time_s: 6.0, count: 5000.0, lost: 0.0, lost_s: 0.0 };
        assert_eq!(session_writes(&digests)[0]["table"], json!("shop.app_sessions"));
        digests.all[1].count = 3001.0;
        assert_eq!(session_writes(&digests), json!([]));
    }
}
