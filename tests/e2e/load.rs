//! The load of `mydyno bench`: open loops and their counts, repeats and their order, churn, the search for capacity.

use std::path::PathBuf;

use serde_json::Value;

use crate::fixture::{Ended, Server, document, lines, signal, until};
use crate::home::Home;

const SMALL: &[&str] = &["--table-size", "500", "--quiet", "--json", "--no-observe"];

/// Runs a bench on a private server: how it ended, and its record.
fn bench(home: &Home, server: &Server<'_>, name: &str, rest: &[&str]) -> (Ended, PathBuf) {
    let run = home.path().join(name);
    let out = run.to_str().unwrap();
    let args = [SMALL, rest, &["--out", out]].concat();
    (home.end(&server.bench("oltp_point_select", &args)), run)
}

fn count(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or(0)
}

/// Checks that arrivals are neither lost nor made up, from interval to interval.
fn assert_balanced(intervals: &[Value]) {
    let mut before = (Value::Null, 0);
    for interval in intervals {
        let arrivals = &interval["arrivals"];
        let carried = if before.0 == interval["step"] { before.1 } else { 0 };
        let waiting = count(arrivals, "queued") + count(arrivals, "in_flight");
        let ended = count(interval, "transactions") + count(arrivals, "failed") + count(arrivals, "dropped");
        assert_eq!(carried + count(arrivals, "intended"), ended + waiting, "{interval}");
        before = (interval["step"].clone(), waiting);
    }
}

fn warnings(summary: &Value) -> Vec<&str> {
    summary["warnings"].as_array().unwrap().iter().map(|w| w["id"].as_str().unwrap()).collect()
}

#[test]
fn the_books_of_an_open_loop_balance_exactly() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let rest = ["--rate", "300", "--connections", "4", "--time", "2s", "--warmup", "1s"];
    let (ended, run) = bench(&home, &server, "run", &rest);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert_balanced(&lines(&run.join("intervals.jsonl")));
    let step = &document(&run.join("summary.json"))["steps"][0];
    let due = &step["due"];
    assert_eq!(
        count(due, "carried") + count(due, "intended"),
        count(due, "done") + count(due, "failed") + count(due, "waiting")
    );
    // 600 arrivals of a Poisson schedule, six standard deviations.
    assert!((450..750).contains(&count(due, "intended")), "{due}");
    assert_eq!((step["rate"].as_f64(), step["warmup_s"].as_f64().map(f64::round)), (Some(300.0), Some(1.0)));
}

#[test]
fn a_rate_beyond_the_server_becomes_lateness_and_never_an_abort() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let rest = ["--rate", "500000", "--connections", "1", "--time", "2s", "--warmup", "1s"];
    let (ended, run) = bench(&home, &server, "run", &rest);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert_balanced(&lines(&run.join("intervals.jsonl")));
    let summary = document(&run.join("summary.json"));
    let step = &summary["steps"][0];
    assert!(count(&step["due"], "waiting") > 100_000, "{}", step["due"]);
    assert!(count(&step["due"], "warmup_dropped") > 100_000, "{}", step["due"]);
    // A transaction that ended after two seconds had waited for most of them.
    assert!(step["response_us"]["max"].as_f64().unwrap() > 1e6, "{}", step["response_us"]);
    for id in ["overloaded", "warmup-backlog"] {
        assert!(warnings(&summary).contains(&id), "{id}: {:?}", warnings(&summary));
    }
}

