use mydyno_model::Document;
use mydyno_model::finding::Findings;
use serde_json::Value;

use super::*;

fn findings() -> Findings {
    Findings::from_json(include_str!("example.json")).unwrap()
}

const WIDE: Page<'_> = Page { color: false, width: 80, cut: true, all: false, details: Details::Worst };

fn page(all: bool) -> String {
    terminal(&findings(), Page { all, ..WIDE })
}

/// Findings of a server that tells its address, with five violated claims.
fn five() -> Findings {
    let mut findings = findings();
    let scope = &mut findings.scope;
    scope.host_name = Some("db1".to_owned());
    scope.port = Some(3306);
    scope.data_directory = Some("/var/lib/mysql/".to_owned());
    scope.uptime_s = Some(7200);
    let one = findings.findings[0].clone();
    for n in 0..4 {
        let claim = format!("copy-{n}");
        findings.findings.insert(1, Finding { claim, severity: Severity::Low, ..one.clone() });
    }
    findings
}

#[test]
fn a_finding_of_the_cause_above_it_has_no_number_and_is_not_among_the_three_in_detail() {
    let mut findings = five();
    findings.findings[1].same_cause_as = Some(findings.findings[0].claim.clone());
    let follower = findings.findings[1].claim.clone();
    let page = terminal(&findings, WIDE);
    let line = page.lines().find(|line| line.contains(&format!("LOW       {follower}"))).unwrap();
    assert!(line.starts_with("  +  LOW"), "{line}");
    let numbers: Vec<&str> =
        page.lines().filter(|l| l.contains("LOW       copy-")).map(|l| l[..3].trim()).collect();
    assert_eq!(numbers, ["+", "2", "3", "4"], "{page}");
    assert!(!page.lines().any(|line| line.starts_with(&format!("LOW  {follower} "))), "{page}");
    let text = markdown(&findings);
    assert!(text.contains(&format!("    - low, {follower}")) && text.contains("2. low, "), "{text}");
    let page = html(&findings);
    assert_eq!(page.matches("<br>+ ").count(), 1);
}

#[test]
fn the_page_begins_with_the_server_the_severities_and_one_line_a_finding() {
    let findings = five();
    let page = terminal(&findings, WIDE);
    let head: Vec<&str> = page.lines().take(10).collect();
    let at = "host db1, port 3306, data directory /var/lib/mysql/, up for 2 h";
    assert!(head.contains(&at) && head.contains(&"Violated: 1 high, 4 low"), "{page}");
    for (n, line) in page.lines().filter(|l| l.contains("LOW       copy-")).enumerate() {
        assert!(line.starts_with(&format!("{:>3}  LOW", n + 2)) && line.chars().count() <= 80, "{line}");
    }
    let details = |page: &str| page.lines().filter(|l| l.starts_with("Why ")).count();
    assert_eq!(details(&page), 3, "{page}");
    assert_eq!(details(&terminal(&findings, Page { details: Details::Every, ..WIDE })), 5);
    let explained = ["no-primary-key".to_owned(), "copy-2".to_owned()];
    let one = terminal(&findings, Page { details: Details::Of(&explained), ..WIDE });
    assert_eq!(details(&one), 2, "{one}");
    assert!(one.contains("HOLDS  no-primary-key") && !one.contains("copy-1"), "{one}");
    let text = markdown(&findings);
    assert!(text.contains(&format!("{at}\n")) && text.contains("2. low, copy-3: "), "{text}");
    assert!(html(&findings).contains(at));
}

#[test]
fn evidence_is_told_in_units_for_people() {
    for (value, unit, text) in [
        (Value::from(8_589_934_592_u64), "bytes", "8 GiB"),
        (Value::from(0.980_392_156_862_745_1), "", "0.98"),
        (Value::from(31_536_000), "s", "365 d"),
        (Value::from(1_500_000), "ns", "1.5 ms"),
        (Value::from(29.858_143_125), "1/s", "29.9/s"),
        (Value::from("ON"), "", "ON"),
        (Value::from(""), "", "(empty)"),
    ] {
        assert_eq!(value_text(&value, unit), text);
    }
}

#[test]
fn the_page_says_what_is_violated_why_and_what_to_do() {
    let page = page(false);
    for part in [
        "mariadb 10.11.19",
        "1 violated, 1 accepted, 1 unknown, 1 hold",
        "HIGH  sync-binlog-mariadb (durability)",
        "server.variable.sync_binlog = 0 (SHOW GLOBAL VARIABLES)",
        "@@sync_binlog [0] == 1: false",
        "Now       SET GLOBAL sync_binlog = 1;",
        "Lasting   option file, [mysqld]: sync_binlog = 1",
        "Undo      SET GLOBAL sync_binlog = 0;",
        "Ledger    durability: strengthened",
        "needs PROCESS",
        "swappiness until 2027-01-31: planned with the next kernel",
    ] {
        assert!(page.contains(part), "{part} is not on\n{page}");
    }
    assert!(!page.contains("no-primary-key"), "what holds is only listed on demand");
    assert!(super::terminal(&findings(), Page { all: true, ..WIDE }).contains("no-primary-key"));
}

