//! `mydyno compare`: verdicts that follow from construction, and what stays when it is ended.

use std::process::Stdio;

use serde_json::Value;

use crate::fixture::{Ended, document, signal, until};
use crate::home::Home;

/// A commit load in slices as short as the machinery allows: effects are made large enough for them.
const SHORT: [&str; 12] = [
    "compare",
    "oltp_update_non_index",
    "--both=workload.tables=1",
    "--both=workload.table-size=1000",
    "--connections=2",
    "--budget=70s",
    "--starts=3",
    "--slice=300ms",
    "--settle=100ms",
    "--warmup=500ms",
    "--json",
    "--quiet",
];

/// A server of both sides that waits most of the time, so that machinery is tested without using the machine up.
const WAITING: &str = "--both=server.sync_delay=10ms";

#[test]
fn delayed_syncs_are_supported_as_slower_and_nothing_is_left() {
    let home = Home::new();
    let out = home.path().join("verdict");
    let out_option = format!("--out={}", out.display());
    let args = [
        &SHORT[..],
        &["--baseline=server.sync_delay=5ms", "--treatment=server.sync_delay=40ms", &out_option],
    ]
    .concat();
    let ended = home.end(&args);
    assert_eq!(ended.status, 0, "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict["verdict"], "supported", "{verdict:#}");
    let effect = &verdict["responses"][0]["effect_ratio"];
    assert!(effect["high"].as_f64().unwrap() < 0.9, "{effect}");
    assert!(verdict["answer"].as_str().unwrap().contains(" fewer transactions a second "), "{verdict:#}");
    // A server that waits uses no CPU: far less than the 40 ms of a delay.
    let responses = verdict["responses"].as_array().unwrap();
    let cpu = responses.iter().find(|response| response["name"] == "server_cpu_us_per_transaction").unwrap();
    let cpu_us = cpu["treatment"].as_f64().unwrap();
    assert!(cpu_us > 1.0 && cpu_us < 20_000.0, "{cpu}");
    assert_eq!(verdict["starts"], 3);
    assert_eq!(document(&out.join("verdict.json")), verdict);
    let design = document(&out.join("design.json"));
    let rows = design["rows"].as_array().unwrap().len();
    let slices = std::fs::read_to_string(out.join("slices.jsonl")).unwrap();
    assert_eq!(slices.lines().count(), rows);
    assert_eq!(home.lasting_traces(), [""; 0]);
    let worse = home.end(&[&args[..args.len() - 1], &["--fail-if-worse", "--plan"]].concat());
    assert_eq!(worse.status, 0, "{worse:?}");
}

#[test]
fn a_treatment_whose_server_does_not_start_is_a_result_with_the_servers_words() {
    let home = Home::new();
    let ended = home.end(&[&SHORT[..], &[WAITING, "--treatment=no_such_variable=1"]].concat());
    assert_eq!(ended.status, 1, "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict["verdict"], "undecided");
    assert!(verdict["answer"].as_str().unwrap().contains("could not be compared"), "{verdict:#}");
    assert!(verdict["failures"][0].as_str().unwrap().contains("no_such_variable"), "{verdict:#}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_that_is_killed_in_a_slice_marks_its_blocks_and_the_others_go_on() {
    let home = Home::new();
    let out = home.path().join("kept");
    let out_option = format!("--out={}", out.display());
    let args = [&SHORT[..], &[WAITING, "--treatment=sync_binlog=1", &out_option]].concat();
    let running = home.start(&args);
    let slices = || std::fs::read_to_string(out.join("slices.jsonl")).unwrap_or_default();
    until("the first slices", || slices().lines().count() >= 4);
    let name = format!("prove-{}-0-treatment", running.id());
    let killed =
        home.processes().into_iter().find(|line| line.contains(&name) && line.contains("datadir")).unwrap();
    let pid = killed["process ".len()..].split(':').next().unwrap().parse().unwrap();
    signal(pid, libc::SIGKILL);
    let ended = Ended::from(running.wait_with_output().unwrap());
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    let failures = verdict["failures"].to_string();
    for says in ["slices of the treatment", "the server has ended, and its log ends with"] {
        assert!(failures.contains(says), "{says}: {failures}");
    }
    assert!(!failures.contains("slices of the baseline"), "{failures}");
    assert!(verdict["starts"].as_u64() >= Some(2), "{verdict:#}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_treatment_whose_disk_is_full_is_a_result() {
    let home = Home::new();
    let full = [WAITING, "--treatment=disk.file_system=ext4", "--treatment=disk.size=48M"];
    let ended = home.end(&[&SHORT[..], &full].concat());
    assert_eq!(ended.status, 1, "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict["verdict"], "undecided");
    assert!(verdict["failures"].to_string().contains("slices of the treatment"), "{verdict:#}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn an_arm_that_gives_the_load_generator_fewer_cpus_is_no_verdict_on_the_server() {
    let home = Home::new();
    let words = "compare oltp_point_select --both=workload.tables=1 --both=workload.table-size=1000 --both=client.character_set=latin1 \
                 --treatment=client.cpus=0 --connections=2 --mode=in-place --budget=25s --slice=300ms --settle=100ms --warmup=300ms \
                 --json --quiet";
    let ended = home.end(&words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ended.status, 1, "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict["verdict"], "undecided", "{verdict:#}");
    assert!(
        verdict["answer"].as_str().unwrap().starts_with("No verdict on the server (client-bound)"),
        "{verdict:#}"
    );
    assert_eq!(
        (&verdict["threats"][0]["id"], verdict.get("failures")),
        (&"client-bound".into(), None),
        "{verdict:#}"
    );
    let refused = home.fails(2, &["bench", "oltp_point_select", "--sandbox", "--lever", "client.cpus=0"]);
    assert!(refused.contains("mydyno compare"), "{refused}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn an_interrupt_keeps_the_slices_and_ends_all_servers() {
    let home = Home::new();
    let out = home.path().join("kept");
    let out_option = format!("--out={}", out.display());
    let args = [&SHORT[..], &[WAITING, "--treatment=sync_binlog=1", &out_option]].concat();
    let mut child = home.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let measured =
        || std::fs::read_to_string(out.join("slices.jsonl")).is_ok_and(|text| text.lines().count() >= 2);
    until("two slices are measured", measured);
    // SAFETY: a signal to a child of this test that was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(measured());
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn mistakes_are_named_all_at_once_before_anything_is_started() {
    let home = Home::new();
    for (args, says) in [
        (&["--treatment=/no/such/file"][..], "a side is LEVER=VALUE"),
        (&["--treatment=sync_binlog=0", "--delta=2"], "as in 1%"),
        (&["--treatment=sync_binlog=0", "--baseline=sync_binlog=0"], "are the same"),
        (&["--treatment=vm.swappiness=1"], "concern the whole host"),
        (&["--treatment=sync_binlog=0", "--budget=10s"], "are too short"),
        (&["--treatment=sync_binlog=0", "--connections=1,2"], "one number"),
    ] {
        let error = home.fails(2, &[&["compare", "oltp_point_select"], args].concat());
        assert!(error.contains(says), "{args:?}: {error}");
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
}
