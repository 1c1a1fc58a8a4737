use mydyno_model::watch::StatementFigures;

use super::*;

fn sample(at_s: f64, values: &[(&str, f64)]) -> Sample {
    let values = values.iter().map(|(n, v)| ((*n).into(), *v)).collect();
    Sample { at_s, key: true, values, ..Sample::default() }
}

#[track_caller]
fn near(found: &IndexMap<String, f64>, name: &str, expected: f64) {
    let value = found.get(name).unwrap_or_else(|| panic!("{name} is missing of {found:?}"));
    assert!((value - expected).abs() < 1e-9, "{name}: {value} is not {expected}");
}

/// Two seconds of a server whose counters are read over 2.5 s, with 5 statements of mydyno's own.
fn server(k: f64) -> Sample {
    let at_s = 10.0 + 2.0 * k;
    sample(
        at_s,
        &[
            ("observe.server.at_s", 10.1 + 2.5 * k),
            ("server.connection.statements", 5.0 * k),
            ("server.status.questions", 100.0 + 2_505.0 * k),
            ("server.status.com_commit", 250.0 * k),
            ("server.status.com_rollback", 25.0 * k),
            ("server.status.threads_running", 4.0),
            ("server.status.threads_connected", 1.0),
            ("server.status.handler_read_key", 1_000.0 * k),
            ("server.status.handler_read_next", 1_500.0 * k),
            ("server.status.innodb_buffer_pool_read_requests", 10_000.0 * k),
            ("server.status.innodb_buffer_pool_reads", 50.0 * k),
            ("server.status.innodb_buffer_pool_pages_dirty", 25.0),
            ("server.status.innodb_buffer_pool_pages_total", 100.0),
            ("server.status.innodb_row_lock_time", 5_000.0 * k),
            ("server.status.innodb_checkpoint_age", 30.0),
            ("server.status.innodb_checkpoint_max_age", 120.0),
            ("server.file.redo.miscs", 500.0 * k),
            ("server.file.redo.misc_s", 0.75 * k),
            ("server.file.redo.reads", 0.0),
            ("server.file.redo.read_s", 0.0),
        ],
    )
}

#[test]
fn rates_of_the_server_are_over_the_time_between_its_own_readings() {
    let found = figures(&server(0.0), &server(1.0));
    for (name, expected) in [
        ("server.questions_per_s", 1_000.0),
        ("server.transactions_per_s", 110.0),
        ("server.threads_running", 3.0),
        ("server.threads_connected", 0.0),
        ("server.rows_read_per_s", 1_000.0),
        ("innodb.pool_misses_per_s", 20.0),
        ("innodb.pool_hit_share", 0.995),
        ("innodb.dirty_share", 0.25),
        ("innodb.row_lock_waiting", 2.0),
        ("innodb.checkpoint_age_bytes", 30.0),
        ("innodb.checkpoint_age_share", 0.25),
        ("innodb.redo_fsyncs_per_s", 200.0),
        ("server.file.redo.misc_us", 1_500.0),
        ("server.file.redo.misc_threads", 0.3),
    ] {
        near(&found, name, expected);
    }
    assert!(!found.contains_key("server.file.redo.read_us"), "no read has no mean");
    assert!(!found.contains_key("server.rows_written_per_s"), "no counter is no zero");
}

#[test]
fn a_server_that_was_not_read_anew_has_no_figures() {
    let (before, mut after) = (server(0.0), server(1.0));
    after.values.insert("observe.server.at_s".into(), 10.1);
    assert!(figures(&before, &after).is_empty());
    let mut gone = sample(12.0, &[("observe.server.at_s", 12.6)]);
    assert!(figures(&before, &gone).is_empty());
    gone.values.insert("host.load.running_now".into(), 3.0);
    near(&figures(&before, &gone), "host.load.running", 2.0);
}

#[test]
fn a_counter_that_fell_gives_no_rate() {
    let (before, mut after) = (server(1.0), server(2.0));
    after.values.insert("server.status.questions".into(), 3.0);
    after.values.insert("server.status.com_rollback".into(), 3.0);
    let found = figures(&before, &after);
    for name in ["server.questions_per_s", "server.transactions_per_s"] {
        assert!(!found.contains_key(name), "{found:?}");
    }
    near(&found, "innodb.pool_misses_per_s", 20.0);
}

#[test]
fn the_hottest_cpu_is_the_one_with_the_largest_share_of_its_own_time() {
    let cpu = |at_s: f64, k: f64| {
        sample(
            at_s,
            &[
                ("host.cpu.cpu0.busy_s", 5.0 + 0.2 * k),
                ("host.cpu.cpu0.idle_s", 50.0 + 0.8 * k),
                ("host.cpu.cpu0.softirq_s", 1.0 + 0.1 * k),
                ("host.cpu.cpu7.busy_s", 6.0 + 0.9 * k),
                ("host.cpu.cpu7.idle_s", 50.0 + 0.1 * k),
                ("host.cpu.cpu7.softirq_s", 0.0),
            ],
        )
    };
    let found = figures(&cpu(0.0, 0.0), &cpu(1.0, 1.0));
    near(&found, "host.cpu.hottest_share", 0.9);
    near(&found, "host.cpu.hottest", 7.0);
    near(&found, "host.cpu.hottest_interrupt_share", 0.1);
}

