//! Figures of the server's own counters, without InnoDB's.

use super::Figures;

/// Calls of the storage engines that read a row.
const ROWS_READ: [&str; 7] = [
    "server.status.handler_read_first",
    "server.status.handler_read_key",
    "server.status.handler_read_last",
    "server.status.handler_read_next",
    "server.status.handler_read_prev",
    "server.status.handler_read_rnd",
    "server.status.handler_read_rnd_next",
];

/// Calls of the storage engines that change a row.
const ROWS_WRITTEN: [&str; 3] =
    ["server.status.handler_write", "server.status.handler_update", "server.status.handler_delete"];

pub fn add(to: &mut Figures<'_>) {
    // mydyno's own statements are not part of the load.
    let questions = to.per_s("server.status.questions");
    let own = to.per_s("server.connection.statements").unwrap_or(0.0);
    to.set("server.questions_per_s", questions.map(|all| (all - own).max(0.0)));
    to.set(
        "server.transactions_per_s",
        to.sum_per_s(&["server.status.com_commit", "server.status.com_rollback"]),
    );
    to.set("server.rows_read_per_s", to.sum_per_s(&ROWS_READ));
    to.set("server.rows_written_per_s", to.sum_per_s(&ROWS_WRITTEN));
    to.rates(&[
        ("server.selects_per_s", "server.status.com_select"),
        ("server.slow_queries_per_s", "server.status.slow_queries"),
        ("server.connections_per_s", "server.status.connections"),
        ("server.threads_created_per_s", "server.status.threads_created"),
        ("server.aborted_connects_per_s", "server.status.aborted_connects"),
        ("server.aborted_clients_per_s", "server.status.aborted_clients"),
        ("server.tmp_tables_per_s", "server.status.created_tmp_tables"),
        ("server.tmp_disk_tables_per_s", "server.status.created_tmp_disk_tables"),
        ("server.table_lock_waits_per_s", "server.status.table_locks_waited"),
        ("server.opened_tables_per_s", "server.status.opened_tables"),
        ("server.received_bytes_per_s", "server.status.bytes_received"),
        ("server.sent_bytes_per_s", "server.status.bytes_sent"),
        ("server.binlog.commits_per_s", "server.status.binlog_commits"),
        ("server.binlog.group_commits_per_s", "server.status.binlog_group_commits"),
    ]);
    // mydyno's own sessions are connected, and that of the counters runs while it reads them.
    let sessions = to.now("server.connection.sessions_now").unwrap_or(1.0);
    let running = 1.0 + to.now("server.connection.busy_now").unwrap_or(0.0);
    for (figure, gauge, own) in [
        ("server.threads_running", "server.status.threads_running", running),
        ("server.threads_connected", "server.status.threads_connected", sessions),
    ] {
        to.set(figure, to.now(gauge).map(|n| (n - own).max(0.0)));
    }
    to.gauges(&[
        ("server.sessions.sleeping", "server.sessions.sleeping_now"),
        ("server.sessions.running", "server.sessions.running_now"),
        ("server.sessions.locked", "server.sessions.locked_now"),
        ("server.sessions.metadata_locked", "server.sessions.metadata_locked_now"),
        ("server.sessions.committing", "server.sessions.committing_now"),
        ("server.sessions.replicas", "server.sessions.replicas_now"),
        ("server.sessions.oldest_s", "server.sessions.oldest_s_now"),
        ("server.uptime_s", "server.status.uptime"),
    ]);
    let statements = "server.statements.count_all";
    to.set("server.statements_per_s", to.per_s(statements));
    let mean_us = super::ratio(to.grown("server.statements.time_s"), to.grown(statements)).map(|s| s * 1e6);
    to.set("server.statement_us", mean_us);
    for file in ["data", "redo", "binlog"] {
        for (call, calls) in [("read", "reads"), ("write", "writes"), ("misc", "miscs")] {
            let (counter, time) =
                (format!("server.file.{file}.{calls}"), format!("server.file.{file}.{call}_s"));
            to.set(&format!("{counter}_per_s"), to.per_s(&counter));
            let mean_us = super::ratio(to.grown(&time), to.grown(&counter)).map(|s| s * 1e6);
            to.set(&format!("server.file.{file}.{call}_us"), mean_us);
            // Seconds of waiting a second: the mean number of threads inside such a call.
            to.set(&format!("server.file.{file}.{call}_threads"), to.per_s(&time));
        }
    }
}
