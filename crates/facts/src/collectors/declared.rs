//! Declarations that do not do their work: constraints that are not enforced, numbers that are used up.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::counted::{few_tables, names, no_tables};
use crate::collectors::relations;
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError};
use crate::table_files::of_file_name;
use crate::wording::{Since, Wording, first_of, mariadb, mysql, shared_of};

/// Constraints and sequences.
pub static COLLECTOR: Collector = Collector {
    name: "declared",
    cost: Cost { host_ms: 0, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.checks.not_enforced",
            "",
            "CHECK constraints that are NOT ENFORCED: schema, table and constraint; 20 at most",
        ),
        fact(
            "server.foreign_keys.orphaned",
            "",
            "foreign keys that refer to a table that is not there: key, table, refers_to; 20 at most, with no more than 5,000 tables",
        ),
        fact(
            "server.sequences.filling",
            "",
            "sequences that do not begin again and have used half of their numbers or more: sequence, used (as a share), next, last; among 50",
        ),
        fact(
            "schema.keys_on_copies",
            "",
            "foreign keys of tables in use that refer to a table with the name of a copy: key, table, refers_to; 20 at most, with no more than 5,000 tables",
        ),
        fact(
            "schema.cascades",
            "",
            "tables with the name of something to be kept, as an invoice, whose rows are deleted with those of a table three foreign keys away: table, chain; likewise",
        ),
        fact(
            "schema.online_changes_left",
            "",
            "triggers of pt-online-schema-change while no session names its new table: trigger, table; 20 at most",
        ),
        fact(
            "schema.spatial_without_srid",
            "",
            "spatial indexes on columns without a fixed SRID, which MySQL 8.0 and later do not use: index, column; 20 at most, with no more than 5,000 tables",
        ),
        fact(
            "schema.in_clear",
            "",
            "InnoDB tables that are not encrypted where innodb_encrypt_tables is on without innodb_encryption_threads, or default_table_encryption is on; 20 at most, none where neither is so",
        ),
        fact(
            "schema.names_out_of_reach",
            "",
            "tables in InnoDB's dictionary whose names hold capitals while the server takes all names in lower case; 20 at most",
        ),
    ],
    run: Run::Server(run),
};

const NOT_ENFORCED: [Wording; 1] = [(
    "SELECT CONCAT(CONSTRAINT_SCHEMA, '.', TABLE_NAME, '.', CONSTRAINT_NAME) FROM information_schema.TABLE_CONSTRAINTS WHERE CONSTRAINT_TYPE = 'CHECK' AND ENFORCED = 'NO' ORDER BY CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME LIMIT 20",
    &[mysql(80_016..)],
)];

/// InnoDB's own tables wait for metadata locks there; these are read from the dictionary. mysql.user is only for those who see all
/// tables: to others the tables that they may not see would be missing.
const ORPHANED: &str = "SELECT CONCAT(r.CONSTRAINT_SCHEMA, '/', r.CONSTRAINT_NAME), CONCAT(r.CONSTRAINT_SCHEMA, '/', r.TABLE_NAME), CONCAT(r.UNIQUE_CONSTRAINT_SCHEMA, '/', r.REFERENCED_TABLE_NAME) FROM information_schema.REFERENTIAL_CONSTRAINTS r LEFT JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = r.UNIQUE_CONSTRAINT_SCHEMA AND t.TABLE_NAME = r.REFERENCED_TABLE_NAME WHERE t.TABLE_NAME IS NULL AND EXISTS (SELECT 1 FROM mysql.user) ORDER BY 1 LIMIT 20";
const MAY_SEE_ALL: &str = "SELECT 1 FROM mysql.user LIMIT 1";

/// Tables as InnoDB names them; partitioned ones, which are listed by their partitions, take no part in foreign keys.
const SYS_TABLES: &str = "SELECT NAME FROM information_schema.INNODB_SYS_TABLES LIMIT 100000";

/// Servers that have sequences.
const SEQUENCES: [Since; 1] = [mariadb(100_300..)];

/// Share of the numbers from which on a sequence is listed.
const LISTED: f64 = 0.5;

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let (statement, table) = first_of(sql, &NOT_ENFORCED);
    let names = table.map(|table| names(table.rows)).map_err(|e| e.missing("SELECT on the tables"));
    readings.put("server.checks.not_enforced", statement, names);
    readings.put("server.foreign_keys.orphaned", "InnoDB's dictionary", orphaned(context, sql));
    readings.put("server.sequences.filling", "the sequences", sequences(sql));
    relations::put(context, sql, readings);
}

/// Foreign keys whose table was dropped with foreign_key_checks off.
fn orphaned(context: &Context, sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    if let Err(many) = few_tables(sql) {
        return by_files(context, sql).unwrap_or(Err(many));
    }
    let refused = |e: SqlError| e.missing("PROCESS, and SELECT on all tables");
    let (statement, keys) = shared_of(sql, &relations::KEYS);
    let keys = keys.map_err(refused)?;
    // InnoDB names tables as their files, the dictionary as they are called.
    let as_files = statement == relations::SYS_KEYS;
    let rows: Vec<Row> = match (keys.is_empty(), as_files) {
        (true, true) => Vec::new(),
        (true, false) => sql.rows(MAY_SEE_ALL).map(|_| Vec::new()).map_err(refused)?,
        (false, false) => sql.rows(ORPHANED).map_err(refused)?,
        (false, true) => {
            let tables = sql.rows(SYS_TABLES).map_err(refused)?.into_iter().flatten().flatten();
            let tables: BTreeSet<String> = tables.map(|name| name.to_lowercase()).collect();
            let is_gone = |row: &&Row| {
                row.get(2).and_then(Option::as_ref).is_some_and(|name| !tables.contains(&name.to_lowercase()))
            };
            let mut gone: Vec<Row> = keys.iter().filter(is_gone).cloned().collect();
            gone.sort();
            gone.truncate(20);
            gone
        }
    };
    let name = |name: &str| {
        let (schema, table) = name.split_once('/').unwrap_or(("", name));
        match as_files {
            true => format!("{}.{}", of_file_name(schema), of_file_name(table)),
            false => format!("{schema}.{table}"),
        }
    };
    let entry = |row: &Row| {
        let text = |place: usize| row.get(place)?.as_deref();
        Some(json!({"key": name(text(0)?), "table": name(text(1)?), "refers_to": name(text(2)?)}))
    };
    Ok(rows.iter().filter_map(entry).collect())
}

