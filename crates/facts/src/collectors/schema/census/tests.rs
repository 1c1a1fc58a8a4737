//! Tests of the properties of tables.

use super::*;
use crate::readings::Readings;

#[test]
fn a_file_can_be_made_smaller_when_much_of_it_and_half_or_more_is_free() {
    const MIB: u64 = 1024 * 1024;
    let row = |free: u64, data: u64, index: u64| -> Row {
        let cells = ["InnoDB", "", "BASE TABLE", "Dynamic"].map(|text| Some(text.to_owned()));
        let sizes = [free, data, index].map(|bytes| Some(bytes.to_string()));
        cells.into_iter().chain(sizes).collect()
    };
    let mut census = Census::default();
    for (table, row) in [
        ("emptied", row(50 * MIB, 30 * MIB, 20 * MIB)),
        ("small", row(49 * MIB, MIB, 0)),
        ("full", row(50 * MIB, 31 * MIB, 20 * MIB)),
    ] {
        census.table("shop", table, &row, vec![], &[]);
    }
    let named: Vec<&Value> = census.reclaimable.iter().map(|entry| &entry["table"]).collect();
    assert_eq!(named, ["shop.emptied"]);
    assert_eq!(census.row_formats["dynamic"], 3);
}

#[test]
fn sizes_are_summed_by_engine_and_partitioned_tables_are_noted() {
    let row = |engine: &str, data: &str, options: &str| -> Row {
        let cells = [engine, "", "BASE TABLE", "", "0", data, "7", "", options];
        cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec()
    };
    let mut census = Census::default();
    census.table("shop", "a", &row("InnoDB", "10", "row_format=DYNAMIC partitioned"), vec![], &[]);
    census.table("shop", "b", &row("InnoDB", "20", ""), vec![], &[]);
    census.table("shop", "c", &row("MyISAM", "40", ""), vec![], &[]);
    census.table("shop", "gone", &row("", "", ""), vec![], &[]);
    assert_eq!(census.sizes["InnoDB"], [30, 14]);
    assert_eq!(census.sizes["MyISAM"], [40, 7]);
    assert_eq!(census.sizes.len(), 2);
    assert_eq!(census.partitioned, [("shop".to_owned(), "a".to_owned())]);
}

#[test]
fn a_few_tables_that_were_not_read_leave_the_others_judged() {
    use mydyno_model::facts::Status;
    let judged = |looked_at: usize, tables: u64| {
        let readings = Readings::new(&super::super::COLLECTOR);
        let census = Census { looked_at, ..Census::default() };
        census.put(tables, 0, None, &readings);
        let facts = readings.take();
        let all_read = facts.iter().find(|(id, _)| id == "schema.all_read").unwrap();
        all_read.1.status == Status::Ok
    };
    assert!(judged(1001, 1006) && judged(95, 100) && judged(3, 3));
    assert!(!judged(94, 100) && !judged(512, 20_000));
}

#[test]
fn a_table_whose_definition_was_read_is_opened_later_and_counted_once() {
    let row =
        |cells: [&str; 9]| -> Row { cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec() };
    let id = |kind: &str| -> Vec<Row> {
        let cells = ["id", "smallint", kind, "", "", "auto_increment"];
        vec![cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec()]
    };
    let mut census = Census { part: Part::Definition, ..Census::default() };
    let defined = row(["InnoDB", "", "BASE TABLE", "", "", "", "", "", "row_format=COMPRESSED"]);
    census.table("a", "tags", &defined, id("smallint unsigned"), &[]);
    census.table("a", "many", &defined, id("bigint"), &[]);
    let myisam = row(["MyISAM", "", "BASE TABLE", "", "", "", "", "", ""]);
    census.table("a", "old", &myisam, vec![], &[]);
    let place = |table: &str| ("a".to_owned(), table.to_owned());
    assert_eq!(census.again(), [place("tags"), place("old")]);
    assert_eq!(census.row_formats["compressed"], 2);
    census.part = Part::Whole;
    let opened = row(["InnoDB", "65520", "BASE TABLE", "Compressed", "0", "8192", "0", "", ""]);
    census.table("a", "tags", &opened, id("smallint unsigned"), &[]);
    assert_eq!((census.defined(), census.row_formats["compressed"]), (3, 2));
    assert_eq!(census.sizes["InnoDB"], [8192, 0]);
    assert!(census.fullest.unwrap().0 > 0.99);
}

#[test]
fn of_tables_that_were_not_all_read_a_list_without_entries_says_nothing() {
    use mydyno_model::facts::Status;
    let status = |read: usize, tables: u64| {
        let readings = Readings::new(&super::super::COLLECTOR);
        Census { looked_at: read, ..Census::default() }.put(tables, 0, None, &readings);
        let facts = readings.take();
        let of = |id: &str| facts.iter().find(|(name, _)| name == id).unwrap().1.status == Status::Ok;
        ["schema.inexact_money", "schema.own_statistics", "schema.engines_counted"].map(of)
    };
    assert_eq!(status(214, 20_413), [false; 3]);
    assert_eq!(status(20_413, 20_413), [true; 3]);
}

#[test]
fn the_end_of_integer_types_is_known() {
    for (kind, end) in [
        ("tinyint(4)", 127.0),
        ("int(10) unsigned", 4_294_967_295.0),
        ("int", 2_147_483_647.0),
        ("mediumint unsigned", 16_777_215.0),
    ] {
        assert_eq!(largest(kind), Some(end), "{kind}");
    }
    assert_eq!(largest("varchar(10)"), None);
}
