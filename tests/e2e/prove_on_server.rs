//! Experiments on a server that the experiment did not start: its variables are swapped and restored, and nothing else
//! changes.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{Ended, Server, signal, until};
use crate::home::Home;

const VARIABLE: &str = "max_connect_errors";

/// An experiment on a variable that does nothing to the load, as short as the machinery allows.
fn experiment(home: &Home, levers: [&str; 2], budget: &str) -> String {
    let path = home.path().join("on-server.toml");
    let [baseline, treatment] = levers;
    let extent = format!("budget = \"{budget}\"\nslice = \"200ms\"\nsettle = \"50ms\"\nwarmup = \"200ms\"\n");
    let text = format!(
        "name = \"on-server\"\nquestion = \"Does a variable that the load does not read change it?\"\n\
         why = \"Connections that fail are counted, and this load has none that fail.\"\nsince = \"0.1.0\"\n[baseline]\nlevers = [{baseline}]\n[treatment]\nlevers = [{treatment}]\n\
         [load]\nworkload = \"oltp_point_select\"\nconnections = 1\nrate = 300.0\n[load.options]\ntables = 1\ntable-size = 100\n\
         [[response]]\nname = \"transactions_per_s\"\ndirection = \"differs\"\ndelta = \"50%\"\n\
         [execution]\nmode = \"in_place\"\nwhy = \"The variable takes effect while the server runs.\"\n[quick]\n{extent}[full]\n{extent}"
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn harmless(home: &Home, budget: &str) -> String {
    experiment(home, ["", "\"variable.max_connect_errors=777\""], budget)
}

/// `prove FILE` on the server, with the options that follow.
fn words(file: &str, server: &Server<'_>, rest: &[&str]) -> Vec<String> {
    let first = ["prove", file, "--on-server", "--no-defaults", "--dsn", server.text("dsn"), "--quiet"];
    first.iter().chain(rest).map(|word| (*word).to_owned()).collect()
}

fn text(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn value(server: &Server<'_>) -> String {
    server.sql(&format!("SELECT @@GLOBAL.{VARIABLE}"))[0][0].clone()
}

fn databases(server: &Server<'_>) -> Vec<Vec<String>> {
    server.sql("SHOW DATABASES WHERE `Database` IN ('mydyno', 'trial')")
}

/// The server belongs to a home of its own: the state folder of the experiment knows nothing of it. A test host may be short of
/// disk, hence --allow-load.
#[test]
fn variables_of_a_users_server_are_swapped_and_put_back_and_its_tables_are_dropped() {
    let (owner, home) = (Home::new(), Home::new());
    let server = owner.server("users", &[]);
    let before = value(&server);
    let file = harmless(&home, "12s");

    let plan = home.fine(&text(&words(&file, &server, &["--plan"])));
    for says in
        ["It changes variables of the server at", "treatment 777", "before and after", "dropped at the end"]
    {
        assert!(plan.contains(says), "{says}: {plan}");
    }
    let refused = home.fails(2, &text(&words(&file, &server, &[])));
    assert!(refused.contains("--allow-change") && refused.contains("treatment 777"), "{refused}");
    assert_eq!((value(&server), databases(&server)), (before.clone(), vec![]), "nothing was permitted");

    server.sql("CREATE DATABASE mydyno");
    server.sql("CREATE TABLE mydyno.sbtest1 (id INT PRIMARY KEY)");
    let taken = home.end(&text(&words(&file, &server, &["--allow-change", "--allow-load"])));
    assert!(taken.status != 0 && taken.stderr.contains("name another with --schema"), "{taken:?}");
    let own = databases(&server);
    let out = home.path().join("out").display().to_string();
    let options = ["--schema", "trial", "--allow-change", "--allow-load", "--json", "--out", &out];
    let ended = home.end(&text(&words(&file, &server, &options)));
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(verdict["scope"].as_str().unwrap().starts_with("this start of the server at"), "{verdict:#}");
    assert!(verdict["changed"][0].as_str().unwrap().contains("max_connect_errors"), "{verdict:#}");
    assert!(verdict.get("failures").is_none(), "{verdict:#}");
    assert_eq!((value(&server), databases(&server)), (before, own));
    let resumed = home.fails(2, &["prove", "--resume", &out, "--quiet"]);
    assert!(resumed.contains("--on-server --allow-change"), "{resumed}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn what_costs_durability_and_what_is_no_variable_is_refused_before_anything_is_changed() {
    let (owner, home) = (Home::new(), Home::new());
    let server = owner.server("users", &[]);
    for (lever, says) in [
        ("variable.innodb_flush_log_at_trx_commit=2", "never set on your server"),
        ("variable.sql_mode=", "never set on your server"),
        ("server.sync_delay=1ms", ""),
        ("vm.swappiness=1", "not a dynamic variable"),
    ] {
        let file = experiment(&home, ["", &format!("\"{lever}\"")], "12s");
        let refused = home.fails(2, &text(&words(&file, &server, &["--allow-change"])));
        assert!(refused.contains(says), "{lever}: {refused}");
    }
    let file = experiment(&home, ["", "\"variable.no_such_variable=1\""], "12s");
    let refused = home.fails(2, &text(&words(&file, &server, &["--allow-change"])));
    assert!(refused.contains("no_such_variable"), "{refused}");
    let read_only = experiment(&home, ["", "\"variable.datadir=/nowhere\""], "12s");
    let refused = home.end(&text(&words(&read_only, &server, &["--allow-change"])));
    assert!([2, 3].contains(&refused.status) && refused.stderr.contains("datadir"), "{refused:?}");
    assert_eq!(databases(&server), Vec::<Vec<String>>::new());
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_that_others_use_is_loaded_only_with_permission() {
    let (owner, home) = (Home::new(), Home::new());
    let server = owner.server("users", &[]);
    let file = harmless(&home, "12s");
    let mut others = owner
        .command(&["server", "cli", "users", "-e", "SELECT SLEEP(60)"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the other session", || {
        server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'")[0]
            [0]
            != "0"
    });
    let refused = home.fails(3, &text(&words(&file, &server, &["--allow-change"])));
    assert!(refused.contains("--allow-load"), "{refused}");
    others.kill().unwrap();
    others.wait().unwrap();
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn an_experiment_ends_where_the_server_answers_nobody_and_its_value_comes_back() {
    let (owner, home) = (Home::new(), Home::new());
    let server = owner.server("users", &[]);
    let before = value(&server);
    let file = harmless(&home, "120s");
    let out = home.path().join("out");
    let folder = out.display().to_string();
    let options = ["--allow-change", "--allow-load", "--read-timeout", "1s", "--out", &folder];
    let child = home
        .command(&text(&words(&file, &server, &options)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("slices", || {
        fs::read_to_string(out.join("slices.jsonl")).is_ok_and(|slices| slices.lines().count() > 3)
    });
    signal(server.pid(), libc::SIGSTOP);
    let ended = Ended::from(child.wait_with_output().unwrap());
    signal(server.pid(), libc::SIGCONT);
    assert_eq!(ended.status, 3, "{ended:?}");
    home.end(&["host", "restore"]);
    assert_eq!(value(&server), before, "{ended:?}");
}

/// Number of instants at which an experiment is ended.
fn endings() -> usize {
    std::env::var("MYDYNO_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6)
}

#[test]
fn an_experiment_that_is_ended_at_any_instant_leaves_the_value_as_it_was() {
    let (owner, home) = (Home::new(), Home::new());
    let server = owner.server("users", &[]);
    let before = value(&server);
    let file = harmless(&home, "120s");
    let seed: u64 = std::env::var("MYDYNO_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut left_by_kill = 0;
    for number in 0..endings() {
        let out = home.path().join(format!("out-{number}"));
        let args = words(
            &file,
            &server,
            &["--allow-change", "--allow-load", "--json", "--out", &out.display().to_string()],
        );
        let mut child =
            home.command(&text(&args)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let random = seed.wrapping_add(number as u64).wrapping_mul(2_654_435_761) % 3500;
        let due = Instant::now() + Duration::from_millis(600 + random);
        while Instant::now() < due && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (kind, status) = [(libc::SIGKILL, 137), (libc::SIGINT, 130), (libc::SIGTERM, 130)][number % 3];
        signal(child.id() as i32, kind);
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.status, status, "{number}: {ended:?}");
        if kind == libc::SIGKILL {
            left_by_kill += usize::from(value(&server) != before);
            let refused = "mydyno host restore";
            if value(&server) != before {
                let status = home.fine(&["host", "status"]);
                assert!(status.contains(VARIABLE) && status.contains(refused), "{status}");
            }
            home.fine(&["host", "restore"]);
        }
        assert_eq!(value(&server), before, "instant {number}");
    }
    println!("{left_by_kill} kills left the value changed until host restore");
    assert_eq!(home.lasting_traces(), [""; 0]);
}
