//! Runs of `mydyno bench` that end early: interrupted, killed, without their server, on a full disk.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{Ended, Stopped, document, lines, signal, until};
use crate::home::Home;

/// Starts a long bench and waits until it has measured a second.
pub fn measuring(home: &Home, args: &[&str], run: &Path) -> std::process::Child {
    let child = home.start(args);
    let intervals = run.join("intervals.jsonl");
    until("a second is measured", || {
        let text = fs::read_to_string(&intervals).unwrap_or_default();
        // A line that is not whole yet is lost when the program is killed.
        text.rsplit_once('\n').is_some_and(|(whole, _)| whole.contains("\"phase\":\"measure\""))
    });
    child
}

/// Options of a bench that lasts until it is ended.
fn long(out: &str) -> Vec<&str> {
    vec!["--connections", "4", "--time", "100s", "--warmup", "0s", "--quiet", "--out", out]
}

#[test]
fn an_interrupted_run_keeps_what_was_measured_and_reports() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let run = home.path().join("run");
    let child = measuring(&home, &server.bench("oltp_read_write", &long(run.to_str().unwrap())), &run);
    signal(child.id() as i32, libc::SIGINT);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, 130, "{}", ended.stderr);
    let summary = document(&run.join("summary.json"));
    assert_eq!(summary["end"], "interrupted");
    assert!(summary["steps"][0]["transactions"].as_u64().unwrap() > 0);
    assert!(summary["warnings"].as_array().unwrap().iter().any(|w| w["id"] == "interrupted"));
    assert!(run.join("report.html").exists());
    assert!(ended.stdout.contains("oltp_read_write"), "{}", ended.stdout);
}

#[test]
fn a_server_that_falls_silent_holds_up_neither_a_signal_nor_the_record() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        let home = Home::new();
        let server = home.server("s", &[]);
        let run = home.path().join("run");
        let child = measuring(&home, &server.bench("oltp_read_write", &long(run.to_str().unwrap())), &run);
        // Open connections get no answer, and new ones no greeting.
        let _stopped = Stopped::now(&server);
        until("a second without an answer is recorded", || {
            let text = fs::read_to_string(run.join("intervals.jsonl")).unwrap_or_default();
            text.contains("\"transactions\":0,")
        });
        let begin = Instant::now();
        signal(child.id() as i32, number);
        let ended = Ended::from(child.wait_with_output().unwrap());
        // Answers are awaited for 10 s at the end of a run, which this must be no part of.
        assert!(begin.elapsed() < Duration::from_secs(9), "{:?}", begin.elapsed());
        assert_eq!(ended.status, 130, "{}", ended.stderr);
        let step = &document(&run.join("summary.json"))["steps"][0];
        let intervals = lines(&run.join("intervals.jsonl"));
        let kept = intervals.iter().filter(|i| i["phase"] == "measure");
        let transactions: u64 = kept.map(|i| i["transactions"].as_u64().unwrap()).sum();
        assert!(transactions > 0 && step["transactions"] == transactions, "{step}");
        assert_eq!(intervals.last().unwrap()["phase"], "drain");
        assert!(run.join("report.html").exists());
    }
}

#[test]
fn a_killed_run_can_be_reported() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let run = home.path().join("run");
    let mut child = measuring(&home, &server.bench("oltp_read_write", &long(run.to_str().unwrap())), &run);
    child.kill().unwrap();
    child.wait().unwrap();
    let path = run.to_str().unwrap();
    let summary: Value = serde_json::from_str(&home.fine(&["report", path, "--json"])).unwrap();
    assert_eq!(summary["end"], "killed");
    assert!(summary["steps"][0]["transactions"].as_u64().unwrap() > 0);
    assert!(home.fine(&["report", path]).contains("killed"));
    assert!(home.fine(&["report", path, "--format", "html"]).contains("<html"));
    assert!(home.fine(&["report", path, "--format", "markdown"]).contains("oltp_read_write"));
}

#[test]
fn a_server_that_dies_ends_the_run_with_its_record_kept() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let run = home.path().join("run");
    let child = measuring(&home, &server.bench("oltp_read_write", &long(run.to_str().unwrap())), &run);
    signal(server.pid(), libc::SIGKILL);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("every connection to the server was lost"), "{}", ended.stderr);
    assert!(ended.stderr.contains(run.to_str().unwrap()), "{}", ended.stderr);
    let summary = document(&run.join("summary.json"));
    assert!(summary["steps"][0]["transactions"].as_u64().unwrap() > 0);
    assert!(
        summary["steps"][0]["errors"]["2013"].as_u64().unwrap() >= 1,
        "{}",
        summary["steps"][0]["errors"]
    );
}

#[test]
fn a_server_that_dies_shortly_before_the_end_is_told_as_well() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let run = home.path().join("run");
    let short = ["--time", "10s", "--warmup", "0s", "--quiet", "--out", run.to_str().unwrap()];
    let child = measuring(&home, &server.bench("oltp_point_select", &short), &run);
    signal(server.pid(), libc::SIGKILL);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("every connection to the server was lost"), "{}", ended.stderr);
    assert!(document(&run.join("summary.json"))["steps"][0]["transactions"].as_u64().unwrap() > 0);
}

#[test]
fn a_full_disk_ends_the_run_with_the_way_out() {
    // A small file system in a mount namespace of its own: it goes when the process goes.
    let unshare = |script: &str| Command::new("unshare").args(["-m", "sh", "-ec", script]).output().unwrap();
    if !unshare("mount -t tmpfs none /mnt").status.success() {
        eprintln!("not run: this user may not mount");
        return;
    }
    let home = Home::new();
    let server = home.server("s", &[]);
    home.fine(&server.bench("oltp_point_select", &["prepare"]));
    // What fills the disk are the lines of the seconds, whatever they count.
    let rest = ["--think", "20ms", "--time", "60s", "--warmup", "0s", "--out", "/mnt/run"];
    let bench = home.command(&server.bench("oltp_point_select", &rest));
    let words = std::iter::once(bench.get_program()).chain(bench.get_args());
    let command: Vec<String> = words.map(|w| format!("'{}'", w.to_str().unwrap())).collect();
    let mut shell = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size=256k none /mnt; {}", command.join(" "));
    shell.args(["-m", "sh", "-c", &script]);
    for (name, value) in bench.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let ended = Ended::from(shell.output().unwrap());
    assert_eq!(ended.status, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    assert!(ended.stderr.contains("--out"), "{}", ended.stderr);
}
