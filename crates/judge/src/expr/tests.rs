//! Examples of the language, which document its guarantees to authors.

use indexmap::IndexMap;
use mydyno_model::Header;
use mydyno_model::facts::{Fact, FactSet, Status};
use serde_json::{Map, Value as Json, json};
use time::OffsetDateTime;

use super::*;

fn facts(list: &[(&str, Json, &str)]) -> FactSet {
    let facts: IndexMap<String, Fact> = list
        .iter()
        .map(|(id, value, unit)| ((*id).to_owned(), Fact::ok(value.clone(), unit, "test")))
        .collect();
    FactSet { header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH), facts, extra: Map::new() }
}

fn some() -> FactSet {
    let mut set = facts(&[
        ("server.family", json!("mariadb"), ""),
        ("server.version_number", json!(101_119), ""),
        ("server.variable.sync_binlog", json!(0), ""),
        ("server.variable.log_bin", json!("ON"), ""),
        ("server.variable.innodb_buffer_pool_size", json!(8_589_934_592_u64), ""),
        ("server.rate.innodb_os_log_written", json!(1000.0), "1/s"),
        ("host.memory.total_bytes", json!(17_179_869_184_u64), "bytes"),
        ("host.sysctl.vm.dirty_ratio", json!(20), "percent"),
        ("host.sysctl.fs.aio-max-nr", json!(65536), "count"),
        ("host.kernel.release", json!("5.10.0-28-amd64"), ""),
        ("host.uptime_s", json!(90), "s"),
        ("block.sda.scheduler", json!("mq-deadline"), ""),
        ("block.dm-0.scheduler", json!("none"), ""),
        ("storage.datadir.disks", json!(["sda"]), ""),
        ("server.process.limit.files.soft", json!("unlimited"), ""),
        ("server.options.set", json!([{"name": "a", "line": 1}, {"name": "b", "value": null}]), ""),
    ]);
    let denied = Fact::missing(Status::Denied { why: "needs PROCESS".to_owned() }, "x");
    set.facts.insert("server.sessions.total".to_owned(), denied);
    let absent = Fact::missing(Status::Absent { why: "no swap here".to_owned() }, "x");
    set.facts.insert("host.swap.devices".to_owned(), absent);
    set
}

fn come_to(text: &str) -> Result<Value, Stop> {
    evaluate(&parse(text).unwrap_or_else(|e| panic!("{text}: {e}")), &some(), &[]).result
}

fn is(text: &str) -> bool {
    match come_to(text) {
        Ok(Value::Bool(b)) => b,
        other => panic!("{text}: {other:?}"),
    }
}

fn missing(text: &str) -> Vec<(String, String)> {
    match come_to(text) {
        Err(Stop::Missing(facts)) => facts.into_iter().map(|m| (m.fact, m.status)).collect(),
        other => panic!("{text}: {other:?}"),
    }
}

fn fault(text: &str) -> String {
    match come_to(text) {
        Err(Stop::Fault(text)) => text,
        other => panic!("{text}: {other:?}"),
    }
}

fn refused(text: &str) -> (usize, usize, String) {
    let error = parse(text).unwrap_err();
    (error.at.line, error.at.column, error.text)
}

#[test]
fn comparisons_arithmetic_and_logic_follow_the_usual_precedence() {
    for text in [
        "1 + 2 * 3 == 7 and not 1 > 2",
        "(1 + 2) * 3 == 9",
        "true or false and false",
        "not false and true",
        "2 - 1 - 1 == 0",
        "8 / 2 / 2 == 2",
        "-2 + 3 == 1",
        "mariadb and not mysql",
        "1 in [1, 2] and 3 not in [1, 2] and \"O_DIRECT\" == 'o_direct'",
        "\"rw,noatime\" contains \"noatime\" and [1, 2] contains 2",
        "if(1 < 2, 3, 4) == 3 and min(3, 1, 2) == 1 and max(1, 2) == 2",
        "starts_with(\"aio_native\", \"AIO\") and length([1, 2]) == 2",
        "ends_with(\"TLSv1.2,TLSv1\", \",tlsv1\") and not ends_with(\"TLSv1.2\", \"TLSv1\") and not ends_with(\"a\", \"aa\")",
        "round_up(130 MiB, 64 MiB) == 192 MiB",
        "round_down(130 MiB, 64 MiB) == 128 MiB",
        "enough(2 > 1, 3) == 3",
    ] {
        assert!(is(text), "{text}");
    }
}

