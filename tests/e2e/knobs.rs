//! `mydyno knobs` and option files without a server.

use std::fs;

use serde_json::Value;

use crate::fixture::Ended;
use crate::home::Home;

/// An audit of options and of nothing else, without a look at what the server does.
const AUDIT_OF_OPTIONS: [&str; 7] = ["audit", "--json", "--quiet", "--window", "0", "--area", "options"];

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
fn a_knob_is_found_by_every_name_of_its_setting() {
    let home = Home::new();
    for (name, knob, lever) in [
        ("thp.enabled", "transparent_hugepage.enabled", "lever thp.enabled"),
        ("host.thp.enabled", "transparent_hugepage.enabled", "lever thp.enabled"),
        ("variable.sync_binlog", "sync_binlog", "lever variable.sync_binlog"),
        ("server.variable.innodb_doublewrite", "innodb_doublewrite", "innodb_doublewrite"),
    ] {
        let text = home.fine(&["knobs", name]);
        assert!(text.starts_with(knob) && text.contains(lever), "{name}: {text}");
    }
}

#[test]
fn an_option_file_is_judged_for_an_upgrade_without_a_server() {
    let home = Home::new();
    let file = home.path().join("my.cnf");
    fs::write(&file, "[mysqld]\nquery_cache_size = 0\nmax_connections = 100\nmax-connections = 200\n")
        .unwrap();
    let path = file.to_str().unwrap();
    let judged = |target: &str, more: &[&str]| {
        home.json(&[&["audit", "--json", "--quiet", "--config", path, "--for", target], more].concat())
    };
    let findings = judged("mysql-9.7", &[]);
    assert_eq!(claims(&findings), ["option-removed/query_cache_size", "option-duplicate/max_connections"]);
    let evidence = &findings["findings"][0]["evidence"][0];
    assert_eq!(
        evidence["source"].as_str().unwrap(),
        format!("{}:2 [mysqld]", file.canonicalize().unwrap().display())
    );
    let older = judged("mysql-5.6", &["--skip", "option-duplicate"]);
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
fn the_groups_of_a_running_server_are_those_that_servers_of_its_series_read() {
    let knobs = mydyno_judge::knobs::Knobs::embedded().unwrap();
    let mut seen = 0;
    for family in ["mysql", "mariadb"] {
        for series in ["5.5", "5.6", "5.7", "8.0", "9.7", "10.1", "10.2", "10.5", "10.11", "11.4", "11.8"] {
            let target: mydyno_judge::knobs::Target = format!("{family}-{series}").parse().unwrap();
            let asked = knobs.nearest_server(&target).filter(|s| s.series() == target.version.series());
            let Some(asked) = asked else { continue };
            let number = u64::from(target.version.major) * 10_000 + u64::from(target.version.minor) * 100;
            let mut ours = mydyno_facts::option_files::groups(family, number, None);
            let mut theirs = asked.rules.groups.clone();
            ours.sort_unstable();
            theirs.sort_unstable();
            assert_eq!(ours, theirs, "{target}");
            seen += 1;
        }
    }
    assert_eq!(seen, 11);
}

#[test]
fn where_no_option_was_seen_the_status_says_so() {
    let home = Home::new();
    let Ended { status, stderr, .. } =
        home.end(&["audit", "--host-only", "--window", "0", "--for", "mysql-9.7", "--fail-on", "high"]);
    assert!(
        status == 3 && stderr.contains("--for: the server's option files are not visible"),
        "{status} {stderr}"
    );
}

#[test]
fn a_redacted_audit_counts_what_the_lint_says_and_tells_none_of_it() {
    let home = Home::new();
    let server = home.server("withheld", &["--set", "query_cache_size=1M"]);
    let run = |more: &[&str]| {
        let target = ["--dsn", server.text("dsn"), "--for", "mysql-9.7"];
        home.end(&[&AUDIT_OF_OPTIONS[..], &target, more].concat())
    };
    let open = run(&["--fail-on", "high"]);
    assert!(open.status == 1 && open.stdout.contains("option-removed/query_cache_size"), "{}", open.stdout);
    let hidden = run(&["--fail-on", "high", "--redact"]);
    assert_eq!(hidden.status, 1, "{}", hidden.stdout);
    for name in ["query_cache_size", "option-removed/", "datadir"] {
        assert!(!hidden.stdout.contains(name), "{name} is left in {}", hidden.stdout);
    }
    let findings: Value = serde_json::from_str(&hidden.stdout).unwrap();
    let removed =
        findings["findings"].as_array().unwrap().iter().find(|f| f["claim"] == "option-removed").unwrap();
    assert_eq!((&removed["state"], &removed["severity"]), (&Value::from("violated"), &Value::from("high")));
    // A value that is accepted with open facts is accepted with hidden ones.
    let list = home.path().join("accepted.toml");
    let accepted: String = serde_json::from_str::<Value>(&open.stdout).unwrap()["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["state"] == "violated")
        .map(|f| format!("[[accept]]\nclaim = {}\nreason = \"a lab\"\nuntil = 2999-01-01\n", f["claim"]))
        .collect();
    fs::write(&list, accepted).unwrap();
    let hidden = run(&["--fail-on", "high", "--redact", "--accept", list.to_str().unwrap()]);
    assert_eq!(hidden.status, 0, "{}", hidden.stdout);
}

#[test]
fn options_of_a_running_server_are_judged_with_what_it_runs_with() {
    let home = Home::new();
    let server = home.server("linted", &["--set", "max_connections=150"]);
    server.sql("SET GLOBAL max_connections = 123");
    let findings = home.json(&[&AUDIT_OF_OPTIONS[..], &["--dsn", server.text("dsn")]].concat());
    let wrong = claims(&findings);
    assert!(wrong.contains(&"option-not-in-force/max_connections".to_owned()), "{findings:#}");
    assert!(
        !wrong.iter().any(|id| id.starts_with("option-unknown") || id.starts_with("option-removed")),
        "{wrong:?}"
    );
}
