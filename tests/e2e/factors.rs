//! `mydyno compare --factor`: designs with their alias tables, effects that follow from construction, and what stays when it is ended.

use std::process::Stdio;

use serde_json::Value;

use crate::fixture::{document, signal, until};
use crate::home::Home;

/// A commit load in windows as short as the machinery allows.
const SHORT: [&str; 11] = [
    "compare",
    "oltp_update_non_index",
    "--both=workload.tables=1",
    "--both=workload.table-size=1000",
    "--connections=2",
    "--budget=62s",
    "--slice=300ms",
    "--settle=100ms",
    "--warmup=300ms",
    "--json",
    "--quiet",
];

/// Runs that wait most of the time, so that machinery is tested without using the machine up.
const WAITING: &str = "--both=server.sync_delay=10ms";

const A: &str = "--factor=sort_buffer_size=256K,512K";
const B: &str = "--factor=join_buffer_size=256K,512K";

fn effect<'a>(result: &'a Value, name: &str) -> &'a Value {
    let effects = result["responses"][0]["effects"].as_array().unwrap();
    effects.iter().find(|effect| effect["effect"] == name).unwrap()
}

/// The size of an effect in either direction, as a logarithm.
fn size(effect: &Value) -> f64 {
    effect["effect_ratio"]["value"].as_f64().unwrap().ln().abs()
}