#[test]
fn units_are_converted_and_mixing_them_is_a_fault() {
    for text in [
        "@@innodb_buffer_pool_size == 8 GiB and @@innodb_buffer_pool_size == 8192M",
        "@@innodb_buffer_pool_size / host.memory.total_bytes == 50 %",
        "host.sysctl.vm.dirty_ratio <= 20 % and host.sysctl.vm.dirty_ratio > 19.5 %",
        "server.rate.innodb_os_log_written * 1 h == 3_600_000",
        "bytes(server.rate.innodb_os_log_written * 1 h) < 4 MiB",
        "host.uptime_s == 1.5 min and host.uptime_s < 1 d and host.uptime_s > 1500 ms",
        "server.rate.innodb_os_log_written > 100/s and server.rate.innodb_os_log_written > 100 /s",
        "2 MiB/s * 10 s == 20 MiB and host.sysctl.fs.aio-max-nr == 65536",
        "limit(server.process.limit.files.soft) > 1000000",
    ] {
        assert!(is(text), "{text}");
    }
    assert!(fault("host.memory.total_bytes > 10 s").contains("cannot be compared"));
    assert!(fault("host.memory.total_bytes > 1024").contains("plain number"));
    assert!(fault("host.sysctl.vm.dirty_ratio > 10").contains("share in %"));
    assert!(fault("host.memory.total_bytes + host.uptime_s > 0").contains("do not add up"));
    assert!(is("host.memory.total_bytes > 0"), "nothing needs no unit");
}

#[test]
fn versions_are_compared_by_their_parts() {
    for text in [
        "version >= 10.11.7 and version < 10.12 and version >= 10.9",
        "kernel >= 5.9 and kernel < 5.10.1 and kernel >= 5.10",
        "version(\"8.0.9\") < 8.0.30",
    ] {
        assert!(is(text), "{text}");
    }
}

#[test]
fn a_missing_fact_makes_unknown_unless_the_other_side_decides() {
    assert_eq!(
        missing("server.sessions.total > 5"),
        [("server.sessions.total".to_owned(), "denied".to_owned())]
    );
    assert!(!is("server.sessions.total > 5 and false"));
    assert!(!is("false and server.sessions.total > 5"));
    assert!(is("server.sessions.total > 5 or 1 == 1"));
    assert_eq!(missing("server.sessions.total > 5 and true").len(), 1);
    assert_eq!(missing("server.sessions.total > 5 or server.innodb.read_views == 1").len(), 2);
    assert_eq!(missing("not (server.sessions.total > 5)").len(), 1);
    assert_eq!(missing("1 / (1 - 1) > 3"), [("1 / (1 - 1)".to_owned(), "undefined".to_owned())]);
    assert_eq!(missing("enough(1 > 2, true)"), [("1 > 2".to_owned(), "undefined".to_owned())]);
}

#[test]
fn whether_a_system_has_a_fact_is_told_from_not_having_looked() {
    assert!(is("exists(@@sync_binlog) and not exists(@@innodb_redo_log_capacity)"));
    assert!(!is("exists(host.swap.devices)"));
    assert!(is("not exists(block.sdz.scheduler)"), "others of the family were read");
    assert_eq!(missing("exists(block.sdz.rotational)")[0].1, "not_read");
    assert_eq!(missing("exists(schema.rows)")[0].1, "not_read");
    assert_eq!(missing("exists(server.sessions.total)")[0].1, "denied");
    assert!(is("default(@@innodb_redo_log_capacity, 7) == 7 and default(@@sync_binlog, 7) == 0"));
    assert_eq!(missing("default(server.sessions.total, 1) == 1")[0].1, "denied");
    assert_eq!(missing("@@innodb_redo_log_capacity > 1")[0].1, "absent");
}

#[test]
fn groups_of_facts_and_lists_are_gone_over() {
    for text in [
        "any(d in block.*: block.$d.scheduler == \"none\")",
        "not all(d in block.*: block.$d.scheduler == \"none\")",
        "all(d in storage.datadir.disks: block.$d.scheduler == \"mq-deadline\")",
        "count(d in block.*.scheduler: true) == 2",
        "any(o in server.options.set: $o.name == \"b\")",
        "sum(x in [1, 2, 3]: $x * 2) == 12",
        "all(x in []: false) and not any(x in []: true)",
        "any(x in [1, 2]: all(y in [1]: $x == $y))",
        "all(r in [\"datadir\"]: length(storage.$r.disks) == 1)",
    ] {
        assert!(is(text), "{text}");
    }
    assert_eq!(
        missing("any(n in server.plugin.*: true)"),
        [("server.plugin.*".to_owned(), "not_read".to_owned())]
    );
    // An item whose result is known decides, whatever is missing for the others.
    assert!(is("any(d in [\"sda\", \"sdz\"]: block.$d.scheduler == \"mq-deadline\")"));
    assert_eq!(missing("all(d in [\"sda\", \"sdz\"]: block.$d.scheduler == \"mq-deadline\")").len(), 1);
}

#[test]
fn settings_that_are_on_are_asked_with_on() {
    assert!(is("on(@@log_bin) and not on(@@sync_binlog)"));
    assert!(fault("@@log_bin and true").contains("on("));
    assert!(fault("on(@@innodb_buffer_pool_size)").contains("ON or OFF"));
}

