//! Rows do not depend on how they are inserted.

use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_tables::prepare::{PrepareError, Prepared, Progress, Tables, Tuning};
use mydyno_wire::{Client, WireError};
use mydyno_workload::sbtest;

use crate::behaviour::options;
use crate::server::{Server, shared};

const ROWS: &str = "30000";

/// Small ranges and statements, so that there are many of each.
const SMALL: Tuning = Tuning {
    batch_bytes: 64 << 10,
    as_values: true,
    inserting_at_once: None,
    range_bytes: 512 << 10,
    unique_checks: true,
    late_indexes: true,
    verify: true,
    rows_per_s: None,
};

/// A rate at which a fill can be interrupted half-way: all rows take ten seconds. A range is a tenth of [`SOME`] rows,
/// in several statements, so that some are complete by then and one is not.
const SLOW: Tuning =
    Tuning { batch_bytes: 16 << 10, range_bytes: 64 << 10, rows_per_s: Some(3_000.0), ..SMALL };

/// Rows after which a slow fill is interrupted.
const SOME: u64 = 3_000;

fn tables(database: &str, given: &[(&str, &str)], seed: u64) -> Tables {
    let given: Vec<_> = given.iter().copied().chain([("table-size", ROWS)]).collect();
    let data = sbtest::data(&options("oltp_read_write", &given), seed).unwrap();
    Tables::new(database, data).tuned(SMALL)
}

fn prepare(server: &Server, tables: &Tables, fillers: usize) -> Result<Prepared, PrepareError> {
    tables.prepare(&|| server.connect(), fillers, &AtomicBool::new(false), &mut |_| {})
}

/// Number, order-independent checksum and the exact bytes of the last rows of every table.
fn content(client: &mut Client, database: &str, tables: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for table in 1..=tables {
        for sql in [
            format!(
                "SELECT CONCAT(COUNT(*), ' ', SUM(CRC32(CONCAT_WS(',', id, k, c, pad)))) FROM {database}.sbtest{table}"
            ),
            format!(
                "SELECT CONCAT_WS(',', id, k, c, pad) FROM {database}.sbtest{table} ORDER BY id DESC LIMIT 1"
            ),
            format!("CHECKSUM TABLE {database}.sbtest{table}"),
            format!("SHOW CREATE TABLE {database}.sbtest{table}"),
        ] {
            let rows = client.query(&sql).unwrap().rows;
            all.push(rows[0].last().unwrap().clone().unwrap_or_default());
        }
    }
    all
}

fn dropped(server: &Server, tables: &Tables) {
    assert!(tables.cleanup(&mut server.client()).unwrap());
}

#[test]
fn one_and_eight_fillers_make_the_same_tables() {
    let server = shared();
    let given = [("tables", "2")];
    let (one, eight) = (tables("fill_one", &given, 1), tables("fill_eight", &given, 1));
    assert_eq!(prepare(&server, &one, 1).unwrap(), Prepared::Made);
    assert_eq!(prepare(&server, &eight, 8).unwrap(), Prepared::Made);
    assert_eq!(prepare(&server, &eight, 8).unwrap(), Prepared::Reused);
    let mut client = server.client();
    assert_eq!(content(&mut client, "fill_one", 2), content(&mut client, "fill_eight", 2));
    one.check(&mut client).unwrap();
    eight.check(&mut client).unwrap();
    dropped(&server, &one);
    dropped(&server, &eight);
}

#[test]
fn an_interrupted_fill_goes_on_and_makes_the_same_tables() {
    let server = shared();
    let (whole, cut) = (tables("fill_whole", &[], 7), tables("fill_cut", &[], 7));
    prepare(&server, &whole, 2).unwrap();
    let stop = AtomicBool::new(false);
    let mut most = 0;
    let slow = cut.clone().tuned(SLOW);
    let interrupted = slow.prepare(&|| server.connect(), 2, &stop, &mut |progress: Progress| {
        most = progress.rows;
        stop.store(progress.rows > SOME, Ordering::Relaxed);
    });
    assert!(matches!(interrupted, Err(PrepareError::Interrupted)), "{interrupted:?}");
    let mut client = server.client();
    assert!(matches!(cut.require(&mut client), Err(PrepareError::NotPrepared { .. })));
    let there: u64 = client.query("SELECT COUNT(*) FROM fill_cut.sbtest1").unwrap().number(0, 0).unwrap();
    assert!(0 < most && most < 30_000 && 0 < there && there < 30_000, "{most} rows seen, {there} there");
    // The table is the same one: the existing rows were kept.
    let id = "SELECT TABLE_ID FROM information_schema.INNODB_SYS_TABLES WHERE NAME = 'fill_cut/sbtest1'";
    let before = client.query(id).unwrap().rows;
    assert_eq!(prepare(&server, &cut, 3).unwrap(), Prepared::Made);
    assert!(before.len() == 1 && client.query(id).unwrap().rows == before, "it was made anew");
    cut.check(&mut client).unwrap();
    assert_eq!(content(&mut client, "fill_whole", 1), content(&mut client, "fill_cut", 1));
    dropped(&server, &whole);
    dropped(&server, &cut);
}

