//! Findings of the lint for option files, with the shipped knobs.

use mydyno_model::Header;
use mydyno_model::facts::{Fact, FactSet};
use mydyno_model::finding::{Finding, State};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{CHECKS, lint};
use crate::knobs::Knobs;

mod values;

fn knobs() -> &'static Knobs {
    static KNOBS: std::sync::OnceLock<Knobs> = std::sync::OnceLock::new();
    KNOBS.get_or_init(|| Knobs::embedded().unwrap())
}

/// Facts of one file whose lines are options of `[mysqld]`, and more facts, as of running values.
fn facts(lines: &[&str], more: &[(&str, Value)]) -> FactSet {
    let set: Vec<Value> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| {
            let (name, value) = match line.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (*line, None),
            };
            json!({"file": "/etc/my.cnf", "line": at + 1, "group": "mysqld", "name": name, "written": name, "value": value, "secret": false})
        })
        .collect();
    let all = [("server.options.set", Value::from(set))].into_iter().chain(more.iter().cloned());
    FactSet {
        header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
        facts: all.map(|(id, value)| (id.to_owned(), Fact::ok(value, "", "t"))).collect(),
        extra: serde_json::Map::new(),
    }
}

fn found(lines: &[&str], target: &str) -> Vec<Finding> {
    found_with(lines, target, &[])
}

fn found_with(lines: &[&str], target: &str, more: &[(&str, Value)]) -> Vec<Finding> {
    let all = lint(&facts(lines, more), knobs(), &target.parse().unwrap());
    all.into_iter().filter(|f| f.state != State::Holds).collect()
}

/// Ids of the problems.
fn ids(lines: &[&str], target: &str) -> Vec<String> {
    found(lines, target).into_iter().map(|finding| finding.claim).collect()
}

#[test]
fn a_sound_file_holds_in_every_check() {
    for target in
        ["mysql-5.5", "mysql-5.7", "mysql-8.0", "mysql-9.7", "mariadb-10.1", "mariadb-10.11", "mariadb-11.8"]
    {
        let lines = [
            "datadir = /var/lib/mysql",
            "innodb-buffer-pool-size = 1G",
            "max_connections = 200",
            "sync_binlog = 1",
            "skip-name-resolve",
            "slow_query_log = on",
            "long_query_time = 0.5",
            "log_bin = binlog",
            "loose-skip-innodb_doublewrite = 0",
        ];
        let all = lint(&facts(&lines, &[]), knobs(), &target.parse().unwrap());
        let wrong: Vec<&Finding> = all.iter().filter(|f| f.state != State::Holds).collect();
        assert!(wrong.is_empty(), "{target}: {wrong:#?}");
        assert_eq!(all.len(), CHECKS.len(), "{target}");
    }
}

#[test]
fn an_upgrade_names_what_was_removed_and_what_took_its_place() {
    let lines = [
        "query_cache_size = 0",
        "expire_logs_days = 7",
        "tx_isolation = READ-COMMITTED",
        "innodb_file_format = Barracuda",
    ];
    let findings = found(&lines, "mysql-9.7");
    let ids: Vec<&str> = findings.iter().map(|f| f.claim.as_str()).collect();
    assert_eq!(
        ids,
        [
            "option-removed/query_cache_size",
            "option-removed/expire_logs_days",
            "option-removed/tx_isolation",
            "option-removed/innodb_file_format"
        ]
    );
    let expire = &findings[1];
    assert_eq!(expire.evidence[0].source, "/etc/my.cnf:2 [mysqld]");
    assert!(
        expire.summary.contains("removed in 8.2.0") && expire.summary.contains("does not start"),
        "{}",
        expire.summary
    );
    let remedy = &expire.remedy.as_ref().unwrap().persistent[0].text;
    assert!(remedy.contains("binlog_expire_logs_seconds"), "{remedy}");
    assert!(expire.traps.iter().any(|t| t.contains("86400")));
}

#[test]
fn what_mariadb_takes_and_ignores_is_told_apart_from_what_stops_it() {
    assert_eq!(
        ids(&["innodb_file_format = x", "innodb_buffer_pool_instances = 4"], "mariadb-10.11"),
        ["option-without-effect/innodb_buffer_pool_instances", "option-without-effect/innodb_file_format",]
            .map(str::to_owned)
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
    );
    assert_eq!(
        ids(&["innodb_dedicated_server = ON"], "mariadb-10.11"),
        ["option-removed/innodb_dedicated_server"]
    );
}

