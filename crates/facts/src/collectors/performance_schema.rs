//! performance_schema, where it is enabled: memory, waits and files by event. Only the largest entries are kept: it has
//! hundreds.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::Missing;
use crate::sql::{ReadOnly, Row};
use crate::wording::{Since, Wording, first_of, mariadb, mysql};

/// Summaries of performance_schema.
pub static COLLECTOR: Collector = Collector {
    name: "performance-schema",
    cost: Cost { host_ms: 1, server_ms: 20 },
    deadline_ms: 3000,
    depth: Depth::Audit,
    facts: &[
        fact("server.performance_schema.on", "", "whether it is on"),
        fact("server.performance_schema.digests", "", "whether it counts statements by their digests"),
        fact(
            "server.performance_schema.memory_bytes",
            "bytes",
            "memory that instrumented parts of the server hold",
        ),
        fact("server.performance_schema.memory.EVENT", "bytes", "memory of one part, of the 30 largest"),
        fact(
            "server.performance_schema.wait.EVENT",
            "",
            "a wait since the start: count and total_s, of the 30 longest",
        ),
        fact(
            "server.performance_schema.file.EVENT",
            "",
            "a kind of file since the start: reads, writes and others (syncs) with their total_s",
        ),
    ],
    run: Run::Server(run),
};

/// Servers whose performance_schema counts memory.
const COUNTS_MEMORY: [Since; 2] = [mysql(50_702..), mariadb(100_502..)];
const TOTAL: Wording = (
    "SELECT SUM(CURRENT_NUMBER_OF_BYTES_USED) FROM performance_schema.memory_summary_global_by_event_name",
    &COUNTS_MEMORY,
);
const MEMORY: Wording = (
    "SELECT EVENT_NAME, CURRENT_NUMBER_OF_BYTES_USED FROM performance_schema.memory_summary_global_by_event_name WHERE CURRENT_NUMBER_OF_BYTES_USED > 0 ORDER BY CURRENT_NUMBER_OF_BYTES_USED DESC LIMIT 30",
    &COUNTS_MEMORY,
);
const WAITS: Wording = (
    "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name WHERE COUNT_STAR > 0 ORDER BY SUM_TIMER_WAIT DESC LIMIT 30",
    &[mysql(50_503..), mariadb(50_500..)],
);
const DIGESTS: Wording = (
    "SELECT ENABLED = 'YES' FROM performance_schema.setup_consumers WHERE NAME = 'statements_digest'",
    &[mysql(50_603..), mariadb(100_000..)],
);
const FILES: Wording = (
    "SELECT EVENT_NAME, COUNT_READ, SUM_TIMER_READ, COUNT_WRITE, SUM_TIMER_WRITE, COUNT_MISC, SUM_TIMER_MISC FROM performance_schema.file_summary_by_event_name WHERE COUNT_STAR > 0 ORDER BY SUM_TIMER_WAIT DESC LIMIT 30",
    &[mysql(50_603..), mariadb(100_000..)],
);

/// Timers of performance_schema are picoseconds.
const SECONDS: f64 = 1e-12;

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let on = match context.variable("performance_schema") {
        Some(value) => Ok(value.eq_ignore_ascii_case("ON") || value == "1"),
        None => Err(Missing::Absent("the server has no variable performance_schema".to_owned())),
    };
    readings.put("server.performance_schema.on", "SHOW GLOBAL VARIABLES", on.clone());
    match on {
        Ok(true) => {}
        Ok(false) => {
            let why = "performance_schema is off; it is switched on by performance_schema=ON and a restart";
            return readings.rest_is("SHOW GLOBAL VARIABLES", &Missing::Absent(why.to_owned()));
        }
        Err(missing) => return readings.rest_is("SHOW GLOBAL VARIABLES", &missing),
    }
    let (statement, total) = first_of(sql, &[TOTAL]);
    let total = total.map_err(|e| e.missing("SELECT on performance_schema")).and_then(|table| {
        let value = table.rows.first().and_then(|row| whole(row, 0));
        value.ok_or_else(|| Missing::Absent("no memory instrument counts".to_owned()))
    });
    readings.put("server.performance_schema.memory_bytes", statement, total);
    let (statement, digests) = first_of(sql, &[DIGESTS]);
    let digests = digests.map_err(|e| e.missing("SELECT on performance_schema")).and_then(|table| {
        let on = table.rows.first().and_then(|row| whole(row, 0));
        on.map(|on| on != 0).ok_or_else(|| Missing::Absent("it has no such consumer".to_owned()))
    });
    readings.put("server.performance_schema.digests", statement, digests);
    each(sql, readings, "memory", MEMORY, |row| Some(Value::from(whole(row, 1)?)));
    each(sql, readings, "wait", WAITS, |row| {
        Some(json!({"count": whole(row, 1)?, "total_s": number(row, 2)? * SECONDS}))
    });
    each(sql, readings, "file", FILES, |row| {
        let pair = |place: usize| Some((whole(row, place)?, number(row, place + 1)? * SECONDS));
        let ((reads, read_s), (writes, write_s), (others, other_s)) = (pair(1)?, pair(3)?, pair(5)?);
        Some(
            json!({"reads": reads, "read_s": read_s, "writes": writes, "write_s": write_s, "others": others, "other_s": other_s}),
        )
    });
}

fn each(
    sql: &mut ReadOnly<'_>,
    readings: &Readings,
    family: &str,
    wording: Wording,
    value: impl Fn(&Row) -> Option<Value>,
) {
    let id = |name: &str| format!("server.performance_schema.{family}.{name}");
    let (statement, found) = first_of(sql, &[wording]);
    match found {
        Ok(table) => {
            for row in table.rows {
                if let (Some(Some(name)), Some(value)) = (row.first(), value(&row)) {
                    readings.put(&id(name), statement, Ok(value));
                }
            }
        }
        Err(e) => {
            readings.put::<Value>(&id("all"), statement, Err(e.missing("SELECT on performance_schema")))
        }
    }
}

/// A count or a size; a sum may have decimals, and is negative when another thread frees the memory.
fn whole(row: &Row, place: usize) -> Option<i64> {
    row.get(place)?.as_deref()?.split('.').next()?.parse().ok()
}

fn number(row: &Row, place: usize) -> Option<f64> {
    row.get(place)?.as_deref()?.parse().ok()
}