/// Ends every connection at once, as SIGKILL of the client does.
fn kill_connections(client: &mut Client) {
    let others =
        "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND DB IN ('fill_killed')";
    for row in client.query(others).unwrap().rows {
        let id = String::from_utf8(row[0].clone().unwrap()).unwrap();
        // It may have ended by itself.
        let _ = client.execute(&format!("KILL {id}"));
    }
}

#[test]
fn a_killed_fill_goes_on_from_what_is_there() {
    let server = shared();
    for engine in ["innodb", "myisam"] {
        let killed = tables("fill_killed", &[("storage-engine", engine)], 3);
        let slow = killed.clone().tuned(SLOW);
        let mut client = server.client();
        let mut others = server.client();
        let result = slow.prepare(&|| server.connect(), 2, &AtomicBool::new(false), &mut |p| {
            if p.rows > SOME && p.rows < p.of {
                kill_connections(&mut others);
            }
        });
        assert!(result.is_err(), "{engine}: no connection was killed");
        let there = "SELECT COUNT(*) FROM fill_killed.sbtest1";
        let found: u64 = client.query(there).unwrap().number(0, 0).unwrap();
        assert!(0 < found && found < 30_000, "{engine}: {found}");
        // Damage of other kinds: a missing row, and one that does not follow from the seed.
        client.execute("DELETE FROM fill_killed.sbtest1 WHERE id = 2").unwrap();
        client.execute("UPDATE fill_killed.sbtest1 SET c = 'x' WHERE id = 3").unwrap();
        assert_eq!(prepare(&server, &killed, 4).unwrap(), Prepared::Made);
        killed.check(&mut client).unwrap();
        dropped(&server, &killed);
    }
}

#[test]
fn every_engine_is_filled_and_checked() {
    let server = shared();
    for engine in ["innodb", "myisam", "aria", "memory"] {
        let database = format!("fill_{engine}");
        let tables = tables(&database, &[("storage-engine", engine)], 1);
        assert_eq!(prepare(&server, &tables, 2).unwrap(), Prepared::Made, "{engine}");
        let mut client = server.client();
        tables.check(&mut client).unwrap();
        if engine == "memory" {
            // The effect of a server restart.
            client.execute("TRUNCATE TABLE fill_memory.sbtest1").unwrap();
            assert_eq!(prepare(&server, &tables, 2).unwrap(), Prepared::Made);
            tables.check(&mut client).unwrap();
        }
        let used = format!(
            "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME = 'sbtest1'"
        );
        let used = client.query(&used).unwrap().scalar().unwrap().to_ascii_lowercase();
        assert_eq!(used, engine);
        // Ranges use an index in every engine.
        let explain = format!("EXPLAIN SELECT c FROM {database}.sbtest1 WHERE id BETWEEN 10 AND 12");
        assert_eq!(client.query(&explain).unwrap().rows[0][3].as_deref(), Some(&b"range"[..]), "{engine}");
        dropped(&server, &tables);
    }
}

#[test]
fn a_row_that_was_changed_and_a_row_that_is_missing_are_found() {
    let server = shared();
    let tables = tables("fill_damaged", &[], 1);
    prepare(&server, &tables, 2).unwrap();
    let mut client = server.client();
    client.execute("UPDATE fill_damaged.sbtest1 SET pad = 'x' WHERE id = 17").unwrap();
    let errors = tables.check(&mut client).unwrap_err();
    assert!(errors[0].to_string().contains("checksum"), "{}", errors[0]);
    client.execute("DELETE FROM fill_damaged.sbtest1 WHERE id = 17").unwrap();
    let errors = tables.check(&mut client).unwrap_err();
    assert!(errors[0].to_string().contains("29999 rows from 1 to 30000"), "{}", errors[0]);
    dropped(&server, &tables);
}

#[test]
fn another_seed_starts_over() {
    let server = shared();
    let first = tables("fill_seeds", &[], 1);
    let stop = AtomicBool::new(false);
    let _ = first.prepare(&|| server.connect(), 1, &stop, &mut |p| stop.store(p.rows > 0, Ordering::Relaxed));
    let second = tables("fill_seeds", &[], 2);
    let made: Result<Prepared, PrepareError> = prepare(&server, &second, 2);
    assert!(made.is_ok(), "{made:?}");
    second.check(&mut server.client()).unwrap();
    dropped(&server, &second);
}

#[test]
fn a_rate_bounds_the_rows_a_second() {
    let server = shared();
    let slow = tables("fill_slow", &[], 1);
    // A rate at which all rows would take minutes: the stop comes while a filler waits for the rate limit.
    let tuning = Tuning { rows_per_s: Some(100.0), batch_bytes: 16 << 10, ..Tuning::default() };
    let slow = slow.tuned(tuning);
    let stop = AtomicBool::new(false);
    let mut rows = 0;
    let refused: Result<Prepared, PrepareError> =
        slow.prepare(&|| -> Result<Client, WireError> { server.connect() }, 2, &stop, &mut |p| {
            rows = p.rows;
            stop.store(p.rows > 0, Ordering::Relaxed);
        });
    assert!(matches!(refused, Err(PrepareError::Interrupted)), "{refused:?}");
    assert!(rows < 1_000, "{rows} rows at 100 a second before the first look");
    dropped(&server, &slow);
}