#[test]
fn unknown_names_offer_the_nearest_and_loose_ones_are_only_ignored() {
    let findings = found(&["inodb_buffer_pool_size = 1G"], "mysql-8.0");
    assert!(findings[0].summary.contains("did you mean innodb_buffer_pool_size"), "{}", findings[0].summary);
    let loose = found(&["loose-query_cache_size = 1"], "mysql-9.7");
    assert_eq!(
        (loose[0].claim.as_str(), loose[0].severity.name()),
        ("option-removed/query_cache_size", "info")
    );
}

#[test]
fn names_are_cut_short_or_told_by_case_only_where_the_server_does_so() {
    for (target, id) in [
        ("mysql-5.5", "option-abbreviated/max_connections"),
        ("mysql-5.7", "option-unknown/max_connectio"),
        ("mysql-9.7", "option-unknown/max_connectio"),
        ("mariadb-10.11", "option-abbreviated/max_connections"),
    ] {
        assert_eq!(ids(&["max_connectio = 77"], target), [id], "{target}");
    }
    assert_eq!(ids(&["Max_Connections = 77"], "mysql-9.7"), ["option-unknown/Max_Connections"]);
    assert_eq!(ids(&["max_c = 77"], "mysql-5.5"), ["option-unknown/max_c"]);
    // Options that the server reads before all others are resolved before the others.
    for target in ["mysql-5.6", "mariadb-10.1", "mariadb-11.8"] {
        assert_eq!(ids(&["max_c = 77"], target), ["option-abbreviated/max_connections"], "{target}");
    }
    // Two of each.
    for line in ["performance_schema_max = 1", "sync = 1"] {
        let name = line.split(' ').next().unwrap();
        assert_eq!(ids(&[line], "mariadb-11.8"), [format!("option-unknown/{name}")]);
    }
    // Each plugin has separate options.
    for (line, name) in [
        ("innodb_lock_wait = 50", "innodb_lock_wait_timeout"),
        ("innodb_cm = 1", "innodb_cmp_per_index_enabled"),
    ] {
        assert_eq!(ids(&[line], "mariadb-10.11"), [format!("option-abbreviated/{name}")]);
    }
}

#[test]
fn the_last_line_wins_and_the_others_are_named() {
    let findings = found(
        &["max_connections = 100", "max-connections = 200", "sync_binlog = 1", "sync_binlog = 1"],
        "mysql-8.0",
    );
    assert_eq!(findings.len(), 2);
    let differ = findings.iter().find(|f| f.claim == "option-duplicate/max_connections").unwrap();
    assert!(
        differ.summary.starts_with("max-connections = 200 (/etc/my.cnf:2) wins over max_connections = 100"),
        "{}",
        differ.summary
    );
    assert_eq!(
        (differ.severity.name(), findings.iter().filter(|f| f.severity.name() == "info").count()),
        ("medium", 1)
    );
    // Options that accumulate are not duplicates.
    assert_eq!(ids(&["replicate_do_db = a", "replicate_do_db = b"], "mysql-8.0"), [] as [&str; 0]);
}

#[test]
fn a_file_wins_over_nothing_a_persisted_setting_over_files_and_the_command_line_over_all() {
    let more = [
        ("server.options.persisted", json!([{"name": "max_connections", "value": "77"}])),
        (
            "server.options.command_line",
            json!([{"name": "max_connections", "written": "max-connections", "value": "55"}]),
        ),
    ];
    let findings = found_with(&["max_connections = 100"], "mysql-8.0", &more);
    assert!(
        findings[0].summary.starts_with("max-connections = 55 (command line) wins over"),
        "{}",
        findings[0].summary
    );
}

#[test]
fn what_runs_otherwise_than_it_is_written_is_told() {
    let lines = [
        "max_connections = 100",
        "innodb_flush_log_at_trx_commit = 1",
        "slow_query_log = 1",
        "open_files_limit = 0",
        "sort_buffer_size = 256K",
    ];
    let more = [
        ("server.variable.max_connections", json!(500)),
        ("server.variable.innodb_flush_log_at_trx_commit", json!(2)),
        ("server.variable.slow_query_log", json!("ON")),
        ("server.variable.open_files_limit", json!(32184)),
        ("server.variable.sort_buffer_size", json!(262_144)),
        ("server.origin.max_connections", json!({"source": "dynamic", "path": null})),
    ];
    let findings = found_with(&lines, "mysql-8.0", &more);
    let ids: Vec<&str> = findings.iter().map(|f| f.claim.as_str()).collect();
    assert_eq!(
        ids,
        ["option-not-in-force/max_connections", "option-not-in-force/innodb_flush_log_at_trx_commit"]
    );
    assert!(findings[0].summary.contains("it was set while the server ran"), "{}", findings[0].summary);
    assert!(findings[1].traps[0].contains("acknowledged"), "{:?}", findings[1].traps);
    let more = [
        ("server.variable.max_connections", json!(84)),
        ("server.error_log.file_limit.count", json!(1)),
        ("server.origin.max_connections", json!({"source": "global", "path": "/etc/my.cnf"})),
    ];
    let findings = found_with(&["max_connections = 100"], "mysql-8.0", &more);
    assert!(findings[0].summary.contains("limit of open files"), "{}", findings[0].summary);
}

