//! Databases: ours, somebody's, and those that a kill left between the two.

use std::sync::atomic::AtomicBool;

use mydyno_workload::mark::{self, Owner};
use mydyno_workload::prepare::{PrepareError, Tables};
use mydyno_workload::sbtest;

use crate::behaviour::options;
use crate::server::shared;

fn small(database: &str) -> Tables {
    let options = options("oltp_read_write", &[("table-size", "10")]);
    Tables::new(database, sbtest::data(&options, 1).unwrap())
}

#[test]
fn a_database_that_a_kill_left_without_its_mark_is_used_and_dropped() {
    let server = shared();
    let mut client = server.client();
    let tables = small("own_killed");
    // What is there after a kill between the two statements of mark::create.
    mark::create(&mut client, "own_killed").unwrap();
    client.execute(&format!("DROP TABLE own_killed.{}", mark::TABLE)).unwrap();
    assert_eq!(mark::owner(&mut client, "own_killed").unwrap(), Owner::Missing);
    tables.prepare(&|| server.connect(), 1, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert_eq!(mark::owner(&mut client, "own_killed").unwrap(), Owner::Ours);
    assert!(tables.cleanup(&mut client).unwrap());
    assert!(client.query("SHOW DATABASES LIKE 'own_killed'").unwrap().is_empty());
    // And when nothing came after it but a cleanup.
    mark::create(&mut client, "own_killed").unwrap();
    client.execute(&format!("DROP TABLE own_killed.{}", mark::TABLE)).unwrap();
    assert!(tables.cleanup(&mut client).unwrap());
    assert!(client.query("SHOW DATABASES LIKE 'own_killed'").unwrap().is_empty());
}

#[test]
fn an_empty_database_of_the_user_s_is_used_and_left() {
    let server = shared();
    let mut client = server.client();
    let tables = small("own_adopted");
    client.execute("CREATE DATABASE own_adopted").unwrap();
    assert!(!tables.cleanup(&mut client).unwrap(), "an empty database that we did not make was dropped");
    tables.prepare(&|| server.connect(), 1, &AtomicBool::new(false), &mut |_| {}).unwrap();
    client.execute("CREATE TABLE own_adopted.theirs (a INT)").unwrap();
    assert!(tables.cleanup(&mut client).unwrap());
    let left = client.query("SHOW TABLES FROM own_adopted").unwrap();
    assert_eq!(left.rows, [[Some(b"theirs".to_vec())]]);
    client.execute("DROP DATABASE own_adopted").unwrap();
}

#[test]
fn a_database_with_tables_of_somebody_s_is_left_alone() {
    let server = shared();
    let mut client = server.client();
    let tables = small("own_foreign");
    client.execute("CREATE DATABASE own_foreign").unwrap();
    client.execute("CREATE TABLE own_foreign.sbtest1 (a INT)").unwrap();
    let refused = tables.prepare(&|| server.connect(), 1, &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(refused, Err(PrepareError::Foreign { .. })), "{refused:?}");
    assert!(matches!(tables.cleanup(&mut client), Err(PrepareError::Foreign { .. })));
    assert_eq!(client.query("SHOW TABLES FROM own_foreign").unwrap().len(), 1);
    client.execute("DROP DATABASE own_foreign").unwrap();
}
