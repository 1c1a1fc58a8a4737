//! `mydyno probe`.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::home::Home;
use crate::until::{found, until};

const SHORT: [&str; 6] = ["--time", "200ms", "--warmup", "5ms", "--rounds", "2"];

/// Files of a probe in a folder.
fn left_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with("mydyno-probe"))
        .collect()
}

fn data(home: &Home) -> std::path::PathBuf {
    let folder = home.path().join("data");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn ids<'a>(report: &'a Value, list: &str) -> Vec<&'a str> {
    report[list].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect()
}

#[test]
fn fsync_measures_what_it_was_asked_says_who_flushes_and_leaves_nothing() {
    let home = Home::new();
    let folder = data(&home);
    let out = home.path().join("out");
    let mut args = vec!["probe", "fsync", "--json", "--size", "1M", "--folder", folder.to_str().unwrap()];
    args.extend(["--patterns", "overwrite,append", "--methods", "fdatasync", "--out", out.to_str().unwrap()]);
    args.extend(SHORT);
    let report = home.json(&args);
    assert_eq!(report["schema"], "mydyno.probe/1");
    let mut measured = [ids(&report, "measures"), ids(&report, "not_measured")].concat();
    measured.sort_unstable();
    measured.dedup();
    assert_eq!(measured, ["append.fdatasync", "overwrite.fdatasync"]);
    let storage = &report["storage"];
    assert!(
        storage["file_system"].is_string() && storage["flushes_why"].as_str().unwrap().len() > 10,
        "{storage}"
    );
    for measure in report["measures"].as_array().unwrap() {
        let rate = &measure["figures"][0];
        assert_eq!(rate["name"], "per_s");
        let estimate = &rate["estimate"];
        let (value, method) = (estimate["value"].as_f64().unwrap(), estimate["method"].as_str().unwrap());
        assert!(value > 0.0 && !method.is_empty(), "{rate}");
        if let Some(low) = estimate["low"].as_f64() {
            assert!(low <= value && value <= estimate["high"].as_f64().unwrap(), "{rate}");
        }
    }
    assert!(report["literature"].as_array().unwrap().len() >= 3);
    let written: Value = serde_json::from_str(&fs::read_to_string(out.join("probe.json")).unwrap()).unwrap();
    assert_eq!(written["measures"], report["measures"]);
    assert_eq!(left_in(&folder), [""; 0]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn file_systems_are_compared_on_disks_of_their_own_with_flushes_and_without() {
    let home = Home::new();
    let folder = data(&home);
    let mut args = vec!["probe", "fsync", "--json", "--size", "1M", "--folder", folder.to_str().unwrap()];
    args.extend(["--patterns", "overwrite", "--methods", "fdatasync"]);
    args.extend(["--file-systems", "ext4,xfs,xfs", "--flushes", "sent,suppressed"]);
    args.extend(SHORT);
    let output = home.run(&args);
    if !output.status.success() {
        let reported = String::from_utf8(output.stderr).unwrap();
        assert!(
            ["loop", "mkfs", "/proc/filesystems", "root"].iter().any(|lack| reported.contains(lack)),
            "{reported}"
        );
        println!("not tested: {reported}");
        return;
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut measured = [ids(&report, "measures"), ids(&report, "not_measured")].concat();
    measured.sort_unstable();
    measured.dedup();
    let wanted = ["ext4.sent", "ext4.suppressed", "xfs.sent", "xfs.suppressed"];
    assert_eq!(measured, wanted.map(|ground| format!("{ground}.overwrite.fdatasync")));
    let meaning = report["meaning"].to_string();
    for file_system in ["ext4", "xfs"] {
        assert!(meaning.contains(&format!("({file_system}.suppressed) was sent 0 flushes")), "{meaning}");
        assert!(!meaning.contains(&format!("({file_system}.sent) was sent 0 flushes")), "{meaning}");
    }
    assert!(meaning.contains("those with them: ext4 "), "{meaning}");
    assert_eq!(left_in(&folder), [""; 0]);
    assert_eq!(home.lasting_traces(), [""; 0]);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(folder.to_str().unwrap()), "{mounts}");
    for (list, says) in [(["--file-systems", "zfs"], "zfs"), (["--flushes", "sent"], "--file-systems")] {
        let mut args = vec!["probe", "fsync", "--folder", folder.to_str().unwrap()];
        args.extend(list);
        let error = home.fails(2, &args);
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn readers_beside_a_writer_give_the_reads_and_the_syncs() {
    let home = Home::new();
    let folder = data(&home);
    let mut args = vec!["probe", "random", "--json", "--size", "2M", "--folder", folder.to_str().unwrap()];
    args.extend(["--threads", "2"]);
    args.extend(SHORT);
    let report = home.json(&args);
    // Where the file system has no O_DIRECT, the result says so.
    let all = [ids(&report, "measures"), ids(&report, "not_measured")].concat();
    for id in ["read.2", "write.2", "read.2.beside", "log.2.beside", "log"] {
        assert!(all.contains(&id), "{id}: {all:?}");
    }
    assert_eq!(left_in(&folder), [""; 0]);
}

#[test]
fn a_setting_of_the_host_holds_during_a_probe_and_is_as_before_after_it() {
    let home = Home::new();
    const FILE: &str = "/proc/sys/vm/page-cluster";
    let now = || fs::read_to_string(FILE).unwrap().trim().to_owned();
    let before = now();
    let lever = format!("vm.page-cluster={}", if before == "1" { 2 } else { 1 });
    let probe = [&["probe", "clock", "--json", "--lever", &lever], &SHORT[..]].concat();
    assert!(home.fails(3, &probe).contains("--allow-host-change"));
    assert!(home.fails(2, &["probe", "clock", "--lever", "server.nice=5"]).contains("this is none"));
    let levers = home.json(&["host", "levers", "--json"])["levers"].clone();
    let known = levers.as_array().unwrap().iter().find(|known| known["id"] == "vm.page-cluster");
    if let Some(lacks) = known.and_then(|known| known["lacks"].as_str()) {
        return println!("not tested: {lacks}");
    }
    let report = home.json(&[&probe[..], &["--allow-host-change"]].concat());
    assert_eq!(report["parameters"]["levers"][0], lever.as_str());
    assert_eq!((now(), home.lasting_traces()), (before.clone(), vec![]));
    let mut child = home.spawn(&["probe", "clock", "--time", "1h", "--lever", &lever, "--allow-host-change"]);
    until("the lever is turned", || {
        assert!(child.try_wait().unwrap().is_none());
        now() != before
    });
    child.kill().unwrap();
    child.wait().unwrap();
    home.fine(&["host", "restore"]);
    assert_eq!((now(), home.lasting_traces()), (before, vec![]));
}

#[test]
fn probes_of_the_machine_need_no_folder_and_touch_none() {
    let home = Home::new();
    let probe = |name: &str| {
        let mut args = vec!["probe", name, "--json"];
        args.extend(SHORT);
        home.json(&args)
    };
    for (name, id) in
        [("clock", "monotonic"), ("spin", "pause"), ("threads", "mutex.1"), ("memory", "read.1")]
    {
        let report = probe(name);
        assert!(ids(&report, "measures").contains(&id), "{name}: {report}");
        assert_eq!(report["interrupted"], false);
    }
    let ladder = probe("latency");
    assert!(ids(&ladder, "measures").contains(&"memory"), "{ladder}");
    assert!(ids(&ladder, "not_measured").contains(&"read.device"), "{ladder}");
    assert!(!home.state().exists());
}

#[test]
fn malloc_counts_faults_and_says_which_allocators_are_missing() {
    let home = Home::new();
    let mut args = vec!["probe", "malloc", "--json", "--sizes", "256K", "--threads", "1"];
    args.extend(SHORT);
    let report = home.json(&args);
    let all = [ids(&report, "measures"), ids(&report, "not_measured")].concat();
    for name in ["glibc", "jemalloc", "tcmalloc", "mimalloc"] {
        assert!(all.iter().any(|id| id.split('.').next() == Some(name)), "{name}: {all:?}");
    }
    let fixed =
        report["measures"].as_array().unwrap().iter().find(|m| m["id"] == "glibc_fixed.256KiB.1").unwrap();
    let faults = fixed["figures"].as_array().unwrap().iter().find(|f| f["name"] == "minor_faults").unwrap();
    // Above its threshold glibc maps and unmaps each time: a fault for each page of 4 KiB, fewer only for larger pages.
    let a_time = faults["estimate"]["value"].as_f64().unwrap();
    assert!(a_time >= 1.0, "{faults}");
}

#[test]
fn unlink_gives_the_median_of_few_events_an_interval_only_where_there_are_enough() {
    let home = Home::new();
    let folder = data(&home);
    let run = |count: &str| {
        let folder = folder.to_str().unwrap();
        home.json(&["probe", "unlink", "--json", "--sizes", "1M", "--count", count, "--folder", folder])
    };
    let median = |report: &Value| report["measures"][0]["figures"][0]["estimate"].clone();
    assert!(median(&run("6"))["level"].as_f64().unwrap() > 0.95);
    assert!(median(&run("2"))["low"].is_null());
    assert_eq!(left_in(&folder), [""; 0]);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let home = Home::new();
    let folder = data(&home);
    let folder = folder.to_str().unwrap();
    let error = home.fails(3, &["probe", "fsync", "--folder", folder, "--size", "4096T"]);
    assert!(error.contains("is free") || error.contains("free, and this needs"), "{error}");
    let error = home.fails(3, &["probe", "malloc", "--sizes", "1G", "--threads", "1024"]);
    assert!(error.contains("at most half"), "{error}");
    let error = home.fails(2, &["probe", "fsync", "--folder", folder, "--patterns", "sideways"]);
    assert!(error.contains("--patterns"), "{error}");
    let error = home.fails(2, &["probe", "random", "--folder", folder, "--block", "1000"]);
    assert!(error.contains("multiple of 512"), "{error}");
    home.fails(3, &["probe", "fsync", "--folder", "/nowhere/at/all"]);
    let error = home.fails(
        3,
        &["probe", "random", "--folder", folder, "--block", "16M", "--size", "1G", "--threads", "1024"],
    );
    assert!(error.contains("at most half") || error.contains("is free"), "{error}");
    assert_eq!(left_in(Path::new(folder)), [""; 0]);
}

#[test]
fn the_data_directory_of_a_server_is_refused_and_a_folder_beside_it_taken() {
    let home = Home::new();
    let up = home.json(&["server", "up", "s", "--json"]);
    let datadir = Path::new(up["datadir"].as_str().unwrap()).to_owned();
    let probe = |folder: &Path| {
        let mut args =
            vec!["probe", "fsync", "--json", "--size", "1M", "--patterns", "overwrite", "--folder"];
        args.push(folder.to_str().unwrap());
        args.extend(SHORT);
        home.run(&args)
    };
    let refused = probe(&datadir);
    let reported = String::from_utf8(refused.stderr).unwrap();
    let beside = datadir.parent().unwrap().join("mydyno-probe");
    assert_eq!(refused.status.code(), Some(3), "{reported}");
    assert!(reported.contains(&format!("--folder {}", beside.display())), "{reported}");
    assert_eq!(left_in(&datadir), [""; 0]);
    fs::create_dir(&beside).unwrap();
    assert!(probe(&beside).status.success());
    fs::remove_dir(&beside).unwrap();
    home.fine(&["server", "down", "s"]);
}

#[test]
fn the_process_that_allocates_ends_with_a_probe_that_was_killed() {
    let home = Home::new();
    let args = ["probe", "malloc", "--sizes", "256K", "--threads", "1", "--time", "1h", "--rounds", "1"];
    let mut probe = home.spawn(&args);
    let children = format!("/proc/{0}/task/{0}/children", probe.id());
    let measures = |pid: &str| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("malloc-child")
    };
    let child = found("a child at work", || {
        let children = fs::read_to_string(&children).unwrap();
        // The child registers its parent with the kernel before anything else, so one that has run for a moment has
        // done so.
        let at_work = |pid: &&str| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let ticks =
                stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11)?.parse::<u64>().ok());
            measures(pid) && ticks.is_some_and(|ticks| ticks > 10)
        };
        children.split_whitespace().find(at_work).map(str::to_owned)
    });
    probe.kill().unwrap();
    probe.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while measures(&child) {
        if Instant::now() > deadline {
            // SAFETY: signals the process that this test has seen start, and that still has its command line.
            unsafe { libc::kill(child.parse().unwrap(), libc::SIGKILL) };
            panic!("process {child} works on");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a probe has made its folder.
fn wait_for_folder(folder: &Path) {
    until("a folder", || !left_in(folder).is_empty());
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let home = Home::new();
    let folder = data(&home);
    let args = ["probe", "fsync", "--json", "--size", "1M", "--time", "1h", "--rounds", "100", "--folder"];
    let mut command = home.command(&[&args[..], &[folder.to_str().unwrap()]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_folder(&folder);
    // SAFETY: signals a child of ours that has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    assert_eq!(left_in(&folder), [""; 0]);
}

#[test]
fn a_probe_that_was_killed_is_cleaned_up_by_host_restore() {
    let home = Home::new();
    let folder = data(&home);
    let args = ["probe", "fsync", "--size", "1M", "--time", "1h", "--rounds", "1", "--folder"];
    let mut child = home.spawn(&[&args[..], &[folder.to_str().unwrap()]].concat());
    wait_for_folder(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(left_in(&folder).len(), 1);
    home.fine(&["host", "restore"]);
    assert_eq!(left_in(&folder), [""; 0]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn the_disks_of_a_probe_that_was_killed_are_unmounted_and_removed_by_host_restore() {
    let home = Home::new();
    let folder = data(&home);
    let within = |table: &str| {
        let text = fs::read_to_string(table).unwrap();
        text.lines().filter(|line| line.contains(folder.to_str().unwrap())).count()
    };
    let loops = || {
        let all =
            fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().path().join("loop/backing_file"));
        let behind = all.filter_map(|file| fs::read_to_string(file).ok());
        behind.filter(|path| path.contains(folder.to_str().unwrap())).count()
    };
    let mut args = vec!["probe", "fsync", "--size", "1M", "--time", "1h", "--rounds", "1"];
    args.extend(["--file-systems", "ext4,xfs", "--flushes", "sent,suppressed", "--folder"]);
    args.push(folder.to_str().unwrap());
    // While the first disk is made, when some are there, and while it measures on all of them.
    for disks in [0, 2, 4] {
        let mut child = home.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let ended = found(&format!("{disks} disks"), || {
            let ended = child.try_wait().unwrap().is_some();
            let there = || !left_in(&folder).is_empty() && within("/proc/self/mountinfo") >= disks;
            (ended || there()).then_some(ended)
        });
        if ended {
            let reported = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
            let lacks = ["loop", "mkfs", "/proc/filesystems", "root"];
            assert!(lacks.iter().any(|lack| reported.contains(lack)), "{reported}");
            println!("not tested: {reported}");
            return;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        home.fine(&["host", "restore"]);
        assert_eq!((within("/proc/self/mountinfo"), loops()), (0, 0), "killed with {disks}");
        assert_eq!(left_in(&folder), [""; 0]);
        assert_eq!(home.lasting_traces(), [""; 0]);
    }
}

#[test]
fn people_get_a_page_with_its_sections_and_quiet_gives_the_result_only() {
    let home = Home::new();
    let mut args = vec!["probe", "clock", "--quiet"];
    args.extend(SHORT);
    let output = home.run(&args);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for says in ["clock: ", "monotonic", "What it means for a server here"] {
        assert!(text.contains(says), "{says}: {text}");
    }
}
