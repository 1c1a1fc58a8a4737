//! Figures of InnoDB.

use super::{Figures, ratio};

pub fn add(to: &mut Figures<'_>) {
    let status = |name: &str| format!("server.status.innodb_{name}");
    to.rates(&[
        ("innodb.read_requests_per_s", "server.status.innodb_buffer_pool_read_requests"),
        ("innodb.pool_misses_per_s", "server.status.innodb_buffer_pool_reads"),
        ("innodb.free_waits_per_s", "server.status.innodb_buffer_pool_wait_free"),
        ("innodb.flushed_pages_per_s", "server.status.innodb_buffer_pool_pages_flushed"),
        ("innodb.data_fsyncs_per_s", "server.status.innodb_data_fsyncs"),
        ("innodb.redo_bytes_per_s", "server.status.innodb_os_log_written"),
        ("innodb.redo_waits_per_s", "server.status.innodb_log_waits"),
        ("innodb.redo_write_requests_per_s", "server.status.innodb_log_write_requests"),
        ("innodb.redo_writes_per_s", "server.status.innodb_log_writes"),
        ("innodb.row_lock_waits_per_s", "server.status.innodb_row_lock_waits"),
    ]);
    to.set("innodb.pool_hit_share", {
        let misses = to.grown(&status("buffer_pool_reads"));
        ratio(misses, to.grown(&status("buffer_pool_read_requests")))
            .map(|missed| (1.0 - missed).clamp(0.0, 1.0))
    });
    to.set(
        "innodb.dirty_share",
        ratio(to.now(&status("buffer_pool_pages_dirty")), to.now(&status("buffer_pool_pages_total"))),
    );
    to.set(
        "innodb.redo_fsyncs_per_s",
        to.per_s(&status("os_log_fsyncs")).or_else(|| to.per_s("server.file.redo.miscs")),
    );
    // Milliseconds of waits that ended, in a second: the mean number of sessions that wait for a row lock.
    let waiting = to.per_s(&status("row_lock_time")).map(|ms_per_s| ms_per_s * 1e-3);
    to.set("innodb.row_lock_waiting", waiting);
    to.set("innodb.row_lock_waiting_now", to.now(&status("row_lock_current_waits")));
    // The counter of the metrics that stays 0 counts nothing.
    let metric =
        to.per_s("server.innodb.deadlocks").filter(|_| to.now("server.innodb.deadlocks") != Some(0.0));
    let counted = [metric, to.per_s("server.errors.deadlocks")];
    let deadlocks = to.per_s(&status("deadlocks")).or_else(|| counted.into_iter().flatten().reduce(f64::max));
    to.set("innodb.latest_deadlock_s", to.now("server.innodb_status.latest_deadlock_s_now"));
    to.set("server.statement_errors_per_s", to.per_s("server.errors.statements"));
    to.set("innodb.deadlocks_per_s", deadlocks);
    to.set("innodb.lock_timeouts_per_s", to.per_s("server.innodb.lock_timeouts"));
    let history = to
        .now(&status("history_list_length"))
        .or_else(|| to.now("server.innodb.history_length_now"))
        .or_else(|| to.now("server.innodb_status.history_length_now"));
    to.set("innodb.history_length", history);
    to.gauges(&[
        ("innodb.pending_redo_fsyncs", "server.status.innodb_os_log_pending_fsyncs"),
        ("innodb.pending_redo_writes", "server.status.innodb_os_log_pending_writes"),
        ("innodb.pending_reads", "server.status.innodb_data_pending_reads"),
        ("innodb.pending_writes", "server.status.innodb_data_pending_writes"),
        ("innodb.pending_fsyncs", "server.status.innodb_data_pending_fsyncs"),
        ("innodb.pending_page_reads", "server.innodb_status.pending_page_reads_now"),
        ("innodb.pending_page_writes", "server.innodb_status.pending_page_writes_now"),
        ("innodb.pending_checkpoint_writes", "server.innodb_status.pending_checkpoint_writes_now"),
        ("innodb.latch_waiting", "server.innodb_status.latch_waiting_now"),
        ("innodb.longest_latch_wait_s", "server.innodb_status.longest_latch_wait_s_now"),
        ("innodb.transactions", "server.innodb_status.transactions_now"),
        ("innodb.oldest_transaction_s", "server.innodb_status.oldest_transaction_s_now"),
        ("innodb.queries_inside", "server.innodb_status.queries_inside_now"),
        ("innodb.queries_queued", "server.innodb_status.queries_queued_now"),
        ("innodb.read_views", "server.innodb_status.read_views_now"),
    ]);
    to.rates(&[("innodb.semaphore_waits_per_s", "server.innodb_status.semaphore_waits")]);
    checkpoint(to);
}

/// The checkpoint age, from whichever counters the server has: MariaDB since 10.5, MySQL since 8.0.30, InnoDB's metric where it
/// is enabled, else the text of InnoDB's status.
fn checkpoint(to: &mut Figures<'_>) {
    let status = |name: &str| to.now(&format!("server.status.innodb_{name}"));
    let lsns = status("redo_log_current_lsn").zip(status("redo_log_checkpoint_lsn"));
    let age = status("checkpoint_age")
        .or(lsns.map(|(current, checkpoint)| (current - checkpoint).max(0.0)))
        .or_else(|| to.now("server.innodb.checkpoint_age_bytes_now"))
        .or_else(|| {
            let lsn = |name: &str| to.now(&format!("server.innodb_status.{name}"));
            Some((lsn("redo_bytes")? - lsn("redo_checkpoint_bytes")?).max(0.0))
        });
    let most = status("checkpoint_max_age")
        .or_else(|| status("redo_log_capacity_resized"))
        .or_else(|| to.now("server.innodb_status.checkpoint_max_age_bytes_now"));
    to.set("innodb.checkpoint_age_bytes", age);
    to.set("innodb.checkpoint_age_share", ratio(age, most));
}
