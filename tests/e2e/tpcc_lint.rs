//! `mydyno tpcc-lint` on tables that runs with the work of several drivers have left.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fixture::{Ended, Server, signal, until};
use crate::home::Home;

fn states(lint: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lint["rows"].as_array().unwrap().iter().map(|row| (text(&row["id"]), text(&row["state"]))).collect()
}

/// Our tables, and their names in the first set of another driver.
const NUMBERED: [(&str, &str); 9] = [
    ("warehouse", "warehouse1"),
    ("district", "district1"),
    ("customer", "customer1"),
    ("history", "history1"),
    ("new_order", "new_orders1"),
    ("orders", "orders1"),
    ("order_line", "order_line1"),
    ("stock", "stock1"),
    ("item", "item1"),
];

/// New orders by which every property shows: 20,000 lines tell equally likely items from skewed ones, and no remote lines from one
/// in a hundred.
const ORDERS: u64 = 2_000;

/// A server that holds two warehouses in memory: one that reads and writes the same pages again and again takes more of the
/// CPUs.
fn server(home: &Home) -> Server<'_> {
    let settings =
        ["innodb_flush_log_at_trx_commit=0", "innodb_buffer_pool_size=512M", "innodb_log_file_size=256M"];
    home.server("s", &settings.map(|setting| ["--set", setting]).concat())
}

/// The exit status of `tpcc-lint`, and its document.
fn lint(home: &Home, server: &Server<'_>, schema: &str) -> (i32, Value) {
    let ended =
        home.end(&["tpcc-lint", "--dsn", server.text("dsn"), "--schema", schema, "--json", "--quiet"]);
    let document = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended.status, document)
}

fn options<'a>(step: &'a str, schema: &'a str, driver: &'a str) -> [&'a str; 9] {
    [step, "--schema", schema, "--warehouses", "2", "--connections", "2", "--as", driver]
}

fn prepare(home: &Home, server: &Server<'_>, schema: &str, driver: &str) {
    home.fine(&server.bench("tpcc", &options("prepare", schema, driver)));
}

/// Does the work of a driver until it has entered so many orders more. Several runs would draw the same numbers.
fn work(home: &Home, server: &Server<'_>, schema: &str, driver: &str, orders: u64) {
    let rest = [
        &options("run", schema, driver)[..],
        &["--time=300s", "--warmup=0s", "--no-observe", "--quiet", "--allow-load"],
    ];
    // Each district begins with the order 3001.
    let entered = format!("SELECT SUM(d_next_o_id - 3001) FROM {schema}.district");
    let entered = || server.sql(&entered)[0][0].parse::<u64>().unwrap();
    let before = entered();
    let running = home.start(&server.bench("tpcc", &rest.concat()));
    until("the orders are entered", || entered() >= before + orders);
    signal(running.id() as i32, libc::SIGINT);
    let ended = Ended::from(running.wait_with_output().unwrap());
    assert_eq!(ended.status, 130, "{ended:?}");
}

