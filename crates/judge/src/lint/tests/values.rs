//! Values of options, as the releases take them.

use serde_json::json;

use super::{found_with, ids};

#[test]
fn values_are_judged_by_the_release() {
    for (line, target, id) in [
        (
            "innodb_flush_log_at_trx_commit = 3",
            "mysql-9.7",
            "option-changed-value/innodb_flush_log_at_trx_commit",
        ),
        ("max_connections = 7", "mariadb-10.11", "option-changed-value/max_connections"),
        ("max_connections = 1.5", "mysql-8.0", "option-value/max_connections"),
        ("sort_buffer_size = 1T", "mysql-5.7", "option-value/sort_buffer_size"),
        ("binlog_format = zzz", "mariadb-11.8", "option-value/binlog_format"),
        ("sql_mode = STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER", "mysql-8.0", "option-value/sql_mode"),
        ("sql_mode = ORACLE", "mysql-8.0", "option-value/sql_mode"),
        ("slow_query_log = 2", "mysql-8.0", "option-changed-value/slow_query_log"),
        ("max_connections", "mysql-8.0", "option-value/max_connections"),
        ("wait_timeout = 10m", "mysql-8.0", "option-changed-value/wait_timeout"),
        ("tmp_table_size = 64", "mysql-5.7", "option-changed-value/tmp_table_size"),
        ("key_buffer_size = 256", "mariadb-10.5", "option-changed-value/key_buffer_size"),
        ("sort_buffer_size = 4", "mysql-8.0", "option-changed-value/sort_buffer_size"),
        ("innodb_flush_method = O_DRECT", "mysql-5.7", "option-value/innodb_flush_method"),
    ] {
        assert_eq!(ids(&[line], target), [id], "{line} {target}");
    }
    for (line, target) in [
        ("innodb_flush_log_at_trx_commit = 3", "mariadb-10.11"),
        ("sql_mode = TRADITIONAL", "mysql-5.7"),
        ("sql_mode = TRADITIONAL", "mysql-8.0"),
        ("sort_buffer_size = 1T", "mysql-9.7"),
        ("sql_mode = STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER", "mysql-5.7"),
        ("max_connections = 7", "mysql-8.0"),
        ("max_join_size = 1000", "mysql-8.0"),
        ("thread_cache_size = 100", "mysql-8.0"),
        ("wait_timeout = 600", "mysql-8.0"),
        ("innodb_flush_method = O_DIRECT", "mysql-5.7"),
    ] {
        assert_eq!(ids(&[line], target), [] as [&str; 0], "{line} {target}");
    }
}

#[test]
fn what_the_limit_of_open_files_lowered_is_told_where_the_log_is_silent() {
    let cache = |limit: u64| {
        let more = [
            ("server.variable.table_open_cache", json!(309)),
            ("server.variable.max_connections", json!(151)),
            ("server.variable.open_files_limit", json!(limit)),
            ("server.origin.table_open_cache", json!({"source": "auto", "path": null})),
        ];
        let findings = found_with(&["table_open_cache = 2000"], "mariadb-11.4", &more);
        let [finding] = &findings[..] else { panic!("{} findings", findings.len()) };
        finding.summary.clone()
    };
    assert!(cache(800).contains("limit of open files"), "{}", cache(800));
    assert!(cache(4151).contains("the server chose it"), "{}", cache(4151));
}

#[test]
fn a_limit_of_open_files_below_the_one_that_was_asked_for_is_told() {
    let told = |now: u64| {
        let more = [("server.variable.open_files_limit", json!(now))];
        let findings = found_with(&["open_files_limit = 65535"], "mysql-8.0", &more);
        findings.into_iter().map(|finding| finding.summary).collect::<Vec<String>>()
    };
    let low = told(1024);
    assert!(low.len() == 1 && low[0].contains("limit of open files"), "{low:?}");
    assert_eq!(told(1_048_576), Vec::<String>::new());
}

#[test]
fn a_deprecated_option_that_no_restart_brings_into_force_is_told_once() {
    let more = [("server.variable.innodb_buffer_pool_instances", json!(1))];
    let findings = found_with(&["innodb_buffer_pool_instances = 8"], "mariadb-10.5", &more);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.claim.as_str()).collect();
    assert_eq!(ids, ["option-deprecated/innodb_buffer_pool_instances"]);
}

#[test]
fn an_sql_mode_in_force_is_compared_with_the_written_one_as_a_set() {
    let of = |line: &str, now: &str| {
        let found = found_with(&[line], "mysql-5.7", &[("server.variable.sql_mode", json!(now))]);
        found.into_iter().map(|finding| finding.summary).collect::<Vec<String>>()
    };
    let strict = "sql_mode = STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION";
    let differs = of(strict, "");
    assert_eq!(differs.len(), 1);
    assert!(differs[0].contains("and empty in the server"), "{}", differs[0]);
    for (line, now) in [
        (strict, "NO_ENGINE_SUBSTITUTION,STRICT_TRANS_TABLES"),
        ("sql_mode = traditional", "STRICT_TRANS_TABLES"),
        ("sql_mode = NO_ENGINE_SUBSTITUTION", "ANSI_QUOTES,ANSI"),
        ("sql_mode = 4194304", "STRICT_ALL_TABLES"),
    ] {
        assert_eq!(of(line, now), [] as [String; 0], "{line} {now}");
    }
}
