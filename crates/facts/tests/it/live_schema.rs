//! Facts about tables, on a server whose tables are known.

use mydyno_facts::{Options, Source, collect_with};
use mydyno_model::facts::Status;
use serde_json::{Value, json};

use crate::support::{Server, patient};

fn audit(server: &Server) -> mydyno_model::facts::FactSet {
    let options = Options { window: None, ..patient(Options::audit()) };
    collect_with(&Source::live(), Some(&mut server.connect()), None, &options)
}

#[test]
fn tables_keys_and_types_are_those_that_were_made() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.good (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, a INT, KEY a (a), KEY a_id (a, id)) AUTO_INCREMENT=2147483649",
        "CREATE TABLE d.keyless (a INT, t TEXT, shop_id INT) CHARACTER SET latin1",
        "CREATE TABLE d.`o'dd``name` (k CHAR(36) CHARACTER SET utf8mb4 PRIMARY KEY, a BIGINT, shop_id BIGINT) ENGINE=InnoDB",
        "CREATE TABLE d.old (a INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE d.parts (a INT) PARTITION BY HASH (a) PARTITIONS 3",
        "CREATE VIEW d.v AS SELECT 1 AS one",
    ] {
        admin.execute(statement).unwrap();
    }
    let set = audit(&server);
    let value = |id: &str| set.value(id).cloned().unwrap_or_else(|| panic!("{id}: {:?}", set.facts.get(id)));
    for (id, expected) in [
        ("schema.tables", json!(6)),
        ("schema.tables_read", json!(5)),
        ("schema.sampled", json!(false)),
        ("schema.all_read", json!(true)),
        ("schema.engines_counted", json!(true)),
        ("schema.without_primary_key", json!(2)),
        ("schema.without_primary_key_tables", json!(["d.keyless", "d.parts"])),
        ("schema.engine.InnoDB.tables", json!(4)),
        ("schema.engine.MyISAM.tables", json!(1)),
        ("schema.blob_columns", json!(1)),
        ("schema.charset.latin1.columns", json!(1)),
        ("schema.charset.utf8mb4.columns", json!(1)),
        ("schema.text_primary_keys", json!([{"table": "d.o'dd`name", "type": "char(36)"}])),
        ("schema.most_indexes", json!({"table": "d.good", "indexes": 3})),
        (
            "schema.type_conflicts",
            json!([{"column": "shop_id", "types": ["bigint(20)", "int(11)"], "rarest": "d.o'dd`name.shop_id"}]),
        ),
        ("schema.indexes_with_key", json!([{"table": "d.good", "index": "a_id"}])),
        ("schema.most_columns", json!({"table": "d.keyless", "columns": 3})),
        ("schema.unusable", json!([])),
        ("schema.partitions_ending", json!([])),
    ] {
        assert_eq!(value(id), expected, "{id}");
    }
    // Its size is that of the statistics, which a new table may lack.
    let mut superfluous = value("schema.duplicate_indexes");
    superfluous[0].as_object_mut().unwrap().remove("size_bytes");
    assert_eq!(superfluous, json!([{"table": "d.good", "index": "a", "covered_by": "a_id"}]));
    let fullest = value("schema.auto_increment");
    assert_eq!(fullest["table"], Value::from("d.good"));
    assert_eq!(fullest["used"], json!(2_147_483_648.0 / 4_294_967_295.0));
}

#[test]
fn every_table_of_a_few_hundred_is_read_in_pieces() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    admin.execute("CREATE DATABASE d").unwrap();
    for n in 0..300 {
        // The last one alone has an index that begins another, a text key and a column near its end.
        let columns = match n {
            299 => "k CHAR(30) PRIMARY KEY, a TINYINT AUTO_INCREMENT, b INT, KEY a (a), KEY ab (a, b)",
            _ => "a INT PRIMARY KEY",
        };
        let start = if n == 299 { "AUTO_INCREMENT=100" } else { "" };
        admin
            .execute(&format!("CREATE TABLE d.t{n:03} ({columns}) ENGINE=Aria TRANSACTIONAL=0 {start}"))
            .unwrap();
    }
    let set = audit(&server);
    assert_eq!(set.number("schema.tables"), Some(300.0));
    assert_eq!(set.number("schema.tables_read"), Some(300.0));
    assert_eq!(set.value("schema.sampled"), Some(&json!(false)));
    assert_eq!(set.value("schema.all_read"), Some(&json!(true)));
    assert_eq!(set.number("schema.engine.Aria.tables"), Some(300.0));
    assert_eq!(
        set.value("schema.duplicate_indexes"),
        Some(&json!([{"table": "d.t299", "index": "a", "covered_by": "ab"}]))
    );
    assert_eq!(
        set.value("schema.text_primary_keys"),
        Some(&json!([{"table": "d.t299", "type": "char(30)"}]))
    );
    assert_eq!(set.value("schema.auto_increment").unwrap()["table"], json!("d.t299"));
}