#[test]
fn of_two_factors_the_one_that_delays_syncs_acts_and_each_run_has_its_own_server() {
    let home = Home::new();
    let out = home.path().join("factors");
    let out_option = format!("--out={}", out.display());
    let factors = ["--factor=server.sync_delay=4ms,40ms", "--factor=sort_buffer_size=256K,512K"];
    let ended = home.end(&[&SHORT[..], &factors, &[&out_option]].concat());
    assert_eq!(ended.status, 0, "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&result["family"], &result["mode"]), (&"full".into(), &"rows".into()), "{result:#}");
    assert_eq!(result["runs"], serde_json::json!(["--", "+-", "-+", "++"]));
    let delayed = effect(&result, "A");
    assert_eq!(delayed["finding"], "supported", "{result:#}");
    assert!(delayed["effect_ratio"]["high"].as_f64().unwrap() < 0.9, "{delayed}");
    assert!(
        size(effect(&result, "B")) < size(delayed) && size(effect(&result, "AB")) < size(delayed),
        "{result:#}"
    );
    assert!(result["answer"].as_str().unwrap().contains("server.sync_delay 4ms → 40ms -"), "{result:#}");
    assert_eq!(document(&out.join("factorial.json")), result);
    let runs = std::fs::read_to_string(out.join("runs.jsonl")).unwrap();
    assert_eq!(runs.lines().count(), result["rows"].as_array().unwrap().len());
    assert_eq!(home.lasting_traces(), [""; 0]);
    let again = home.fails(3, &[&SHORT[..], &factors, &[&out_option]].concat());
    assert!(again.contains("it holds an experiment already"), "{again}");
}

#[test]
fn levers_that_take_effect_at_once_are_swapped_in_one_server() {
    let home = Home::new();
    let words = "compare oltp_update_non_index --both=workload.tables=1 --both=workload.table-size=1000 --connections=2 \
                 --both=server.sync_delay=10ms --factor=variable.innodb_flush_log_at_trx_commit=1,0 \
                 --factor=variable.max_connections=100,200 --factor=variable.sort_buffer_size=256K,512K --design=fractional \
                 --budget=25s --slice=300ms --settle=100ms --warmup=300ms";
    let words: Vec<&str> = words.split_whitespace().collect();
    let ended = home.end(&words);
    assert_eq!(ended.status, 0, "{ended:?}");
    for line in [
        "Fractional factorial 2^(3-1) of resolution III: 4 runs, C=AB.",
        "  A   + BC",
        "  A   variable.innodb_flush_log_at_trx_commit  +",
        "The price of variable.innodb_flush_log_at_trx_commit=0: ",
        "cannot be separated from interactions of two factors",
    ] {
        assert!(ended.stdout.contains(line), "{line}: {ended:?}");
    }
    assert!(
        ended.stderr.contains("Price of variable.innodb_flush_log_at_trx_commit=0: durability"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("One private server;"), "{ended:?}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_run_whose_server_does_not_start_is_a_result_and_the_others_go_on() {
    let home = Home::new();
    let factors = ["--factor=character_set_server=utf8mb4,nosuch", "--factor=sort_buffer_size=256K,512K"];
    let ended = home.end(&[&SHORT[..], &[WAITING], &factors].concat());
    assert_eq!(ended.status, 1, "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let failures = result["failures"].to_string();
    assert!(failures.contains("rows of run +-") && failures.contains("rows of run ++"), "{result:#}");
    assert!(!failures.contains("rows of run --") && !failures.contains("rows of run -+"), "{result:#}");
    assert_eq!(result["answer"], "The effects could not be estimated.");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn an_interrupt_keeps_what_was_measured_and_puts_everything_back() {
    let home = Home::new();
    let out = home.path().join("kept");
    let out_option = format!("--out={}", out.display());
    let factors =
        ["--factor=variable.sort_buffer_size=256K,512K", "--factor=variable.max_connections=100,200"];
    let args = [&SHORT[..], &factors, &[WAITING, &out_option]].concat();
    let mut child = home.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lines = || std::fs::read_to_string(out.join("runs.jsonl")).map_or(0, |text| text.lines().count());
    until("three rows", || lines() >= 3);
    signal(child.id() as i32, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let kept = document(&out.join("factorial.json"));
    assert!(kept["measured_rows"].as_u64() >= Some(3), "{kept:#}");
    assert!(kept["threats"].to_string().contains("rows were measured"), "{kept:#}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_killed_experiment_goes_on_with_its_next_row_and_has_a_page_and_a_line_in_the_ledger() {
    let home = Home::new();
    let out = home.path().join("kept");
    let out_option = format!("--out={}", out.display());
    let factors =
        ["--factor=variable.sort_buffer_size=256K,512K", "--factor=variable.max_connections=100,200"];
    let args = [&SHORT[..], &factors, &[WAITING, &out_option]].concat();
    let rows = || {
        let text = std::fs::read_to_string(out.join("runs.jsonl")).unwrap_or_default();
        text[..text.rfind('\n').map_or(0, |end| end + 1)].to_owned()
    };
    let mut child = home.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("three rows", || rows().lines().count() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = rows();
    let table = document(&out.join("factorial.json"))["rows"].clone();
    let ended = home.end(&["prove", "--resume", &out.display().to_string(), "--json", "--quiet"]);
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(rows().starts_with(&kept), "a row was lost");
    assert_eq!(result["rows"], table);
    assert_eq!(result["measured_rows"].as_u64(), Some(table.as_array().unwrap().len() as u64), "{result:#}");
    assert_eq!(rows().lines().count(), table.as_array().unwrap().len());
    let page = std::fs::read_to_string(out.join("factorial.html")).unwrap();
    assert!(page.contains("variable.sort_buffer_size") && page.contains("<svg"), "{page}");
    assert_eq!(home.fine(&["report", &out.display().to_string(), "--html"]).trim_end(), page.trim_end());
    let verdicts = home.fine(&["verdicts"]);
    assert!(verdicts.contains("compare-oltp_update_non_index"), "{verdicts}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_plan_shows_the_alias_table_and_mistakes_are_named_before_anything_is_started() {
    let home = Home::new();
    let five = ["sort", "join", "read", "read_rnd", "net"];
    let five = five.map(|name| format!("--factor=variable.{name}_buffer_size=64K,128K"));
    let five: Vec<&str> = five.iter().map(String::as_str).collect();
    let plan = |more: &[&str]| {
        home.end(&[&["compare", "oltp_point_select", "--plan", "--budget=2h"], &five[..], more].concat())
    };
    let ended = plan(&["--runs=8"]);
    for line in [
        "2^(5-2) of resolution III: 8 runs, D=AB, E=AC.",
        "  A   + BD + CE",
        "One private server;",
        "smallest effect",
    ] {
        assert!(ended.status == 0 && ended.stdout.contains(line), "{line}: {ended:?}");
    }
    let ended = plan(&["--design=screening"]);
    assert!(
        ended.stdout.contains("Plackett-Burman screening design of resolution III: 5 factors in 12 runs."),
        "{ended:?}"
    );
    let host = ["--factor=vm.swappiness=10,60", "--factor=thp.enabled=always,never"];
    for (args, says) in [
        (&["--factor=sync_binlog=1,0"][..], "give two or more"),
        (&[A, "--factor=sync_binlog=1"], "a factor is LEVER=LOW,HIGH"),
        (&[A, B, "--treatment=sync_binlog=1"], "cannot be used with"),
        (&[A, B, "--mode=alternate"], "in-place or rows"),
        (&[A, B, "--design=fractional"], "3 to 11 factors, not 2"),
        (&[A, B, "--budget=5s"], "are too short"),
        (&["--factor=server.no_such=1,2", B], "server.no_such"),
        (&host, "--allow-host-change"),
    ] {
        let error = home.fails(2, &[&["compare", "oltp_point_select"], args].concat());
        assert!(error.contains(says), "{args:?}: {error}");
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
}
