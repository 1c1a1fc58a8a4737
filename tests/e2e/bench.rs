//! `mydyno bench` and `mydyno report` on a real server.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::bench_ends::measuring;
use crate::fixture::{Ended, document, lines, signal};
use crate::home::Home;
use crate::house::root;

fn with_out<'a>(args: &[&'a str], out: &'a str) -> Vec<&'a str> {
    let short = ["--time", "2s", "--warmup", "300ms"];
    args.iter().copied().chain(short).chain(["--out", out, "--quiet"]).collect()
}

/// As [`with_out`], for a test that needs no second interval.
fn at_once<'a>(args: &[&'a str], out: &'a str) -> Vec<&'a str> {
    let short = ["--time", "1s", "--warmup", "0s"];
    args.iter().copied().chain(short).chain(["--out", out, "--quiet"]).collect()
}

fn sum(intervals: &[Value], field: &str) -> u64 {
    intervals.iter().map(|i| i[field].as_u64().unwrap()).sum()
}

#[test]
fn a_sweep_leaves_a_whole_and_consistent_record() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let run = home.path().join("run");
    let out = run.to_str().unwrap();
    home.fine(&server.bench("oltp_read_write", &["prepare", "--tables", "2", "--table-size", "1000"]));
    let before = server.counter("Com_stmt_execute");
    let args =
        server.bench("oltp_read_write", &["--tables", "2", "--table-size", "1000", "--connections", "1,3"]);
    let printed: Value =
        serde_json::from_str(&home.fine(&[&with_out(&args, out)[..], &["--json"]].concat())).unwrap();
    let asked = server.counter("Com_stmt_execute") - before;

    for file in [
        "manifest.json",
        "facts.json",
        "intervals.jsonl",
        "events.jsonl",
        "observe.jsonl.zst",
        "summary.json",
        "report.html",
    ] {
        assert!(run.join(file).metadata().unwrap().len() > 0, "{file}");
    }
    assert_eq!(printed, document(&run.join("summary.json")));
    let intervals = lines(&run.join("intervals.jsonl"));
    assert_eq!(sum(&intervals, "queries"), asked, "statements in the record and in the server's own count");
    for step in [0, 1] {
        let mine: Vec<&Value> = intervals.iter().filter(|i| i["step"] == step).collect();
        for pair in mine.windows(2) {
            let end = pair[0]["start_s"].as_f64().unwrap() + pair[0]["width_s"].as_f64().unwrap();
            let gap = pair[1]["start_s"].as_f64().unwrap() - end;
            assert!(gap.abs() < 1e-6, "a gap of {gap} s between intervals");
        }
        let measured: Vec<Value> =
            mine.iter().filter(|i| i["phase"] == "measure").map(|i| (*i).clone()).collect();
        let summary = &printed["steps"][step];
        for field in ["transactions", "queries"] {
            assert_eq!(summary[field].as_u64().unwrap(), sum(&measured, field), "{field}");
        }
        assert_eq!(summary["response_us"]["count"], summary["transactions"]);
        assert_eq!(summary["errors"], serde_json::json!({}));
        let by_operation: u64 = summary["operations"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|o| o["kind"] == "statement")
            .map(|o| o["count"].as_u64().unwrap())
            .sum();
        assert_eq!(summary["queries"].as_u64().unwrap(), by_operation);
        assert!(summary["server"]["cpu_us_per_query"].as_f64().unwrap() > 0.0);
        assert!(summary["diagnosis"]["intervals"].as_u64().unwrap() >= 1, "{summary}");
        // The kernel splits a process's CPU time by the ticks that it met in user space: a short window may have met none.
        let client = |part: &str| summary["client"][part].as_f64().unwrap();
        assert!(client("cpu_user_us_per_query") + client("cpu_system_us_per_query") > 0.0);
    }
    let events = lines(&run.join("events.jsonl"));
    assert_eq!(events.last().unwrap()["how"], "complete");
    assert!(fs::metadata(&run).unwrap().permissions().to_owned_mode() == 0o700);
}

trait OwnedMode {
    fn to_owned_mode(&self) -> u32;
}

