//! Which sessions hold the row locks that others wait for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::lock_holders;
use crate::collectors::session_list::{LIST, without_port};
use crate::collectors::sessions::sees_all_sessions;
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError, quoted};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Row locks that are waited for.
pub static COLLECTOR: Collector = Collector {
    name: "locks",
    cost: Cost { host_ms: 1, server_ms: 2 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.lock_waits.blockers",
            "",
            "sessions that others wait for and that wait for none themselves, those with the longest wait first: session, user, host, command, waiting, longest_s (the wait), open_s (the transaction); 10 at most",
        ),
        fact(
            "server.lock_waits.tables",
            "",
            "tables and indexes whose row locks sessions wait for: table, index, mode (of the wait), waiting; 5 at most",
        ),
        fact("server.lock_waits.longest_s", "s", "the longest wait for a row lock; 0 when there is none"),
        fact("server.lock_waits.waiting", "count", "sessions that wait for a row lock"),
        fact(
            "server.table_locks.waited",
            "",
            "tables of engines that lock whole tables, with the time that sessions have waited for these locks since the start: table, engine, waited_s; 5 at most, with performance_schema",
        ),
        fact(
            "server.metadata_locks.tables",
            "",
            "tables behind a metadata lock that others wait for: table, waiting (sessions), holders (sessions that hold a lock of it and wait for none); 10 at most. MySQL 5.7 and MariaDB tell it where the instrument wait/lock/metadata/sql/mdl is on",
        ),
        fact(
            "server.metadata_locks.probable",
            "",
            "silent sessions that probably hold a lock of a table, or of the server, that others wait for: session, user, host, idle_s, why; 5 at most",
        ),
        fact(
            "server.metadata_locks.global",
            "",
            "sessions that hold the global read lock (FLUSH TABLES WITH READ LOCK), or LOCK INSTANCE FOR BACKUP, and do not wait for a table themselves: session, user, lock, idle_s (how long it has been silent); 10 at most, likewise",
        ),
    ],
    run: Run::Server(run),
};

/// InnoDB tells the times of its transactions in the time zone of the system, and NOW() is in that of the session.
macro_rules! blockers {
    ($waits:literal, $requesting:literal, $blocking:literal) => {
        concat!(
            "SELECT b.trx_mysql_thread_id, COALESCE(MAX(p.USER), ''), COALESCE(MAX(p.COMMAND), ''), COUNT(DISTINCT r.trx_mysql_thread_id), COALESCE(MAX(TIMESTAMPDIFF(SECOND, r.trx_wait_started, CONVERT_TZ(NOW(), @@time_zone, 'SYSTEM'))), 0), COALESCE(MAX(TIMESTAMPDIFF(SECOND, b.trx_started, CONVERT_TZ(NOW(), @@time_zone, 'SYSTEM'))), 0), MAX(b.trx_state), COALESCE(MAX(p.HOST), '') FROM ",
            $waits,
            " w JOIN information_schema.INNODB_TRX r ON r.trx_id = w.",
            $requesting,
            " JOIN information_schema.INNODB_TRX b ON b.trx_id = w.",
            $blocking,
            " LEFT JOIN information_schema.PROCESSLIST p ON p.ID = b.trx_mysql_thread_id GROUP BY b.trx_mysql_thread_id ORDER BY 5 DESC, 4 DESC, 1 LIMIT 100"
        )
    };
}

const BLOCKERS: [Wording; 2] = [
    (
        blockers!("information_schema.INNODB_LOCK_WAITS", "requesting_trx_id", "blocking_trx_id"),
        &[mysql(50_500..).until(80_001), mariadb(50_200..)],
    ),
    (
        blockers!(
            "performance_schema.data_lock_waits",
            "REQUESTING_ENGINE_TRANSACTION_ID",
            "BLOCKING_ENGINE_TRANSACTION_ID"
        ),
        &[mysql(80_001..)],
    ),
];

/// Sessions that wait for a row lock, each once, whomever it waits for, and the longest wait.
const WAITING: &str = "SELECT COUNT(*), COALESCE(MAX(TIMESTAMPDIFF(SECOND, trx_wait_started, CONVERT_TZ(NOW(), @@time_zone, 'SYSTEM'))), 0) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";

