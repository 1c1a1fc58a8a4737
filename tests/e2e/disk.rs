//! `mydyno host disk` and `mydyno server crash`.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

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

const HURRIED: &str = "emulated-disk-hurried";

/// The ids of a document's warnings.
fn warnings(document: &Value) -> Vec<String> {
    let all = document["warnings"].as_array().into_iter().flatten();
    all.map(|warning| warning["id"].as_str().unwrap().to_owned()).collect()
}

/// Makes the emulated disk of a folder serve without delays, as after a request that waited for too long, or the death of its command.
fn hurry(folder: &Path) {
    fs::write(folder.join("emulated/control"), "hurry").unwrap();
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
    // Synced data survive a power cut; others are lost.
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
fn a_disk_of_several_drives_behind_a_protected_cache_keeps_what_nobody_flushed() {
    let home = Home::new();
    if !can_emulate(&home) {
        return;
    }
    let mut up = vec!["host", "disk", "up", "p", "--size", "64M", "--allow-host-change", "--json"];
    up.extend(["--cache", "protected", "--heads", "4", "--scheduler", "mq-deadline"]);
    // Without barriers the file system keeps flushes to itself, which such a cache forgives.
    up.extend(["--features", "^dir_index", "--mount-options", "barrier=0"]);
    let made = home.json(&up);
    let device = made["device"].as_str().unwrap().trim_start_matches("/dev/").to_owned();
    let scheduler =
        |device: &str| fs::read_to_string(format!("/sys/block/{device}/queue/scheduler")).unwrap();
    assert!(scheduler(&device).contains("[mq-deadline]"), "{}", scheduler(&device));
    let point = Path::new(made["mount"].as_str().unwrap()).to_owned();
    fs::write(point.join("kept"), "kept").unwrap();
    fs::File::open(point.join("kept")).unwrap().sync_all().unwrap();
    let state = home.json(&["host", "disk", "state", "p", "--json"]);
    assert_eq!((&state["model"]["heads"], &state["dirty_bytes"]), (&Value::from(4), &Value::from(0)));
    let cut = home.json(&["host", "disk", "cut", "p", "--json"]);
    assert_eq!(cut["counters"]["lost_bytes"], 0, "{cut}");
    let on = home.json(&["host", "disk", "on", "p", "--json"]);
    let device = on["device"].as_str().unwrap().trim_start_matches("/dev/").to_owned();
    assert!(scheduler(&device).contains("[mq-deadline]"), "{}", scheduler(&device));
    assert_eq!(fs::read(point.join("kept")).unwrap(), b"kept");
    home.fine(&["host", "disk", "down", "p"]);
    assert!(scheduler(&device).contains("[none]"), "{}", scheduler(&device));
    assert_eq!(home.lasting_traces(), [""; 0]);
    let ssd = ["host", "disk", "up", "s", "--size", "64M", "--allow-host-change", "--drive", "ssd", "--json"];
    let made = home.json(&ssd);
    let device = made["device"].as_str().unwrap().trim_start_matches("/dev/").to_owned();
    let rotational = fs::read_to_string(format!("/sys/block/{device}/queue/rotational")).unwrap();
    assert_eq!(rotational.trim(), "0");
    let refused = home.fails(3, &[&ssd[..3], &["t"], &ssd[4..], &["--heads", "2"]].concat());
    assert!(refused.contains("disk.heads"), "{refused}");
    home.fine(&["host", "disk", "down", "s"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_load_on_an_emulated_disk_says_so_in_its_result() {
    let home = Home::new();
    if !can_emulate(&home) {
        return;
    }
    let loaded = |load: &str, more: &[&str]| {
        let tables = ["bench", load, "--tables", "1", "--table-size", "100", "--json", "--quiet"];
        let times = ["--connections", "2", "--time", "1s", "--warmup", "0s", "--no-observe"];
        let summary = home.json(&[&tables[..], &times, more].concat());
        assert!(!summary["steps"].as_array().unwrap().is_empty(), "{summary}");
        warnings(&summary)
    };
    let warned = |more: &[&str]| {
        let found = loaded("oltp_point_select", more);
        assert!(!found.contains(&HURRIED.to_owned()), "{found:?}");
        found.contains(&"emulated-disk".to_owned())
    };
    let disk = ["--lever", "disk.file_system=ext4", "--lever", "disk.size=512M"];
    let emulated = ["--lever", "disk.medium=emulated", "--allow-host-change"];
    let up = [&["server", "up", "slow", "--json"], &disk[..], &emulated].concat();
    let dsn = home.json(&up)["dsn"].as_str().unwrap().to_owned();
    assert!(warned(&["--dsn", &dsn]));
    hurry(&home.state().join("servers/slow"));
    // Reads from memory do not reach the disk, with or without delays.
    assert!(loaded("oltp_update_non_index", &["--dsn", &dsn]).contains(&HURRIED.to_owned()));
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
    let warned = |report: &Value| warnings(report).contains(&"emulated-disk".to_owned());
    let probe = |folder: &str| {
        let probe =
            ["probe", "fsync", "--json", "--size", "1M", "--patterns", "overwrite", "--folder", folder];
        home.json(&[&probe[..], &["--time", "500ms", "--rounds", "1", "--methods", "fdatasync"]].concat())
    };
    let on_it = probe(point);
    assert_eq!(on_it["storage"]["disk"], "emulated disk", "{on_it}");
    assert!(warned(&on_it) && !warnings(&on_it).contains(&HURRIED.to_owned()), "{on_it}");
    hurry(&home.state().join("disk-d"));
    let hurried = probe(point);
    assert!(warned(&hurried) && warnings(&hurried).contains(&HURRIED.to_owned()), "{hurried}");
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

#[test]
fn a_crash_on_a_disk_that_hurried_says_so() {
    let home = Home::new();
    if !can_emulate(&home) {
        return;
    }
    let disk = ["disk.file_system=ext4", "disk.size=512M", "disk.medium=emulated", "disk.cache=off"];
    let levers = disk.iter().flat_map(|lever| ["--lever", lever]);
    let crash = ["server", "crash", "--json", "--allow-host-change", "--commits"];
    let args = |commits: &'static str| -> Vec<&str> {
        crash.into_iter().chain([commits]).chain(levers.clone()).collect()
    };
    assert_eq!(warnings(&home.json(&args("20"))), [""; 0]);
    let mut command = home.command(&args("300"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let folder = home.state().join(format!("servers/crash-{}", child.id()));
    let waiting = std::thread::spawn(move || child.wait_with_output().unwrap());
    while !waiting.is_finished() {
        // It takes its time again once the server is made, and before the load begins.
        let _ = fs::write(folder.join("emulated/control"), "hurry");
        std::thread::sleep(Duration::from_millis(5));
    }
    let counted: Value = serde_json::from_slice(&waiting.join().unwrap().stdout).unwrap();
    assert_eq!(warnings(&counted), [HURRIED], "{counted}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}
