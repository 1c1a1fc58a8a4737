//! InnoDB: its monitor and its metrics. The monitor's text contains users' statements, so only numbers and the presence
//! of sections are kept.

use mydyno_model::units::parse_size;
use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::deadlock;
use crate::collectors::server::typed;
use crate::collectors::session_list::without_port;
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// InnoDB's monitor and metrics.
pub static COLLECTOR: Collector = Collector {
    name: "innodb",
    cost: Cost { host_ms: 1, server_ms: 5 },
    deadline_ms: 3000,
    depth: Depth::Audit,
    facts: &[
        fact("server.innodb.history_list_length", "count", "undo logs that purge has not reached"),
        fact("server.innodb.log_sequence_number", "bytes", "end of the redo log"),
        fact("server.innodb.log_flushed_up_to", "bytes", "what of it is on disk"),
        fact("server.innodb.last_checkpoint_at", "bytes", "what of it recovery would not need"),
        fact("server.innodb.checkpoint_age_bytes", "bytes", "redo that a recovery would read"),
        fact("server.innodb.semaphore_reservations", "count", "waits for a latch that went to sleep"),
        fact("server.innodb.read_views", "count", "open read views"),
        fact("server.innodb.latest_deadlock", "", "whether there was a deadlock since the start"),
        fact("server.deadlock.tables", "", "tables whose rows the latest deadlock was about; 5 at most"),
        fact(
            "server.deadlock.parties",
            "",
            "the transactions of the latest deadlock: user, statement (its verb and its table); 4 at most",
        ),
        fact(
            "server.innodb.deadlock_search_too_deep",
            "",
            "whether the latest deadlock was a search given up",
        ),
        fact(
            "server.innodb.latest_foreign_key_error",
            "",
            "whether there was a foreign key error since the start",
        ),
        fact("server.innodb.metric.NAME", "", "an enabled counter of information_schema.INNODB_METRICS"),
        fact(
            "server.innodb.temporary_limit_bytes",
            "bytes",
            "size that the temporary tablespace may grow to, where innodb_temp_data_file_path limits it",
        ),
        fact(
            "server.innodb.system_limit_bytes",
            "bytes",
            "size that the last file of the system tablespace may grow to, where innodb_data_file_path limits it",
        ),
        fact("server.transactions.open", "count", "transactions that are open"),
        fact("server.transactions.oldest_s", "s", "age of the oldest; 0 when none is open"),
        fact("server.transactions.most_rows_modified", "count", "rows that the largest has changed"),
        fact("server.transactions.idle", "count", "open transactions whose session waits for its client"),
        fact(
            "server.transactions.idle_longest_s",
            "s",
            "how long the client of such a session has been silent, the longest; 0 when there is none",
        ),
        fact(
            "server.transactions.idle_sessions",
            "",
            "those that have slept the longest: session, user, idle_s, host, rows_modified; 5 at most",
        ),
        fact(
            "server.transactions.rolling_back",
            "",
            "transactions that are being rolled back with 10,000 changed rows or more left: session, user, rows_left; 5 at most",
        ),
        fact(
            "server.transactions.without_session",
            "count",
            "open transactions that belong to no session, as prepared XA transactions do after a restart",
        ),
        fact(
            "server.transactions.without_session_oldest_s",
            "s",
            "age of the oldest of them; 0 when there is none",
        ),
    ],
    run: Run::Server(run),
};

const MONITOR: &str = "SHOW ENGINE INNODB STATUS";
/// Times of transactions are in the time zone of the system.
const TRANSACTIONS: &str = "SELECT COUNT(*), COALESCE(MAX(TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(NOW(), @@time_zone, 'SYSTEM'))), 0), COALESCE(MAX(trx_rows_modified), 0) FROM information_schema.INNODB_TRX";

