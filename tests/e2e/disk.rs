//! `mydyno host disk` and `mydyno server crash`.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use crate::home::Home;

/// Whether this machine can emulate a disk; if not, that it says what it lacks.
fn can_emulate(home: &Home) -> bool {
    let levers = home.json(&["host", "levers", "--json"])["levers"].clone();
    let medium =
        levers.as_array().unwrap().iter().find(|lever| lever["id"] == "disk.medium").unwrap().clone();
    if let Some(lacks) = medium["lacks"].as_str() {
        println!("not tested: {lacks}");
    }
    medium["lacks"].is_null()
}

#[test]
fn a_disk_is_made_written_to_cut_switched_on_and_taken_down() {
    let home = Home::new();
    if !can_emulate(&home) {
        return;
    }
    let refused = home.fails(3, &["host", "disk", "up", "d", "--size", "64M"]);
    assert!(refused.contains("--allow-host-change") && refused.contains("emulated disk"), "{refused}");
    let up = ["host", "disk", "up", "d", "--size", "64M", "--allow-host-change", "--json"];
    let made = home.json(&up);
    assert_eq!(made["kind"], "emulated disk");
    let point = Path::new(made["mount"].as_str().unwrap()).to_owned();
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(point.to_str().unwrap())).unwrap();
    assert!(line.contains(" ext4 "), "{line}");
    // What was synced survives a cut; what was not is lost.
    let kept = fs::File::create(point.join("kept")).unwrap();
    kept.write_all_at(b"kept", 0).unwrap();
    kept.sync_all().unwrap();
    fs::File::open(&point).unwrap().sync_all().unwrap();
    drop(kept);
    let state = home.json(&["host", "disk", "state", "d", "--json"]);
    assert!(state["counters"]["flushes"].as_u64().unwrap() > 0, "{state}");
    let cut = home.json(&["host", "disk", "cut", "d", "--json"]);
    assert_eq!((&cut["power"], &cut["counters"]["cuts"]), (&Value::from(false), &Value::from(1)), "{cut}");
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(point.to_str().unwrap()));
    home.fine(&["host", "disk", "on", "d"]);
    assert_eq!(fs::read(point.join("kept")).unwrap(), b"kept");
    assert!(home.fine(&["host", "disk", "state", "d"]).contains("emulated disk): power on"));
    home.fine(&["host", "disk", "down", "d"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(point.to_str().unwrap()));
    assert!(home.fails(3, &["host", "disk", "state", "d"]).contains("disk"));
}

#[test]
fn a_load_on_an_emulated_disk_says_so_in_its_result() {
    let home = Home::new();
    if !can_emulate(&home) {
        return;
    }
    let warned = |more: &[&str]| {
        let load =
            ["bench", "oltp_point_select", "--tables", "1", "--table-size", "100", "--json", "--quiet"];
        let times = ["--connections", "2", "--time", "1s", "--warmup", "0s", "--no-observe"];
        let summary = home.json(&[&load[..], &times, more].concat());
        let found = summary["warnings"].as_array().unwrap().iter().any(|w| w["id"] == "emulated-disk");
        assert!(!summary["steps"].as_array().unwrap().is_empty(), "{summary}");
        found
    };
    let disk = ["--lever", "disk.file_system=ext4", "--lever", "disk.size=512M"];
    let emulated = ["--lever", "disk.medium=emulated", "--allow-host-change"];
    let up = [&["server", "up", "slow", "--json"], &disk[..], &emulated].concat();
    let dsn = home.json(&up)["dsn"].as_str().unwrap().to_owned();
    assert!(warned(&["--dsn", &dsn]));
    home.fine(&["server", "down", "slow"]);
    assert!(warned(&[&["--sandbox"], &disk[..], &emulated].concat()));
    assert!(!warned(&[&["--sandbox"], &disk[..]].concat()));
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_probe_on_an_emulated_disk_says_so() {
    let home = Home::new();
    if !can_emulate(&home) {
        return;
    }
    let up = ["host", "disk", "up", "d", "--size", "256M", "--allow-host-change", "--json"];
    let made = home.json(&up);
    let point = made["mount"].as_str().unwrap();
    let warned =
        |report: &Value| report["warnings"].as_array().unwrap().iter().any(|w| w["id"] == "emulated-disk");
    let probe = |folder: &str| {
        let probe =
            ["probe", "fsync", "--json", "--size", "1M", "--patterns", "overwrite", "--folder", folder];
        home.json(&[&probe[..], &["--time", "500ms", "--rounds", "1", "--methods", "fdatasync"]].concat())
    };
    let on_it = probe(point);
    assert_eq!(on_it["storage"]["disk"], "emulated disk", "{on_it}");
    assert!(warned(&on_it));
    let beside = probe(home.path().to_str().unwrap());
    assert!(!warned(&beside) && beside["storage"]["disk"].is_null(), "{beside}");
    home.fine(&["host", "disk", "down", "d"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_crash_is_counted_and_leaves_nothing() {
    let home = Home::new();
    let lever = "option.innodb_flush_log_at_trx_commit=2";
    let counted = home.json(&["server", "crash", "--commits", "50", "--lever", lever, "--json"]);
    assert!(counted["acknowledged"].as_u64().unwrap() >= 50, "{counted}");
    for none in ["lost", "torn", "never_sent"] {
        assert_eq!(counted[none], 0, "{none}: {counted}");
    }
    let refused = home.fails(2, &["server", "crash", "--by", "power-cut", "--commits", "10"]);
    assert!(refused.contains("disk.medium") && refused.contains("emulated"), "{refused}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}
