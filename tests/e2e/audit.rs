//! `mydyno audit`, with faults brought about on a private server and put right by the remedies.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::fixture::{Ended, Server, document};
use crate::home::Home;
use crate::house::root;

/// Findings of an audit of a server.
fn audit(home: &Home, server: &Server<'_>, rest: &[&str]) -> Value {
    let args = [&["audit", "--dsn", server.text("dsn"), "--json", "--quiet", "--window", "0"], rest].concat();
    home.json(&args)
}

fn finding<'f>(findings: &'f Value, claim: &str) -> &'f Value {
    let all = findings["findings"].as_array().unwrap();
    all.iter().find(|f| f["claim"] == claim).unwrap_or_else(|| panic!("nothing was said of {claim}"))
}

fn state<'f>(findings: &'f Value, claim: &str) -> &'f str {
    finding(findings, claim)["state"].as_str().unwrap()
}

/// Statements of a general log from an offset on: the command and its text.
pub fn statements(log: &Path, from: usize) -> Vec<(String, String)> {
    let text = fs::read(log).unwrap();
    let text = String::from_utf8_lossy(&text[from..]).into_owned();
    let lines = text.lines().filter_map(|line| {
        let (head, statement) = line.rsplit_once(['\t']).map(|(h, s)| (h.trim(), s))?;
        Some((head.rsplit([' ', '\t']).next()?.to_owned(), statement.to_owned()))
    });
    lines.collect()
}

#[test]
fn an_audit_sends_only_select_and_show_over_one_connection() {
    let home = Home::new();
    let server = home.server("quiet", &["--set", "general_log=1", "--set", "log_output=FILE"]);
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY)");
    let log = Path::new(server.text("datadir")).join(&server.sql("SELECT @@general_log_file")[0][0]);
    let before = fs::metadata(&log).unwrap().len() as usize;
    home.fine(&["audit", "--dsn", server.text("dsn"), "--window", "200ms", "--quiet"]);
    let sent = statements(&log, before);
    let commands = |name: &str| sent.iter().filter(|(command, _)| command == name).count();
    assert_eq!(commands("Connect"), 1, "{sent:?}");
    assert!(commands("Query") > 20, "{sent:?}");
    for (command, text) in &sent {
        match command.as_str() {
            "Connect" | "Quit" => {}
            "Query" => {
                // Limits for this one statement.
                let limited = text.strip_prefix("SET STATEMENT max_statement_time=");
                let text =
                    limited.and_then(|rest| rest.split_once(" FOR ")).map_or(text.as_str(), |(_, sql)| sql);
                assert!(text.starts_with("SELECT ") || text.starts_with("SHOW "), "{text}");
            }
            other => panic!("{other}: {text}"),
        }
    }
}

#[test]
fn faults_are_named_with_their_evidence_and_gone_after_the_remedy() {
    let home = Home::new();
    let server = home.server("faults", &["--set", "log_bin=bin"]);
    let sound = audit(&home, &server, &[]);
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.old (id INT PRIMARY KEY) ENGINE = MyISAM; \
         CREATE TABLE shop.keyless (a INT) ENGINE = InnoDB; \
         CREATE TABLE shop.full (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 2000000000; \
         CREATE USER ''@'localhost'; SET GLOBAL innodb_flush_log_at_trx_commit = 2; SET GLOBAL general_log = ON",
    );
    let ill = audit(&home, &server, &[]);
    let faults = [
        ("myisam-tables", "schema.engine.MyISAM.tables", Value::from(1)),
        ("no-primary-key", "schema.without_primary_key_tables", serde_json::json!(["shop.keyless"])),
        ("anonymous-accounts", "server.accounts.anonymous", Value::from(1)),
        ("flush-log-at-trx-commit", "server.variable.innodb_flush_log_at_trx_commit", Value::from(2)),
        ("general-log", "server.variable.general_log", Value::from("ON")),
    ];
    for (claim, fact, value) in &faults {
        assert_ne!(state(&sound, claim), "violated", "{claim} before");
        let found = finding(&ill, claim);
        assert_eq!(found["state"], "violated", "{found:#}");
        let evidence = found["evidence"].as_array().unwrap();
        let evidence = evidence.iter().find(|e| e["fact"] == *fact).unwrap_or_else(|| panic!("{found:#}"));
        assert_eq!(evidence["value"], *value, "{claim}");
        assert!(!evidence["source"].as_str().unwrap().is_empty());
    }
    assert_eq!(finding(&ill, "auto-increment-exhaustion")["severity"], "critical");
    assert_eq!(state(&ill, "sync-binlog-mariadb"), "violated");
    // What can be put right by statements is, by those of the audit itself.
    let folder = home.path().join("remedies");
    home.fine(&[
        "audit",
        "--dsn",
        server.text("dsn"),
        "--window",
        "0",
        "--fix",
        folder.to_str().unwrap(),
        "--quiet",
    ]);
    let script = |name: &str| format!("\n{}", fs::read_to_string(folder.join(name)).unwrap());
    server.sql(&script("now.sql"));
    server.sql(
        "ALTER TABLE shop.old ENGINE = InnoDB; ALTER TABLE shop.keyless ADD PRIMARY KEY (a); \
         ALTER TABLE shop.full MODIFY id BIGINT UNSIGNED AUTO_INCREMENT; DROP USER ''@'localhost'",
    );
    let well = audit(&home, &server, &[]);
    for claim in
        faults.iter().map(|(claim, ..)| *claim).chain(["auto-increment-exhaustion", "sync-binlog-mariadb"])
    {
        assert_eq!(state(&well, claim), "holds", "{claim}: {:#}", finding(&well, claim));
    }
    // And the way back leads back.
    server.sql(&script("undo.sql"));
    let back = audit(&home, &server, &[]);
    assert_eq!(finding(&back, "flush-log-at-trx-commit")["evidence"][0]["value"], 2);
    assert_eq!(state(&back, "sync-binlog-mariadb"), "violated");
}

