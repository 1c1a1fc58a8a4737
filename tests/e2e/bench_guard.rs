//! Servers that `mydyno bench` refuses to load.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::fixture::{Ended, until};
use crate::home::Home;

#[test]
fn a_database_without_our_mark_is_never_touched() {
    let home = Home::new();
    let server = home.server("s", &[]);
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.sbtest1 (id INT)");
    for step in ["prepare", "run", "cleanup", "check"] {
        let ended = home.end(&server.bench("oltp_point_select", &[step, "--schema", "shop"]));
        assert_eq!(ended.status, 3, "{step}");
        assert!(ended.stderr.contains("was not made by mydyno"), "{step}: {}", ended.stderr);
        assert!(ended.stderr.contains("--schema"), "{step}: {}", ended.stderr);
    }
    assert_eq!(server.sql("SHOW TABLES FROM shop"), [["sbtest1"]]);
}

#[test]
fn too_small_limits_are_seen_before_the_load_with_the_statement_that_raises_them() {
    let home = Home::new();
    let server = home.server("s", &["--set", "max_connections=20", "--set", "max_prepared_stmt_count=100"]);
    let run = home.path().join("run");
    let args = server.bench("oltp_read_write", &["--connections", "1,64", "--out", run.to_str().unwrap()]);
    let ended = home.end(&args);
    assert_eq!(ended.status, 3);
    assert!(ended.stderr.contains("SET GLOBAL max_connections = "), "{}", ended.stderr);
    assert!(ended.stderr.contains("SET GLOBAL max_prepared_stmt_count = "), "{}", ended.stderr);
    assert!(!run.exists(), "nothing ran, so nothing is recorded");
    assert!(server.sql("SHOW DATABASES LIKE 'mydyno'").is_empty(), "nothing was made");
}

#[test]
fn a_server_with_other_sessions_is_loaded_only_when_that_is_allowed() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let mut other = home.start(&["server", "cli", "s", "-e", "SELECT SLEEP(100)"]);
    let sleeps = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(100)'";
    until("the other session is there", || server.sql(sleeps)[0][0] == "1");
    let refused = home.end(&server.bench("oltp_point_select", &["prepare"]));
    assert_eq!(refused.status, 3);
    assert!(refused.stderr.contains("--allow-load"), "{}", refused.stderr);
    let allowed = home.end(&server.bench("oltp_point_select", &["prepare", "--allow-load"]));
    assert_eq!(allowed.status, 0, "{}", allowed.stderr);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_server_that_short_connections_use_is_not_loaded() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let (end, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let server = &server;
        // One connection a second, each closed after a statement, so that the process list hardly ever shows one.
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                server.sql("SELECT 1");
            }
        });
        let refused: Vec<Ended> =
            (0..3).map(|_| home.end(&server.bench("oltp_point_select", &["prepare"]))).collect();
        drop(end);
        for ended in refused {
            assert_eq!(ended.status, 3, "{}", ended.stderr);
            assert!(ended.stderr.contains("--allow-load"), "{}", ended.stderr);
        }
    });
    let alone = home.end(&server.bench("oltp_point_select", &["prepare"]));
    assert_eq!(alone.status, 0, "{}", alone.stderr);
}
