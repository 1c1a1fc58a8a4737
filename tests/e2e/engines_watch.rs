//! Readings of `mydyno watch` on all engines. The installed server is one of the default tests; the others are those of
//! `make test-engines`.

use serde_json::Value;

use crate::engine::{Engine, wanted};
use crate::home::Home;

/// Figures that every engine has, from whichever of its sources.
const EVERYWHERE: [&str; 12] = [
    "server.questions_per_s",
    "server.threads_connected",
    "server.sessions.running",
    "innodb.checkpoint_age_bytes",
    "innodb.checkpoint_age_share",
    "innodb.history_length",
    "innodb.pending_reads",
    "innodb.pending_fsyncs",
    "innodb.transactions",
    "innodb.oldest_transaction_s",
    "innodb.read_views",
    "innodb.pending_page_reads",
];

/// Faults in the figures of an engine.
fn wrong(name: &'static str) -> Option<String> {
    let engine = Engine::start_with(name, &["--performance-schema=ON"]);
    let home = Home::new();
    let socket = engine.socket();
    let socket = socket.to_str().unwrap();
    let args = ["watch", "-S", socket, "-uroot", "--no-defaults", "--json", "--count=5", "--interval=400ms"];
    let ended = home.end(&args);
    let lines = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let intervals: Vec<Value> = lines.filter(|line| line["schema"] == "mydyno.watch-interval/1").collect();
    let has = |figure: &str| intervals.iter().any(|interval| interval["figures"].get(figure).is_some());
    let lacking: Vec<&str> = EVERYWHERE.into_iter().filter(|figure| !has(figure)).collect();
    let outside = intervals.iter().filter_map(|i| i["figures"]["innodb.checkpoint_age_share"].as_f64());
    let outside: Vec<f64> = outside.filter(|share| !(0.0..=1.0).contains(share)).collect();
    let lists = |list: &str| intervals.iter().any(|i| i[list].as_array().is_some_and(|all| !all.is_empty()));
    // MySQL 5.5 has no digests, and tells that it has none.
    let (statements, is_first) = (lists("statements"), name == "mysql-5.5");
    let said = ended.stderr.lines().filter(|line| line.contains("Not sampled")).count();
    // A server that is slow to answer is no fault of the counters.
    let events = intervals.iter().filter_map(|i| i["events"].as_array()).flatten();
    let events: Vec<&Value> = events.filter(|e| e["kind"].as_str().unwrap().starts_with("counter")).collect();
    let fine = lacking.is_empty()
        && outside.is_empty()
        && statements != is_first
        && (said > 0) == is_first
        && events.is_empty();
    (!fine).then(|| {
        format!(
            "{name}: lacking {lacking:?}, shares {outside:?}, statements {statements}, {events:?}, {}",
            ended.stderr
        )
    })
}

#[test]
fn the_installed_server_tells_its_innodb_and_its_statements() {
    assert_eq!(wrong("mariadb-10.11"), None);
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_engine_tells_its_innodb_and_its_statements() {
    let wrong: Vec<String> = wanted().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