#[test]
fn a_bundle_is_judged_again_without_the_server_and_compared() {
    let home = Home::new();
    let server = home.server("bundle", &["--set", "log_bin=bin"]);
    let (first, second) = (home.path().join("a.json"), home.path().join("b.json"));
    let (a, b) = (first.to_str().unwrap(), second.to_str().unwrap());
    let live = audit(&home, &server, &["--save", a]);
    assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
    server.sql("SET GLOBAL sync_binlog = 1");
    audit(&home, &server, &["--save", b]);
    home.fine(&["server", "down", "bundle"]);
    let offline = home.json(&["audit", "--from", a, "--json"]);
    assert_eq!(offline["findings"], live["findings"]);
    assert_eq!(offline["facts_digest"], live["facts_digest"]);
    let later = home.json(&["audit", "--from", b, "--diff", a, "--json"]);
    let changes = later["diff"].as_array().unwrap();
    let change = changes.iter().find(|c| c["claim"] == "sync-binlog-mariadb").unwrap();
    assert_eq!((&change["before"], &change["after"]), (&Value::from("violated"), &Value::from("holds")));
    // The exit status is the answer; accepted findings do not count, until their day is over.
    let run =
        |rest: &[&str]| home.end(&[&["audit", "--from", a, "--only", "sync-binlog-mariadb"], rest].concat());
    assert_eq!(run(&[]).status, 0);
    assert_eq!(run(&["--fail-on", "high"]).status, 1);
    assert_eq!(run(&["--fail-on", "critical"]).status, 0);
    let list = home.path().join("mydyno.toml");
    let entry = |until: &str| {
        format!("[[accept]]\nclaim = \"sync-binlog-mariadb\"\nreason = \"a lab\"\nuntil = {until}\n")
    };
    fs::write(&list, entry("2999-01-01")).unwrap();
    let accepted = run(&["--fail-on", "high"]);
    assert!(accepted.status == 0 && accepted.stdout.contains("a lab"), "{accepted:?}");
    fs::write(&list, entry("2001-01-01")).unwrap();
    let over = run(&["--fail-on", "high"]);
    assert!(over.status == 1 && over.stderr.contains("counts again"), "{over:?}");
    fs::remove_file(&list).unwrap();
    let sarif: Value = serde_json::from_str(&run(&["--sarif"]).stdout).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "sync-binlog-mariadb");
    assert!(run(&["--md"]).stdout.contains("## sync-binlog-mariadb"));
    let page = run(&["--html"]).stdout;
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("<code>SET GLOBAL sync_binlog = 1;</code>"),
        "{page}"
    );
    let page = run(&["--all"]).stdout;
    assert!(page.contains("HIGH") && page.contains("SET GLOBAL sync_binlog = 1;"), "{page}");
}