const IDLE: &str = "SELECT COUNT(*), COALESCE(MAX(p.TIME), 0) FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id WHERE p.COMMAND = 'Sleep'";
const IDLE_SESSIONS: &str = "SELECT p.ID, p.USER, p.TIME, p.HOST, t.trx_rows_modified FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id WHERE p.COMMAND = 'Sleep' ORDER BY p.TIME DESC, p.ID LIMIT 5";
const WITHOUT_SESSION: &str = "SELECT COUNT(*), COALESCE(MAX(TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(NOW(), @@time_zone, 'SYSTEM'))), 0) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0 AND trx_state <> 'ROLLING BACK'";
const ROLLING_BACK: &str = "SELECT t.trx_mysql_thread_id, COALESCE(p.USER, ''), t.trx_rows_modified FROM information_schema.INNODB_TRX t LEFT JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id WHERE t.trx_state = 'ROLLING BACK' AND t.trx_rows_modified >= 10000 ORDER BY t.trx_rows_modified DESC LIMIT 5";

/// The column that says whether a metric counts has another name in newer MariaDB.
const METRICS: [Wording; 2] = [
    ("SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE ENABLED = 1", &[mariadb(100_500..)]),
    (
        "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE STATUS = 'enabled'",
        &[mysql(50_602..), mariadb(100_000..)],
    ),
];

/// The limit behind `:max:`, with K, M or G of 1,024.
fn limit_of(files: &str) -> Option<u64> {
    let (_, limit) = files.split_once(":max:")?;
    parse_size(limit.split([':', ';']).next()?.trim()).ok()
}

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    for (id, variable) in [
        ("server.innodb.temporary_limit_bytes", "innodb_temp_data_file_path"),
        ("server.innodb.system_limit_bytes", "innodb_data_file_path"),
    ] {
        let limit = context.variable(variable).and_then(limit_of);
        let none = || Missing::Absent(format!("{variable} has no limit (:max:)"));
        readings.put(id, variable, limit.ok_or_else(none));
    }
    monitor(sql, readings);
    transactions(sql, readings);
    let (statement, found) = first_of(sql, &METRICS);
    match found {
        Ok(table) => {
            for row in table.rows {
                let [Some(name), Some(text)] = &row[..] else { continue };
                readings.put(&format!("server.innodb.metric.{name}"), statement, Ok(typed(name, text)));
            }
        }
        Err(e) => readings.put::<Value>("server.innodb.metric.all", statement, Err(e.missing("PROCESS"))),
    }
}

fn transactions(sql: &mut ReadOnly<'_>, readings: &Readings) {
    numbers(sql, TRANSACTIONS, &["open", "oldest_s", "most_rows_modified"], readings);
    numbers(sql, IDLE, &["idle", "idle_longest_s"], readings);
    let sessions = sql.rows(IDLE_SESSIONS).map_err(|e| e.missing("PROCESS")).map(|rows| {
        let entry = |row: &Row| {
            let text = |place: usize| row.get(place)?.as_deref();
            let number = |place: usize| text(place)?.parse::<u64>().ok();
            let host = text(3).map_or("", without_port);
            Some(json!({
                "session": number(0)?, "user": text(1)?, "idle_s": number(2)?, "host": host,
                "rows_modified": number(4).unwrap_or(0),
            }))
        };
        rows.iter().filter_map(entry).collect::<Vec<Value>>()
    });
    readings.put("server.transactions.idle_sessions", IDLE_SESSIONS, sessions);
    let back = sql.rows(ROLLING_BACK).map_err(|e| e.missing("PROCESS")).map(|rows| {
        let entry = |row: &Row| {
            let text = |place: usize| row.get(place)?.as_deref();
            let number = |place: usize| text(place)?.parse::<u64>().ok();
            Some(json!({"session": number(0)?, "user": text(1)?, "rows_left": number(2)?}))
        };
        rows.iter().filter_map(entry).collect::<Vec<Value>>()
    });
    readings.put("server.transactions.rolling_back", ROLLING_BACK, back);
    numbers(sql, WITHOUT_SESSION, &["without_session", "without_session_oldest_s"], readings);
}

/// The whole numbers of a statement's one row, as facts of `server.transactions`.
fn numbers(sql: &mut ReadOnly<'_>, statement: &str, ids: &[&str], readings: &Readings) {
    let row = sql.rows(statement).map_err(|e| e.missing("PROCESS")).and_then(|rows| {
        rows.into_iter().next().ok_or_else(|| Missing::Error("INNODB_TRX gave no row".to_owned()))
    });
    for (place, id) in ids.iter().enumerate() {
        let value = row.clone().and_then(|row| {
            let text = row.get(place).cloned().flatten().unwrap_or_default();
            text.parse::<u64>().map_err(|_| Missing::Error(format!("expected a number, found {text:?}")))
        });
        readings.put(&format!("server.transactions.{id}"), statement, value);
    }
}

