//! `mydyno knobs` and option files without a server.

use std::fs;

use serde_json::Value;

use crate::fixture::Ended;
use crate::home::Home;

fn claims(findings: &Value) -> Vec<String> {
    let wrong = findings["findings"].as_array().unwrap().iter().filter(|f| f["state"] == "violated");
    wrong.map(|f| f["claim"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_knob_is_explained_with_its_releases_and_its_price() {
    let home = Home::new();
    let text =
        Ended::from(home.command(&["knobs", "innodb-flush-log-at-trx-commit"]).output().unwrap()).stdout;
    for part in ["mysql-9.7", "0 to 2", "0 to 3", "dynamic", "Ledger, durability"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let list = home.json(&["knobs", "--for", "mysql-9.7", "--match", "query_cache_size", "--json"]);
    assert_eq!(list["knobs"].as_array().unwrap().len(), 0, "{list}");
    let wrong = Ended::from(home.command(&["knobs", "inodb_buffer_pool_size"]).output().unwrap());
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("did you mean innodb_buffer_pool_size"), "{}", wrong.stderr);
}

#[test]
fn an_option_file_is_judged_for_an_upgrade_without_a_server() {
    let home = Home::new();
    let file = home.path().join("my.cnf");
    fs::write(&file, "[mysqld]\nquery_cache_size = 0\nmax_connections = 100\nmax-connections = 200\n")
        .unwrap();
    let path = file.to_str().unwrap();
    let findings = home.json(&["audit", "--config", path, "--for", "mysql-9.7", "--json", "--quiet"]);
    assert_eq!(claims(&findings), ["option-removed/query_cache_size", "option-duplicate/max_connections"]);
    let evidence = &findings["findings"][0]["evidence"][0];
    assert_eq!(
        evidence["source"].as_str().unwrap(),
        format!("{}:2 [mysqld]", file.canonicalize().unwrap().display())
    );
    let older = home.json(&[
        "audit",
        "--config",
        path,
        "--for",
        "mysql-5.6",
        "--json",
        "--quiet",
        "--skip",
        "option-duplicate",
    ]);
    assert_eq!(claims(&older), [] as [&str; 0]);
    let bad = ["audit", "--config", path, "--for", "mysql-9.7", "--quiet", "--fail-on", "high"];
    assert_eq!(Ended::from(home.command(&bad).output().unwrap()).status, 1);
    for wrong in [
        vec!["audit", "--config", path],
        vec!["audit", "--config", "/none", "--for", "mysql-9.7"],
        vec!["audit", "--config", path, "--for", "oracle-23"],
    ] {
        assert_eq!(Ended::from(home.command(&wrong).output().unwrap()).status, 2, "{wrong:?}");
    }
}

#[test]
fn options_of_a_running_server_are_judged_with_what_it_runs_with() {
    let home = Home::new();
    let server = home.server("linted", &["--set", "max_connections=150"]);
    server.sql("SET GLOBAL max_connections = 123");
    let findings = home.json(&[
        "audit",
        "--dsn",
        server.text("dsn"),
        "--json",
        "--quiet",
        "--window",
        "0",
        "--area",
        "options",
    ]);
    let wrong = claims(&findings);
    assert!(wrong.contains(&"option-not-in-force/max_connections".to_owned()), "{findings:#}");
    assert!(
        !wrong.iter().any(|id| id.starts_with("option-unknown") || id.starts_with("option-removed")),
        "{wrong:?}"
    );
}