#[test]
fn disks_and_networks_have_figures_of_their_own() {
    let at = |at_s: f64, k: f64| {
        sample(
            at_s,
            &[
                ("host.disk.sda.reads", 100.0 * k),
                ("host.disk.sda.read_bytes", 409_600.0 * k),
                ("host.disk.sda.read_s", 0.05 * k),
                ("host.disk.sda.io_s", 0.5 * k),
                ("host.net.eth0.rx_bytes", 2_000.0 * k),
                ("host.pressure.io.full_s", 0.2 * k),
            ],
        )
    };
    let found = figures(&at(1.0, 0.0), &at(3.0, 1.0));
    near(&found, "host.disk.sda.reads_per_s", 50.0);
    near(&found, "host.disk.sda.read_us", 500.0);
    near(&found, "host.disk.sda.util_share", 0.25);
    near(&found, "host.net.eth0.rx_bytes_per_s", 1_000.0);
    near(&found, "host.pressure.io_full_share", 0.1);
}

#[test]
fn mysql_has_its_checkpoint_age_in_the_numbers_of_its_log() {
    let at = |at_s: f64| {
        sample(
            at_s,
            &[
                ("server.status.innodb_redo_log_current_lsn", 5_000.0),
                ("server.status.innodb_redo_log_checkpoint_lsn", 4_000.0),
                ("server.status.innodb_redo_log_capacity_resized", 8_000.0),
            ],
        )
    };
    let found = figures(&at(1.0), &at(2.0));
    near(&found, "innodb.checkpoint_age_bytes", 1_000.0);
    near(&found, "innodb.checkpoint_age_share", 0.125);
}

#[test]
fn a_server_without_counters_of_its_log_has_its_checkpoint_age_in_the_text() {
    let at = |at_s: f64, k: f64| {
        sample(
            at_s,
            &[
                ("observe.innodb_status.at_s", at_s),
                ("server.innodb_status.redo_bytes", 5_000.0),
                ("server.innodb_status.redo_checkpoint_bytes", 4_000.0),
                ("server.innodb_status.checkpoint_max_age_bytes_now", 2_000.0),
                ("server.innodb_status.history_length_now", 7.0),
                ("server.innodb_status.semaphore_waits", 100.0 * k),
                ("server.innodb_status.mutex_spin_rounds", 300.0 * k),
                ("server.innodb_status.rwlock_s_spin_rounds", 20.0 * k),
                ("server.innodb_status.rwlock_x_spin_rounds", 10.0 * k),
            ],
        )
    };
    let found = figures(&at(1.0, 0.0), &at(6.0, 1.0));
    for (name, expected) in [
        ("innodb.checkpoint_age_bytes", 1_000.0),
        ("innodb.checkpoint_age_share", 0.5),
        ("innodb.history_length", 7.0),
        ("innodb.semaphore_waits_per_s", 20.0),
        ("innodb.mutex_spin_rounds_per_s", 60.0),
        ("innodb.rwlock_spin_rounds_per_s", 6.0),
    ] {
        near(&found, name, expected);
    }
    // Not read anew in the next interval.
    let mut later = at(7.0, 1.0);
    later.values.insert("observe.innodb_status.at_s".into(), 6.0);
    assert!(figures(&at(6.0, 1.0), &later).is_empty());
}

#[test]
fn spins_of_the_metrics_are_preferred_and_summed_over_modes() {
    let at = |at_s: f64, k: f64| {
        sample(
            at_s,
            &[
                ("server.innodb.rwlock_s_spin_waits", 10.0 * k),
                ("server.innodb.rwlock_sx_spin_waits", 5.0 * k),
                ("server.innodb_status.rwlock_s_spin_waits", 900.0 * k),
                ("server.status.innodb_mutex_spin_waits", 3.0 * k),
            ],
        )
    };
    let found = figures(&at(1.0, 0.0), &at(2.0, 1.0));
    near(&found, "innodb.rwlock_spins_per_s", 15.0);
    near(&found, "innodb.mutex_spins_per_s", 3.0);
}

