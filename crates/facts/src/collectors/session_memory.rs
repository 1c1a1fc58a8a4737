//! Memory of sessions as the server reports it: the part of its memory that grows with their number.

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Memory of sessions, counted by the server itself.
pub static COLLECTOR: Collector = Collector {
    name: "session-memory",
    cost: Cost { host_ms: 1, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact("server.sessions.memory.count", "count", "sessions whose memory the server counts"),
        fact(
            "server.sessions.memory.bytes",
            "bytes",
            "memory that these sessions hold, as the server counts it",
        ),
    ],
    run: Run::Server(run),
};

/// Sums over sessions, for servers that show each session's memory in one row. MySQL before 8.0.31 has only hundreds of
/// rows for each thread, which is too much to query on a server with many sessions.
const SUMS: [Wording; 2] = [
    (
        "SELECT COUNT(*), COALESCE(SUM(MEMORY_USED), 0) FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Daemon'",
        &[mariadb(100_100..)],
    ),
    (
        "SELECT COUNT(*), COALESCE(SUM(TOTAL_MEMORY), 0) FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL",
        &[mysql(80_031..)],
    ),
];

fn run(_: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let (asked, found) = first_of(sql, &SUMS);
    let row = found.map_err(|e| e.missing("PROCESS")).and_then(|table| {
        table.rows.into_iter().next().ok_or_else(|| Missing::Error("no line came".to_owned()))
    });
    for (place, id) in ["count", "bytes"].iter().enumerate() {
        let value = row.as_ref().map_err(Clone::clone).and_then(|row| whole(row, place));
        readings.put(&format!("server.sessions.memory.{id}"), asked, value);
    }
}

/// A sum may have decimals, and is negative when another thread frees the memory.
fn whole(row: &Row, place: usize) -> Read<u64> {
    let text = row.get(place).and_then(Option::as_deref).unwrap_or_default();
    let number = text.split('.').next().unwrap_or_default().parse::<i64>();
    number
        .map(|n| n.max(0).unsigned_abs())
        .map_err(|_| Missing::Error(format!("expected a number, found {text:?}")))
}
