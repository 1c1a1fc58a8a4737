//! Stacks captured beside a load and a watch, slow seconds, and the black box.

use std::fs;

use serde_json::Value;

use crate::home::Home;

/// Why no stacks were captured, where the kernel does not permit it.
fn refused(folder: &std::path::Path) -> Option<String> {
    let notes = fs::read_to_string(folder.join("notes.jsonl")).unwrap_or_default();
    notes.lines().find(|line| line.contains("Not sampled: stacks")).map(str::to_owned)
}

fn sum_of_shares(budget: &Value) -> f64 {
    let classes = budget["classes"].as_array().unwrap_or_else(|| panic!("{budget}"));
    classes.iter().map(|class| class["share"].as_f64().unwrap()).sum()
}

#[test]
fn a_bench_has_the_budget_of_each_step_in_every_form_and_keeps_the_stacks() {
    let home = Home::new();
    let folder = home.path().join("run");
    let out = folder.to_str().unwrap();
    let summary = home.fine(&[
        "bench",
        "hot_row",
        "--sandbox",
        "--set",
        "performance_schema=ON",
        "--connections",
        "2,12",
        "--no-shuffle",
        "--think",
        "5ms",
        "--time",
        "11s",
        "--warmup",
        "0s",
        "--out",
        out,
        "--json",
        "--quiet",
    ]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    if let Some(why) = refused(&folder) {
        println!("not run: {why}");
        return;
    }
    let steps = summary["steps"].as_array().unwrap();
    for step in steps {
        let details = &step["details"];
        assert!(details["figures"]["innodb.transactions"].as_f64().unwrap() >= 0.0, "{details}");
        assert!(!details["waits"].as_array().unwrap().is_empty(), "{details}");
        let budget = &step["diagnosis"]["budget"];
        assert!((sum_of_shares(budget) - 1.0).abs() < 1e-9, "{budget}");
        assert!(budget["captures"].as_u64().unwrap() >= 1, "{budget}");
    }
    let busy = |step: usize| steps[step]["diagnosis"]["budget"]["busy_threads"].as_f64().unwrap();
    assert!(busy(1) > busy(0), "{} {}", busy(0), busy(1));
    let whole: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("diagnosis.json")).unwrap()).unwrap();
    assert_eq!(whole["schema"], "mydyno.diagnosis/1");
    assert!((sum_of_shares(&whole["budget"]) - 1.0).abs() < 1e-9, "{whole}");
    for file in ["cpu.folded", "waits.folded"] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert!(text.contains("do_command"), "{file}: {text}");
    }
    let text = home.fine(&["report", out]);
    assert!(text.contains("where the time went") && text.contains("on a CPU, in the server"), "{text}");
    let markdown = home.fine(&["report", out, "--markdown"]);
    for title in ["## Where the time went", "## InnoDB", "## Waits"] {
        assert!(markdown.contains(title), "{title}: {markdown}");
    }
    let page = home.fine(&["report", out, "--html"]);
    assert!(
        page.contains("id=\"budget\"")
            && page.contains("id=\"details\"")
            && page.contains("<title>on a CPU, in the server"),
        "no budget in the page"
    );
    // The samples of a bench are a watch, which then has the same figures.
    let replayed = home.fine(&["watch", "--replay", out, "--json"]);
    assert!(replayed.contains("budget.row_lock_threads"), "no budget in the replay");

    let without = home.path().join("without");
    let summary = home.fine(&[
        "bench",
        "hot_row",
        "--sandbox",
        "--connections",
        "2",
        "--time",
        "6s",
        "--think",
        "5ms",
        "--warmup",
        "0s",
        "--out",
        without.to_str().unwrap(),
        "--json",
        "--quiet",
        "--no-profile",
    ]);
    assert!(!summary.contains("\"budget\"") && !without.join("cpu.folded").exists());
}

#[test]
fn a_watch_with_a_budget_prints_and_records_it() {
    let home = Home::new();
    let server = home.server("w", &[]);
    let dsn = server.text("dsn");
    home.fine(&["bench", "hot_row", "prepare", "--dsn", dsn, "--quiet", "--allow-load"]);
    let mut load = home.spawn(&[
        "bench",
        "hot_row",
        "run",
        "--dsn",
        dsn,
        "--connections",
        "8",
        "--time",
        "1m",
        "--warmup",
        "0s",
        "--quiet",
        "--allow-load",
        "--no-observe",
    ]);
    let folder = home.path().join("watched");
    let words = ["watch", "--dsn", dsn, "--budget", "--count", "12", "--record", folder.to_str().unwrap()];
    let text = home.fine(&words);
    crate::fixture::signal(i32::try_from(load.id()).unwrap(), libc::SIGINT);
    load.wait().unwrap();
    if let Some(why) = refused(&folder) {
        println!("not run: {why}");
        return;
    }
    assert!(text.contains("threads at work") && text.contains("Where the time of statements went"), "{text}");
    let replayed = home.fine(&["watch", "--replay", folder.to_str().unwrap(), "--json"]);
    let diagnosis: Value = serde_json::from_str(replayed.lines().last().unwrap()).unwrap();
    assert!((sum_of_shares(&diagnosis["budget"]) - 1.0).abs() < 1e-9, "{diagnosis}");
    let cost = diagnosis["figures"]["observe.profile_cpu_share"].as_f64().unwrap();
    assert!(cost > 0.0, "{cost}");
}

#[test]
fn a_black_box_keeps_what_is_marked_and_prints_its_unit() {
    let home = Home::new();
    let server = home.server("b", &[]);
    let folder = home.path().join("box");
    let path = folder.to_str().unwrap();
    let unit = home.fine(&["watch", "--black-box", path, "--unit", "--interval", "2s"]);
    assert!(
        unit.contains("ExecStart=") && unit.contains("--interval 2s --quiet") && unit.contains("[Install]"),
        "{unit}"
    );
    assert_eq!(home.run(&["watch", "--mark", path]).status.code(), Some(3), "a mark without a black box");
    let mut child = home.start(&[
        "watch",
        "--dsn",
        server.text("dsn"),
        "--black-box",
        path,
        "--interval",
        "200ms",
        "--json",
    ]);
    crate::fixture::until("the ring", || folder.join("marks").is_dir());
    home.fine(&["watch", "--mark", path, "--text", "checkout is slow"]);
    crate::fixture::until("the mark to be seen", || {
        fs::read_dir(folder.join("marks")).is_ok_and(|mut files| files.next().is_none())
    });
    crate::fixture::signal(i32::try_from(child.id()).unwrap(), libc::SIGINT);
    child.wait().unwrap();
    let incidents: Vec<_> =
        fs::read_dir(folder.join("incidents")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    let text = fs::read_to_string(incidents[0].join("incident.txt")).unwrap();
    assert!(text.contains("checkout is slow"), "{text}");
    let replayed = home.fine(&["watch", "--replay", incidents[0].to_str().unwrap(), "--json"]);
    assert!(replayed.contains("server.questions_per_s"), "{replayed}");
}
