//! Statements by their digest: which take the time, which read tables without an index, which fail. The server is asked for
//! the digests once; the lists are made here.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::statement_digest::{Digest, SECONDS};
use crate::collectors::statement_hints::hint;
use crate::collectors::statement_joins as joins;
use crate::collectors::statement_lists as lists;
use crate::collectors::statement_sums::{Digests, LISTED};
use crate::collectors::statement_tables::{Known, explained, known, place};
use crate::collectors::statement_vain as vain;
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row};
use crate::wording::{Since, Wording, first_of, mariadb, mysql};

/// Statements by digest.
pub static COLLECTOR: Collector = Collector {
    name: "statements",
    cost: Cost { host_ms: 2, server_ms: 20 },
    deadline_ms: 3000,
    depth: Depth::Audit,
    facts: &[
        fact("server.statements.time_s", "s", "time of all statements that were counted by digest"),
        fact(
            "server.statements.unnamed_share",
            "",
            "share of that time that statements took which found no room among the digests",
        ),
        fact(
            "server.statements.by_time",
            "",
            "the five that took the most time: text, schema, count, time_s, share (of all time), waiting (share of its time that it waited for locks), rows_read and rows_sent (each time)",
        ),
        fact(
            "server.statements.scans",
            "",
            "SELECT statements that read 1,000 rows or more each time without an index, the ten that read the most: text, schema, count, rows_read, rows_sent, hint (why, as far as text and indexes tell)",
        ),
        fact(
            "server.statements.writes_that_scan",
            "",
            "UPDATE, DELETE and SELECT … FOR UPDATE statements that read 1,000 rows or more each time without an index, likewise",
        ),
        fact(
            "server.statements.deep_pages",
            "",
            "SELECT statements with LIMIT and an offset that read 1,000 rows or more and 20 times as many as they send, likewise",
        ),
        fact(
            "server.statements.reading_in_vain",
            "",
            "the five SELECT statements that read the most rows by an index, 1,000 or more each time and 50 times as many as they send, without groups or sums, or counts with a function around a column: likewise; hint (where they name their index themselves, or have such a function)",
        ),
        fact(
            "server.statements.queue_locks",
            "",
            "SELECT … FOR UPDATE statements with LIMIT and without SKIP LOCKED that were run 100 times or more and wait for locks three tenths of their time or more, or read 100 rows or more each time: likewise",
        ),
        fact(
            "server.statements.large_results",
            "",
            "the five SELECT statements without LIMIT that send the most rows, 5,000 or more each time: likewise",
        ),
        fact(
            "server.statements.warned",
            "",
            "the five with the most warnings, 100 or more, and one in ten times or more: text, schema, count, warnings",
        ),
        fact(
            "server.statements.overhead",
            "",
            "statements that ask for no data (SELECT 1, SET, SHOW, USE, SELECT @@…), were run 1,000 times or more and are a tenth or more of all statements: text, schema, count, of_all",
        ),
        fact(
            "server.statements.long_lists",
            "",
            "SELECT, UPDATE and DELETE statements with a list of a hundred values or more, the five that took the most time: likewise; MySQL 8.0.3 and later tell it",
        ),
        fact(
            "server.errors.lock_wait_timeouts",
            "count",
            "statements that gave up waiting for a row lock (error 1205) since the start; MySQL 8.0.1 and later tell it",
        ),
        fact("server.errors.deadlocks", "count", "errors of a deadlock (1213), likewise"),
        fact("server.errors.tables_full", "count", "errors of a full table (1114), likewise"),
        fact("server.errors.access_denied", "count", "logins that were refused (1045), likewise"),
        fact(
            "server.statements.failing",
            "",
            "the five that failed most often, ten times or more, or each of five times or more: text, schema, count, errors, missing (its table, where that is not there)",
        ),
        fact(
            "server.statements.full_joins",
            "",
            "the five with the most joins without an index, of those that ran three times or more: text, schema, count, full_joins, hint (columns that differ, or empty)",
        ),
        fact(
            "server.statements.disk_temporaries",
            "",
            "the five with the most temporary tables on disk: text, schema, count, on_disk",
        ),
        fact(
            "server.statements.merge_sorts",
            "",
            "the five whose sorts needed the most merge passes: text, schema, count, merge_passes",
        ),
        fact(
            "server.statements.single_rows",
            "",
            "SELECT statements that were run 1,000 times or more, are a fifth or more of all statements, and send one row at most, or a few for each row of another statement: text, schema, count, of_all (share of all statements), parent (that other statement)",
        ),
        fact(
            "server.statements.mass_changes",
            "",
            "UPDATE and DELETE statements without LIMIT that change 10,000 rows or more each time: text, schema, count, rows_changed (each time); 5 at most",
        ),
        fact(
            "server.statements.polling",
            "",
            "SELECT statements with ORDER BY and LIMIT, or FOR UPDATE, that were run 1,000 times or more, are a twentieth or more of all statements, and send a row one in twenty times or less: text, schema, count, of_all; 5 at most",
        ),
        fact(
            "server.statements.definitions",
            "",
            "CREATE TABLE, ALTER TABLE and DROP TABLE statements of one table that were run 100 times or more: text, schema, count; 5 at most",
        ),
        fact(
            "server.statements.hot_rows",
            "",
            "UPDATE statements of one row that were run 300 times or more and take ten times as long as at their fastest: text, schema, count, each_ms; 5 at most",
        ),
        fact(
            "server.statements.session_writes",
            "",
            "tables of sessions, by their names, that take two fifths or more of all writes: table, writes, share",
        ),
        fact(
            "server.statements.injected",
            "",
            "statements with signs of an SQL injection: text, schema, count, sign; 5 at most",
        ),
        fact(
            "server.statements.order_of_columns",
            "",
            "slow SELECT statements that walk a range of an index whose second column they compare by =, while no index begins with that: text, schema, count, table, index, column; 5 at most",
        ),
        fact(
            "server.statements.wide",
            "",
            "SELECT * statements of several rows from tables with large columns and rows of 8 KiB or more: text, schema, count, table, columns, row_bytes; 5 at most",
        ),
        fact(
            "server.statements.single_inserts",
            "",
            "INSERT and REPLACE statements of one row that were run 1,000 times or more and are a twentieth or more of all statements, likewise",
        ),
    ],
    run: Run::Server(run),
};