#[test]
fn what_no_server_can_tell_is_unknown_and_what_the_server_runs_with_is_not() {
    for (line, target) in [
        ("rpl_semi_sync_master_enabled = 1", "mysql-5.7"),
        ("rocksdb_block_cache_size = 1G", "mariadb-10.11"),
    ] {
        let findings = found(&[line], target);
        assert_eq!((findings.len(), findings[0].state), (1, State::Unknown), "{line}");
    }
    let more = [("server.variable.thread_pool_foo", json!(1)), ("server.variable.made_by_others", json!(1))];
    assert!(found_with(&["made_by_others = 1"], "mysql-8.0", &more).is_empty());
    // An option that the running server accepts can still stop the next release.
    let of_57 = [
        ("server.family", json!("mysql")),
        ("server.version", json!("5.7.44")),
        ("server.version_number", json!(50_744)),
        ("server.variable.query_cache_size", json!(0)),
    ];
    let findings = found_with(&["query_cache_size = 0"], "mysql-8.0", &of_57);
    assert_eq!(findings[0].claim, "option-removed/query_cache_size");
    // A release between two queried servers that differ.
    let findings = found(&["innodb_undo_directory_of_nobody = 1"], "mysql-8.4");
    assert_eq!(findings[0].state, State::Violated);
}

#[test]
fn options_that_were_not_seen_are_not_said_to_be_fine() {
    let nothing = FactSet {
        header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
        facts: [].into_iter().collect(),
        extra: serde_json::Map::new(),
    };
    let findings = lint(&nothing, knobs(), &"mysql-8.0".parse().unwrap());
    assert_eq!((findings.len(), findings[0].state), (1, State::Unknown));
}

#[test]
fn broken_lines_and_groups_that_nobody_reads_are_told() {
    let more = [
        (
            "server.options.files",
            json!([{"file": "/etc/my.cnf", "not_read": null}, {"file": "/root/.my.cnf", "not_read": "/root/.my.cnf: No such file or directory"}, {"file": "/etc/mysql/my.cnf", "not_read": "everybody may write"}]),
        ),
        (
            "server.options.faults",
            json!([{"file": "/etc/my.cnf", "line": 3, "text": "an option before the first group", "fatal": true}]),
        ),
        (
            "server.options.other_groups",
            json!([{"file": "/etc/my.cnf", "line": 9, "group": "mysld"}, {"file": "/etc/my.cnf", "line": 12, "group": "mysqld-5.7", "options": ["sync_binlog", "server_id"]}, {"file": "/etc/my.cnf", "line": 14, "group": "mariadb-dump", "options": ["quick"]}, {"file": "/etc/my.cnf", "line": 15, "group": "mysqldump"}]),
        ),
        (
            "server.options.misplaced",
            json!([{"file": "/etc/my.cnf", "line": 16, "group": "mysqldump", "name": "innodb_io_capacity"}, {"file": "/etc/my.cnf", "line": 17, "group": "mysqldump", "name": "server_id"}]),
        ),
        (
            "server.options.passed_over",
            json!([{"file": "/etc/my.cnf.d/a.conf", "why": "its name does not end in .cnf"}]),
        ),
    ];
    let found = found_with(&[], "mysql-8.0", &more);
    let lost = found.iter().find(|f| f.claim == "option-group//etc/my.cnf:12").unwrap();
    assert!(lost.summary.ends_with("no effect: sync_binlog, server_id"), "{}", lost.summary);
    let ids: Vec<String> = found.into_iter().map(|f| f.claim).collect();
    assert_eq!(
        ids,
        [
            "option-file//etc/mysql/my.cnf",
            "option-file//etc/my.cnf:3",
            "option-file//etc/my.cnf.d/a.conf",
            "option-group//etc/my.cnf:9",
            "option-group//etc/my.cnf:12",
            "option-group//etc/my.cnf:16"
        ]
    );
}