/// Lines of the monitor that begin with a text and hold a number behind it.
const NUMBERS: [(&str, &str); 5] = [
    ("history_list_length", "History list length"),
    ("log_sequence_number", "Log sequence number"),
    ("log_flushed_up_to", "Log flushed up to"),
    ("last_checkpoint_at", "Last checkpoint at"),
    ("semaphore_reservations", "OS WAIT ARRAY INFO: reservation count"),
];

fn monitor(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let text = sql.table(MONITOR).map_err(|e| e.missing("PROCESS")).and_then(|table| {
        let text = table.cell(0, "Status").map(str::to_owned);
        text.ok_or_else(|| Missing::Absent("the server gave no InnoDB status".to_owned()))
    });
    let put = |name: &str, value: Read<Value>| readings.put(&format!("server.innodb.{name}"), MONITOR, value);
    for (name, line) in NUMBERS {
        put(name, text.clone().and_then(|text| number_behind(&text, line).map(Value::from)));
    }
    let age = text.clone().and_then(|text| {
        let end = number_behind(&text, "Log sequence number")?;
        Ok(end.saturating_sub(number_behind(&text, "Last checkpoint at")?))
    });
    put("checkpoint_age_bytes", age.map(Value::from));
    readings.put("server.deadlock.tables", MONITOR, text.clone().map(|text| deadlock::tables(&text)));
    readings.put("server.deadlock.parties", MONITOR, text.clone().map(|text| deadlock::parties(&text)));
    put("read_views", text.clone().and_then(|text| read_views(&text).map(Value::from)));
    for (name, section) in [
        ("latest_deadlock", "\nLATEST DETECTED DEADLOCK\n"),
        ("latest_foreign_key_error", "\nLATEST FOREIGN KEY ERROR\n"),
        ("deadlock_search_too_deep", "TOO DEEP OR LONG SEARCH"),
    ] {
        put(name, text.clone().map(|text| Value::from(text.contains(section))));
    }
}

/// The number behind the start of a line; older servers write two halves of 32 bits.
fn number_behind(text: &str, start: &str) -> Read<u64> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(start));
    let rest = rest.ok_or_else(|| Missing::Absent(format!("InnoDB's status has no line {start:?}")))?;
    let first = rest.trim_start_matches([' ', ':', '\t']).split(|c: char| !c.is_ascii_digit()).next();
    first
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| Missing::Error(format!("no number behind {start:?} in InnoDB's status")))
}

/// `3 read views open inside InnoDB`.
fn read_views(text: &str) -> Read<u64> {
    let line = text.lines().find_map(|line| line.strip_suffix(" read views open inside InnoDB"));
    line.and_then(|digits| digits.trim().parse().ok())
        .ok_or_else(|| Missing::Absent("InnoDB's status does not tell its read views".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_temporary_tablespace_is_the_number_behind_max() {
        assert_eq!(limit_of("ibtmp1:12M:autoextend:max:64M"), Some(64 << 20));
        assert_eq!(limit_of("ibtmp1:12M:autoextend:max:2g"), Some(2 << 30));
        assert_eq!(limit_of("ibtmp1:12M:autoextend"), None);
    }

    #[test]
    fn numbers_are_found_behind_the_start_of_their_lines() {
        let text = "---\nLog sequence number          4294967297\nLog flushed up to   12\nLast checkpoint at  7\nHistory list length 3\n0 read views open inside InnoDB\nOS WAIT ARRAY INFO: reservation count 66\nbad line\n";
        assert_eq!(number_behind(text, "Log sequence number"), Ok(4_294_967_297));
        assert_eq!(number_behind(text, "OS WAIT ARRAY INFO: reservation count"), Ok(66));
        assert_eq!(read_views(text), Ok(0));
        assert!(matches!(number_behind(text, "Nothing"), Err(Missing::Absent(_))));
        assert!(matches!(number_behind(text, "bad"), Err(Missing::Error(_))));
    }
}
