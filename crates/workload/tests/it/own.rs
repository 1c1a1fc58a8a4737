//! Tables that workloads bring on a real server.

use std::sync::atomic::AtomicBool;

use mydyno_tables::own_tables::OwnTables;
use mydyno_tables::prepare::{PrepareError, Prepared, Tuning};
use mydyno_wire::Client;
use mydyno_workload::mix::Mix;

use crate::server::{Server, shared};

fn tables(database: &str, tables: &str) -> OwnTables {
    let text = format!("{tables}\n[transactions.t]\nstatements = [{{ sql = 'SELECT 1' }}]\n");
    Mix::parse("m.toml", &text, 1).unwrap().tables(database).unwrap()
}

fn prepare(server: &Server, tables: &OwnTables) -> Result<Prepared, PrepareError> {
    tables.prepare(&|| server.connect(), 2, &AtomicBool::new(false), &mut |_| {})
}

#[test]
fn rows_that_memory_has_lost_are_made_again() {
    let server = shared();
    let tables = tables(
        "own_memory",
        "[tables.a]\ncreate = 'CREATE TABLE a (id INT) ENGINE = Memory'\nrows = 50\n[tables.a.columns]\nid = { sequence = 1 }",
    );
    assert_eq!(prepare(&server, &tables).unwrap(), Prepared::Made);
    assert_eq!(prepare(&server, &tables).unwrap(), Prepared::Reused);
    let mut client = server.client();
    // The effect of a server restart.
    client.execute("TRUNCATE TABLE own_memory.a").unwrap();
    assert!(matches!(tables.require(&mut client), Err(PrepareError::NotPrepared { .. })));
    assert_eq!(prepare(&server, &tables).unwrap(), Prepared::Made);
    tables.check(&mut client).unwrap();
    client.execute("DROP DATABASE own_memory").unwrap();
}

#[test]
fn a_value_that_does_not_fit_its_column_is_an_error() {
    let server = shared();
    let tables = tables(
        "own_strict",
        "[tables.a]\ncreate = 'CREATE TABLE a (v VARCHAR(3))'\nrows = 2\n[tables.a.columns]\nv = 'four'",
    );
    let refused = prepare(&server, &tables).unwrap_err().to_string();
    assert!(refused.contains("m.toml:1") && refused.contains("too long"), "{refused}");
    server.client().execute("DROP DATABASE own_strict").unwrap();
}

#[test]
fn unique_numbers_that_are_not_unique_and_references_to_nothing_are_errors() {
    let server = shared();
    let tables = |database, after: &str| {
        let items = "[tables.item]\ncreate = 'CREATE TABLE item (id INT PRIMARY KEY)'\nrows = 2\n[tables.item.columns]\nid = { sequence = 1 }\n";
        let sales = format!(
            "[tables.sale]\ncreate = 'CREATE TABLE sale (item INT)'\nrows = 2\nafter = [\"{after}\"]\n[tables.sale.columns]\nitem = 3\n"
        );
        self::tables(database, &format!("{items}{sales}"))
    };
    for (database, after) in [
        ("own_unique", "CREATE UNIQUE INDEX u ON sale (item)"),
        ("own_refers", "ALTER TABLE sale ADD FOREIGN KEY (item) REFERENCES item (id)"),
    ] {
        let refused = prepare(&server, &tables(database, after));
        assert!(matches!(refused, Err(PrepareError::Wire { .. })), "{database}: {refused:?}");
        server.client().execute(&format!("DROP DATABASE {database}")).unwrap();
    }
}

#[test]
fn rows_that_only_their_own_seed_finds_are_those_of_the_run_s_seed() {
    let server = shared();
    let text = "[tables.a]\ncreate = 'CREATE TABLE a (id VARCHAR(36))'\nrows = 2\n[tables.a.columns]\nid = { guid = true }";
    let one = OwnTables { of_seed: true, ..tables("own_seed", text) };
    prepare(&server, &one).unwrap();
    let other = OwnTables { seed: 2, ..one.clone() };
    let mut client = server.client();
    let refused = other.require(&mut client).unwrap_err().to_string();
    assert!(refused.contains("from seed 2"), "{refused}");
    assert!(OwnTables { of_seed: false, ..other.clone() }.require(&mut client).is_ok());
    assert_eq!(prepare(&server, &other).unwrap(), Prepared::Made);
    client.execute("DROP DATABASE own_seed").unwrap();
}