/// Locks of tables. The statements sort and group nothing: MySQL 8.0.12 then loses rows of this table.
macro_rules! of_tables {
    ($status:literal, $most:literal) => {
        concat!(
            "SELECT l.OBJECT_SCHEMA, l.OBJECT_NAME, l.LOCK_STATUS, l.OWNER_THREAD_ID, t.PROCESSLIST_ID FROM performance_schema.metadata_locks l JOIN performance_schema.threads t ON t.THREAD_ID = l.OWNER_THREAD_ID WHERE l.OBJECT_TYPE = 'TABLE' AND l.LOCK_STATUS = '",
            $status,
            "' LIMIT ",
            $most
        )
    };
}
const PENDING: [Wording; 1] = [(of_tables!("PENDING", "1000"), &[mysql(50_703..), mariadb(100_502..)])];
const GRANTED: [Wording; 1] = [(of_tables!("GRANTED", "10000"), &[mysql(50_703..), mariadb(100_502..)])];

macro_rules! holders {
    ($lock:literal) => {
        concat!(
            "SELECT DISTINCT t.PROCESSLIST_ID, COALESCE(t.PROCESSLIST_USER, ''), g.OBJECT_TYPE, IF(t.PROCESSLIST_COMMAND = 'Sleep', COALESCE(t.PROCESSLIST_TIME, 0), 0) FROM performance_schema.metadata_locks g JOIN performance_schema.threads t ON t.THREAD_ID = g.OWNER_THREAD_ID WHERE ",
            $lock,
            " AND g.LOCK_DURATION = 'EXPLICIT' AND g.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID IS NOT NULL AND COALESCE(t.PROCESSLIST_STATE, '') <> 'Waiting for table flush' LIMIT 10"
        )
    };
}

/// MariaDB's global read lock is one of its backup locks, of two kinds one after the other.
const GLOBAL: [Wording; 2] = [
    (holders!("g.OBJECT_TYPE IN ('GLOBAL', 'BACKUP LOCK') AND g.LOCK_TYPE = 'SHARED'"), &[mysql(50_703..)]),
    (
        holders!("g.OBJECT_TYPE = 'BACKUP' AND g.LOCK_TYPE IN ('BACKUP_FTWRL1', 'BACKUP_FTWRL2')"),
        &[mariadb(100_502..)],
    ),
];

/// Row locks that are waited for, by table and index. Their data are values of users, and are not asked for.
const ON: [Wording; 2] = [
    (
        "SELECT l.lock_table, COALESCE(l.lock_index, ''), l.lock_mode, COUNT(DISTINCT w.requesting_trx_id) FROM information_schema.INNODB_LOCK_WAITS w JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 5",
        &[mysql(50_500..).until(80_001), mariadb(50_200..)],
    ),
    (
        "SELECT STRAIGHT_JOIN CONCAT(l.OBJECT_SCHEMA, '.', l.OBJECT_NAME), COALESCE(l.INDEX_NAME, ''), l.LOCK_MODE, COUNT(DISTINCT w.REQUESTING_ENGINE_TRANSACTION_ID) FROM performance_schema.data_lock_waits w JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID AND l.ENGINE = w.ENGINE GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 5",
        &[mysql(80_001..)],
    ),
];

/// Time at locks of whole tables, which for tables of InnoDB is that of the server's own layer.
const WHOLE: [Wording; 1] = [(
    "SELECT OBJECT_SCHEMA, OBJECT_NAME, SUM_TIMER_WAIT / 1000000000000 FROM performance_schema.table_lock_waits_summary_by_table WHERE OBJECT_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') AND SUM_TIMER_WAIT >= 1000000000000 ORDER BY SUM_TIMER_WAIT DESC LIMIT 20",
    &[mysql(50_603..), mariadb(100_000..)],
)];

/// Those of such tables whose engine locks whole tables.
fn whole_tables(sql: &mut ReadOnly<'_>, rows: &[Row]) -> Vec<Value> {
    let mut found = Vec::new();
    for row in rows {
        let [Some(schema), Some(table), Some(waited)] = &row[..] else { continue };
        let (Some(of_schema), Some(of_table)) = (quoted(schema), quoted(table)) else { continue };
        let engine = sql.rows(&format!(
            "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {of_schema} AND TABLE_NAME = {of_table} AND ENGINE IN ('MyISAM', 'Aria', 'MEMORY', 'CSV', 'MRG_MyISAM')"
        ));
        let engine = engine.ok().and_then(|rows| rows.into_iter().next()?.into_iter().next()?);
        if let (Some(engine), Ok(waited_s)) = (engine, waited.parse::<f64>()) {
            found.push(
                json!({"table": format!("{schema}.{table}"), "engine": engine, "waited_s": waited_s.round()}),
            );
        }
    }
    found.truncate(5);
    found
}

