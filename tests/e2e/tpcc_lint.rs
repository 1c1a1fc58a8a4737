//! `mydyno tpcc-lint` on tables that runs with the work of several drivers have left.

use std::collections::BTreeMap;

use serde_json::Value;

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

#[test]
fn the_work_of_a_driver_is_told_from_the_tables_that_it_left() {
    let home = Home::new();
    let server = home.server("s", &["--set", "innodb_flush_log_at_trx_commit=0"]);
    let dsn = server.text("dsn").to_owned();
    let lint = |schema: &str| {
        let ended = home.end(&["tpcc-lint", "--dsn", &dsn, "--schema", schema, "--json", "--quiet"]);
        let document: Value =
            serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        (ended.status, document)
    };
    let bench = |step: &str, schema: &str, rest: &[&str]| {
        let options = [&[step, "--schema", schema, "--warehouses", "2", "--connections", "2"], rest].concat();
        home.fine(&server.bench("tpcc", &options));
    };
    bench("prepare", "peer", &[]);

    let (status, fresh) = lint("peer");
    assert_eq!(status, 0, "{fresh}");
    let found = states(&fresh);
    assert_eq!(
        (found["population"].as_str(), found["condition-11"].as_str()),
        ("as_specified", "as_specified")
    );
    assert_eq!(found["stock-sums"], "unknown", "nothing was done yet");
    assert_eq!((fresh["warehouses"].as_u64(), fresh["like"].as_array().unwrap().len()), (Some(2), 0));

    bench("run", "peer", &["--as", "sysbench-tpcc", "--time", "12s"]);
    let (status, peer) = lint("peer");
    assert_eq!(status, 1, "{peer}");
    assert!(peer["orders_since_load"].as_u64().unwrap() > 500, "{peer}");
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
    let terminal = home.end(&["tpcc-lint", "--dsn", &dsn, "--schema", "peer", "--quiet"]).stdout;
    assert!(
        terminal.contains("agrees with --as sysbench-tpcc") && terminal.contains("never written"),
        "{terminal}"
    );

    // The other drivers, each on fresh tables.
    for (driver, differ) in [
        ("go-tpc", &["line-amount", "stock-sums"][..]),
        ("hammerdb", &["item-skew", "line-amount", "stock-rule", "stock-sums"][..]),
    ] {
        home.fine(&server.bench("tpcc", &["cleanup", "--schema", "peer"]));
        bench("prepare", "peer", &["--as", driver]);
        bench("run", "peer", &["--as", driver, "--time", "12s"]);
        let (status, found) = lint("peer");
        let states = states(&found);
        for id in differ {
            assert_eq!(states[*id], "differs", "{driver} {id}: {found}");
        }
        assert_eq!(
            (status, &states["remote-payments"]),
            (1, &"as_specified".to_owned()),
            "{driver}: {found}"
        );
        assert!(found["like"].as_array().unwrap().contains(&driver.into()), "{driver}: {found}");
    }

    // Tables with the names and numbers of another driver, one update of which is missing.
    bench("prepare", "own", &[]);
    bench("run", "own", &["--time", "8s"]);
    let (_, own) = lint("own");
    let found = states(&own);
    assert!(!found.values().any(|state| state == "differs"), "{own}");
    assert_eq!(own["like"].as_array().unwrap(), &["specification"], "{own}");
    let sql = |text: &str| home.fine(&["server", "cli", "s", "-e", text]);
    sql("CREATE DATABASE numbered");
    for (from, to) in NUMBERED {
        sql(&format!("RENAME TABLE own.{from} TO numbered.{to}"));
    }
    sql("UPDATE numbered.stock1 SET s_ytd = s_ytd - 5 WHERE s_w_id = 1 AND s_ytd > 5 LIMIT 1");
    sql("UPDATE numbered.district1 SET d_ytd = d_ytd + 1 WHERE d_w_id = 2 AND d_id = 3");
    let (status, broken) = lint("numbered");
    let found = states(&broken);
    let differ: Vec<&str> =
        found.iter().filter(|(_, state)| *state == "differs").map(|(id, _)| id.as_str()).collect();
    assert_eq!((status, differ), (1, vec!["condition-1", "condition-9", "stock-sums"]), "{broken}");

    let refused =
        home.fails(3, &["tpcc-lint", "--dsn", &dsn, "--schema", "numbered", "--set", "4", "--quiet"]);
    assert!(refused.contains("with the number 4") && refused.contains("--set takes 1"), "{refused}");
    let none = home.fails(3, &["tpcc-lint", "--dsn", &dsn, "--schema", "mysql", "--quiet"]);
    assert!(none.contains("has no tables of TPC-C"), "{none}");
}
