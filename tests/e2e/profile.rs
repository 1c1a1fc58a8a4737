//! `mydyno watch --profile` on real servers.

use std::fs;

use serde_json::Value;

use crate::fixture::{Server, until};
use crate::home::Home;

/// A profile beside a load; `None`, with a word, where the kernel does not permit it.
fn profile(home: &Home, server: &Server<'_>, load: &[&str], args: &[&str]) -> Option<Value> {
    let executed = || server.counter("Com_stmt_execute");
    let before = executed();
    let mut load = home
        .spawn(&[&["bench"], load, &["--time", "1m", "--warmup", "0s", "--quiet", "--allow-load"]].concat());
    until("the load is at work", || executed() > before + 1_000);
    let output = home.run(&[&["watch", "--profile=3s", "--json", "--quiet"], args].concat());
    crate::fixture::signal(i32::try_from(load.id()).unwrap(), libc::SIGINT);
    load.wait().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3)
        && (error.contains("perf_event") || error.contains("performance events"))
    {
        println!("not run: {error}");
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn share(profile: &Value, class: &str) -> f64 {
    let classes = profile["budget"]["classes"].as_array().unwrap();
    classes.iter().find(|c| c["class"] == class).map_or(0.0, |c| c["share"].as_f64().unwrap())
}

/// Share of a class in the waits for something else than a CPU: how much of the whole these are depends on the host's other load.
fn share_of_waits(profile: &Value, class: &str) -> f64 {
    let of_cpu: f64 =
        ["cpu-user", "cpu-kernel", "cpu-wait", "spin"].iter().map(|class| share(profile, class)).sum();
    share(profile, class) / (1.0 - of_cpu)
}

#[test]
fn a_hot_row_and_a_synced_log_are_where_the_time_goes_and_shares_sum_to_one() {
    let home = Home::new();
    let server = home.server("p", &["--set", "innodb_flush_log_at_trx_commit=0"]);
    let dsn = server.text("dsn");
    let folded = home.path().join("cpu.folded");
    let waits = home.path().join("waits.folded");
    let args =
        ["--dsn", dsn, "--folded", folded.to_str().unwrap(), "--folded-waits", waits.to_str().unwrap()];
    let Some(hot) = profile(&home, &server, &["hot_row", "--dsn", dsn, "--connections", "16"], &args) else {
        return;
    };
    assert_eq!(hot["schema"], "mydyno.profile/1");
    assert_eq!(hot["pid"].as_u64(), u64::try_from(server.pid()).ok());
    let classes = hot["budget"]["classes"].as_array().unwrap();
    let sum: f64 = classes.iter().map(|class| class["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{hot}");
    let locked = share_of_waits(&hot, "row-lock");
    assert!(locked > 0.5, "{hot}");
    assert!(share(&hot, "unexplained") < 0.2, "{hot}");
    // All of what the threads of 16 connections did in the window is in the budget or idle.
    let budget = &hot["budget"];
    let seconds = budget["busy_s"].as_f64().unwrap() + budget["idle_s"].as_f64().unwrap();
    let whole = 16.0 * hot["window_s"].as_f64().unwrap();
    assert!((0.8..1.1).contains(&(seconds / whole)), "{seconds} of {whole}: {hot}");
    // The stacks are files that other tools read: functions, a space, a whole number.
    for file in [&folded, &waits] {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.lines().count() > 3, "{text}");
        assert!(text.lines().all(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().is_ok()), "{text}");
        assert!(text.contains("do_command"), "{text}");
    }

    let flame = home.path().join("flame.html");
    let pid = server.pid().to_string();
    home.fine(&[
        "watch",
        "--profile=1s",
        "--pid",
        &pid,
        "--flame",
        flame.to_str().unwrap(),
        "--baseline",
        folded.to_str().unwrap(),
    ]);
    let page = fs::read_to_string(&flame).unwrap();
    assert!(page.contains("On the CPU") && page.contains("Waiting") && page.contains("flame-data"), "{page}");
    let wrong =
        home.fails(2, &["watch", "--profile", "--pid", &pid, "--flame", "x", "--baseline", "/dev/null/x"]);
    assert!(wrong.contains("--baseline"), "{wrong}");

    let update = ["oltp_update_non_index", "--dsn", dsn, "--connections", "4"];
    let unsynced = profile(&home, &server, &update, &["--dsn", dsn]).unwrap();
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit=1");
    let synced = profile(&home, &server, &update, &["--dsn", dsn]).unwrap();
    assert!(share(&unsynced, "redo-sync") < 0.05, "{unsynced}");
    assert!(share_of_waits(&synced, "redo-sync") > 0.5, "{synced}");
    assert!(share_of_waits(&synced, "row-lock") < 0.3, "{synced}");
}

#[test]
fn what_cannot_be_profiled_is_said_with_the_way_out() {
    let home = Home::new();
    let gone = home.fails(3, &["watch", "--profile=1s", "--pid", "4194305"]);
    assert!(gone.contains("process 4194305 is not there"), "{gone}");
    assert!(home.fails(2, &["watch", "--folded", "x"]).contains("--profile"));
    assert!(home.fails(2, &["watch", "--profile=x", "--pid", "1"]).contains("--profile"));
    assert!(home.fails(2, &["watch", "--profile", "--csv"]).contains("--csv"));
}