#[test]
fn nothing_that_stands_in_a_file_makes_the_lint_stumble() {
    let odd = [
        "",
        "=",
        "-",
        "--",
        "_",
        "loose-",
        "loose_",
        "skip-",
        "skip-skip-skip-x",
        "enable-=",
        "\u{feff}a",
        "é=ü",
        "a=\0",
        "sort_buffer_size=",
        "sort_buffer_size=-",
        "sort_buffer_size=99999999999999999999999999999999999999999999",
        "sort_buffer_size=9223372036854775807E",
        "long_query_time=NaN",
        "long_query_time=inf",
        "optimizer_switch=,=,==",
        "sql_mode=,,",
        "maximum-sort_buffer_size=1",
        "binlog_format=99999999999999999999",
        "innodb-",
    ];
    for target in
        ["mysql-5.5", "mysql-8.0", "mysql-9.7", "mysql-99.9", "mysql-1.0", "mariadb-10.1", "mariadb-12.3"]
    {
        for line in odd {
            let _ = found(&[line], target);
        }
    }
    let wrong_shapes = [
        ("server.options.command_line", json!({"a": 1})),
        ("server.options.persisted", json!([1, null, {"name": 5}, {"name": "a", "value": [1]}])),
        ("server.options.faults", json!([{"file": 1}])),
    ];
    let _ = found_with(&["a=1"], "mysql-8.0", &wrong_shapes);
}

#[test]
fn a_file_that_was_not_seen_makes_no_fault_and_lets_no_check_hold() {
    let denied = "/etc/mysql/secret.cnf: permission refused; run mydyno as root";
    for file in [
        json!({"file": "/etc/mysql/secret.cnf", "not_read": denied, "status": "unseen"}),
        // The form in a bundle of an earlier release.
        json!({"file": "/etc/mysql/secret.cnf", "not_read": denied}),
    ] {
        let more = [("server.options.files", json!([{"file": "/etc/my.cnf", "not_read": null}, file]))];
        let findings = found_with(&["query_cache_size = 0"], "mysql-9.7", &more);
        assert_eq!(findings.len(), CHECKS.len(), "{findings:#?}");
        for finding in &findings {
            let violated = finding.claim == "option-removed/query_cache_size";
            let expected = if violated { State::Violated } else { State::Unknown };
            assert_eq!(finding.state, expected, "{}", finding.claim);
            assert!(violated || finding.missing[0].why == denied, "{finding:?}");
        }
        assert_eq!(findings[0].claim, "option-file//etc/mysql/secret.cnf");
    }
}

#[test]
fn files_that_the_server_passes_over_or_needs_are_faults() {
    let file = |status: &str| {
        let why = "/srv/my.cnf: so it is";
        [("server.options.files", json!([{"file": "/srv/my.cnf", "not_read": why, "status": status}]))]
    };
    for status in ["ignored", "required"] {
        let findings = found_with(&[], "mysql-9.7", &file(status));
        let told: Vec<(&str, State)> = findings.iter().map(|f| (f.claim.as_str(), f.state)).collect();
        assert_eq!(told, [("option-file//srv/my.cnf", State::Violated)], "{status}");
    }
    assert!(found_with(&[], "mysql-9.7", &file("absent")).is_empty());
}

#[test]
fn an_option_on_several_lines_is_told_apart_by_which_of_them_it_is() {
    let wrong = "max_connections = x";
    let ids = |lines: &[&str]| -> Vec<String> {
        let all = ids(lines, "mysql-9.7").into_iter();
        all.filter(|id| id.starts_with("option-value/")).collect()
    };
    let both = ["option-value/max_connections", "option-value/max_connections@2"];
    assert_eq!(ids(&[wrong, wrong]), both);
    assert_eq!(
        ids(&["port = 1", "port = 2", wrong, "sync_binlog = 1", wrong]),
        both,
        "other lines change nothing"
    );
    assert_eq!(ids(&["max-connections = 7", wrong]), both[1..], "the first is right");
    assert!(super::is_of(both[1], both[0]) && super::is_of(both[1], "option-value"));
}