/// The same by the files of the tables that the keys refer to, for servers with very many tables; `None` where they cannot be looked for.
fn by_files(context: &Context, sql: &mut ReadOnly<'_>) -> Option<Read<Vec<Value>>> {
    if sql.has_dictionary() {
        return None;
    }
    let server = context.server.as_ref().ok()?;
    let folder = format!("{}{}", mounts::view(&context.source, server).ok()?, context.datadir().ok()?);
    // Without the files of the server's own tables, those of all others would be missing as well.
    context.source.stat(&format!("{folder}/mysql")).ok()?;
    let rows = match sql.shared(relations::SYS_KEYS) {
        Ok(rows) => rows,
        Err(error) => return Some(Err(error.missing("PROCESS"))),
    };
    let entry = |row: &Row| {
        let text = |place: usize| row.get(place)?.as_deref();
        let (key, table, refers_to) = (text(0)?, text(1)?, text(2)?);
        let is_gone = context.source.stat(&format!("{folder}/{refers_to}.frm"));
        let name = |name: &str| {
            let (schema, table) = name.split_once('/').unwrap_or(("", name));
            format!("{}.{}", of_file_name(schema), of_file_name(table))
        };
        let gone = matches!(is_gone, Err(Missing::Absent(_)));
        gone.then(|| json!({"key": name(key), "table": name(table), "refers_to": name(refers_to)}))
    };
    Some(Ok(rows.iter().filter_map(entry).take(20).collect()))
}

/// Sequences are found among the tables, for which a server without a dictionary reads a file each.
fn sequences(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let refused = |e: SqlError| e.missing("SELECT on the sequences");
    if sql.dialect().is_none_or(|dialect| dialect.is(&SEQUENCES)) {
        few_tables(sql)?;
    } else {
        return Err(refused(SqlError::NotInThisVersion));
    }
    let mut found = Vec::new();
    let all = no_tables(sql)?;
    for [schema, name, _] in all.iter().filter(|[.., kind]| kind == "SEQUENCE").take(50) {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let statement = format!(
            "SELECT next_not_cached_value, minimum_value, maximum_value, increment, cycle_option FROM {}.{}",
            quoted(schema),
            quoted(name)
        );
        let rows = sql.rows(&statement).map_err(refused)?;
        let number = |place: usize| rows.first()?.get(place)?.as_deref()?.parse::<f64>().ok();
        let all = [0, 1, 2, 3, 4].map(number);
        if let [Some(next), Some(least), Some(most), Some(step), Some(0.0)] = all
            && let Some((used, last)) = used(next, least, most, step)
            && used >= LISTED
        {
            found.push(
                json!({"sequence": format!("{schema}.{name}"), "used": used, "next": next, "last": last}),
            );
        }
    }
    Ok(found)
}

/// The share of its numbers that a sequence has given, 1 where none is left, and the last one.
fn used(next: f64, least: f64, most: f64, step: f64) -> Option<(f64, f64)> {
    let (first, last) = if step < 0.0 { (most, least) } else { (least, most) };
    let all = (last - first).abs() + 1.0;
    (all > 1.0).then(|| (((next - first).abs() / all).min(1.0), last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Sql, Table};
    use std::time::Duration;

    #[test]
    fn a_sequence_is_used_up_when_its_next_number_is_behind_the_last() {
        assert_eq!(used(1.0, 1.0, 1000.0, 1.0), Some((0.0, 1000.0)));
        assert_eq!(used(501.0, 1.0, 1000.0, 1.0), Some((0.5, 1000.0)));
        assert_eq!(used(1001.0, 1.0, 1000.0, 1.0), Some((1.0, 1000.0)));
        assert_eq!(used(-1001.0, -1000.0, -1.0, -1.0), Some((1.0, -1000.0)));
        assert_eq!(used(1.0, 1.0, 1.0, 1.0), None);
    }

    #[test]
    fn a_sequence_that_begins_again_is_not_listed() {
        struct Server(&'static str);
        impl Sql for Server {
            fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
                let rows: &[&[&str]] = match sql {
                    s if s.contains("COUNT(") => &[&["3"]],
                    s if s.contains("SCHEMATA") => &[&["shop"]],
                    s if s.contains("'SEQUENCE'") => &[&["bi`lls", "SEQUENCE"]],
                    s if s.ends_with("FROM `shop`.`bi``lls`") => &[&["1001", "1", "1000", "1", self.0]],
                    _ => &[],
                };
                let row = |row: &&[&str]| row.iter().map(|cell| Some((*cell).to_owned())).collect();
                Ok(Table { columns: vec![], rows: rows.iter().map(row).collect() })
            }
        }
        for (cycles, listed) in [("0", 1), ("1", 0)] {
            let mut server = Server(cycles);
            let mut sql = ReadOnly::new(&mut server);
            sql.speaks_to("11.8.3-MariaDB");
            assert_eq!(sequences(&mut sql).unwrap().len(), listed);
        }
    }
}