const SERVERS: [Since; 2] = [mysql(50_605..), mariadb(100_000..)];

/// Where statements are counted.
const DIGESTS: &str = "performance_schema.events_statements_summary_by_digest";

const TOTAL: Wording = (
    "SELECT COALESCE(SUM(SUM_TIMER_WAIT), 0), COALESCE(SUM(COUNT_STAR), 0), COALESCE(SUM(IF(DIGEST IS NULL, COUNT_STAR, 0)), 0), COALESCE(SUM(IF(DIGEST IS NULL, SUM_TIMER_WAIT, 0)), 0) FROM performance_schema.events_statements_summary_by_digest",
    &SERVERS,
);

/// The statement for digests of users that meet a condition, those that took the most time first.
macro_rules! digests {
    ($condition:literal, $most:literal) => {
        concat!(
            "SELECT COALESCE(SCHEMA_NAME, ''), LEFT(DIGEST_TEXT, 400), COUNT_STAR, SUM_TIMER_WAIT, SUM_ROWS_EXAMINED, SUM_ROWS_SENT, SUM_ERRORS, SUM_NO_INDEX_USED, SUM_SELECT_FULL_JOIN, SUM_CREATED_TMP_DISK_TABLES, SUM_SORT_MERGE_PASSES, SUM_ROWS_AFFECTED, SUM_SELECT_SCAN, SUM_WARNINGS, SUM_LOCK_TIME, MIN_TIMER_WAIT FROM performance_schema.events_statements_summary_by_digest WHERE COALESCE(SCHEMA_NAME, '') NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') AND ",
            $condition,
            " ORDER BY SUM_TIMER_WAIT DESC LIMIT ",
            $most
        )
    };
}