#[test]
fn the_work_of_a_driver_is_told_from_the_tables_that_it_left() {
    let home = Home::new();
    let server = server(&home);
    prepare(&home, &server, "peer", "specification");

    let (status, fresh) = lint(&home, &server, "peer");
    assert_eq!(status, 0, "{fresh}");
    let found = states(&fresh);
    assert_eq!(
        (found["population"].as_str(), found["condition-11"].as_str()),
        ("as_specified", "as_specified")
    );
    assert_eq!(found["stock-sums"], "unknown", "nothing was done yet");
    assert_eq!((fresh["warehouses"].as_u64(), fresh["like"].as_array().unwrap().len()), (Some(2), 0));

    work(&home, &server, "peer", "sysbench-tpcc", ORDERS);
    let (status, peer) = lint(&home, &server, "peer");
    assert_eq!(status, 1, "{peer}");
    assert!(peer["orders_since_load"].as_u64().unwrap() >= ORDERS, "{peer}");
    assert_eq!(peer["like"].as_array().unwrap(), &["sysbench-tpcc"], "{peer}");
    let found = states(&peer);
    for differs in [
        "remote-lines",
        "remote-payments",
        "item-skew",
        "customer-skew",
        "stock-sums",
        "stock-rule",
        "line-amount",
    ] {
        assert_eq!(found[differs], "differs", "{differs}: {peer}");
    }
    for holds in ["population", "lines-per-order", "all-local", "condition-1", "condition-12", "payments"] {
        assert_eq!(found[holds], "as_specified", "{holds}: {peer}");
    }
    let terminal = ["tpcc-lint", "--dsn", server.text("dsn"), "--schema", "peer", "--quiet"];
    let terminal = home.end(&terminal).stdout;
    assert!(
        terminal.contains("agrees with --as sysbench-tpcc") && terminal.contains("never written"),
        "{terminal}"
    );

    work(&home, &server, "peer", "specification", ORDERS / 4);
    let (status, both) = lint(&home, &server, "peer");
    assert_eq!(status, 1, "{both}");
    assert_eq!(both["like"].as_array().map(Vec::len), Some(0), "two drivers are none: {both}");
    let amounts = both["rows"].as_array().unwrap().iter().find(|row| row["id"] == "line-amount").unwrap();
    assert!(amounts["found"].as_str().unwrap().contains("other amounts in the rest"), "{both}");
}

/// Another driver's work on fresh tables: these properties differ.
fn differs(driver: &str, differ: &[&str]) {
    let home = Home::new();
    let server = server(&home);
    prepare(&home, &server, "peer", driver);
    work(&home, &server, "peer", driver, ORDERS);
    let (status, found) = lint(&home, &server, "peer");
    let states = states(&found);
    for id in differ {
        assert_eq!(states[*id], "differs", "{driver} {id}: {found}");
    }
    assert_eq!((status, &states["remote-payments"]), (1, &"as_specified".to_owned()), "{driver}: {found}");
    assert!(found["like"].as_array().unwrap().contains(&driver.into()), "{driver}: {found}");
}

#[test]
fn the_work_of_go_tpc_is_told_from_its_tables() {
    differs("go-tpc", &["line-amount", "stock-sums"]);
}

#[test]
fn the_work_of_hammerdb_is_told_from_its_tables() {
    differs("hammerdb", &["item-skew", "line-amount", "stock-rule", "stock-sums"]);
}

#[test]
fn tables_with_names_and_numbers_of_another_driver_are_read_and_a_missing_update_is_told() {
    let home = Home::new();
    let server = server(&home);
    prepare(&home, &server, "own", "specification");
    work(&home, &server, "own", "specification", ORDERS);
    let (_, own) = lint(&home, &server, "own");
    let found = states(&own);
    assert!(!found.values().any(|state| state == "differs"), "{own}");
    assert_eq!(own["like"].as_array().unwrap(), &["specification"], "{own}");
    server.sql("CREATE DATABASE numbered");
    for (from, to) in NUMBERED {
        server.sql(&format!("RENAME TABLE own.{from} TO numbered.{to}"));
    }
    server.sql("UPDATE numbered.stock1 SET s_ytd = s_ytd - 5 WHERE s_w_id = 1 AND s_ytd > 5 LIMIT 1");
    server.sql("UPDATE numbered.district1 SET d_ytd = d_ytd + 1 WHERE d_w_id = 2 AND d_id = 3");
    let (status, broken) = lint(&home, &server, "numbered");
    let found = states(&broken);
    let differ: Vec<&str> =
        found.iter().filter(|(_, state)| *state == "differs").map(|(id, _)| id.as_str()).collect();
    assert_eq!((status, differ), (1, vec!["condition-1", "condition-9", "stock-sums"]), "{broken}");

    let target = ["tpcc-lint", "--dsn", server.text("dsn"), "--quiet", "--schema"];
    let refused = home.fails(3, &[&target[..], &["numbered", "--set", "4"]].concat());
    assert!(refused.contains("with the number 4") && refused.contains("--set takes 1"), "{refused}");
    let none = home.fails(3, &[&target[..], &["mysql"]].concat());
    assert!(none.contains("has no tables of TPC-C"), "{none}");
}
