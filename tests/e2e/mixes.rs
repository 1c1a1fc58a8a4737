//! `hot_row`, `slap`, `sql` and mixes on a real server.

use std::fs;

use serde_json::Value;

use crate::fixture::{Ended, Server, signal, until};
use crate::home::Home;
use crate::house::root;

const SHORT: &[&str] = &["--time", "1s", "--warmup", "200ms", "--no-observe"];

/// Runs a workload for a second with these options; its summary.
fn load(home: &Home, server: &Server<'_>, workload: &str, rest: &[&str]) -> Value {
    let out = tempfile::tempdir_in(home.path()).unwrap().path().join("run");
    let more = ["--json", "--out", out.to_str().unwrap()];
    let ended = home.end(&server.bench(workload, &[rest, SHORT, &more].concat()));
    assert_eq!(ended.status, 0, "{workload} {rest:?}: {}", ended.stderr);
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(summary["steps"][0]["transactions"].as_u64().unwrap() > 0, "{workload} {rest:?}");
    summary
}

/// Writes a mix; its path.
fn mix(home: &Home, text: &str) -> String {
    let file = home.path().join("m.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn refused(home: &Home, server: &Server<'_>, workload: &str, rest: &[&str], status: i32) -> Ended {
    let ended = home.end(&server.bench(workload, &[rest, SHORT].concat()));
    assert_eq!(ended.status, status, "{workload} {rest:?}: {}", ended.stderr);
    ended
}

#[test]
fn stock_and_orders_add_up_until_somebody_takes_an_order_away() {
    let home = Home::new();
    let server = home.server("s", &[]);
    for statements in ["update", "select-for-update", "order-first"] {
        let options =
            ["--rows", "2", "--stock", "100000000", "--insert-order=on", "--statements", statements];
        load(&home, &server, "hot_row", &[&["--connections", "16"], &options[..]].concat());
        let check = server.bench("hot_row", &[&["check"], &options[..]].concat());
        assert!(home.fine(&check).contains("what must hold at any time holds"));
        let sold: u64 =
            server.sql("SELECT 200000000 - SUM(stock) FROM mydyno.hot_row")[0][0].parse().unwrap();
        let orders: u64 = server.sql("SELECT COUNT(*) FROM mydyno.hot_row_order")[0][0].parse().unwrap();
        assert!(sold == orders && sold > 0, "{statements}: {sold} sold, {orders} orders");

        server.sql("DELETE FROM mydyno.hot_row_order LIMIT 1");
        let ended = home.end(&check);
        assert_eq!(ended.status, 1, "{}", ended.stderr);
        assert!(ended.stderr.contains("do not add up"), "{}", ended.stderr);
        home.fine(&server.bench("hot_row", &["cleanup"]));
    }
}

#[test]
fn what_is_sold_out_sells_no_more_and_is_told() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let options = ["--rows", "2", "--stock", "50", "--insert-order=on", "--statements", "order-first"];
    let summary = load(&home, &server, "hot_row", &[&["--connections", "8"], &options[..]].concat());
    assert_eq!(server.sql("SELECT SUM(stock) FROM mydyno.hot_row"), [["0"]]);
    assert_eq!(server.sql("SELECT COUNT(*) FROM mydyno.hot_row_order"), [["100"]]);
    let warnings = summary["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w["id"] == "sold-out"), "{warnings:?}");
    home.fine(&server.bench("hot_row", &[&["check"], &options[..]].concat()));
}

#[test]
fn the_test_of_flash_sales_runs_with_its_numbers_of_sessions() {
    let home = Home::new();
    let server = home.server("s", &["--set", "max_connections=300"]);
    let summary = load(&home, &server, "hot_row", &["--connections", "72,256"]);
    for step in summary["steps"].as_array().unwrap() {
        assert!(step["transactions"].as_u64().unwrap() > 0);
        assert_eq!(step["errors"], serde_json::json!({}));
    }
    let sold: u64 = server.sql("SELECT 1000000000 - stock FROM mydyno.hot_row")[0][0].parse().unwrap();
    let counted: u64 =
        summary["steps"].as_array().unwrap().iter().map(|s| s["transactions"].as_u64().unwrap()).sum();
    assert!(sold >= counted, "{sold} sold, {counted} in the windows");
}

#[test]
fn a_hot_row_that_another_run_uses_is_refused() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let mut first = home.start(&server.bench(
        "hot_row",
        &["--connections", "2", "--time", "60s", "--no-observe", "--quiet", "--allow-load"],
    ));
    until("the first run sells", || {
        let stock = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'mydyno'";
        server.sql(stock)[0][0].parse::<u64>().unwrap() >= 2
    });
    let ended = refused(&home, &server, "hot_row", &["--connections", "1", "--allow-load"], 3);
    assert!(ended.stderr.contains("another mydyno is using database \"mydyno\""), "{}", ended.stderr);
    signal(first.id() as i32, libc::SIGINT);
    assert_eq!(first.wait().unwrap().code(), Some(130));
}