/// A table with the row locks of it that are waited for.
fn on(row: &Row) -> Option<Value> {
    let text = |place: usize| row.get(place)?.as_deref();
    Some(json!({
        "table": text(0)?.replace('`', ""), "index": text(1)?, "mode": text(2)?.replace("REC_NOT_GAP", "RECORD"),
        "waiting": text(3)?.parse::<u64>().ok()?,
    }))
}

/// Tables that are waited for, with the sessions that hold a lock of them and wait for none themselves.
fn waited_for(rows: &[Row]) -> Vec<Value> {
    let text = |row: &Row, place: usize| row.get(place).cloned().flatten().unwrap_or_default();
    let (pending, granted): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| text(row, 2) == "PENDING");
    let waiting: BTreeSet<String> = pending.iter().map(|row| text(row, 3)).collect();
    let mut tables: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for row in pending {
        tables.entry((text(row, 0), text(row, 1))).or_default().insert(text(row, 3));
    }
    let mut found: Vec<(usize, Value)> = tables
        .into_iter()
        .map(|((schema, table), owners)| {
            let of_table = granted.iter().filter(|row| text(row, 0) == schema && text(row, 1) == table);
            let holders: BTreeSet<u64> = of_table
                .filter(|row| !waiting.contains(&text(row, 3)))
                .filter_map(|row| text(row, 4).parse().ok())
                .collect();
            let holders: Vec<u64> = holders.into_iter().take(10).collect();
            let entry =
                json!({"table": format!("{schema}.{table}"), "waiting": owners.len(), "holders": holders});
            (owners.len(), entry)
        })
        .collect();
    found.sort_by_key(|(waiting, _)| std::cmp::Reverse(*waiting));
    found.into_iter().take(10).map(|(_, entry)| entry).collect()
}

/// Puts who holds the metadata locks that others wait for.
fn metadata(sql: &mut ReadOnly<'_>, readings: &Readings) {
    const FROM: &str = "performance_schema.metadata_locks";
    let holder = |row: &Row| {
        let text = |place: usize| row.get(place)?.as_deref();
        let lock = match text(2)? {
            "BACKUP LOCK" => "LOCK INSTANCE FOR BACKUP",
            _ => "FLUSH TABLES WITH READ LOCK",
        };
        Some(
            json!({"session": text(0)?.parse::<u64>().ok()?, "user": text(1)?, "lock": lock, "idle_s": text(3)?.parse::<u64>().ok()?}),
        )
    };
    let refused = |e: SqlError| e.missing("SELECT on performance_schema");
    let mut found = first_of(sql, &PENDING).1.map(|table| table.rows).map_err(refused);
    if let Ok(rows) = &mut found
        && !rows.is_empty()
    {
        rows.extend(first_of(sql, &GRANTED).1.map_or_else(|_| Vec::new(), |table| table.rows));
    }
    let found = found.map(|rows| waited_for(&rows));
    readings.put("server.metadata_locks.tables", FROM, found);
    let asked = first_of(sql, &GLOBAL).1.map_err(|e| e.missing("SELECT on performance_schema"));
    let found = asked.map(|table| table.rows.iter().filter_map(holder).collect::<Vec<Value>>());
    readings.put("server.metadata_locks.global", FROM, found);
}