/// A table of 30,000 rows, in 30 parts.
fn items(database: &str, engine: &str, id: &str, after: &str) -> OwnTables {
    let text = format!(
        "[tables.item]\ncreate = 'CREATE TABLE item (id INT, price DECIMAL(9,2), note VARCHAR(40) CHARACTER SET utf8mb4, \
         tag CHAR(4)) ENGINE={engine}'\nrows = 30000\nafter = [{after}]\n[tables.item.columns]\nid = {id}\n\
         price = {{ uniform = [1, 1000] }}\nnote = {{ alphanumeric = [10, 40] }}\ntag = {{ choice = ['grün', 'a ', 'b'] }}"
    );
    OwnTables { tuning: Tuning { batch_bytes: 16 << 10, ..Tuning::default() }, ..tables(database, &text) }
}

const COUNTED: &str = "{ sequence = 7, step = -2 }";
const RANDOM: &str = "{ uniform = [1, 1000000] }";

/// Number and order-independent checksum of all values.
fn content(client: &mut Client, database: &str) -> String {
    let sql = format!(
        "SELECT CONCAT(COUNT(*), ' ', SUM(CRC32(CONCAT_WS(',', id, price, note, tag)))) FROM {database}.item"
    );
    client.query(&sql).unwrap().scalar().unwrap().into_owned()
}

/// A prepare that loses its connections when a part of the rows is inserted, as by a kill of the process.
fn cut_off(server: &Server, tables: &OwnTables) {
    // All rows take ten seconds. Of the first 3,000 at most two parts, one a connection, are incomplete.
    let tuning = Tuning { rows_per_s: Some(3_000.0), ..tables.tuning };
    let slow = OwnTables { tuning, ..tables.clone() };
    let mut others = server.client();
    let list = format!(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND DB = '{}'",
        tables.database
    );
    let result = slow.prepare(&|| server.connect(), 2, &AtomicBool::new(false), &mut |p| {
        if p.rows > 3_000 && p.rows < p.of {
            for row in others.query(&list).unwrap().rows {
                let id = String::from_utf8(row[0].clone().unwrap()).unwrap();
                // It may have ended by itself.
                let _ = others.execute(&format!("KILL {id}"));
            }
        }
    });
    assert!(result.is_err(), "{}: no connection was lost", tables.database);
}

#[test]
fn a_prepare_that_was_cut_off_goes_on_where_its_rows_can_be_told() {
    let server = shared();
    let mut client = server.client();
    for (engine, id, kept) in [
        ("InnoDB", RANDOM, true),
        ("InnoDB", COUNTED, true),
        ("MyISAM", COUNTED, true),
        ("MyISAM", RANDOM, false),
        ("Aria", COUNTED, true),
        ("MEMORY", RANDOM, false),
    ] {
        let (whole, cut) = (items("own_whole", engine, id, ""), items("own_cut", engine, id, ""));
        assert_eq!(prepare(&server, &whole).unwrap(), Prepared::Made);
        cut_off(&server, &cut);
        assert!(matches!(cut.require(&mut client), Err(PrepareError::NotPrepared { .. })));
        let there = client.query("SELECT COUNT(*) FROM own_cut.item").unwrap().number::<u64>(0, 0).unwrap();
        assert!(0 < there && there < 30_000, "{engine} {id}: {there} rows");
        // Without transactions some rows of a part may exist without its record.
        if engine != "InnoDB" {
            client.execute("INSERT INTO own_cut.item VALUES (-59991, 1, 'half', 'part')").unwrap();
        }
        client.execute("ALTER TABLE own_cut.item COMMENT 'the first'").unwrap();
        let mut found = 0;
        let made = cut.prepare(&|| server.connect(), 2, &AtomicBool::new(false), &mut |p| found = p.found);
        assert_eq!(made.unwrap(), Prepared::Made);
        assert_eq!(0 < found && found < 30_000, kept, "{engine} {id}: {found} rows were kept");
        cut.check(&mut client).unwrap();
        assert_eq!(content(&mut client, "own_cut"), content(&mut client, "own_whole"), "{engine} {id}");
        let made = client.query("SHOW CREATE TABLE own_cut.item").unwrap().text(0, 1).unwrap().into_owned();
        assert_eq!(made.contains("the first"), kept, "{engine} {id}: {made}");
        client.execute("DROP DATABASE own_cut").unwrap();
        client.execute("DROP DATABASE own_whole").unwrap();
    }
}

#[test]
fn rows_are_the_same_for_one_and_eight_connections_as_text_and_as_values() {
    let server = shared();
    let mut client = server.client();
    let mut contents = Vec::new();
    for (connections, as_values) in [(1, true), (8, true), (3, false)] {
        let database = format!("own_{connections}");
        let tables = items(&database, "InnoDB", COUNTED, "");
        let tables = OwnTables { tuning: Tuning { as_values, ..tables.tuning }, ..tables };
        tables.prepare(&|| server.connect(), connections, &AtomicBool::new(false), &mut |_| {}).unwrap();
        contents.push(content(&mut client, &database));
        client.execute(&format!("DROP DATABASE {database}")).unwrap();
    }
    assert!(contents[0].starts_with("30000 ") && contents.iter().all(|c| *c == contents[0]), "{contents:?}");
}

