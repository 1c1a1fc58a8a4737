//! Tables that workloads bring on a real server.

use std::sync::atomic::AtomicBool;

use mydyno_workload::mix::Mix;
use mydyno_workload::own_tables::OwnTables;
use mydyno_workload::prepare::{PrepareError, Prepared};

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
    // 50 rows of twice 40 bytes and an integer's 8.
    assert_eq!(tables.heap_bytes(), 4_800);
    assert_eq!(prepare(&server, &tables).unwrap(), Prepared::Made);
    assert_eq!(prepare(&server, &tables).unwrap(), Prepared::Reused);
    let mut client = server.client();
    // What a restart of the server does.
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