#[test]
fn repeats_run_in_rounds_whose_order_the_plan_tells_and_are_merged() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let rest = ["--connections", "1,2", "--repeat", "2", "--time", "1s", "--warmup", "0s"];
    let (ended, run) = bench(&home, &server, "run", &rest);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let plan = &document(&run.join("manifest.json"))["plan"];
    let order: Vec<u64> = plan["order"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let mut ran: Vec<u64> = Vec::new();
    for event in lines(&run.join("events.jsonl")).iter().filter(|e| e["event"] == "phase") {
        if ran.last() != event["step"].as_u64().as_ref() {
            ran.push(event["step"].as_u64().unwrap());
        }
    }
    assert_eq!(ran, order);
    for (repeat, round) in order.chunks(2).enumerate() {
        let points: Vec<_> = round.iter().map(|n| &plan["steps"][*n as usize]).collect();
        assert!(points.iter().all(|p| count(p, "repeat") == repeat as u64), "{plan}");
        assert_ne!(points[0]["connections"], points[1]["connections"]);
    }
    let summary = document(&run.join("summary.json"));
    assert_eq!(summary["steps"].as_array().unwrap().len(), 4);
    let points = summary["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    let mean: f64 = [0, 1]
        .map(|n| summary["steps"][n]["throughput"]["transactions_per_s"]["value"].as_f64().unwrap())
        .iter()
        .sum::<f64>()
        / 2.0;
    let merged = &points[0]["throughput"]["transactions_per_s"];
    assert!((merged["value"].as_f64().unwrap() - mean).abs() < 1e-6 * mean, "{merged}");
    // Two repeats that lie far apart have no usable interval, so none is given.
    let ends = [&merged["low"], &merged["high"]].map(Value::as_f64);
    assert!(
        matches!(ends, [Some(low), Some(high)] if low < mean && mean < high) || ends == [None; 2],
        "{merged}"
    );
    let text = home.fine(&["report", run.to_str().unwrap()]);
    assert!(text.contains("Repeats together") && text.contains("2 repeats"), "{text}");
}

#[test]
fn the_time_of_opening_connections_is_recorded_apart() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let rest =
        ["--connections", "2", "--reconnect-every", "5", "--idle", "3", "--time", "1s", "--warmup", "0s"];
    let (ended, run) = bench(&home, &server, "run", &rest);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let step = &document(&run.join("summary.json"))["steps"][0];
    assert!(count(&step["connect_us"], "count") > 0, "{step}");
    assert_eq!(count(step, "reconnects"), 0, "nothing was lost");
    assert_eq!(step["errors"], serde_json::json!({}));
}

#[test]
fn the_highest_rate_that_holds_was_measured_and_held_more_often_than_not() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let rest = [
        "--find-capacity",
        "p50<5s,errors<1%",
        "--resolution",
        "50%",
        "--connections",
        "2",
        "--time",
        "1s",
        "--warmup",
        "0s",
    ];
    let (ended, run) = bench(&home, &server, "run", &rest);
    let summary = document(&run.join("summary.json"));
    let capacity = &summary["capacity"];
    assert_eq!(ended.status, 0, "{} {capacity}", ended.stderr);
    let rate = capacity["rate_per_s"].as_f64().unwrap();
    let trials = capacity["trials"].as_array().unwrap();
    let held = |held: bool| {
        let of = |t: &&Value| {
            t["rate_per_s"].as_f64() == Some(rate) && t["broken"].as_array().unwrap().is_empty() == held
        };
        trials.iter().filter(of).count()
    };
    assert!(held(true) > held(false), "{capacity}");
    // Every step is in the record, with what it asked.
    let added = lines(&run.join("events.jsonl")).iter().filter(|e| e["event"] == "step").count();
    assert_eq!(added + 1, summary["steps"].as_array().unwrap().len());
    assert_eq!(added, trials.len(), "the first step is the closed loop");
    let path = run.to_str().unwrap();
    let again: Value = serde_json::from_str(&home.fine(&["report", path, "--json"])).unwrap();
    assert_eq!(&again["capacity"], capacity, "derived from the record alone");
    let text = home.fine(&["report", path]);
    assert!(text.contains("Capacity: ") && text.contains("p50<5s,errors<1%"), "{text}");
}

#[test]
fn a_search_that_is_interrupted_keeps_what_it_measured() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let run = home.path().join("run");
    let rest = [
        "--find-capacity",
        "p99<1us",
        "--rate",
        "50",
        "--time",
        "1s",
        "--warmup",
        "0s",
        "--out",
        run.to_str().unwrap(),
    ];
    let child = home.start(&server.bench("oltp_point_select", &[SMALL, &rest].concat()));
    until("the first rate did not hold and the next is measured", || {
        std::fs::read_to_string(run.join("events.jsonl"))
            .is_ok_and(|text| text.contains("\"event\":\"step\""))
    });
    signal(child.id() as i32, libc::SIGINT);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, 130, "{}", ended.stderr);
    let summary = document(&run.join("summary.json"));
    assert_eq!(summary["end"], "interrupted");
    let capacity = &summary["capacity"];
    assert_eq!(capacity["rate_per_s"], Value::Null);
    // Rates only fall here, and the second one may have been over as well.
    let trials = capacity["trials"].as_array().unwrap();
    assert_eq!(trials[0]["rate_per_s"], 50.0);
    assert_eq!(capacity["broken_at_per_s"], trials.last().unwrap()["rate_per_s"]);
    assert!(capacity["end"].as_str().unwrap().contains("interrupted"), "{capacity}");
}