impl OwnedMode for fs::Permissions {
    fn to_owned_mode(&self) -> u32 {
        std::os::unix::fs::PermissionsExt::mode(self) & 0o777
    }
}

#[test]
fn every_workload_runs_and_keeps_its_rows() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let list: Value = serde_json::from_str(&home.fine(&["workloads", "--json"])).unwrap();
    for workload in list["workloads"].as_array().unwrap() {
        let name = workload["name"].as_str().unwrap();
        let has_option =
            |option: &str| workload["options"].as_array().unwrap().iter().any(|o| o["name"] == option);
        let file = root().join("workloads/shop.toml");
        let small: &[&str] = match name {
            "sql" => &["--sql", "SELECT 1"],
            "mix" => &["--mix-file", file.to_str().unwrap()],
            // It has a table of the same name as the mix.
            "tpcc" => &["--schema", "tpcc"],
            _ if has_option("table-size") => &["--table-size", "500"],
            _ => &[],
        };
        let run = home.path().join(name);
        let args = server.bench(name, &[&["--connections", "2", "--think", "5ms", "--json"], small].concat());
        let summary: Value =
            serde_json::from_str(&home.fine(&at_once(&args, run.to_str().unwrap()))).unwrap();
        assert!(summary["steps"][0]["transactions"].as_u64().unwrap() > 0, "{name}");
        // bulk_insert has a table for each connection.
        home.fine(&server.bench(name, &[&["check", "--connections", "2"], small].concat()));
    }
}

#[test]
fn the_steps_prepare_check_and_cleanup_do_what_they_say() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let bench = |rest: &[&str]| {
        let args: Vec<&str> = rest.iter().copied().chain(["--table-size", "3000", "--tables", "2"]).collect();
        home.end(&server.bench("oltp_read_only", &args))
    };
    let missing = bench(&["run"]);
    assert_eq!(missing.status, 3);
    assert!(missing.stderr.contains("run the `prepare` step first"), "{}", missing.stderr);

    assert_eq!(bench(&["prepare"]).status, 0);
    assert_eq!(server.sql("SELECT COUNT(*), MIN(id), MAX(id) FROM mydyno.sbtest2"), [["3000", "1", "3000"]]);
    assert_eq!(bench(&["check"]).status, 0);
    assert!(bench(&["prepare"]).stderr.contains("were there already"));

    server.sql("UPDATE mydyno.sbtest2 SET pad = 'x' WHERE id = 7");
    let changed = bench(&["check"]);
    assert_eq!(changed.status, 1, "{}", changed.stderr);
    assert!(changed.stderr.contains("sbtest2: 3000 rows with checksum"), "{}", changed.stderr);
    server.sql("DELETE FROM mydyno.sbtest1 WHERE id = 7");
    assert!(bench(&["check"]).stderr.contains("2999"));

    assert_eq!(bench(&["cleanup"]).status, 0);
    assert!(server.sql("SHOW DATABASES LIKE 'mydyno'").is_empty());
    assert_eq!(bench(&["cleanup"]).status, 0, "nothing to clean up is not an error");
}

#[test]
fn the_same_seed_gives_the_same_rows_and_operations() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let prepare = |schema: &str, seed: &str| {
        let rest = ["prepare", "--schema", schema, "--seed", seed, "--table-size", "2000"];
        home.fine(&server.bench("oltp_write_only", &rest));
        server.sql(&format!("CHECKSUM TABLE {schema}.sbtest1"))[0][1].clone()
    };
    let (one, again, other) = (prepare("one", "5"), prepare("again", "5"), prepare("other", "6"));
    assert_eq!(one, again);
    assert_ne!(one, other);

    let fingerprint = |name: &str, schema: &str, seed: &str| {
        let run = home.path().join(name);
        let rest = [
            "run",
            "--schema",
            schema,
            "--seed",
            seed,
            "--table-size",
            "2000",
            "--connections",
            "1",
            "--json",
        ];
        let args = server.bench("oltp_write_only", &rest);
        let summary: Value =
            serde_json::from_str(&home.fine(&at_once(&args, run.to_str().unwrap()))).unwrap();
        summary["fingerprint"].clone()
    };
    let (first, second) = (fingerprint("r1", "one", "5"), fingerprint("r2", "again", "5"));
    assert_eq!(first, second);
    let third = fingerprint("r3", "other", "6");
    assert_ne!(first["operations"], third["operations"]);
    assert_ne!(first["data"], third["data"]);
    // The rows have been written to by now, and the record says so.
    assert!(fingerprint("r4", "one", "5")["data"].as_str().unwrap().ends_with("-used"));
}

