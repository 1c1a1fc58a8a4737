//! Complaints of users of other auditors: alarms over unused features, rules of thumb without a load that needs them,
//! one family of servers taken for the other, numbers without their calculation. Their other complaints are tested
//! elsewhere: writes to the server in `audit`, requests to the internet in `surroundings`, remedies that are no
//! statements in `engines_remedies`, advice that weakens durability in the examination of the claims.

use serde_json::Value;

use crate::fixture::Server;
use crate::home::Home;

fn audit(home: &Home, server: &Server<'_>, rest: &[&str]) -> Vec<Value> {
    let args = ["audit", "--dsn", server.text("dsn"), "--json", "--quiet"];
    let mut findings = home.json(&[&args[..], rest].concat());
    findings["findings"].take().as_array().unwrap().clone()
}

fn state<'f>(found: &'f [Value], claim: &str) -> &'f str {
    let finding = found.iter().find(|f| f["claim"] == claim);
    finding.unwrap_or_else(|| panic!("nothing was said of {claim}"))["state"].as_str().unwrap()
}

fn evidence(finding: &Value) -> &[Value] {
    finding["evidence"].as_array().unwrap()
}

#[test]
fn limits_that_nobody_reaches_are_not_counted_as_memory() {
    let home = Home::new();
    let server = home.server("limits", &[]);
    // As a sum of maxima: 75 TB.
    let limits = [
        "sort_buffer_size",
        "join_buffer_size",
        "read_rnd_buffer_size",
        "tmp_table_size",
        "max_heap_table_size",
    ];
    for limit in limits {
        server.sql(&format!("SET GLOBAL {limit} = 256 * 1024 * 1024"));
    }
    server.sql("SET GLOBAL max_connections = 100000");
    let found = audit(&home, &server, &["--window=0", "--area=memory"]);
    assert_eq!(state(&found, "memory-at-peak"), "holds");
    let of_limit = |e: &Value| {
        let name = e["fact"].as_str().unwrap().trim_start_matches("server.variable.");
        name == "max_connections" || limits.contains(&name)
    };
    for finding in found.iter().filter(|f| f["state"] == "violated") {
        assert!(!evidence(finding).iter().any(of_limit), "{finding:#}");
    }
}

#[test]
fn a_small_redo_log_is_no_fault_where_nothing_is_written_however_large_the_pool() {
    let home = Home::new();
    let options = ["--set", "innodb_buffer_pool_size=512M", "--set", "innodb_log_file_size=8M"];
    let server = home.server("redo", &options);
    let found = audit(&home, &server, &["--window=1s", "--only=redo-size,checkpoint-age,log-waits"]);
    for finding in &found {
        assert_ne!(finding["state"], "violated", "{finding:#}");
    }
    assert_eq!(state(&found, "redo-size"), "not_applicable");
}

#[test]
fn a_mariadb_is_judged_by_its_own_version_and_never_as_a_mysql() {
    let home = Home::new();
    // To clients of old it calls itself 5.5.5; MySQL 5.5 is long out of support.
    let server = home.server("family", &["--set", "log_bin=bin"]);
    let found = audit(&home, &server, &["--window=0"]);
    for claim in ["version-supported-mysql", "sync-binlog-mysql", "gtid-mysql", "removed-options"] {
        assert_eq!(state(&found, claim), "not_applicable", "{claim}");
    }
    assert_eq!(state(&found, "version-supported-mariadb"), "holds");
    assert_eq!(state(&found, "sync-binlog-mariadb"), "violated");
}

#[test]
fn every_violation_shows_its_calculation_and_where_its_numbers_were_read() {
    let home = Home::new();
    let server = home.server("shown", &["--set", "log_bin=bin"]);
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.keyless (a INT); SET GLOBAL general_log = ON; \
         SET GLOBAL innodb_flush_log_at_trx_commit = 2; SET GLOBAL sort_buffer_size = 64 * 1024 * 1024",
    );
    let found = audit(&home, &server, &["--window=200ms"]);
    let violated: Vec<&Value> = found.iter().filter(|f| f["state"] == "violated").collect();
    assert!(violated.len() >= 5, "{violated:#?}");
    for finding in violated {
        // Where there are numbers, something was done with them; the lint's are those of lines.
        let numbers =
            finding["area"] != "options" && evidence(finding).iter().any(|e| e["value"].is_number());
        assert!(!numbers || !finding["arithmetic"].as_array().unwrap().is_empty(), "{finding:#}");
        assert!(!evidence(finding).is_empty(), "{finding:#}");
        assert!(evidence(finding).iter().all(|e| e["source"] != ""), "{finding:#}");
        let remedy = &finding["remedy"];
        let steps = ["now", "persistent"].map(|when| remedy[when].as_array().map_or(0, Vec::len));
        assert!(steps.iter().sum::<usize>() > 0, "{finding:#}");
    }
}