#[test]
fn slap_loads_in_its_five_kinds() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let guid = ["--auto-generate-sql-guid-primary=on", "--auto-generate-sql-secondary-indexes", "1"];
    let plain = ["--number-int-cols", "2", "--int-cols-index=on", "--char-cols-index=on"];
    for (kind, options) in
        [("mixed", &guid[..]), ("read", &plain), ("key", &guid), ("update", &guid), ("write", &plain)]
    {
        let rest = [&["--connections", "3", "--auto-generate-sql-load-type", kind], options].concat();
        let summary = load(&home, &server, "slap", &rest);
        assert_eq!(summary["steps"][0]["errors"], serde_json::json!({}), "{kind}");
        home.fine(&server.bench("slap", &[&["check"], &rest[2..]].concat()));
    }
    assert!(server.sql("SELECT COUNT(*) FROM mydyno.t1")[0][0].parse::<u64>().unwrap() > 100);
    home.fine(&server.bench("slap", &["cleanup"]));
    assert!(server.sql("SHOW DATABASES LIKE 'mydyno'").is_empty());
}

#[test]
fn sql_asks_the_users_tables_and_makes_and_changes_nothing() {
    let home = Home::new();
    let server = home.server("s", &[]);
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, n INT); INSERT INTO shop.item VALUES (1, 0), (2, 0)");
    let body = "BEGIN UPDATE shop.item SET n = n + 1; RETURN 1; END";
    server.sql(&format!(
        "DELIMITER //\nCREATE FUNCTION shop.tick() RETURNS INT MODIFIES SQL DATA {body}//\nDELIMITER ;"
    ));
    let before = server.sql("CHECKSUM TABLE shop.item");

    let reads = [
        "--schema",
        "shop",
        "--sql",
        "3: SELECT n FROM item WHERE id = 1",
        "--sql",
        "SELECT COUNT(*) FROM item",
    ];
    let summary = load(&home, &server, "sql", &reads);
    let counts: Vec<u64> = summary["steps"][0]["operations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|o| o["kind"] == "statement")
        .map(|o| o["count"].as_u64().unwrap())
        .collect();
    assert!(counts.len() == 2 && counts[0] > counts[1], "{counts:?}");
    load(&home, &server, "sql", &[&reads[..], &["--sql-protocol", "text"]].concat());
    load(&home, &server, "sql", &["--sql", "SELECT 1"]);

    for sql in [
        "UPDATE item SET n = 1",
        "SELECT n FROM item FOR UPDATE",
        "DROP TABLE item",
        "SELECT 1 INTO OUTFILE '/tmp/x'",
    ] {
        let ended = refused(&home, &server, "sql", &["--schema", "shop", "--sql", sql], 3);
        assert!(ended.stderr.contains("--allow-write"), "{sql}: {}", ended.stderr);
    }
    // Its text does not tell that it writes: the server refuses.
    let ended = refused(&home, &server, "sql", &["--schema", "shop", "--sql", "SELECT tick()"], 3);
    assert!(ended.stderr.contains("1792"), "{}", ended.stderr);
    let wrong = refused(&home, &server, "sql", &["--schema", "shop", "--sql", "SELECT nope FROM item"], 3);
    assert!(wrong.stderr.contains("--sql (the 1.)") && wrong.stderr.contains("nope"), "{}", wrong.stderr);
    home.fine(&server.bench("sql", &["cleanup", "--schema", "shop", "--sql", "SELECT 1"]));
    assert_eq!(server.sql("CHECKSUM TABLE shop.item"), before);
    assert!(server.sql("SHOW DATABASES LIKE 'mydyno'").is_empty());

    let write = ["--schema", "shop", "--sql", "UPDATE item SET n = n + 1 WHERE id = 2", "--allow-write"];
    load(&home, &server, "sql", &[&write[..], &["--transaction=on"]].concat());
    assert!(server.sql("SELECT n FROM shop.item WHERE id = 2")[0][0].parse::<u64>().unwrap() > 0);
}