#[test]
fn names_of_persisted_settings_stand_in_for_a_file_that_may_not_be_read() {
    let lines = ["max_connections = 100"];
    let mut set =
        facts(&lines, &[("server.family", json!("mysql")), ("server.version_number", json!(80_046))]);
    let why = "/var/lib/mysql/mysqld-auto.cnf: permission refused; run mydyno as root".to_owned();
    let denied = mydyno_model::facts::Status::Denied { why };
    set.facts.insert("server.options.persisted".to_owned(), Fact::missing(denied, "mysqld-auto.cnf"));
    let target = "mysql-8.0".parse().unwrap();
    let all = lint(&set, knobs(), &target);
    assert!(all.iter().all(|f| f.state == State::Unknown), "{all:#?}");
    set.facts.insert("server.persisted_variables".to_owned(), Fact::ok(json!(["max_connections"]), "", "t"));
    let all = lint(&set, knobs(), &target);
    let wrong: Vec<&Finding> = all.iter().filter(|f| f.state != State::Holds).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].claim, "option-duplicate/max_connections");
    assert!(wrong[0].summary.contains("(mysqld-auto.cnf) wins over"), "{}", wrong[0].summary);
    assert!(!wrong[0].summary.contains("the same value"), "{}", wrong[0].summary);
}

#[test]
fn a_pool_that_the_server_rounded_to_its_chunks_is_for_information() {
    let severity = |now: u64| {
        let set = facts(
            &["innodb_buffer_pool_size = 192M"],
            &[
                ("server.family", json!("mariadb")),
                ("server.version_number", json!(100_523)),
                ("server.variable.innodb_buffer_pool_size", json!(now)),
                ("server.variable.innodb_buffer_pool_chunk_size", json!(128 << 20)),
            ],
        );
        let all = lint(&set, knobs(), &"mariadb-10.5.23".parse().unwrap());
        let found = all.iter().find(|f| f.claim == "option-not-in-force/innodb_buffer_pool_size");
        found.map(|found| found.severity.name())
    };
    assert_eq!(severity(256 << 20), Some("info"));
    assert_eq!(severity(384 << 20), Some("medium"));
    assert_eq!(severity(128 << 20), Some("medium"));
}

#[test]
fn a_line_in_a_later_file_overrides_and_two_lines_of_one_file_contradict() {
    let severity = |second: &str| {
        let mut set = facts(
            &["sync_binlog = 0", "sync_binlog = 1"],
            &[("server.family", json!("mysql")), ("server.version_number", json!(80_046))],
        );
        let fact = set.facts.get_mut("server.options.set").unwrap();
        fact.value[1]["file"] = json!(second);
        let all = lint(&set, knobs(), &"mysql-8.0".parse().unwrap());
        let found = all.iter().find(|f| f.claim.starts_with("option-duplicate/")).unwrap();
        found.severity.name()
    };
    assert_eq!(severity("/etc/my.cnf"), "medium");
    assert_eq!(severity("/etc/my.cnf.d/zz-mydyno.cnf"), "info");
}

#[test]
fn what_remedies_override_in_the_same_file_is_no_finding() {
    let line = |line: u64, value: &str, by_fix: bool| json!({"file": "/etc/my.cnf", "line": line, "group": "mysqld", "name": "wait_timeout", "written": "wait_timeout", "value": value, "secret": false, "by_fix": by_fix});
    for (by_fix, severity) in [(true, None), (false, Some(mydyno_model::claim::Severity::Medium))] {
        let mut of_file = facts(&[], &[]);
        let set = json!([line(36, "31536000", false), line(100, "28800", by_fix)]);
        of_file.facts.insert("server.options.set".to_owned(), Fact::ok(set, "", "t"));
        let all = lint(&of_file, knobs(), &"mysql-8.0".parse().unwrap());
        let found = all.iter().find(|f| f.claim == "option-duplicate/wait_timeout");
        assert_eq!(found.map(|found| found.severity), severity);
    }
}

#[test]
fn a_collation_of_another_character_set_stops_the_server() {
    for (lines, target, stops) in [
        (&["collation_server = utf8mb4_unicode_ci"][..], "mariadb-10.11.19", true),
        (&["collation_server = utf8mb4_unicode_ci"], "mysql-8.0.12", false),
        (&["character-set-server = utf8mb4", "collation-server = utf8mb4_bin"], "mariadb-10.11.19", false),
        (&["character_set_server = utf8", "collation_server = utf8_bin"], "mariadb-10.5.23", false),
        (&["collation_server = utf8mb4_bin", "character_set_server = latin1"], "mysql-8.0.12", true),
        // The default of a release that nobody asked is not known.
        (&["collation_server = utf8mb4_bin"], "mariadb-11.6.2", false),
    ] {
        let told = ids(lines, target).iter().any(|id| id == "option-value/collation_server");
        assert_eq!(told, stops, "{lines:?} {target}");
    }
}
