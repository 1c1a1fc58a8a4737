//! Known answers over facts of a server.

use mydyno_model::Header;
use mydyno_model::facts::Fact;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::*;

fn facts(of: &[(&str, Value)]) -> FactSet {
    let facts = of.iter().map(|(id, value)| ((*id).to_owned(), Fact::ok(value.clone(), "", "test")));
    FactSet {
        header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
        facts: facts.collect(),
        extra: Map::new(),
    }
}

const GIB: f64 = 1073741824.0;

#[test]
fn settings_of_people_are_taken_and_those_of_the_place_are_not() {
    let origin = |source: &str| json!({"source": source, "path": null});
    let shaped = shape(&facts(&[
        ("server.variable.sort_buffer_size", json!(262144)),
        ("server.origin.sort_buffer_size", origin("config")),
        ("server.variable.back_log", json!(80)),
        ("server.origin.back_log", origin("auto")),
        ("server.variable.server_id", json!(7)),
        ("server.origin.server_id", origin("config")),
        ("server.variable.tmpdir", json!("/tmp")),
        ("server.origin.tmpdir", origin("config")),
        ("server.variable.sql_mode", json!("ANSI,STRICT_ALL_TABLES")),
        ("server.origin.sql_mode", origin("config")),
        ("server.variable.innodb_flush_method", json!("O_DIRECT")),
        ("server.origin.innodb_flush_method", origin("command_line")),
    ]));
    assert_eq!(
        shaped.shape.set_up,
        ["option.sort_buffer_size=262144", "option.innodb_flush_method=O_DIRECT"]
    );
    assert_eq!(shaped.shape.left_out, ["sql_mode"]);
}

#[test]
fn data_and_pool_keep_their_ratio() {
    let shaped = shape(&facts(&[
        ("server.variable.innodb_buffer_pool_size", json!(8.0 * GIB)),
        ("schema.data_bytes", json!(4.0 * GIB)),
    ]));
    // 96 MiB of 4 GiB; the pool is reduced by the same ratio, though no setting names it.
    assert!((shaped.shape.scale - 96.0 / 4096.0).abs() < 1e-9);
    assert_eq!(shaped.shape.set_up, ["option.innodb_buffer_pool_size=201326592"]);
    let data = shaped.rows as f64 * TABLES as f64 * ROW_BYTES;
    assert!((data / (96.0 * 1048576.0) - 1.0).abs() < 0.01, "{data}");
}

#[test]
fn a_small_server_stays_as_it_is() {
    let shaped = shape(&facts(&[
        ("server.variable.innodb_buffer_pool_size", json!(16 << 20)),
        ("schema.data_bytes", json!(48 << 20)),
    ]));
    assert!(shaped.shape.scale == 1.0 && shaped.shape.notes.is_empty(), "{:?}", shaped.shape);
}

#[test]
fn a_server_without_data_is_said_to_have_none() {
    let shaped = shape(&facts(&[("server.variable.innodb_buffer_pool_size", json!(128 << 20))]));
    assert_eq!(shaped.rows, USUAL_ROWS);
    assert!(shaped.shape.notes[0].contains("hardly any data"), "{:?}", shaped.shape.notes);
}

#[test]
fn only_the_pool_is_scaled() {
    assert_eq!(scaled(POOL, "8G", 0.01), "85899346");
    assert_eq!(scaled(POOL, "8M", 0.01), "8388608");
    assert_eq!(scaled("sort_buffer_size", "8G", 0.01), "8G");
}