/// Statements with something to tell. Most servers have some hundred.
const TOLD: Wording = (
    digests!(
        "DIGEST_TEXT IS NOT NULL AND (SUM_NO_INDEX_USED > 0 OR SUM_ERRORS >= 5 OR SUM_SELECT_FULL_JOIN > 0 OR SUM_CREATED_TMP_DISK_TABLES > 0 OR SUM_SORT_MERGE_PASSES > 0 OR COUNT_STAR >= 1000 OR SUM_ROWS_EXAMINED >= 1000 * COUNT_STAR OR SUM_ROWS_AFFECTED >= 10000 * COUNT_STAR OR SUM_ROWS_SENT >= 1000 OR SUM_WARNINGS >= 100 OR SUM_TIMER_WAIT >= 100000000000 OR COUNT_STAR >= 100 AND DIGEST_TEXT LIKE 'CREATE TABLE%' OR DIGEST_TEXT LIKE '%SLEEP%' OR DIGEST_TEXT LIKE '%BENCHMARK%' OR DIGEST_TEXT LIKE '%EXTRACTVALUE%' OR DIGEST_TEXT LIKE '%XML%' OR DIGEST_TEXT LIKE '%UNION%')",
        "1000"
    ),
    &SERVERS,
);

/// Statements with a list of a hundred values or more. The sample has values of users: they are counted, and not sent.
const LONG_LISTS: [Wording; 1] = [(
    digests!(
        "DIGEST_TEXT LIKE '% IN (...)%' AND LENGTH(QUERY_SAMPLE_TEXT) - LENGTH(REPLACE(QUERY_SAMPLE_TEXT, ',', '')) >= IF(LENGTH(QUERY_SAMPLE_TEXT) >= 1000, 60, 100)",
        "5"
    ),
    &[mysql(80_003..)],
)];

/// Errors that the server has raised, by their number: those that few programs look at.
const RAISED: [Wording; 1] = [(
    "SELECT ERROR_NUMBER, SUM_ERROR_RAISED FROM performance_schema.events_errors_summary_global_by_error WHERE ERROR_NUMBER IN (1205, 1213, 1114, 1045)",
    &[mysql(80_001..)],
)];