#[test]
fn all_mistakes_of_a_command_line_are_told_at_once() {
    let home = Home::new();
    let ended = home.end(&[
        "bench",
        "oltp_pointselect",
        "--connections",
        "0",
        "--time",
        "never",
        "--schema",
        "mysql",
        "--dsn",
        "mysql://u:secret@h/",
    ]);
    assert_eq!(ended.status, 2);
    for part in ["did you mean oltp_point_select?", "--connections", "--time", "--schema"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
}

#[test]
fn a_server_that_cannot_be_reached_or_refuses_is_named_with_the_way_out() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let port = server.port().to_string();
    let no_host = home.end(&["bench", "oltp_point_select", "-h", "no-such-host.invalid", "-u", "root"]);
    assert_eq!(no_host.status, 3);
    assert!(no_host.stderr.contains("no-such-host.invalid"), "{}", no_host.stderr);
    let no_socket = home.end(&["bench", "oltp_point_select", "-S", "/nonexistent/s.sock"]);
    assert_eq!(no_socket.status, 3);
    assert!(no_socket.stderr.contains("/nonexistent/s.sock"), "{}", no_socket.stderr);
    let refused =
        home.end(&["bench", "oltp_point_select", "-h", "127.0.0.1", "-P", &port, "-u", "root", "-pHush42"]);
    assert_eq!(refused.status, 3);
    assert!(refused.stderr.contains("Access denied"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("Hush42"), "{}", refused.stderr);
}

#[test]
fn a_broken_bound_is_exit_status_one() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let run = |name: &str, bound: &str| {
        let out = home.path().join(name);
        let args = server.bench("oltp_point_select", &["--connections", "1", "--fail-if", bound]);
        home.end(&at_once(&args, out.to_str().unwrap()))
    };
    assert_eq!(run("kept", "p50>10s").status, 0);
    let broken = run("broken", "p50>1us");
    assert_eq!(broken.status, 1);
    assert!(broken.stderr.contains("p50>1us with 1 connections: it is "), "{}", broken.stderr);
}

#[test]
fn no_password_is_left_anywhere() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let password = fs::read_to_string(server.text("password_file")).unwrap().trim().to_owned();
    assert!(password.len() >= 16);
    let run = home.path().join("run");
    let port = server.port().to_string();
    let given = format!("-p{password}");
    let out = run.to_str().unwrap();
    let args = [
        "bench",
        "oltp_read_write",
        "-h127.0.0.1",
        "-P",
        &port,
        "-uroot",
        &given,
        "--allow-load",
        "--connections",
        "2",
    ];
    let args: Vec<&str> =
        args.into_iter().chain(["--time", "100s", "--warmup", "0s", "--out", out]).collect();
    let child = measuring(&home, &args, &run);
    let shown = fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap();
    assert!(shown.contains("-pxxx") && !shown.contains(&password), "{shown:?}");
    signal(child.id() as i32, libc::SIGINT);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, 130, "{}", ended.stderr);
    assert!(!(ended.stdout + &ended.stderr).contains(&password));
    // Only the private server's own files hold it, and only their owner can read them.
    let own = Path::new(server.text("password_file")).parent().unwrap();
    for holder in holding(home.path(), password.as_bytes()) {
        assert!(Path::new(&holder).starts_with(own), "{holder}");
        assert_eq!(fs::metadata(&holder).unwrap().permissions().to_owned_mode(), 0o600, "{holder}");
    }
    assert!(document(&run.join("manifest.json"))["argv"].as_array().unwrap().len() > 5);
}

/// Files below a folder that hold these bytes.
fn holding(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(holding(&entry.path(), bytes));
        } else if kind.is_file() {
            let content = fs::read(entry.path()).unwrap_or_default();
            if content.windows(bytes.len()).any(|w| w == bytes) {
                found.push(entry.path().to_string_lossy().into_owned());
            }
        }
    }
    found
}

