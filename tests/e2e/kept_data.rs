//! `mydyno server down --keep-data`, `server up --data` and `server data`.

use serde_json::Value;

use crate::home::Home;

const SMALL: [&str; 2] = ["--set", "innodb_log_file_size=8M"];

fn up(home: &Home, args: &[&str]) -> Value {
    home.json(&[&["server", "up"], args, &SMALL, &["--json"]].concat())
}

fn sql(home: &Home, server: &str, statement: &str) -> String {
    home.fine(&["server", "cli", server, "-e", statement]).lines().last().unwrap_or_default().to_owned()
}

/// Little room where kept data can have a disk: elsewhere a request for room is refused.
fn little_room(home: &Home) -> &'static [&'static str] {
    let levers = home.json(&["host", "levers", "--json"]);
    let disk = levers["levers"].as_array().unwrap().iter().find(|lever| lever["id"] == "disk.file_system");
    let disk = disk.unwrap();
    let shares = |value: &Value| value["value"] == "xfs" || value["value"] == "btrfs";
    let mut values = disk["values"].as_array().unwrap().iter();
    let here = disk["lacks"].is_null() && values.any(|value| shares(value) && value["lacks"].is_null());
    if here { &["--room", "64M"] } else { &[] }
}

#[test]
fn data_are_kept_of_one_server_and_others_start_from_them() {
    let home = Home::new();
    assert!(home.fine(&["server", "data", "list"]).contains("--keep-data"));
    up(&home, &["a"]);
    sql(
        &home,
        "a",
        "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2), (3)",
    );
    home.fine(&[&["server", "down", "a", "--keep-data", "seed"], little_room(&home)].concat());
    assert_eq!(home.lasting_traces(), [""; 0]);
    let list = home.json(&["server", "data", "list", "--json"]);
    assert_eq!(list["schema"], "mydyno.kept-data-list/1");
    let seed = &list["data"][0];
    assert_eq!((&seed["name"], &seed["servers"]), (&Value::from("seed"), &Value::from(Vec::<Value>::new())));
    assert!(home.fine(&["server", "data", "list"]).contains("seed"));
    for server in ["b", "c"] {
        up(&home, &[server, "--data", "seed"]);
        assert_eq!(sql(&home, server, "SELECT COUNT(*) FROM d.t"), "3");
        sql(&home, server, "DELETE FROM d.t");
    }
    if !seed["disk"].is_null() {
        let refused = home.fails(3, &["server", "data", "remove", "seed"]);
        assert!(refused.contains("mydyno server down"), "{refused}");
    }
    home.fine(&["server", "down", "b", "c"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
    home.fine(&["server", "data", "check", "seed"]);
    up(&home, &["d", "--data", "seed", "--copy-data"]);
    assert_eq!(sql(&home, "d", "SELECT COUNT(*) FROM d.t"), "3");
    let taken = home.fails(2, &["server", "down", "d", "--keep-data", "seed"]);
    assert!(taken.contains("seed") && taken.contains("data remove"), "{taken}");
    // A refused command has not ended the server.
    assert_eq!(sql(&home, "d", "SELECT 1"), "1");
    home.fine(&["server", "down", "d", "--keep-data", "plain", "--plain"]);
    up(&home, &["e", "--data", "plain"]);
    assert_eq!(sql(&home, "e", "SELECT COUNT(*) FROM d.t"), "3");
    home.fine(&["server", "down", "e"]);
    for name in ["seed", "plain"] {
        home.fine(&["server", "data", "remove", name]);
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
    assert!(!home.state().join("data").exists());
}

#[test]
fn a_bench_on_a_private_server_starts_from_kept_tables() {
    let home = Home::new();
    let info = up(&home, &["a"]);
    let tables = ["oltp_point_select", "--tables=1", "--table-size=500", "--quiet"];
    let dsn = info["dsn"].as_str().unwrap();
    home.fine(&[&["bench"], &tables[..], &["prepare", "--dsn", dsn]].concat());
    home.fine(&[&["server", "down", "a", "--keep-data", "tables"], little_room(&home)].concat());
    let load =
        ["--sandbox", "--data", "tables", "--connections=1", "--time=1s", "--warmup=0s", "--no-observe"];
    let reported = |load: &[&str]| {
        let output = home.run(&[&["bench"], &tables[..3], load].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let from_kept = reported(&load);
    assert!(from_kept.contains("Brought back") && !from_kept.contains("Tables made"), "{from_kept}");
    let empty = reported(&[&load[..1], &load[3..]].concat());
    assert!(empty.contains("Tables made"), "{empty}");
    assert!(home.fails(2, &["bench", "oltp_point_select", "--data", "tables"]).contains("--sandbox"));
    home.fine(&["server", "data", "remove", "tables"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn data_that_are_not_there_and_servers_that_were_killed_are_named() {
    let home = Home::new();
    let info = up(&home, &["a"]);
    for (args, status, says) in [
        (vec!["server", "up", "b", "--data", "nowhere"], 2, "no kept data nowhere"),
        (vec!["server", "data", "check", "nowhere"], 2, "no kept data nowhere"),
        (vec!["server", "data", "remove", "../x"], 2, "letters"),
        (vec!["server", "down", "--all", "--keep-data", "x"], 2, "--all"),
        (vec!["server", "down", "a", "b", "--keep-data", "x"], 2, "one server"),
        (vec!["server", "down", "b", "--keep-data", "x"], 2, "no private server b"),
    ] {
        let error = home.fails(status, &args);
        assert!(error.contains(says), "{args:?}: {error}");
    }
    let pid = info["pid"].as_i64().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    let error = home.fails(3, &["server", "down", "a", "--keep-data", "torn"]);
    assert!(error.contains("good order") && error.contains("mydyno server down a"), "{error}");
    home.fine(&["server", "down", "a"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}