#[test]
fn the_evidence_is_what_decided() {
    let expr = parse("any(d in block.*: block.$d.scheduler == \"none\") or @@sync_binlog == 1").unwrap();
    let found = evaluate(&expr, &some(), &[]);
    assert_eq!(found.facts, ["block.dm-0.scheduler"]);
    assert_eq!(found.steps, ["block.$d.scheduler [none] == \"none\": true"]);
    // Without a comparison the whole expression is shown.
    let found = evaluate(&parse("not on(@@log_bin)").unwrap(), &some(), &[]);
    assert_eq!(found.steps, ["not on(@@log_bin [ON]): false"]);
    let expr = parse("@@innodb_buffer_pool_size <= 75 % * host.memory.total_bytes").unwrap();
    let found = evaluate(&expr, &some(), &[]);
    assert_eq!(
        found.steps,
        ["@@innodb_buffer_pool_size [8589934592] <= 75 % * host.memory.total_bytes [16 GiB] = 12 GiB: true"]
    );
    let expr = parse("@@sync_binlog == 1 and host.uptime_s > 1 min").unwrap();
    assert_eq!(evaluate(&expr, &some(), &[]).facts, ["server.variable.sync_binlog"]);
}

#[test]
fn errors_name_the_place_and_the_way_out() {
    assert_eq!(refused("1 +\n  + 2").0, 2);
    assert_eq!(refused("@@a = 1"), (1, 5, "write \"==\" to compare".to_owned()));
    assert_eq!(refused("a.b > 5 m").1, 9);
    assert!(refused("a.b > 5 m").2.contains("not a unit"));
    assert!(refused("1 < a.b < 3").2.contains("and"));
    assert!(refused("exist(a.b)").2.contains("did you mean \"exists\""));
    assert!(refused("any(disk in block.*: block.$dsk.x)").2.contains("did you mean $disk"));
    assert!(refused("block.*.x == 1").2.contains("any(d in block.*"));
    assert!(refused("(1").2.contains("\")\" is expected, not the end"));
    assert!(refused("\"abc").2.contains("does not end"));
    assert!(refused("min()").2.contains("takes"));
    assert!(refused("1 2").2.contains("not expected"));
    assert!(refused("a.b && c.d").2.contains("write \"and\""));
    assert!(refused("swappiness == 1").2.contains("dots"));
    assert!(refused(&format!("{}1", "(".repeat(100))).2.contains("deep"));
    assert!(refused("8.0.30.1").2.contains("nor a version"));
}

#[test]
fn an_expression_written_out_reads_back_as_the_same() {
    for text in [
        "mariadb and version >= 10.11.7 and (a.b == 1 or not c.d < 5 MiB)",
        "any(d in storage.datadir.disks: block.$d.scheduler not in [\"none\", \"kyber\"])",
        "a.b - (c.d - e.f) > -3 * (2 + x.y) / 100/s",
        "count(o in server.options.set: $o.name == 'x') == 0",
        "not (a.b contains \"x\" and on(@@log_bin))",
        "kernel >= 5.10 and default(@@x, 3) == 3 and limit(a.b) < 1 d",
        "sum(s in schema.engine.*.tables: schema.engine.$s.tables) > 0",
    ] {
        let expr = parse(text).unwrap();
        let again = expr.to_string();
        assert_eq!(parse(&again).unwrap_or_else(|e| panic!("{again}: {e}")), expr, "{again}");
    }
}

#[test]
fn mutants_are_different_and_cover_comparisons_units_and_bounds() {
    let expr = parse("mariadb and version >= 10.11.7 and a.b < 5 MiB and any(d in block.*: block.$d.x == 1)")
        .unwrap();
    let found = mutants(&expr);
    let whats: Vec<&str> = found.iter().map(|m| m.what.as_str()).collect();
    for expected in [
        "version >= 10.11.7 became version < 10.11.7",
        "10.11.7 became 10.11.8",
        "10.11.7 became 10.11.6",
        "a.b < 5 MiB became a.b >= 5 MiB",
        "5 MiB became 5 GiB",
        "block.$d.x == 1 became block.$d.x != 1",
        "any(d in block.*: block.$d.x == 1) became all(d in block.*: block.$d.x == 1)",
    ] {
        assert!(whats.contains(&expected), "{expected} is not among {whats:#?}");
    }
    for mutant in &found {
        assert_ne!(mutant.expr, expr, "{}", mutant.what);
        assert_eq!(parse(&mutant.expr.to_string()).unwrap(), mutant.expr, "{}", mutant.what);
    }
}

#[test]
fn the_facts_that_an_expression_needs_are_read_off_it() {
    let expr = parse("any(d in storage.datadir.disks: block.$d.scheduler == 'x') or any(e in schema.engine.*.tables: true) or version > 8.0.1").unwrap();
    assert_eq!(
        expr.facts(),
        ["block.*.scheduler", "schema.engine.*.tables", "server.version_number", "storage.datadir.disks"]
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_or_the_evaluator_panic(text in "[a-z@$.*()<>=!0-9 \"'\\[\\],:+/%#-]{0,60}") {
        if let Ok(expr) = parse(&text) {
            let _ = evaluate(&expr, &some(), &[]);
            let _ = mutants(&expr);
        }
    }
}
