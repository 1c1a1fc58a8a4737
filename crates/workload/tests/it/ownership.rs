//! Databases: mydyno's, foreign ones, and those that a kill left in between.

use std::sync::atomic::AtomicBool;

use mydyno_tables::mark::{self, DataMark, Origin, Owner};
use mydyno_tables::prepare::{PrepareError, Tables};
use mydyno_tables::work_tables::WorkTables;
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
    // The state after a kill between the two statements of mark::create.
    mark::create(&mut client, "own_killed").unwrap();
    client.execute(&format!("DROP TABLE own_killed.{}", mark::TABLE)).unwrap();
    assert_eq!(mark::owner(&mut client, "own_killed").unwrap(), Owner::Missing);
    tables.prepare(&|| server.connect(), 1, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert_eq!(mark::owner(&mut client, "own_killed").unwrap(), Owner::Ours);
    assert!(tables.cleanup(&mut client).unwrap());
    assert!(client.query("SHOW DATABASES LIKE 'own_killed'").unwrap().is_empty());
    // The state after a kill, followed only by a cleanup.
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

#[test]
fn tables_with_our_names_that_the_mark_does_not_name_are_left_alone() {
    let server = shared();
    let mut client = server.client();
    client.execute("CREATE DATABASE own_beside").unwrap();
    let prepare =
        |tables: &Tables| tables.prepare(&|| server.connect(), 1, &AtomicBool::new(false), &mut |_| {});
    prepare(&small("own_beside")).unwrap();
    client.execute("CREATE TABLE own_beside.sbtest2 (theirs INT)").unwrap();
    let larger = options("oltp_read_write", &[("table-size", "10"), ("tables", "2")]);
    let refused = prepare(&Tables::new("own_beside", sbtest::data(&larger, 1).unwrap()));
    assert!(matches!(&refused, Err(PrepareError::Taken { table, .. }) if table == "sbtest2"), "{refused:?}");
    assert!(small("own_beside").cleanup(&mut client).unwrap());
    let left = client.query("SHOW TABLES FROM own_beside").unwrap();
    assert_eq!(left.rows, [[Some(b"sbtest2".to_vec())]]);
    client.execute("DROP DATABASE own_beside").unwrap();
}

#[test]
fn a_database_whose_mark_was_changed_is_not_dropped() {
    let server = shared();
    let mut client = server.client();
    let tables = small("own_unclear");
    tables.prepare(&|| server.connect(), 1, &AtomicBool::new(false), &mut |_| {}).unwrap();
    client.execute(&format!("ALTER TABLE own_unclear.{} COMMENT 'mine now'", mark::TABLE)).unwrap();
    let refused = tables.cleanup(&mut client);
    assert!(matches!(&refused, Err(PrepareError::UnclearMark { comment, .. }) if comment == "mine now"));
    assert_eq!(client.query("SHOW TABLES FROM own_unclear").unwrap().len(), 2);
    client.execute("DROP DATABASE own_unclear").unwrap();
}

#[test]
fn statements_of_the_user_s_may_write_in_databases_that_we_made_only() {
    let server = shared();
    let mut client = server.client();
    client.execute("CREATE DATABASE own_found").unwrap();
    mark::create(&mut client, "own_found").unwrap();
    mark::create(&mut client, "own_made").unwrap();
    for (database, ours) in [("own_found", false), ("own_made", true), ("own_none", false)] {
        let tables = WorkTables::Users(database.to_owned());
        assert_eq!(tables.is_ours(&mut client).unwrap(), ours, "{database}");
    }
    client.execute("DROP DATABASE own_found").unwrap();
    client.execute("DROP DATABASE own_made").unwrap();
}

#[test]
fn a_long_mark_is_kept_whole_and_one_that_is_cut_is_an_error() {
    let server = shared();
    let mut client = server.client();
    mark::create(&mut client, "own_long").unwrap();
    let names: Vec<String> = (1..=5_000).map(|n| format!("bulk_insert{n}")).collect();
    let mark = DataMark {
        shape: serde_json::json!({"tables": names}),
        seed: 1,
        fingerprint: "f".to_owned(),
        complete: true,
        used: false,
    };
    mark::set_data(&mut client, "own_long", "bulk", &mark).unwrap();
    assert_eq!(mark::data(&mut client, "own_long", "bulk").unwrap(), Some(mark.clone()));
    client.execute(&format!("DELETE FROM own_long.{}", mark::TABLE)).unwrap();
    client.execute(&format!("ALTER TABLE own_long.{} MODIFY value TEXT NOT NULL", mark::TABLE)).unwrap();
    client.execute("SET SESSION sql_mode = ''").unwrap();
    let refused = mark::set_data(&mut client, "own_long", "bulk", &mark).unwrap_err().to_string();
    assert!(refused.contains("another value"), "{refused}");
    client.execute("DROP DATABASE own_long").unwrap();
}

#[test]
fn the_origin_is_kept_as_a_row_where_the_server_keeps_no_comments() {
    let server = shared();
    let mut client = server.client();
    let forget = "ALTER TABLE no_comment.mydyno_mark COMMENT = ''";
    mark::create(&mut client, "no_comment").unwrap();
    client.execute(forget).unwrap();
    // Neither comment nor row: nothing is dropped.
    assert_eq!(mark::drop(&mut client, "no_comment").unwrap(), Origin::Unclear(String::new()));
    let row = "INSERT INTO no_comment.mydyno_mark VALUES ('mydyno.origin', 'made by mydyno; mydyno drops this database on cleanup')";
    client.execute(row).unwrap();
    assert_eq!(mark::origin(&mut client, "no_comment").unwrap(), Origin::Made);
    // A changed comment takes precedence over the row.
    client.execute("ALTER TABLE no_comment.mydyno_mark COMMENT = 'mine'").unwrap();
    assert_eq!(mark::drop(&mut client, "no_comment").unwrap(), Origin::Unclear("mine".to_owned()));
    client.execute(forget).unwrap();
    assert_eq!(mark::drop(&mut client, "no_comment").unwrap(), Origin::Made);
    assert_eq!(mark::owner(&mut client, "no_comment").unwrap(), Owner::Missing);
}

#[test]
fn statements_on_no_database_are_not_on_ours() {
    let server = shared();
    assert!(!WorkTables::Users(String::new()).is_ours(&mut server.client()).unwrap());
}
