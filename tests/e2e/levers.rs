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
    // Each statement depends on the one before it.
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
fn every_result_of_a_server_whose_syncs_are_delayed_says_so() {
    let home = Home::new();
    for (lever, expected) in [("server.sync_delay=1ms", true), ("server.nice=1", false)] {
        let out = home.path().join(lever);
        let small = ["workload.tables=1", "workload.table-size=10", lever];
        home.fine(&[&with(&small)[..], &["--out", out.to_str().unwrap()]].concat());
        let summary = document(&out.join("summary.json"));
        let warning = summary["warnings"].as_array().unwrap().iter().find(|w| w["id"] == "delayed-syncs");
        assert_eq!(warning.is_some(), expected, "{summary}");
        assert!(warning.is_none_or(|w| w["text"].as_str().unwrap().contains("1 ms longer")), "{summary}");
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_whose_syncs_are_delayed_has_its_allocator_all_the_same() {
    let home = Home::new();
    let folder = home.path().join("libraries");
    fs::create_dir(&folder).unwrap();
    // Any library does in the place of one that may not be here; this one every program of Rust has.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let library =
        maps.lines().find_map(|line| line.split(' ').find(|word| word.contains("/libgcc_s.so"))).unwrap();
    let jemalloc = folder.join("libjemalloc.so.2");
    fs::copy(library, &jemalloc).unwrap();
    let up = |allocator: &str, name: &str| {
        let lever = format!("server.allocator={allocator}");
        let levers = ["--lever", "server.sync_delay=1ms", "--lever", lever.as_str()];
        let up = [&["server", "up", name, "--json", "--quiet"][..], &levers].concat();
        let output = home.command(&up).env("LD_LIBRARY_PATH", &folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let environment = fs::read(format!("/proc/{}/environ", info["pid"])).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        environment.split('\0').find_map(|one| one.strip_prefix("LD_PRELOAD=")).unwrap().to_owned()
    };
    let delays =
        |name: &str| home.state().join("servers").join(name).join("sync_delay.so").display().to_string();
    assert_eq!(up("jemalloc", "a"), format!("{}:{}", delays("a"), jemalloc.display()));
    assert_eq!(up("glibc", "b"), delays("b"));
    home.fine(&["server", "down", "--all"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_says_what_it_takes_of_an_option_file_and_what_it_leaves_out() {
    let home = Home::new();
    let file = home.path().join("production.cnf");
    fs::write(&file, "[mysqld]\ndatadir=/var/lib/mysql\nsync_binlog=0\nmax_connections=33\n").unwrap();
    let lever = format!("server.option_file={}", file.display());
    let output = home.run(&["server", "up", "x", "--lever", &lever]);
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{reported}");
    for part in ["2 options", "datadir=/var/lib/mysql", "durability: sync_binlog=0"] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    let rows = home.fine(&["server", "cli", "x", "-e", "SELECT @@max_connections"]);
    assert_eq!(rows.lines().last(), Some("33"));
    home.fine(&["server", "down", "x"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}
