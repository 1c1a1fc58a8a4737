//! `mydyno checkup` on a private server with faults in its option file.

use std::fs;

use serde_json::Value;

use crate::home::Home;

/// A redo log far too small, a large sort buffer, and commits that a crash loses.
const FAULTY: &str =
    "[mysqld]\ninnodb_log_file_size=4M\nsort_buffer_size=64M\ninnodb_flush_log_at_trx_commit=0\n";

fn option_file(home: &Home) -> String {
    let file = home.path().join("faulty.cnf");
    fs::write(&file, FAULTY).unwrap();
    format!("--lever=server.option_file={}", file.display())
}

#[test]
fn the_plan_names_the_advice_and_the_reasons_and_measures_nothing() {
    let home = Home::new();
    let file = option_file(&home);
    let reported = home.fine(&["checkup", "--sandbox", &file, "--plan"]);
    for expected in [
        "redo-small                 option.innodb_log_file_size=",
        "sort-buffer-size           option.sort_buffer_size=262144",
        "flush-log-at-trx-commit    option.innodb_flush_log_at_trx_commit=1",
        "Not measured:",
        "hardly any data",
    ] {
        assert!(reported.contains(expected), "{expected}: {reported}");
    }
    // What makes data safer is measured last: it is advised whatever it costs.
    assert!(
        reported.find("sort-buffer-size").unwrap() < reported.find("flush-log-at-trx-commit").unwrap(),
        "{reported}"
    );
    let one = home.fine(&["checkup", "--sandbox", &file, "--plan", "--only", "redo-small"]);
    assert!(
        one.starts_with("1 piece of advice would be") && !one.contains("option.sort_buffer_size"),
        "{one}"
    );
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn advice_is_measured_and_the_folder_holds_the_page_and_the_experiment() {
    let home = Home::new();
    let (file, out) = (option_file(&home), home.path().join("out"));
    let out_option = format!("--out={}", out.display());
    // Commits of both arms sync the binary log. Syncs that take a while leave most of the machine to others.
    let short = [
        "--only=flush-log-at-trx-commit",
        "--lever=server.sync_delay=10ms",
        "--set=log_bin=b",
        "--set=sync_binlog=1",
        "--slice=200ms",
        "--warmup=0s",
        "--budget=40s",
        "--connections=1",
    ];
    let checkup =
        home.json(&[&["checkup", "--sandbox", &file, &out_option, "--json", "--quiet"][..], &short].concat());
    let advice = &checkup["advice"].as_array().unwrap()[0];
    assert_eq!(advice["claim"], "flush-log-at-trx-commit", "{checkup:#}");
    assert_eq!(advice["for_safety"], true, "{advice:#}");
    assert_eq!(advice["undo"][0]["text"], "SET GLOBAL innodb_flush_log_at_trx_commit = 0", "{advice:#}");
    assert_eq!(advice["changes"][0], "option.innodb_flush_log_at_trx_commit=1");
    assert!(advice["effect_ratio"]["value"].as_f64() > Some(0.0), "{advice:#}");
    assert!(checkup["joint"].is_null() && checkup["minimal"].is_null(), "safety is no gain: {checkup:#}");
    assert!(
        checkup["shape"]["set_up"].to_string().contains("option.innodb_log_file_size=4194304"),
        "{checkup:#}"
    );
    assert_eq!(
        serde_json::from_str::<Value>(&fs::read_to_string(out.join("checkup.json")).unwrap()).unwrap(),
        checkup
    );
    let page = fs::read_to_string(out.join("checkup.html")).unwrap();
    assert!(
        page.contains("For the safety of the data") && page.contains("innodb_flush_log_at_trx_commit"),
        "{page}"
    );
    assert!(fs::read_to_string(out.join("checkup.md")).unwrap().starts_with("# Check-up"));
    let experiment = out.join("flush-log-at-trx-commit").display().to_string();
    assert!(home.fine(&["report", &experiment]).contains("innodb_flush_log_at_trx_commit"));
    let verdicts = home.json(&["verdicts", "flush-log-at-trx-commit", "--json"]);
    assert_eq!(verdicts["verdicts"].as_array().unwrap().len(), 1, "{verdicts:#}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn mistakes_are_told_before_anything_starts() {
    let home = Home::new();
    let full = home.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("file"), "").unwrap();
    let out = format!("--out={}", full.display());
    for (args, expected) in [
        (&["--budget=30s"][..], "--budget: at least"),
        (&["--delta=2"], "--delta"),
        (&["--workload=oltp_read_wrote"], "oltp_read_write"),
        (&["--only=redo-smal"], "redo-small"),
        (&[out.as_str()], "it is not empty"),
    ] {
        let reported = home.fails(2, &[&["checkup", "--sandbox"], args].concat());
        assert!(reported.contains(expected), "{args:?}: {reported}");
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
}