#[test]
fn texts_of_a_server_do_not_steer_the_terminal() {
    let mut findings = findings();
    findings.findings[0].summary = "a\u{1b}[2Jb\nc".to_owned();
    findings.findings[0].evidence[0].value = Value::from("x\u{1b}]0;y\u{7}");
    let page = terminal(&findings, Page { all: true, ..WIDE });
    assert!(!page.contains('\u{1b}') && !page.contains('\u{7}'), "{page:?}");
}

#[test]
fn markdown_shows_the_same() {
    let text = markdown(&findings());
    for part in ["## sync-binlog-mariadb (high, durability)", "    SET GLOBAL sync\\_binlog", "needs PROCESS"]
    {
        let part = part.replace("\\_", "_");
        assert!(text.contains(&part), "{part} is not in\n{text}");
    }
}

#[test]
fn the_html_page_shows_the_same_with_its_lines_to_be_copied() {
    let page = html(&findings());
    for part in [
        "<h1>mariadb 10.11.19-MariaDB</h1>",
        "1 violated, 1 accepted, 1 unknown, 1 hold",
        "<li><b class=\"severity high\">high</b> <a href=\"#f0\">sync-binlog-mariadb</a>",
        "<div class=\"finding\" id=\"f0\">",
        "@@sync_binlog [0] == 1: false",
        "<p class=\"label\">Now: on the server</p>\n<pre class=\"command\" tabindex=\"0\"><code>SET GLOBAL sync_binlog = 1;</code></pre>",
        "<p class=\"label\">Lasting: option file, [mysqld]</p>\n<pre class=\"command\" tabindex=\"0\"><code>sync_binlog = 1</code></pre>",
        "<code>SET GLOBAL sync_binlog = 0;</code>",
        "<dt>Ledger</dt><dd>durability: strengthened",
        "needs PROCESS",
        "planned with the next kernel",
        "<summary>1 hold</summary>",
    ] {
        assert!(page.contains(part), "{part} is not on\n{page}");
    }
}

#[test]
fn a_page_without_a_violation_says_so_and_only_of_what_could_be_told() {
    let mut findings = findings();
    findings.findings.retain(|f| f.state != State::Violated);
    let page = html(&findings);
    assert!(page.contains("No claim is violated, of those that could be told"), "{page}");
    assert!(!page.contains("class=\"finding\""));
}

#[test]
fn sarif_has_results_suppressions_and_says_what_was_not_seen() {
    let document: Value = serde_json::from_str(&sarif(&findings())).unwrap();
    let run = &document["runs"][0];
    assert_eq!(document["version"], "2.1.0");
    assert_eq!(run["results"].as_array().unwrap().len(), 2);
    assert_eq!(run["results"][0]["ruleId"], "sync-binlog-mariadb");
    assert_eq!(run["results"][0]["level"], "error");
    assert_eq!(run["results"][1]["suppressions"][0]["status"], "accepted");
    for (n, result) in run["results"].as_array().unwrap().iter().enumerate() {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(index, n);
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
    }
    for result in run["results"].as_array().unwrap() {
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "mydyno.toml", "{result}");
        assert_eq!(place["region"]["startLine"], 1);
    }
    let notes = run["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
    assert_eq!(notes.len(), 1);
}

#[test]
fn sarif_places_a_finding_about_an_option_file_in_its_line() {
    let mut findings = findings();
    let finding = &mut findings.findings[0];
    finding.area = "options".to_owned();
    for (source, uri, line) in [
        ("/etc/my.cnf:12 [mysqld]", "file:///etc/my.cnf", 12),
        ("/etc/my.cnf:3", "file:///etc/my.cnf", 3),
        ("/etc/mysql/my.cnf", "file:///etc/mysql/my.cnf", 1),
        ("/srv/a b#é.cnf:7 [mysqld]", "file:///srv/a%20b%23%C3%A9.cnf", 7),
        ("command line", "mydyno.toml", 1),
        ("mysqld-auto.cnf", "mydyno.toml", 1),
    ] {
        findings.findings[0].evidence[0].source = source.to_owned();
        let document: Value = serde_json::from_str(&sarif(&findings)).unwrap();
        let place = &document["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], uri, "{source}");
        assert_eq!(place["region"]["startLine"], line, "{source}");
    }
}
