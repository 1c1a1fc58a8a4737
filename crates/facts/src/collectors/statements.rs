//! Statements by their digest: which take the time, which read tables without an index, which fail.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::Missing;
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
            "server.statements.by_time",
            "",
            "the five that took the most time: text, schema, count, time_s, share (of all time), rows_read and rows_sent (each time)",
        ),
        fact(
            "server.statements.scans",
            "",
            "SELECT statements that read 1,000 rows or more each time without an index, the five that read the most: text, schema, count, rows_read, rows_sent",
        ),
        fact(
            "server.statements.writes_that_scan",
            "",
            "UPDATE and DELETE statements that read 1,000 rows or more each time without an index, likewise",
        ),
        fact(
            "server.statements.deep_pages",
            "",
            "SELECT statements with LIMIT and an offset that read 1,000 rows or more and 20 times as many as they send, likewise",
        ),
        fact(
            "server.statements.failing",
            "",
            "the five that failed most often, ten times or more: text, schema, count, errors",
        ),
    ],
    run: Run::Server(run),
};

const SERVERS: [Since; 2] = [mysql(50_605..), mariadb(100_000..)];

/// Where statements are counted.
const DIGESTS: &str = "performance_schema.events_statements_summary_by_digest";

const TIME: Wording = (
    "SELECT COALESCE(SUM(SUM_TIMER_WAIT), 0) FROM performance_schema.events_statements_summary_by_digest",
    &SERVERS,
);

/// Columns of a statement's figures.
macro_rules! figures {
    ($rest:literal) => {
        concat!(
            "SELECT COALESCE(SCHEMA_NAME, ''), LEFT(DIGEST_TEXT, 400), COUNT_STAR, SUM_TIMER_WAIT, SUM_ROWS_EXAMINED, SUM_ROWS_SENT, SUM_ERRORS FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT IS NOT NULL AND COALESCE(SCHEMA_NAME, '') NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ",
            $rest
        )
    };
}

const BY_TIME: Wording = (figures!("ORDER BY SUM_TIMER_WAIT DESC LIMIT 5"), &SERVERS);
const SCANS: Wording = (
    figures!(
        "AND DIGEST_TEXT LIKE 'SELECT%' AND DIGEST_TEXT NOT LIKE '%information_schema%' AND SUM_NO_INDEX_USED > 0 AND SUM_ROWS_EXAMINED >= 1000 * COUNT_STAR ORDER BY SUM_ROWS_EXAMINED DESC LIMIT 5"
    ),
    &SERVERS,
);
const WRITES: Wording = (
    figures!(
        "AND (DIGEST_TEXT LIKE 'UPDATE%' OR DIGEST_TEXT LIKE 'DELETE%') AND SUM_NO_INDEX_USED > 0 AND SUM_ROWS_EXAMINED >= 1000 * COUNT_STAR ORDER BY SUM_ROWS_EXAMINED DESC LIMIT 5"
    ),
    &SERVERS,
);
/// MySQL writes `LIMIT ?, ...` for an offset and a count.
const PAGES: Wording = (
    figures!(
        "AND DIGEST_TEXT LIKE 'SELECT%' AND (DIGEST_TEXT LIKE '%LIMIT ?, %' OR DIGEST_TEXT LIKE '%LIMIT ? , %' OR DIGEST_TEXT LIKE '%OFFSET ?%') AND SUM_ROWS_EXAMINED >= 1000 * COUNT_STAR AND SUM_ROWS_EXAMINED >= 20 * SUM_ROWS_SENT ORDER BY SUM_ROWS_EXAMINED DESC LIMIT 5"
    ),
    &SERVERS,
);
const FAILING: Wording = (figures!("AND SUM_ERRORS >= 10 ORDER BY SUM_ERRORS DESC LIMIT 5"), &SERVERS);

/// Longest text of a statement that is kept, in bytes.
const LONGEST: usize = 160;

/// Timers of performance_schema are picoseconds.
const SECONDS: f64 = 1e-12;

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    if !context.variable("performance_schema").is_some_and(|v| v.eq_ignore_ascii_case("ON") || v == "1") {
        let why = "performance_schema is off: nothing counts statements; it is switched on by performance_schema=ON and a restart";
        return readings.rest_is("SHOW GLOBAL VARIABLES", &Missing::Absent(why.to_owned()));
    }
    let (_, table) = first_of(sql, &[TIME]);
    let time_s = table.map_err(|e| e.missing("SELECT on performance_schema")).and_then(|table| {
        let picoseconds = table.rows.first().and_then(|row| number(row, 0));
        let total = picoseconds.filter(|ps| *ps > 0.0).map(|ps| ps * SECONDS);
        total.ok_or_else(|| {
            Missing::Absent("no statement is counted: the consumer statements_digest is off".to_owned())
        })
    });
    readings.put("server.statements.time_s", DIGESTS, time_s.clone());
    let time_s = match time_s {
        Ok(time_s) => time_s,
        Err(missing) => return readings.rest_is(DIGESTS, &missing),
    };
    for (name, wording) in [
        ("by_time", BY_TIME),
        ("scans", SCANS),
        ("writes_that_scan", WRITES),
        ("deep_pages", PAGES),
        ("failing", FAILING),
    ] {
        let (_, table) = first_of(sql, &[wording]);
        let listed = table
            .map(|table| table.rows.iter().filter_map(|row| entry(row, time_s)).collect::<Vec<Value>>())
            .map_err(|e| e.missing("SELECT on performance_schema"));
        readings.put(&format!("server.statements.{name}"), DIGESTS, listed);
    }
}

fn entry(row: &Row, time_s: f64) -> Option<Value> {
    let text = row.get(1)?.as_deref()?;
    let count = number(row, 2)?.max(1.0);
    let each = |place: usize| Some((number(row, place)? / count).round());
    let took_s = number(row, 3)? * SECONDS;
    Some(json!({
        "text": at_a_blank(&text.replace("...", "…")), "schema": row.first()?.as_deref()?, "count": count, "time_s": took_s,
        "share": took_s / time_s, "rows_read": each(4)?, "rows_sent": each(5)?, "errors": number(row, 6)?,
    }))
}

/// The text, cut between two words where it is long.
fn at_a_blank(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let end = text[..end].rfind(' ').unwrap_or(end);
    format!("{} …", &text[..end])
}

fn number(row: &Row, place: usize) -> Option<f64> {
    row.get(place)?.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_figures_of_each_time_and_its_share_of_all_time() {
        let cells = ["shop", "SELECT * FROM `t`", "4", "2000000000000", "8000", "4", "1"];
        let row: Row = cells.map(|cell| Some(cell.to_owned())).to_vec();
        let entry = entry(&row, 8.0).unwrap();
        assert_eq!(entry["share"], json!(0.25));
        assert_eq!((&entry["rows_read"], &entry["rows_sent"]), (&json!(2000.0), &json!(1.0)));
        assert_eq!((&entry["count"], &entry["time_s"]), (&json!(4.0), &json!(2.0)));
    }

    #[test]
    fn a_long_text_is_cut_between_words() {
        let text = format!("SELECT {}", "`column` , ".repeat(40));
        let cut = at_a_blank(&text);
        assert!(cut.len() <= LONGEST + " …".len() && cut.ends_with(" …"), "{cut}");
        assert!(text.starts_with(cut.trim_end_matches(" …")));
    }
}
