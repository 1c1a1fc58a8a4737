//! The config lint beside every engine: what it calls fine starts the server, what it calls wrong does not; files are
//! read as the server reads them: `make test-engines`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::engine::{Engine, wanted};
use crate::home::Home;

/// Lines that are fine on some engines and stop others.
const LINES: [&str; 24] = [
    "max_connections = 200",
    "max_connections = 0",
    "max_connections = 1.5",
    "max_connections = -1",
    "max_connections =",
    "max_connections",
    "Max_Connections = 77",
    "max_connectio = 77",
    "max_c = 77",
    "no_such_option = 1",
    "loose_no_such_option = 1",
    "skip_no_such_option",
    "loose-skip-no-such-option",
    "query_cache_size = 0",
    "innodb_file_format = Barracuda",
    "expire_logs_days = 3",
    "binlog_expire_logs_seconds = 100",
    "sort_buffer_size = 1T",
    "binlog_format = zzz",
    "sql_mode = NO_AUTO_CREATE_USER",
    "slow_query_log = 2",
    "slave_net_timeout = 10",
    "replica_net_timeout = 10",
    "tx_isolation = READ-COMMITTED",
];

/// Whether the lint says that a server of this release does not start with this file.
fn stops(home: &Home, file: &Path, release: &str) -> (bool, Value) {
    let findings =
        home.json(&["audit", "--config", file.to_str().unwrap(), "--for", release, "--json", "--quiet"]);
    let high = |finding: &&Value| finding["state"] == "violated" && finding["severity"] == "high";
    let list: Vec<Value> = findings["findings"].as_array().unwrap().iter().filter(high).cloned().collect();
    (!list.is_empty(), Value::from(list))
}

fn release(engine: &Engine) -> String {
    let options = mydyno_wire::ConnectOptions::new(mydyno_wire::Endpoint::Unix(engine.socket()), "root");
    let client = mydyno_wire::Client::connect(&options).unwrap();
    let text = client.server().text.trim_start_matches("5.5.5-").to_owned();
    format!("{}-{}", engine.name.split('-').next().unwrap(), text.split('-').next().unwrap())
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn what_the_lint_calls_fine_starts_the_server_and_what_it_calls_wrong_does_not() {
    let home = Home::new();
    let mut wrong = Vec::new();
    for name in wanted() {
        let engine = Engine::start(name);
        let release = release(&engine);
        engine.down();
        for line in LINES {
            let file = engine.folder.path().join("lint.cnf");
            fs::write(&file, format!("[mysqld]\n{line}\n")).unwrap();
            let (stops, findings) = stops(&home, &file, &release);
            let started = engine.up_with(Some(&file));
            engine.down();
            println!("{name} {line}: {}", if started.is_ok() { "starts" } else { "does not start" });
            if stops == started.is_ok() {
                wrong.push(format!("{name} {line}: lint says {findings}, the server {started:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files in which much stands that readers get wrong.
fn tricky(folder: &Path) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    fs::create_dir_all(folder.join("inc")).unwrap();
    for (name, text) in [
        ("b.cnf", "[mysqld]\ninc_b=1\n"),
        ("a.cnf", "[server]\ninc_a=1\n[client]\nno=1\n"),
        ("C.cnf", "[mysqld]\ninc_c=1\n"),
        ("d.ini", "[mysqld]\nno=1\n"),
        ("e.cnf.bak", "[mysqld]\nno=1\n"),
    ] {
        fs::write(folder.join("inc").join(name), text).unwrap();
    }
    let text = "# comment\n; other\n[mysqld]\na=1\n  b = 2 # trailing\nc=a#b\nd=\"q # x\" # no\ne='it''s'\ng=a\\sb\\qc\nh=\ni\n\
                j = \"unbalanced\nk = 'x' y\nMax_Connections=5\nl=a;b\nm = a # b ' c\no='a\\'b' # c\n[client]\nno=1\n[ mysqld ]\n\
                no=1\n[mysqld] trailing\nq=1\n[MYSQLD]\nr=1\n[server ]\ns=1\nu==1\n[mysqld_a]\nsuffixed=1\n[mysqld-1.0]\nno=1\n\
                !includedir INC\n[mysqld]\nafter=1\r\n  !include FILE\nlast=1\n";
    let text = text.replace("INC", &path("inc")).replace("FILE", &path("inc/a.cnf"));
    fs::write(folder.join("tricky.cnf"), text).unwrap();
    path("tricky.cnf")
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn files_are_read_as_the_server_itself_reads_them() {
    let home = Home::new();
    for name in wanted() {
        let engine = Engine::start(name);
        let release = release(&engine);
        let pid = fs::read_to_string(engine.folder.path().join("pid")).unwrap();
        let program = fs::read_link(format!("/proc/{}/exe", pid.trim())).unwrap();
        let file = tricky(engine.folder.path());
        let suffix = "--defaults-group-suffix=_a";
        let output = Command::new(program)
            .args([&format!("--defaults-file={file}"), suffix, "--print-defaults"])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let theirs = printed.trim_end().lines().last().unwrap_or_default().to_owned();
        let facts = home
            .json(&["audit", "--config", &file, "--for", &release, suffix, "--facts", "--json", "--quiet"]);
        let set = facts["facts"]["server.options.set"]["value"].as_array().unwrap();
        let ours: Vec<String> = set
            .iter()
            .map(|o| match o["value"].as_str() {
                Some(value) => format!("--{}={value}", o["written"].as_str().unwrap()),
                None => format!("--{}", o["written"].as_str().unwrap()),
            })
            .collect();
        assert_eq!(ours.join(" "), theirs.trim(), "{name}");
    }
}