#[test]
fn waits_are_threads_by_class_and_by_kind_of_those_with_the_most_time() {
    let at = |at_s: f64, k: f64| {
        sample(
            at_s,
            &[
                ("observe.waits.at_s", at_s),
                ("server.waits.io/file/innodb/innodb_log_file.waits", 1_000.0 * k),
                ("server.waits.io/file/innodb/innodb_log_file.time_s", 2.0 * k),
                ("server.waits.io/file/sql/binlog.waits", 0.0),
                ("server.waits.io/file/sql/binlog.time_s", 9.0),
                ("server.waits.synch/mutex/sql/LOCK_open.waits", 50.0 * k),
                ("server.waits.synch/mutex/sql/LOCK_open.time_s", 1.0 * k),
                ("server.waits.synch/sxlock/innodb/index_tree_rw_lock.waits", 8.0 * k),
                ("server.waits.synch/sxlock/innodb/index_tree_rw_lock.time_s", 6.0 * k),
            ],
        )
    };
    let (before, after) = (at(0.0, 0.0), at(4.0, 1.0));
    let found = figures(&before, &after);
    near(&found, "server.waits.file_threads", 0.5);
    near(&found, "server.waits.mutex_threads", 0.25);
    near(&found, "server.waits.rwlock_threads", 1.5);
    assert!(!found.contains_key("server.waits.condition_threads"), "no wait of a class is no zero");
    let listed = waits(&before, &after);
    let names: Vec<&str> = listed.iter().map(|wait| wait.event.as_str()).collect();
    assert_eq!(
        names,
        [
            "synch/sxlock/innodb/index_tree_rw_lock",
            "io/file/innodb/innodb_log_file",
            "synch/mutex/sql/LOCK_open"
        ]
    );
    assert_eq!((listed[1].threads, listed[1].waits_per_s, listed[1].wait_us), (0.5, 250.0, Some(2_000.0)));
}

#[test]
fn statements_have_means_a_schema_and_a_text() {
    let at = |at_s: f64, k: f64| {
        let name = |what: &str| format!("server.digest.e19033140a2ee399@my.db.{what}");
        let mut found = sample(at_s, &[("observe.digests.at_s", at_s)]);
        for (what, value) in [
            ("statements", 200.0 * k),
            ("time_s", 5.0 * k),
            ("lock_s", 1.0 * k),
            ("rows_sent", 100.0 * k),
            ("rows_affected", 300.0 * k),
            ("rows_examined", 4_000.0 * k),
            ("tmp_disk_tables", 0.0),
            ("errors", 20.0 * k),
        ] {
            found.values.insert(name(what).into(), value);
        }
        found.texts.insert("e19033140a2ee399@my.db".into(), "SELECT ?".into());
        found
    };
    let found = statements(&at(1.0, 0.0), &at(11.0, 1.0));
    let expected = StatementFigures {
        digest: "e19033140a2ee399".to_owned(),
        schema: Some("my.db".to_owned()),
        text: Some("SELECT ?".to_owned()),
        threads: 0.5,
        statements_per_s: 20.0,
        statement_us: Some(25_000.0),
        lock_threads: Some(0.1),
        rows_examined: Some(20.0),
        rows_used: Some(2.0),
        tmp_disk_tables_per_s: Some(0.0),
        errors_per_s: Some(2.0),
    };
    assert_eq!(found, [expected]);
    assert!(statements(&at(1.0, 1.0), &at(2.0, 1.0)).is_empty(), "it did not run");
}

#[test]
fn the_lag_of_a_replica_is_that_of_its_slowest_channel_and_stopped_threads_are_counted() {
    let at = |at_s: f64| {
        sample(
            at_s,
            &[
                ("server.replica.default.lag_s_now", 3.0),
                ("server.replica.default.receiver_now", 1.0),
                ("server.replica.default.applier_now", 1.0),
                ("server.replica.ea.st.lag_s_now", 40.0),
                ("server.replica.ea.st.receiver_now", 1.0),
                ("server.replica.ea.st.applier_now", 0.0),
            ],
        )
    };
    let found = figures(&at(1.0), &at(2.0));
    near(&found, "server.replica.lag_s", 40.0);
    near(&found, "server.replica.stopped_threads", 1.0);
}

#[test]
fn own_sessions_are_no_part_of_the_threads() {
    let at = |at_s: f64| {
        sample(
            at_s,
            &[
                ("server.status.threads_running", 5.0),
                ("server.status.threads_connected", 9.0),
                ("server.connection.sessions_now", 2.0),
                ("server.connection.busy_now", 1.0),
            ],
        )
    };
    let found = figures(&at(1.0), &at(2.0));
    near(&found, "server.threads_running", 3.0);
    near(&found, "server.threads_connected", 7.0);
}

#[test]
fn interrupts_and_the_delay_of_threads_are_rates() {
    let at = |at_s: f64, k: f64| {
        sample(
            at_s,
            &[
                ("host.interrupts.cpu0", 1_000.0 * k),
                ("host.interrupts.cpu1", 500.0 * k),
                ("host.softirqs.net_rx", 40.0 * k),
                ("host.softirqs.rcu", 10.0 * k),
                ("server.threads.wait_s", 0.5 * k),
                ("server.threads.slices", 2_000.0 * k),
            ],
        )
    };
    let found = figures(&at(1.0, 0.0), &at(2.0, 1.0));
    near(&found, "host.interrupts_per_s", 1_500.0);
    near(&found, "host.softirqs_per_s", 50.0);
    near(&found, "host.softirqs.net_rx_per_s", 40.0);
    near(&found, "server.run_queue_us", 250.0);
}