#[test]
fn both_event_loops_take_answers_that_are_longer_than_all_their_buffers() {
    let home = Home::new();
    let server = home.server("s", &[]);
    // A thousand rows of 120 bytes for each of 16 connections, and 64 buffers of 2 KiB.
    let load = ["--table-size", "2000", "--range-size", "1000", "--connections", "16", "--workers", "1"];
    let short = ["--time", "2s", "--warmup", "0s", "--no-observe", "--quiet"];
    for backend in ["epoll", "io_uring"] {
        let run = home.path().join(backend);
        let named = ["--backend", backend, "--out", run.to_str().unwrap()];
        let ended = home.end(&server.bench("oltp_read_only", &[&load[..], &short, &named].concat()));
        if backend == "io_uring" && ended.stderr.contains("io_uring: ") {
            assert!(ended.stderr.contains("it takes Linux 6.1"), "{}", ended.stderr);
            continue;
        }
        assert_eq!(ended.status, 0, "{backend}: {}", ended.stderr);
        let wait = &document(&run.join("manifest.json"))["plan"]["wait"];
        assert_eq!((&wait["backend"], &wait["scheduling"]), (&backend.into(), &"batch".into()));
        let step = &document(&run.join("summary.json"))["steps"][0];
        assert!(count(step, "transactions") > 0 && step["errors"] == serde_json::json!({}), "{step}");
    }
}

#[test]
fn answers_that_are_let_gather_say_so_and_wait_at_least_so_long() {
    let home = Home::new();
    let server = home.server("s", &[]);
    for backend in ["epoll", "io_uring"] {
        let rest = [
            "--coalesce",
            "5ms",
            "--backend",
            backend,
            "--time",
            "2s",
            "--warmup",
            "0s",
            "--connections",
            "2",
        ];
        let (ended, run) = bench(&home, &server, backend, &rest);
        if ended.stderr.contains("it takes Linux 6.1") {
            continue;
        }
        assert_eq!(ended.status, 0, "{}", ended.stderr);
        let summary = document(&run.join("summary.json"));
        assert!(warnings(&summary).contains(&"coalesced"), "{backend}: {:?}", warnings(&summary));
        let transactions = count(&summary["steps"][0], "transactions");
        // Two connections, answered once in 5 ms each: 800 in two seconds, fewer where the machine is slow.
        assert!((1..=820).contains(&transactions), "{backend}: {transactions}");
    }
}

#[test]
fn every_mistake_about_the_load_is_told_at_once() {
    let home = Home::new();
    let mistakes = [
        "--rate",
        "fast",
        "--ramp",
        "5",
        "--arrivals",
        "poison",
        "--think",
        "soon",
        "--repeat",
        "0",
        "--warmup",
        "auto:x",
        "--backend",
        "kqueue",
        "--coalesce",
        "1s",
        "--idle",
        "some",
        "--connect-rate",
        "0",
        "--reconnect-every",
        "0",
        "--ignore-errors",
        "1062",
        "--resolution",
        "5",
        "--find-capacity",
        "tps>5",
    ];
    let args = [&["bench", "oltp_point_select", "--dsn", "mysql://u@h/"][..], &mistakes].concat();
    let ended = home.end(&args);
    assert_eq!(ended.status, 2, "{}", ended.stderr);
    for part in [
        "--rate: \"fast\"",
        "--ramp: excludes --rate",
        "did you mean poisson?",
        "--think: ",
        "--repeat: \"0\"",
        "--warmup: \"x\"",
        "--backend: \"kqueue\" is not epoll or io_uring",
        "--coalesce: longer than 10ms",
        "--idle: \"some\"",
        "--connect-rate: \"0\"",
        "--reconnect-every: \"0\"",
        "--ignore-errors: takes effect with --stop-on-error only",
        "--resolution: \"5\"",
        "--find-capacity: \"tps>5\" does not limit the load",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}