/// Statements of the lists of those that scan.
const SCANS: usize = 10;

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    if !context.variable("performance_schema").is_some_and(|v| v.eq_ignore_ascii_case("ON") || v == "1") {
        let why = "performance_schema is off: nothing counts statements; it is switched on by performance_schema=ON and a restart";
        return readings.rest_is("SHOW GLOBAL VARIABLES", &Missing::Absent(why.to_owned()));
    }
    let digests = match read(sql) {
        Ok(digests) => digests,
        Err(missing) => return readings.rest_is(DIGESTS, &missing),
    };
    let put = |name: &str, list: Value| {
        readings.put(&format!("server.statements.{name}"), DIGESTS, digests.listed(list));
    };
    readings.put("server.statements.time_s", DIGESTS, Ok(digests.time_s));
    readings.put("server.statements.unnamed_share", DIGESTS, Ok(digests.lost_s / digests.time_s));
    let own = |digest: &Digest| !digest.of_server();
    let plain = |list: Vec<&Digest>| list.into_iter().map(|digest| digests.entry(digest)).collect::<Value>();
    put("by_time", plain(digests.most(LISTED, |d| d.time_s, |_| true)));
    put("deep_pages", plain(digests.most(LISTED, |d| d.read, Digest::pages)));
    put("large_results", plain(digests.most(LISTED, |d| d.sent, |d| d.sends_much() && own(d))));
    put("reading_in_vain", vain::in_vain(&digests));
    let warned = digests.most(
        LISTED,
        |d| d.warnings,
        |d| d.warnings >= 100.0 && d.warnings >= 0.1 * d.count && own(d) && !d.is_overhead(),
    );
    put("warned", digests.entries(warned, "warnings", |d| d.warnings.into()));
    put("failing", lists::failing(sql, &digests));
    put("full_joins", joins::full(sql, &digests));
    put("queue_locks", vain::queue_locks(&digests));
    let disk = digests.most(LISTED, |d| d.on_disk, |d| d.on_disk > 0.0 && !d.is(&["SHOW"]) && own(d));
    put("disk_temporaries", digests.entries(disk, "on_disk", |d| d.on_disk.into()));
    let merged = digests.most(LISTED, |d| d.merge_passes, |d| d.merge_passes > 0.0 && own(d));
    put("merge_sorts", digests.entries(merged, "merge_passes", |d| d.merge_passes.into()));
    let often = |d: &Digest, least: f64| d.count >= 1000.0 && d.count >= least * digests.count && own(d);
    let of_all = |d: &Digest| Value::from(d.count / digests.count);
    put("single_rows", lists::single_rows(&digests));
    put("mass_changes", lists::mass_changes(&digests));
    put("polling", lists::polling(&digests));
    put("definitions", lists::definitions(&digests));
    put("hot_rows", lists::hot_rows(&digests));
    put("session_writes", lists::session_writes(&digests));
    put("injected", lists::injected(&digests));
    put("order_of_columns", lists::order_of_columns(context, sql, &digests));
    put("wide", lists::wide(context, sql, &digests));
    let inserts = digests.most(
        LISTED,
        |d| d.count,
        |d| d.is(&["INSERT", "REPLACE"]) && often(d, 0.05) && d.affected <= 2.0 * d.count && !d.has("SELECT"),
    );
    let overhead = digests.most(LISTED, |d| d.count, |d| d.is_overhead() && often(d, 0.1));
    put("overhead", digests.entries(overhead, "of_all", of_all));
    put("single_inserts", digests.entries(inserts, "of_all", of_all));
    let lists = first_of(sql, &LONG_LISTS).1.map_err(|e| e.missing("SELECT on performance_schema"));
    let lists = lists.map(|table| {
        let found: Vec<Digest> = table.rows.iter().filter_map(Digest::of).filter(own).collect();
        found.iter().map(|digest| digests.entry(digest)).collect::<Value>()
    });
    readings.put("server.statements.long_lists", DIGESTS, lists);
    raised(sql, readings);
    scans(context, sql, &digests, readings);
}

/// How often the server has raised some errors.
fn raised(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let rows = first_of(sql, &RAISED)
        .1
        .map(|table| table.rows)
        .map_err(|e| e.missing("SELECT on performance_schema"));
    for (id, number) in [
        ("lock_wait_timeouts", "1205"),
        ("deadlocks", "1213"),
        ("tables_full", "1114"),
        ("access_denied", "1045"),
    ] {
        let of = |rows: &Vec<Row>| {
            let row = rows.iter().find(|row| row.first().and_then(Option::as_deref) == Some(number))?;
            row.get(1)?.as_deref()?.parse::<u64>().ok()
        };
        let raised = rows.as_ref().map(|rows| of(rows).unwrap_or(0)).map_err(Clone::clone);
        readings.put(&format!("server.errors.{id}"), "events_errors_summary_global_by_error", raised);
    }
}