#[test]
fn rows_that_are_changed_while_they_come_in_are_found() {
    let server = shared();
    let mut client = server.client();
    let cut = items("own_changed", "InnoDB", COUNTED, "");
    cut_off(&server, &cut);
    client.execute("UPDATE own_changed.item SET note = 'x' WHERE id = 7").unwrap();
    client.execute("ALTER TABLE own_changed.item COMMENT 'the first'").unwrap();
    // The wrong part cannot be identified, so the table is filled again.
    assert_eq!(prepare(&server, &cut).unwrap(), Prepared::Made);
    let made = client.query("SHOW CREATE TABLE own_changed.item").unwrap().text(0, 1).unwrap().into_owned();
    assert!(!made.contains("the first"), "{made}");
    let changed = client.query("SELECT COUNT(*) FROM own_changed.item WHERE note = 'x'").unwrap();
    assert_eq!(changed.number::<u64>(0, 0), Some(0));
    client.execute("DROP DATABASE own_changed").unwrap();
}

#[test]
fn statements_after_the_rows_go_on_behind_the_last_that_has_run() {
    let server = shared();
    let mut client = server.client();
    let after = "'CREATE INDEX i ON item (note)', \"UPDATE item SET tag = 'u' WHERE id = 7\", 'CREATE UNIQUE INDEX u ON item (price, tag)'";
    let tables = items("own_after", "InnoDB", COUNTED, after);
    let refused = prepare(&server, &tables).unwrap_err().to_string();
    assert!(refused.contains("m.toml:1") && refused.contains("Duplicate entry"), "{refused}");
    client.execute("ALTER TABLE own_after.item COMMENT 'the first'").unwrap();
    // The obstacle is gone.
    client.execute("DELETE FROM own_after.item WHERE id < 7").unwrap();
    assert_eq!(prepare(&server, &tables).unwrap(), Prepared::Made);
    tables.check(&mut client).unwrap();
    let made = client.query("SHOW CREATE TABLE own_after.item").unwrap().text(0, 1).unwrap().into_owned();
    assert!(made.contains("the first") && made.contains("KEY `i`") && made.contains("KEY `u`"), "{made}");
    client.execute("DROP DATABASE own_after").unwrap();
}

#[test]
fn a_change_of_rows_that_may_be_half_done_makes_all_anew() {
    let server = shared();
    let mut client = server.client();
    let after = "'ALTER TABLE item ADD UNIQUE (id)', 'UPDATE item SET id = id + 2'";
    let tables = items("own_half", "MyISAM", COUNTED, after);
    for _ in 0..2 {
        // Most rows' new number is that of another row.
        let refused = prepare(&server, &tables).unwrap_err().to_string();
        assert!(refused.contains("Duplicate entry"), "{refused}");
        let made = client.query("SHOW CREATE TABLE own_half.item").unwrap().text(0, 1).unwrap().into_owned();
        assert!(!made.contains("the last"), "{made}");
        client.execute("ALTER TABLE own_half.item COMMENT 'the last'").unwrap();
    }
    client.execute("DROP DATABASE own_half").unwrap();
}

#[test]
fn a_table_in_memory_that_cannot_hold_its_rows_is_refused_before_the_first() {
    let server = shared();
    let mut client = server.client();
    let tables = tables(
        "own_room",
        "[tables.a]\ncreate = 'CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(500)) ENGINE = MEMORY'\nrows = 2000\n[tables.a.columns]\nid = { sequence = 1 }\nv = 'x'\n\
         [tables.b]\ncreate = 'CREATE TABLE b (id INT) ENGINE = InnoDB'\nrows = 2000\n[tables.b.columns]\nid = { sequence = 1 }",
    );
    let prepare = |limit: u64| {
        let connect = || {
            let mut client = server.connect()?;
            client.execute(&format!("SET SESSION max_heap_table_size = {limit}"))?;
            Ok(client)
        };
        tables.prepare(&connect, 2, &AtomicBool::new(false), &mut |_| {})
    };
    let Err(PrepareError::NoRoom { fits, needed, .. }) = prepare(256 << 10) else {
        panic!("2,000 rows of 500 bytes in 256 KiB")
    };
    assert!(0 < fits && fits < 2_000, "{fits}");
    assert!(
        prepare(256 << 10).unwrap_err().to_string().contains(&format!("max_heap_table_size = {needed};"))
    );
    // What is told to be enough is enough.
    assert_eq!(prepare(needed).unwrap(), Prepared::Made);
    tables.check(&mut client).unwrap();
    client.execute("DROP DATABASE own_room").unwrap();
}
