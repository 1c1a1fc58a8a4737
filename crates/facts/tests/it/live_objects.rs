//! Facts about accounts, stored objects, locks, statements and the error log, on a server where these are known.

use std::time::{Duration, Instant};

use mydyno_facts::{Options, ReadOnly, Renewing, Source, SqlError, collect_with};
use mydyno_model::facts::FactSet;
use serde_json::json;

use crate::support::{Server, patient};
use crate::until::until;

fn audit(server: &Server) -> FactSet {
    let options = Options { window: None, ..patient(Options::audit()) };
    collect_with(&Source::live(), Some(&mut server.connect()), None, &options)
}

#[test]
fn objects_that_do_not_fit_together_are_found() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.kept (a INT PRIMARY KEY)",
        "CREATE TABLE d.dropped (a INT PRIMARY KEY)",
        "CREATE VIEW d.accounts AS SELECT User, Host FROM mysql.user",
        "SET SESSION sql_mode = ''",
        "CREATE PROCEDURE d.lax() SELECT 1",
        "CREATE TABLE d.dated (id INT PRIMARY KEY, done DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00')",
        "SET SESSION sql_mode = DEFAULT",
        "CREATE VIEW d.good AS SELECT a FROM d.kept",
        "CREATE VIEW d.bad AS SELECT a FROM d.dropped",
        "DROP TABLE d.dropped",
        "CREATE DEFINER=gone@localhost TRIGGER d.tr BEFORE INSERT ON d.kept FOR EACH ROW SET NEW.a = 1",
        "CREATE DEFINER=gone@localhost VIEW d.orphan AS SELECT 1 AS one",
        "CREATE TABLE d.parts (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 200",
        "CREATE TRIGGER d.tr2 AFTER INSERT ON d.kept FOR EACH ROW INSERT INTO d.dropped VALUES (NEW.a)",
        "CREATE PROCEDURE d.p() SELECT a FROM d.kept",
        "CREATE PROCEDURE d.broken() SELECT a FROM dropped",
        "CREATE DEFINER=root@localhost PROCEDURE d.run_any(q TEXT) BEGIN SET @s = q; PREPARE st FROM @s; EXECUTE st; END",
        "CREATE TABLE d.old (day DATE) PARTITION BY RANGE (TO_DAYS(day)) (PARTITION p0 VALUES LESS THAN (TO_DAYS('2025-01-01')))",
        "CREATE TABLE d.customer (id CHAR(36) CHARACTER SET utf8mb4 PRIMARY KEY)",
        "CREATE TABLE d.orders (id INT PRIMARY KEY, customer_id CHAR(36) CHARACTER SET latin1, KEY (customer_id))",
        "CREATE TABLE d.bills (id BIGINT PRIMARY KEY)",
        "CREATE TABLE d.payments (id INT PRIMARY KEY, bill_id INT, KEY (bill_id))",
        "CREATE ROLE boss",
        "GRANT ALL ON *.* TO boss WITH GRANT OPTION",
        "CREATE USER hidden@'%' IDENTIFIED BY 'x'",
        "GRANT boss TO hidden@'%'",
        "GRANT PROXY ON root@localhost TO hidden@'%'",
        "CREATE USER app@'%' IDENTIFIED BY 'x'",
        "GRANT ALL ON *.* TO app@'%' WITH GRANT OPTION",
        "CREATE USER reader@'%' IDENTIFIED BY 'x'",
        "GRANT SELECT ON *.* TO reader@'%'",
        "GRANT SELECT ON test.* TO PUBLIC",
        "CREATE DATABASE x1",
        "CREATE DATABASE x2",
        "CREATE USER parts@'%' IDENTIFIED BY 'x'",
        "GRANT READ_ONLY ADMIN, BINLOG ADMIN ON *.* TO parts@'%'",
        "GRANT SELECT ON `x_`.* TO parts@'%'",
        "GRANT SELECT ON `d_`.* TO parts@'%'",
        "CREATE USER locked@'%' IDENTIFIED BY 'x' ACCOUNT LOCK",
        "GRANT READ_ONLY ADMIN ON *.* TO locked@'%'",
        "CREATE USER ends@'%' IDENTIFIED BY 'x' PASSWORD EXPIRE INTERVAL 10 DAY",
        "CREATE USER lasts@'%' IDENTIFIED BY 'x' PASSWORD EXPIRE INTERVAL 20 DAY",
    ] {
        admin.execute(statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    let set = audit(&server);
    for (id, expected) in [
        ("server.views.invalid", json!(["d.bad"])),
        ("server.views.without_definer", json!(1)),
        ("server.triggers.without_definer", json!(1)),
        ("server.routines.without_definer", json!(0)),
        ("server.tables.many_partitions", json!([{"table": "d.parts", "partitions": 200}])),
        ("server.triggers.without_table", json!([{"code": "d.tr2", "table": "d.dropped"}])),
        ("server.routines.without_table", json!([{"code": "d.broken", "table": "d.dropped"}])),
        ("server.routines.any_statement", json!(["d.run_any"])),
        ("server.views.of_accounts", json!(["d.accounts"])),
        ("server.routines.lax", json!(["d.lax"])),
        ("server.definers.missing", json!(["gone@localhost"])),
        ("server.grants.by_role", json!(["hidden@% by boss"])),
        ("server.grants.proxies", json!(["hidden@% as root@localhost"])),
        ("server.grants.idle_roles", json!(["hidden@%"])),
        ("server.accounts.over_everything", json!(["app@%"])),
        ("server.accounts.may_grant", json!(["app@%"])),
        ("server.accounts.test_grants", json!(1)),
        ("server.lock_waits.blockers", json!([])),
        ("server.lock_waits.longest_s", json!(0)),
        ("server.grants.parts_of_super", json!(["parts@%: BINLOG ADMIN, READ_ONLY ADMIN"])),
        (
            "server.grants.wide_patterns",
            json!([{"account": "parts@%", "pattern": "x_", "schemas": 2, "among_them": "x1 x2"}]),
        ),
        ("server.columns.zero_dates", json!(["d.dated.done"])),
    ] {
        assert_eq!(set.value(id), Some(&expected), "{id}: {:?}", set.facts.get(id));
    }
    let first = |id: &str, field: &str| set.value(id).unwrap()[0][field].clone();
    assert_eq!(first("schema.partitions_ending", "table"), "d.old");
    assert!(first("schema.partitions_ending", "left_s").as_i64().unwrap() < 0);
    assert_eq!(first("schema.reference_conflicts", "column"), "d.orders.customer_id");
    assert_eq!(first("schema.references_narrow", "column"), "d.payments.bill_id");
    let ending = set.value("server.passwords.ending").unwrap().as_array().unwrap();
    assert_eq!(ending.len(), 1, "{ending:?}");
    assert_eq!(ending[0]["account"], "ends@%");
    assert!((1..=10 * 86_400).contains(&ending[0]["left_s"].as_i64().unwrap()), "{ending:?}");
}

#[test]
fn who_holds_a_lock_of_get_lock_is_told_and_where_standard_error_goes() {
    let server = Server::start(&[]);
    let mut holder = server.connect();
    holder.query("SELECT GET_LOCK('cron_invoice', 0)").unwrap();
    let session = holder.query("SELECT CONNECTION_ID()").unwrap().text(0, 0).unwrap().parse::<u64>().unwrap();
    let mut waiter = server.connect();
    let waits = std::thread::spawn(move || waiter.query("SELECT GET_LOCK('cron_invoice', 600)").is_ok());
    let mut admin = server.connect();
    until("a session waits for the lock", || {
        let list =
            admin.query("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'");
        list.unwrap().text(0, 0).as_deref() == Some("1")
    });
    let options = Options { window: None, ..patient(Options::audit()) };
    let set = collect_with(&Source::live(), Some(&mut server.connect()), Some(server.pid()), &options);
    let held = json!([{"lock": "cron_invoice", "session": session}]);
    assert_eq!(set.value("server.sessions.user_locks"), Some(&held));
    // The tests' servers are started with it.
    assert_eq!(set.text("server.exposure.standard_error"), Some("/dev/null"));
    let log = &set.facts["server.error_log.crash.count"].status;
    assert!(format!("{log:?}").contains("which is /dev/null"), "{log:?}");
    drop(holder);
    assert!(waits.join().unwrap());
}

#[test]
fn tables_are_known_by_columns_where_their_statistics_would_be_computed() {
    let server = Server::start(&["--innodb-stats-persistent=0", "--innodb-stats-on-metadata=1"]);
    let mut admin = server.connect();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, price FLOAT)",
        "CREATE TABLE d.m (id INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE d.old (day DATE) PARTITION BY RANGE (TO_DAYS(day)) (PARTITION p0 VALUES LESS THAN (TO_DAYS('2025-01-01')))",
    ] {
        admin.execute(statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    let set = audit(&server);
    assert_eq!(set.value("schema.inexact_money"), Some(&json!(["d.t.price"])));
    assert_eq!(set.value("schema.of_engine.MyISAM"), Some(&json!(["d.m"])));
    assert_eq!(set.value("schema.partitions_ending").unwrap()[0]["table"], "d.old");
    for id in ["schema.data_bytes", "schema.duplicate_indexes", "schema.auto_increment"] {
        assert_eq!(set.value(id), None, "{id}");
    }
    admin.execute("SET GLOBAL innodb_stats_on_metadata = OFF").unwrap();
    let set = audit(&server);
    assert!(set.number("schema.data_bytes").unwrap() > 0.0, "{:?}", set.facts.get("schema.data_bytes"));
}

#[test]
fn accounts_without_a_plugin_and_indexes_of_one_value_are_named() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    for statement in [
        "CREATE USER batch@'%', locked@'%', several@'%'",
        "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.plugin', 'ed25519') WHERE User IN ('batch', 'locked', 'several')",
        "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.account_locked', true) WHERE User = 'locked'",
        "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.auth_or', JSON_ARRAY(JSON_OBJECT('plugin', 'unix_socket'))) WHERE User = 'several'",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, gone INT DEFAULT 0, k INT, KEY gone (gone), KEY both_of (gone, k), KEY k (k))",
        "INSERT INTO d.t (id, k) SELECT seq, seq FROM d.seq_1_to_12000",
        "CREATE TABLE d.p (id INT, region INT, PRIMARY KEY (id, region), KEY region (region)) PARTITION BY LIST (region) (PARTITION p0 VALUES IN (0))",
        "INSERT INTO d.p SELECT seq, 0 FROM d.seq_1_to_12000",
        "ANALYZE TABLE d.t, d.p",
    ] {
        admin.execute(statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    let set = audit(&server);
    let expected = json!([{"account": "batch@%", "plugin": "ed25519"}]);
    assert_eq!(set.value("server.accounts.plugin_missing"), Some(&expected));
    let found = set.value("server.table_statistics.one_value").unwrap().as_array().unwrap().clone();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["index"], "d.t.gone");
    assert!(found[0]["rows"].as_u64().unwrap() > 10_000, "{found:?}");
}