#[test]
fn redacted_facts_hold_no_name_and_come_to_the_same_findings() {
    let home = Home::new();
    let server = home.server("redact", &["--set", "log_bin=acme-bin"]);
    server.sql("CREATE DATABASE payroll; CREATE TABLE payroll.salaries (a INT)");
    let (bundle, kept) = (home.path().join("r.json"), home.path().join("open.json"));
    let open = audit(&home, &server, &["--save", kept.to_str().unwrap()]);
    let looked = audit(&home, &server, &["--redact", "--save", bundle.to_str().unwrap()]);
    // Findings are compared over one set of facts: between two looks the host changes (a server of another test starts).
    let hidden = home.json(&["audit", "--from", kept.to_str().unwrap(), "--redact", "--json"]);
    for text in [fs::read_to_string(&bundle).unwrap(), looked.to_string(), hidden.to_string()] {
        for name in ["payroll", "salaries", "acme-bin"] {
            assert!(!text.contains(name), "{name} is left");
        }
    }
    for found in open["findings"].as_array().unwrap() {
        let claim = found["claim"].as_str().unwrap();
        // Of option files a redacted audit tells only how much is wrong.
        if claim.starts_with("option-") {
            continue;
        }
        assert_eq!(found["state"], finding(&hidden, claim)["state"], "{claim}");
    }
    assert_eq!(document(&bundle)["schema"], "mydyno.facts/1");
}

#[test]
fn what_cannot_be_asked_is_told_with_the_way_out() {
    let home = Home::new();
    let Ended { status, stderr, .. } = home.end(&["audit", "-S", "/nonexistent/s.sock", "--no-defaults"]);
    assert!(status == 3 && stderr.contains("/nonexistent/s.sock"), "{status} {stderr}");
    let Ended { status, stderr, .. } = home.end(&["audit", "--host-only", "--only", "swapiness"]);
    assert!(status == 2 && stderr.contains("did you mean \"swappiness\""), "{status} {stderr}");
    let Ended { status, stderr, .. } = home.end(&["audit", "--host-only", "--area", "hots"]);
    assert!(status == 2 && stderr.contains("the areas are"), "{status} {stderr}");
    // A folder that is there is noticed before anything is looked at.
    let there = home.path().to_str().unwrap();
    let Ended { status, stderr, .. } =
        home.end(&["audit", "-S", "/nonexistent/s.sock", "--no-defaults", "--fix", there]);
    assert!(status == 2 && stderr.contains("it exists already"), "{status} {stderr}");
    // Without a server its claims are unknown, never fine.
    let alone = home.json(&["audit", "--host-only", "--json", "--window", "0"]);
    assert_eq!(alone["scope"]["server"], "");
    assert_eq!(state(&alone, "flush-log-at-trx-commit"), "unknown");
    assert_eq!(state(&alone, "clock-source"), "holds");
}

#[test]
fn an_account_without_rights_gets_an_audit_that_says_what_it_lacks() {
    let home = Home::new();
    let server = home.server("poor", &[]);
    // It sees one table and no event, and a table that it does not see is full.
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY); \
         CREATE TABLE shop.full (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 2000000000; \
         CREATE USER poor@localhost IDENTIFIED BY 'word'; GRANT SELECT ON shop.a TO poor@localhost",
    );
    let password = home.path().join("word");
    fs::write(&password, "word\n").unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let findings = home.json(&[
        "audit",
        "-S",
        server.text("socket"),
        "-u",
        "poor",
        "--password-file",
        password.to_str().unwrap(),
        "--no-defaults",
        "--json",
        "--window",
        "0",
    ]);
    for claim in ["anonymous-accounts", "long-transaction", "no-primary-key"] {
        let found = finding(&findings, claim);
        assert_eq!(found["state"], "unknown", "{found:#}");
        assert_eq!(found["missing"][0]["status"], "denied", "{found:#}");
    }
    for claim in ["auto-increment-exhaustion", "events-frequent", "tables-unusable", "views-valid"] {
        let found = finding(&findings, claim);
        assert!(["unknown", "not_applicable"].contains(&found["state"].as_str().unwrap()), "{found:#}");
    }
    assert_eq!(state(&findings, "flush-log-at-trx-commit"), "holds");
}

