//! Facts about accounts, stored objects, locks, statements and the error log, on a server where these are known.

use mydyno_facts::{Options, Source, collect_with};
use mydyno_model::facts::FactSet;
use serde_json::json;

use crate::support::{Server, patient};

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
        "CREATE VIEW d.good AS SELECT a FROM d.kept",
        "CREATE VIEW d.bad AS SELECT a FROM d.dropped",
        "DROP TABLE d.dropped",
        "CREATE DEFINER=gone@localhost TRIGGER d.tr BEFORE INSERT ON d.kept FOR EACH ROW SET NEW.a = 1",
        "CREATE DEFINER=gone@localhost VIEW d.orphan AS SELECT 1 AS one",
        "CREATE TABLE d.parts (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 200",
        "CREATE USER app@'%' IDENTIFIED BY 'x'",
        "GRANT ALL ON *.* TO app@'%' WITH GRANT OPTION",
        "CREATE USER reader@'%' IDENTIFIED BY 'x'",
        "GRANT SELECT ON *.* TO reader@'%'",
        "GRANT SELECT ON test.* TO PUBLIC",
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
        ("server.accounts.over_everything", json!(["app@%"])),
        ("server.accounts.may_grant", json!(["app@%"])),
        ("server.accounts.test_grants", json!(1)),
        ("server.lock_waits.blockers", json!([])),
        ("server.lock_waits.longest_s", json!(0)),
    ] {
        assert_eq!(set.value(id), Some(&expected), "{id}: {:?}", set.facts.get(id));
    }
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
    assert!(scan["text"].as_str().unwrap().starts_with("SELECT `a` FROM `d` . `big` WHERE"), "{scan}");
    assert!(first("writes_that_scan")["text"].as_str().unwrap().starts_with("UPDATE"));
    assert_eq!(first("failing")["errors"], json!(10.0));
    assert!(first("deep_pages")["text"].as_str().unwrap().contains("LIMIT"));
}
