//! `--lever` of servers and loads.

use std::fs;

use crate::fixture::document;
use crate::home::Home;

const LOAD: [&str; 9] = [
    "bench",
    "oltp_point_select",
    "--sandbox",
    "--connections=2",
    "--time=1s",
    "--warmup=0s",
    "--no-observe",
    "--json",
    "--quiet",
];

fn with<'a>(levers: &'a [&'a str]) -> Vec<&'a str> {
    let levers = levers.iter().flat_map(|lever| ["--lever", *lever]);
    LOAD.into_iter().chain(levers).collect()
}

#[test]
fn a_load_turns_levers_of_its_server_its_tables_and_its_workload() {
    let home = Home::new();
    let out = home.path().join("run");
    let out = ["--out", out.to_str().unwrap()];
    // Each statement needs what is there before it.
    let levers = with(&[
        "server.nice=1",
        "workload.tables=1",
        "workload.table-size=77",
        "schema.statement=ALTER TABLE mydyno.sbtest1 ADD COLUMN extra INT, ENGINE=Aria",
        "schema.statement=UPDATE mydyno.sbtest1 SET extra = 1 WHERE id = 77",
        "schema.statement=ALTER TABLE mydyno.sbtest1 DROP COLUMN extra",
    ]);
    home.fine(&[&levers[..], &out].concat());
    let manifest = document(&home.path().join("run/manifest.json"));
    let options = manifest["plan"]["workload"]["options"].clone();
    assert_eq!(
        (options["table-size"].as_u64(), options["tables"].as_u64()),
        (Some(77), Some(1)),
        "{manifest}"
    );
    let argv = manifest["argv"].to_string();
    assert!(argv.contains("ADD COLUMN extra") && argv.contains("server.nice=1"), "{argv}");
    for (lever, status, says) in [
        ("schema.statement=ALTER TABLE mydyno.sbtest1 DROP COLUMN extra", 2, "extra"),
        ("workload.tabel-size=1", 2, "table-size"),
        ("vm.swappiness=61", 3, "--allow-host-change"),
        ("cgroup.memory=much", 2, "512M"),
    ] {
        let error = home.fails(status, &with(&["workload.tables=1", "workload.table-size=10", lever]));
        assert!(error.contains(says), "{lever}: {error}");
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn levers_of_a_load_are_refused_where_there_is_none() {
    let home = Home::new();
    for command in [&["server", "up", "x"][..], &["server", "crash"], &["audit", "--sandbox"]] {
        for lever in ["workload.tables=1", "schema.statement=SELECT 1"] {
            let error = home.fails(2, &[command, &["--lever", lever]].concat());
            assert!(error.contains(lever) && error.contains("mydyno bench"), "{command:?}: {error}");
        }
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_library_that_the_loader_passes_over_is_no_allocator() {
    let home = Home::new();
    let folder = home.path().join("libraries");
    fs::create_dir(&folder).unwrap();
    // It is there, and no library.
    fs::write(folder.join("libjemalloc.so.2"), "").unwrap();
    let up = ["server", "up", "x", "--lever", "server.allocator=jemalloc"];
    let output = home.command(&up).env("LD_LIBRARY_PATH", &folder).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("runs without") && error.contains("cannot be preloaded"), "{error}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_says_what_it_takes_of_an_option_file_and_what_it_leaves_out() {
    let home = Home::new();
    let file = home.path().join("production.cnf");
    fs::write(&file, "[mysqld]\ndatadir=/var/lib/mysql\nsync_binlog=0\nmax_connections=33\n").unwrap();
    let lever = format!("server.option_file={}", file.display());
    let output = home.run(&["server", "up", "x", "--lever", &lever]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    for part in ["2 options", "datadir=/var/lib/mysql", "sync_binlog decides what a crash can lose"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let rows = home.fine(&["server", "cli", "x", "-e", "SELECT @@max_connections"]);
    assert_eq!(rows.lines().last(), Some("33"));
    home.fine(&["server", "down", "x"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}