#[test]
fn the_example_mixes_prepare_run_and_hold_together() {
    let home = Home::new();
    let server = home.server("s", &[]);
    for name in ["shop", "queue", "timeline"] {
        let path = root().join(format!("workloads/{name}.toml"));
        let file = path.to_str().unwrap();
        home.fine(&server.bench(file, &["prepare"]));
        assert!(home.fine(&server.bench(file, &["check"])).contains("every row is as it was made"));
        // Unique numbers of one step are not those of the other.
        let summary = load(&home, &server, file, &["--connections", "2,4"]);
        for step in [0, 1] {
            assert_eq!(summary["steps"][step]["errors"], serde_json::json!({}), "{name}, step {step}");
            assert!(summary["steps"][step]["transactions"].as_u64().unwrap() > 0, "{name}, step {step}");
        }
        assert!(summary["fingerprint"]["operations"].as_str().unwrap().contains('-'));
        home.fine(&server.bench(file, &["check"]));
        home.fine(&server.bench(file, &["cleanup"]));
        assert!(server.sql("SHOW DATABASES LIKE 'mydyno'").is_empty());
    }
}

#[test]
fn a_mix_that_does_not_fit_its_tables_is_told_before_the_load() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let text = "\
[tables.a]
create = 'CREATE TABLE a (id INT PRIMARY KEY)'
rows = 10
[tables.a.columns]
id = { sequence = 1 }
[transactions.t]
[[transactions.t.statements]]
sql = 'SELECT nmae FROM a WHERE id = 1'
[[transactions.t.statements]]
sql = 'SELECT id FROM a'
keep = { x = 'int', y = 'int' }
[[transactions.t.statements]]
sql = 'SELECT id FROM b'
";
    let told_of = |text: &str, status: i32| refused(&home, &server, &mix(&home, text), &[], status);
    let ended = told_of(text, 3);
    for reported in [
        "m.toml:8:7: ",
        "nmae",
        "m.toml:10:7: ",
        "keeps 2 columns and its result has 1",
        "m.toml:13:7: ",
        "mydyno.b",
    ] {
        assert!(ended.stderr.contains(reported), "{reported}: {}", ended.stderr);
    }
    let ended = told_of(&text.replace("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE a (idd INT)"), 3);
    let reported = "table a has no column \"id\" (m.toml:5:1): did you mean idd?";
    assert!(ended.stderr.contains(reported), "{}", ended.stderr);
    let ended = told_of("[transactions.t]\nstatments = 1\nweight = 'x'\n", 2);
    assert!(ended.stderr.contains("m.toml:2:1") && ended.stderr.contains("m.toml:3:10"), "{}", ended.stderr);
}

#[test]
fn a_prepare_of_a_mix_that_is_killed_goes_on_and_makes_the_same_rows() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let text = "\
[tables.a]
create = 'CREATE TABLE a (n INT, note VARCHAR(20)) ENGINE=InnoDB'
rows = 40000
after = ['CREATE INDEX n ON a (n)']
[tables.a.columns]
n = { uniform = [1, 1000] }
note = { alphanumeric = [5, 20] }
[tables.b]
create = 'CREATE TABLE b (id INT, n INT) ENGINE=MyISAM'
rows = 20000
[tables.b.columns]
id = { sequence = 1 }
n = { zipfian = 'a' }
[transactions.t]
statements = [{ sql = 'SELECT 1' }]
";
    let file = mix(&home, text);
    let file = file.as_str();
    let bench = |schema, more: &[&str]| {
        let args = [&["prepare", "--schema", schema, "--quiet"], more].concat();
        server.bench(file, &args).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |args: Vec<String>| home.fine(&args.iter().map(String::as_str).collect::<Vec<_>>());
    // The polls below are those of another client, which the guard would refuse to load beside.
    let slow = bench("cut", &["--prepare-rate", "20000", "--allow-load"]);
    let mut killed = home.start(&slow.iter().map(String::as_str).collect::<Vec<_>>());
    until("some parts of both tables are in", || {
        let there =
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'cut' AND TABLE_NAME = 'b'";
        server.sql(there)[0][0] == "1"
            && server.sql("SELECT COUNT(*) FROM cut.mydyno_mark WHERE name LIKE 'mix.part.%'")[0][0]
                .parse::<u64>()
                .unwrap()
                > 3
    });
    signal(killed.id() as i32, libc::SIGKILL);
    killed.wait().unwrap();
    until("its connections are gone", || {
        server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'cut'")[0][0] == "0"
    });
    let rows =
        |table: &str| server.sql(&format!("SELECT COUNT(*) FROM cut.{table}"))[0][0].parse::<u64>().unwrap();
    assert!(rows("a") + rows("b") > 0 && rows("a") + rows("b") < 60_000);
    // A new database has no comment.
    server.sql("ALTER TABLE cut.a COMMENT 'the first'; ALTER TABLE cut.b COMMENT 'the first'");
    run(bench("cut", &[]));
    run(bench("whole", &[]));
    for table in ["a", "b"] {
        let made = server.sql(&format!("SHOW CREATE TABLE cut.{table}"))[0][1].clone();
        assert!(made.contains("the first"), "{made}");
        let content = |schema: &str| {
            let columns = if table == "a" { "n, note" } else { "id, n" };
            server
                .sql(&format!("SELECT COUNT(*), SUM(CRC32(CONCAT_WS(',', {columns}))) FROM {schema}.{table}"))
        };
        assert_eq!(content("cut"), content("whole"), "{table}");
    }
    assert_eq!(server.sql("SELECT COUNT(*) FROM cut.mydyno_mark WHERE name LIKE 'mix.part.%'"), [["0"]]);
    home.fine(&server.bench(file, &["check", "--schema", "cut"]));
}