#[test]
fn a_private_server_for_one_bench_is_gone_after_it() {
    let home = Home::new();
    let run = home.path().join("run");
    let args =
        ["bench", "oltp_point_select", "--sandbox", "--connections", "2", "--set", "max_connections=77"];
    let stdout = home.fine(&at_once(&args, run.to_str().unwrap()));
    assert!(stdout.contains("private server"), "{stdout}");
    let facts = document(&run.join("facts.json"));
    assert_eq!(
        facts["facts"]["server.variable.max_connections"]["value"].to_string().trim_matches('"'),
        "77"
    );
    let servers: Value = serde_json::from_str(&home.fine(&["server", "list", "--json"])).unwrap();
    assert_eq!(servers["servers"], serde_json::json!([]));
    let status: Value = serde_json::from_str(&home.fine(&["host", "status", "--json"])).unwrap();
    assert_eq!(status["changes"], serde_json::json!([]));
}

#[test]
fn two_runs_are_shown_side_by_side() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let (one, two) = (home.path().join("one"), home.path().join("two"));
    for run in [&one, &two] {
        let args = server.bench("oltp_point_select", &["--connections", "2", "--think", "5ms"]);
        home.fine(&with_out(&args, run.to_str().unwrap()));
    }
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    assert!(home.fine(&["report", one, two]).contains("oltp_point_select"));
    let both: Value = serde_json::from_str(&home.fine(&["report", one, two, "--json"])).unwrap();
    assert_eq!(
        (&both["schema"], both["runs"].as_array().unwrap().len()),
        (&"mydyno.comparisons/1".into(), 2)
    );
    let figures = both["comparisons"][0]["loads"][0]["figures"].as_array().unwrap();
    assert!(
        figures.iter().any(|figure| figure["name"] == "transactions" && figure["change"]["value"].is_f64())
    );
    // Two runs on one server differ in nothing that could explain a difference.
    let differs = both["comparisons"][0]["differs"].as_array().unwrap();
    let of_server = |differs: &&Value| differs["name"].as_str().unwrap().starts_with("server.");
    assert_eq!(differs.iter().find(of_server), None, "{differs:?}");
    // A verdict asks for two runs of each side, in turns.
    let pair = home.end(&["compare", one, two, "--json"]);
    let verdict: Value = serde_json::from_str(&pair.stdout).unwrap();
    assert_eq!((pair.status, &verdict["threats"][0]["id"]), (1, &"not-interleaved".into()), "{pair:?}");
    let shown = home.end(&["compare", one, two]);
    assert!(shown.stdout.contains("UNDECIDED") && shown.stdout.contains("oltp_point_select"), "{shown:?}");
    let (three, four) = (home.path().join("three"), home.path().join("four"));
    for run in [&three, &four] {
        let args = server.bench("oltp_point_select", &["--connections", "2", "--think", "5ms"]);
        home.fine(&with_out(&args, run.to_str().unwrap()));
    }
    let all = [one, two, three.to_str().unwrap(), four.to_str().unwrap()];
    let turns = home.end(&[&["compare", "--json", "--delta=90%"][..], &all].concat());
    let verdict: Value = serde_json::from_str(&turns.stdout).unwrap();
    assert_eq!((&verdict["units"], &verdict["blocks"]), (&"pairs of runs".into(), &2.into()), "{turns:?}");
    assert!(verdict["responses"][0]["effect_ratio"]["low"].is_f64(), "{verdict:#}");
    let measure = home.end(&["compare", one, two, "--connections=4", "--plan"]);
    assert_eq!(measure.status, 2, "{measure:?}");
    assert!(measure.stderr.contains("--connections") && measure.stderr.contains("--plan"), "{measure:?}");
    let sides = home.fine(&["compare", "sync_binlog=1", "sync_binlog=0", "--plan"]);
    assert!(sides.contains("oltp_read_write") && sides.contains("sync_binlog=0"), "{sides}");
    let nothing = home.end(&["report", home.path().to_str().unwrap()]);
    assert_eq!(nothing.status, 3);
    assert!(nothing.stderr.contains("is not a run folder"), "{}", nothing.stderr);
}