#[test]
fn a_statement_that_outlives_its_time_is_ended_and_the_next_one_is_answered() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    let (client, options) = (server.connect(), server.options());
    let mut renewing = Renewing::new(client, options);
    let mut sql = ReadOnly::new(&mut renewing);
    sql.until(Instant::now() + Duration::from_millis(200));
    let long = "SELECT COUNT(*) FROM mysql.seq_1_to_99999999999 WHERE seq % 7 = 8";
    assert!(matches!(sql.rows(long), Err(SqlError::Unanswered { .. })));
    sql.until(Instant::now() + Duration::from_secs(60));
    assert_eq!(sql.rows("SELECT 1").unwrap().len(), 1);
    let running =
        "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT /*+%seq_1_to_99999999999%'";
    until("the statement has ended", || admin.query(running).unwrap().rows.is_empty());
}

#[test]
fn statements_are_told_by_their_digest() {
    let server = Server::start(&["--performance-schema=ON"]);
    let mut admin = server.connect();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.big (a INT PRIMARY KEY, b INT)",
        "INSERT INTO d.big SELECT seq, seq FROM d.seq_1_to_3000",
        "UPDATE d.big SET b = 0 WHERE b = 3000",
        "SELECT a FROM d.big ORDER BY a LIMIT 2500, 5",
    ] {
        admin.execute(statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    for _ in 0..10 {
        admin.execute("SELECT a FROM d.big WHERE b = 7").unwrap();
        assert!(admin.execute("SELECT a FROM d.nowhere").is_err());
    }
    let set = audit(&server);
    let first = |name: &str| {
        let all = set.value(&format!("server.statements.{name}")).unwrap_or_else(|| panic!("{name}"));
        all.as_array().unwrap().first().unwrap_or_else(|| panic!("{name} is empty")).clone()
    };
    let scan = first("scans");
    assert_eq!((&scan["count"], &scan["rows_read"]), (&json!(10.0), &json!(3000.0)));
    assert!(scan["hint"].as_str().unwrap().contains("give it an index"), "{scan}");
    assert!(scan["text"].as_str().unwrap().starts_with("SELECT `a` FROM `d` . `big` WHERE"), "{scan}");
    assert!(first("writes_that_scan")["text"].as_str().unwrap().starts_with("UPDATE"));
    assert_eq!(first("failing")["errors"], json!(10.0));
    assert!(first("deep_pages")["text"].as_str().unwrap().contains("LIMIT"));
}