/// The statements that scan, each with a hint.
fn scans(context: &Context, sql: &mut ReadOnly<'_>, digests: &Digests, readings: &Readings) {
    let mut tables: BTreeMap<(String, String), Known> = BTreeMap::new();
    let mut with_hints = |list: Vec<&Digest>| {
        let mut hints: Vec<String> = Vec::new();
        for digest in &list {
            let of_table = match place(digest) {
                Some(at) => {
                    tables.entry(at.clone()).or_insert_with(|| known(context, sql, &at.0, &at.1)).clone()
                }
                None => Known::default(),
            };
            let told = explained(sql, digest, &of_table);
            hints.push(told.unwrap_or_else(|| hint(&digest.text, &of_table.first)));
        }
        let entries = list.into_iter().zip(hints).map(|(digest, hint)| {
            let mut entry = digests.entry(digest);
            entry["hint"] = hint.into();
            entry
        });
        entries.collect::<Value>()
    };
    let reads =
        digests.most(SCANS, |d| d.read, |d| d.is(&["SELECT"]) && d.scans() && !d.locks() && !d.of_server());
    let reads = with_hints(reads);
    let writes = with_hints(digests.most(SCANS, |d| d.read, |d| d.scans() && d.locks() && !d.of_server()));
    readings.put("server.statements.scans", DIGESTS, digests.listed(reads));
    readings.put("server.statements.writes_that_scan", DIGESTS, digests.listed(writes));
}

fn read(sql: &mut ReadOnly<'_>) -> Read<Digests> {
    let refused = |e: crate::sql::SqlError| e.missing("SELECT on performance_schema");
    let (_, total) = first_of(sql, &[TOTAL]);
    let total = total.map_err(refused)?;
    let number = |place: usize| -> f64 {
        let cell = total.rows.first().and_then(|row| row.get(place)).cloned().flatten();
        cell.and_then(|text| text.parse().ok()).unwrap_or(0.0)
    };
    let (time_s, count) = (number(0) * SECONDS, number(1));
    if time_s <= 0.0 {
        return Err(Missing::Absent(
            "no statement is counted: the consumer statements_digest is off".to_owned(),
        ));
    }
    let (_, told) = first_of(sql, &[TOLD]);
    let all = told.map_err(refused)?.rows.iter().filter_map(Digest::of).collect();
    Ok(Digests { all, time_s, count: count.max(1.0), lost: number(2), lost_s: number(3) * SECONDS })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::statement_digest::digest;
    use super::*;

    #[test]
    fn a_statement_has_figures_of_each_time_and_its_share_of_all_time() {
        let cells = [
            "shop",
            "SELECT * FROM `t`",
            "4",
            "2000000000000",
            "8000",
            "4",
            "1",
            "0",
            "0",
            "0",
            "0",
            "0",
            "0",
            "0",
            "1000000000000",
        ];
        let row: Row = cells.map(|cell| Some(cell.to_owned())).to_vec();
        let digests = Digests {
            all: vec![Digest::of(&row).unwrap()],
            time_s: 8.0,
            count: 10.0,
            lost: 0.0,
            lost_s: 0.0,
        };
        let entry = digests.entry(&digests.all[0]);
        assert_eq!(entry["share"], json!(0.25));
        assert_eq!(entry["waiting"], json!(0.5));
        assert_eq!((&entry["rows_read"], &entry["rows_sent"]), (&json!(2000.0), &json!(1.0)));
        assert_eq!((&entry["count"], &entry["time_s"]), (&json!(4.0), &json!(2.0)));
    }

    #[test]
    fn the_first_of_a_list_are_those_of_the_most_weight_and_an_empty_one_can_say_nothing() {
        let scan = digest("SELECT * FROM `a` WHERE `b` = ?", 10.0, 20_000.0, 10.0);
        let few = Digest { read: 9_000.0, ..scan.clone() };
        let digests = Digests { all: vec![few, scan], time_s: 4.0, count: 20.0, lost: 3.0, lost_s: 1.0 };
        assert!(digests.listed(json!([])).is_err() && digests.listed(json!([1])).is_ok());
        let most = digests.most(1, |d| d.read, |_| true);
        assert_eq!(most.iter().map(|d| d.read).collect::<Vec<f64>>(), [20_000.0]);
    }
}