fn run(_: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    metadata(sql, readings);
    let probable = sees_all_sessions(sql).map(|()| lock_holders::probable(sql));
    readings.put("server.metadata_locks.probable", LIST, probable);
    // performance_schema tells of no lock where it is off; the transactions that wait are listed all the same.
    let waits = sql.rows(WAITING).map_err(|e| e.missing("PROCESS"));
    let number = |place: usize| -> Read<u64> {
        let rows = waits.as_ref().map_err(Clone::clone)?;
        rows.first().map_or(Ok(0), |row| number_in(row, place))
    };
    let waiting = number(0);
    let (asked, tables) = match waiting {
        Ok(0) => (WAITING, Ok(Vec::new())),
        // The server may make a row of every lock that there is.
        _ => {
            let (asked, tables) = first_of(sql, &ON);
            (asked, tables.map(|table| table.rows.iter().filter_map(on).collect::<Vec<Value>>()))
        }
    };
    let tables =
        tables.map_err(|e| e.missing("PROCESS, and SELECT on performance_schema in MySQL 8.0 and later"));
    readings.put("server.lock_waits.tables", asked, tables);
    let (asked, whole) = first_of(sql, &WHOLE);
    let whole = whole.map_err(|e| e.missing("SELECT on performance_schema"));
    let whole = whole.map(|table| whole_tables(sql, &table.rows));
    readings.put("server.table_locks.waited", asked, whole);
    let (statement, table) = first_of(sql, &BLOCKERS);
    let from = match statement.contains("data_lock_waits") {
        true => "performance_schema.data_lock_waits",
        false => "information_schema.INNODB_LOCK_WAITS",
    };
    let found =
        table.map_err(|e| e.missing("PROCESS, and SELECT on performance_schema in MySQL 8.0 and later"));
    let all = found.map(|table| table.rows);
    let blockers = all.clone().map(|rows| rows.iter().filter_map(entry).collect::<Vec<Value>>());
    let longest = blockers.as_ref().ok().map(|all| all.iter().filter_map(|one| one["longest_s"].as_u64()));
    let longest = longest.and_then(Iterator::max).unwrap_or(0);
    let untold = blockers.as_ref().is_ok_and(Vec::is_empty) && waiting.as_ref().is_ok_and(|n| *n > 0);
    readings.put("server.lock_waits.longest_s", WAITING, number(1).map(|waited| waited.max(longest)));
    readings.put("server.lock_waits.waiting", WAITING, waiting);
    let why = || {
        Missing::Absent(format!(
            "{from} names no session that holds them; it is empty where performance_schema is OFF"
        ))
    };
    let heads = if untold { Err(why()) } else { all.map(|rows| first_in_line(&rows)) };
    readings.put("server.lock_waits.blockers", from, heads);
}

fn number_in(row: &Row, place: usize) -> Read<u64> {
    let text = row.get(place).and_then(Option::as_deref).unwrap_or_default();
    text.parse().map_err(|_| Missing::Error(format!("expected a number, found {text:?}")))
}

/// Those that do not wait for another one themselves; ending one of the others would free nobody.
fn first_in_line(rows: &[Row]) -> Vec<Value> {
    let waits = |row: &&Row| row.get(6).and_then(Option::as_deref) == Some("LOCK WAIT");
    let heads: Vec<Value> = rows.iter().filter(|row| !waits(row)).filter_map(entry).take(10).collect();
    // A deadlock that the server does not look for has none.
    if heads.is_empty() { rows.iter().filter_map(entry).take(10).collect() } else { heads }
}

fn entry(row: &Row) -> Option<Value> {
    let text = |place: usize| row.get(place)?.as_deref();
    let number = |place: usize| text(place)?.parse::<u64>().ok();
    let host = without_port(text(7).unwrap_or_default());
    Some(json!({
        "session": number(0)?, "user": text(1)?, "host": host, "command": text(2)?,
        "waiting": number(3)?, "longest_s": number(4)?, "open_s": number(5)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_of_a_table_are_those_that_wait_for_none() {
        let row = |cells: [&str; 5]| -> Row { cells.map(|cell| Some(cell.to_owned())).to_vec() };
        let rows = [
            row(["shop", "customers", "PENDING", "52", "18"]),
            row(["shop", "customers", "PENDING", "53", "19"]),
            row(["shop", "bills", "PENDING", "54", "20"]),
            row(["shop", "customers", "GRANTED", "51", "17"]),
            row(["shop", "customers", "GRANTED", "52", "18"]),
            row(["shop", "other", "GRANTED", "60", "26"]),
        ];
        assert_eq!(
            waited_for(&rows),
            [
                json!({"table": "shop.customers", "waiting": 2, "holders": [17]}),
                json!({"table": "shop.bills", "waiting": 1, "holders": []}),
            ]
        );
        assert!(waited_for(&rows[3..]).is_empty());
    }

    #[test]
    fn sessions_that_wait_themselves_are_not_named_as_those_that_hold_the_locks() {
        let row = |cells: [&str; 7]| -> Row { cells.map(|cell| Some(cell.to_owned())).to_vec() };
        let holder = row(["10", "app", "Sleep", "2", "40", "90", "RUNNING"]);
        let queued = row(["28", "app", "Query", "1", "38", "40", "LOCK WAIT"]);
        let found = first_in_line(&[queued.clone(), holder]);
        assert_eq!(found.iter().map(|one| one["session"].as_u64()).collect::<Vec<_>>(), [Some(10)]);
        assert_eq!(first_in_line(&[queued]).len(), 1);
    }
}