#[test]
fn limits_of_rows_that_the_server_sets_do_not_cut_what_an_audit_reads() {
    let home = Home::new();
    let server = home.server("limited", &[]);
    server.sql("SET GLOBAL sql_select_limit = 3; SET GLOBAL max_join_size = 1");
    let after = audit(&home, &server, &[]);
    // Of variables, of accounts by their list, and of a join.
    for claim in
        ["doublewrite", "flush-log-at-trx-commit", "anonymous-accounts", "proxy-accounts", "slow-log"]
    {
        let found = finding(&after, claim);
        assert_ne!(found["state"], "unknown", "{found:#}");
    }
    assert_eq!(state(&after, "select-limit"), "violated");
}

/// A client that runs the command on this host, as ssh would on another.
const SSH: &str = "#!/bin/sh\n[ \"$1 $2 $3\" = '-T -- dba@elsewhere' ] || exit 255\nexec sh -c \"$4\"\n";

#[test]
fn another_host_is_audited_through_ssh_and_nothing_stays_there() {
    let home = Home::new();
    let server = home.server("far", &["--set", "log_bin=bin"]);
    let (bin, tmp) = (home.path().join("bin"), home.path().join("tmp"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&tmp).unwrap();
    fs::write(bin.join("ssh"), SSH).unwrap();
    fs::set_permissions(bin.join("ssh"), fs::Permissions::from_mode(0o700)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let args = [
        "audit",
        "--ssh",
        "dba@elsewhere",
        "--dsn",
        server.text("dsn"),
        "--window",
        "0",
        "--json",
        "--ssl-mode=disabled",
    ];
    let output = home.command(&args).env("PATH", path).env("TMPDIR", &tmp).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(state(&findings, "sync-binlog-mariadb"), "violated");
    assert_eq!(findings["scope"]["server_process"], true, "over there the server is on its host");
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "the program is removed");
}

#[test]
fn the_claims_that_are_shipped_pass_their_own_examination() {
    let home = Home::new();
    let folder = root().join("claims");
    let reported = home.fine(&["claims", "--check", folder.to_str().unwrap()]);
    assert!(reported.contains(" 0 with mistakes"), "{reported}");
    let list = home.json(&["claims", "--json"]);
    let claims = list["claims"].as_array().unwrap();
    assert!(claims.len() >= 22);
    let mut areas = std::collections::BTreeSet::new();
    for claim in claims {
        assert!(!claim["needs"].as_array().unwrap().is_empty(), "{claim}");
        // One of each area; a test of the verb explains all.
        if areas.insert(claim["area"].as_str().unwrap()) {
            let explained = home.fine(&["claims", claim["id"].as_str().unwrap()]);
            assert!(explained.contains("Sources:"), "{explained}");
        }
    }
    let own = home.path().join("own/server");
    fs::create_dir_all(&own).unwrap();
    let path = own.join("wrong.toml");
    fs::write(&path, "id = \"wrong\"\ntitle = \"x\"\ncheck = \"@@a = 1\"\n").unwrap();
    let Ended { status, stdout, .. } =
        home.end(&["claims", "--check", own.parent().unwrap().to_str().unwrap()]);
    assert!(status == 1 && stdout.contains("server/wrong.toml"), "{status} {stdout}");

    let twice = home.path().join("twice");
    for area in ["memory", "host"] {
        fs::create_dir_all(twice.join(area)).unwrap();
        fs::copy(folder.join("memory/swappiness.toml"), twice.join(area).join("swappiness.toml")).unwrap();
    }
    let Ended { status, stdout, .. } = home.end(&["claims", "--check", twice.to_str().unwrap()]);
    assert_eq!(status, 1, "{stdout}");
    assert!(stdout.contains("memory/swappiness.toml: host/swappiness.toml has the same id"), "{stdout}");
    assert!(stdout.contains("2 claims, 1 with mistakes"), "{stdout}");
}

#[test]
fn a_folder_of_more_claims_than_anybody_writes_is_refused() {
    let home = Home::new();
    let area = home.path().join("own/server");
    fs::create_dir_all(&area).unwrap();
    for number in 0..=2_000 {
        fs::write(area.join(format!("c{number}.toml")), "").unwrap();
    }
    let own = home.path().join("own");
    for args in [["claims", "--check"], ["claims", "--claims"]] {
        let reported = home.fails(2, &[args[0], args[1], own.to_str().unwrap()]);
        assert!(reported.contains("at most 2000 files"), "{reported}");
    }
}
