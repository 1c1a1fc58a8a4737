use super::*;

fn sample(at_s: f64, values: &[(&str, f64)]) -> Sample {
    let values = values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
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
    after.values.insert("observe.server.at_s".to_owned(), 10.1);
    assert!(figures(&before, &after).is_empty());
    let mut gone = sample(12.0, &[("observe.server.at_s", 12.6)]);
    assert!(figures(&before, &gone).is_empty());
    gone.values.insert("host.load.running_now".to_owned(), 3.0);
    near(&figures(&before, &gone), "host.load.running", 2.0);
}

#[test]
fn a_counter_that_fell_gives_no_rate() {
    let (before, mut after) = (server(1.0), server(2.0));
    after.values.insert("server.status.questions".to_owned(), 3.0);
    after.values.insert("server.status.com_rollback".to_owned(), 3.0);
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