#[test]
fn tables_without_a_key_have_names_that_statements_take() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    for statement in [
        "CREATE DATABASE `d-1`",
        "CREATE TABLE `d-1`.`o-d<d@` (a INT)",
        "CREATE TABLE `d-1`.`p#p#0` (a INT) PARTITION BY HASH (a) PARTITIONS 2",
    ] {
        admin.execute(statement).unwrap();
    }
    let set = audit(&server);
    let list = set.value("schema.without_primary_key_tables").unwrap().as_array().unwrap();
    let names: Vec<&str> = list.iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names, ["d-1.o-d<d@", "d-1.p#p#0"]);
    for name in names {
        let (schema, table) = name.split_once('.').unwrap();
        admin.execute(&format!("ALTER TABLE `{schema}`.`{table}` ADD COLUMN b INT")).unwrap();
    }
}

/// The statistics of 9,000 tables are made here, the tables are not: more than a piece holds, in two schemas, some of them
/// without a key and some partitions.
#[test]
fn tables_without_a_key_among_very_many_are_found_in_their_statistics_piece_by_piece() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    for statement in [
        "CREATE DATABASE d",
        "INSERT INTO mysql.innodb_table_stats SELECT IF(seq % 3, 'a', 'b'), CONCAT('t', LPAD(seq, 5, '0')), NOW(), 1, 1, 1 FROM d.seq_1_to_9000",
        "INSERT INTO mysql.innodb_index_stats SELECT IF(seq % 3, 'a', 'b'), CONCAT('t', LPAD(seq, 5, '0')), IF(seq % 1000, 'PRIMARY', 'GEN_CLUST_INDEX'), NOW(), names.n, 1, 1, '' FROM d.seq_1_to_9000, (SELECT 'size' n UNION SELECT 'n_leaf_pages') names",
        "INSERT INTO mysql.innodb_table_stats VALUES ('a', 't00001#P#p0', NOW(), 1, 1, 1), ('a', 't00001#P#p1', NOW(), 1, 1, 1)",
        "INSERT INTO mysql.innodb_index_stats VALUES ('a', 't00001#P#p0', 'GEN_CLUST_INDEX', NOW(), 'size', 1, 1, ''), ('a', 't00001#P#p1', 'GEN_CLUST_INDEX', NOW(), 'size', 1, 1, '')",
    ] {
        admin.execute(statement).unwrap();
    }
    let set = audit(&server);
    let fact = &set.facts["schema.without_primary_key_tables"];
    assert_eq!(fact.source, "mysql.innodb_index_stats");
    let named = |schema: &str, n: u32| format!("{schema}.t{n:05}");
    let mut expected = vec![named("a", 1)];
    expected.extend([1000, 2000, 4000, 5000, 7000, 8000].map(|n| named("a", n)));
    expected.extend([3000, 6000, 9000].map(|n| named("b", n)));
    assert_eq!(set.value("schema.without_primary_key_tables"), Some(&json!(expected)));
    assert_eq!(set.number("schema.without_primary_key"), Some(10.0));
    // 9,002 lines: a partition is counted as a table.
    assert_eq!(set.value("schema.sampled"), Some(&json!(true)));
    let Status::Error { why } = &set.facts["schema.all_read"].status else { panic!("all read") };
    assert!(why.starts_with("512 of 9002 tables were read; nothing of the kind was found"), "{why}");
}

#[test]
fn tables_that_the_account_may_not_see_are_not_taken_for_none() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.a (a INT PRIMARY KEY)",
        "CREATE TABLE d.b (a INT PRIMARY KEY)",
        "CREATE USER poor@localhost",
        "GRANT PROCESS ON *.* TO poor@localhost",
        "GRANT SELECT ON mysql.* TO poor@localhost",
    ] {
        admin.execute(statement).unwrap();
    }
    let options = Options { window: None, ..patient(Options::audit()) };
    let look = || collect_with(&Source::live(), Some(&mut server.connect_as("poor")), None, &options);
    let set = look();
    assert!(
        matches!(set.facts["schema.tables"].status, Status::Denied { .. }),
        "{:?}",
        set.facts["schema.tables"]
    );
    assert_eq!(set.number("schema.without_primary_key"), Some(0.0));
    admin.execute("GRANT SELECT ON d.a TO poor@localhost").unwrap();
    let set = look();
    assert_eq!(set.number("schema.tables"), Some(1.0));
    assert!(matches!(set.facts["schema.all_read"].status, Status::Denied { .. }));
    assert!(matches!(set.facts["schema.engines_counted"].status, Status::Denied { .. }));
}