#[test]
fn tables_of_two_workloads_live_side_by_side_and_a_foreign_table_stays() {
    let home = Home::new();
    let server = home.server("s", &[]);
    home.fine(&server.bench("oltp_read_only", &["prepare", "--table-size", "100"]));
    home.fine(&server.bench("hot_row", &["prepare"]));
    home.fine(&server.bench("slap", &["prepare"]));
    home.fine(&server.bench("oltp_read_only", &["check", "--table-size", "100"]));
    home.fine(&server.bench("hot_row", &["check"]));
    let file = mix(
        &home,
        "[tables.t1]\ncreate = 'CREATE TABLE t1 (id INT)'\n[transactions.t]\nstatements = [{ sql = 'SELECT 1' }]\n",
    );
    let ended = home.end(&server.bench(&file, &["prepare"]));
    assert!(ended.status == 3 && ended.stderr.contains("has a table t1"), "{}", ended.stderr);
    home.fine(&server.bench("slap", &["check"]));
}

#[test]
fn the_same_seed_makes_the_same_rows_and_each_connection_asks_the_same_for_any_number_of_workers() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let shop = root().join("workloads/shop.toml");
    let sums = |schema: &str, seed: &str| {
        let rest = ["prepare", "--schema", schema, "--seed", seed];
        home.fine(&server.bench(shop.to_str().unwrap(), &rest));
        server.sql(&format!("CHECKSUM TABLE {schema}.item"))[0][1].clone()
    };
    let (one, again, other) = (sums("one", "5"), sums("again", "5"), sums("other", "6"));
    assert_eq!(one, again);
    assert_ne!(one, other);

    let file = mix(
        &home,
        "[transactions.t]\nstatements = [{ sql = 'SELECT ?, ?', params = [{ uniform = [1, 1000000] }, { unique = true }] }]\n",
    );
    server.sql("SET GLOBAL log_output = 'TABLE'");
    let streams = |workers: &str| {
        server.sql("SET GLOBAL general_log = 0; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1");
        // Few enough that the log keeps up.
        let rest = ["--connections", "3", "--workers", workers, "--rate", "300", "--allow-load"];
        load(&home, &server, &file, &rest);
        server.sql("SET GLOBAL general_log = 0");
        let rows = server.sql(
            "SELECT thread_id, argument FROM mysql.general_log WHERE command_type = 'Execute' ORDER BY event_time",
        );
        let mut by_connection = std::collections::BTreeMap::<String, Vec<String>>::new();
        for row in rows {
            by_connection.entry(row[0].clone()).or_default().push(row[1].clone());
        }
        let mut streams: Vec<Vec<String>> =
            by_connection.into_values().map(|asked| asked.into_iter().take(20).collect()).collect();
        streams.sort();
        streams
    };
    let (one, three) = (streams("1"), streams("3"));
    assert_eq!(one.len(), 3);
    assert!(one.iter().all(|stream| stream.len() == 20), "{one:?}");
    assert_eq!(one, three);
}
