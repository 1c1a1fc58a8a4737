use super::*;
use mydyno_model::{Document as _, Header};
use serde_json::json;
use time::OffsetDateTime;

fn set(facts: &[(&str, Fact)]) -> FactSet {
    FactSet {
        header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
        facts: facts.iter().map(|(n, f)| ((*n).to_owned(), f.clone())).collect(),
        extra: Map::new(),
    }
}

#[test]
fn no_name_is_left_and_what_is_no_name_stays() {
    let denied = Status::Denied { why: "command denied to user 'carol'@'10.9.8.7' for table".to_owned() };
    let before = set(&[
        ("host.name", Fact::ok("acme-db7", "", "/proc/sys/kernel/hostname")),
        ("host.cpu.model", Fact::ok("AMD EPYC", "", "/proc/cpuinfo")),
        ("server.variable.log_error", Fact::ok("/var/log/mysql/acme-db7.err", "", "SHOW GLOBAL VARIABLES")),
        ("server.variable.sync_binlog", Fact::ok(1, "", "SHOW GLOBAL VARIABLES")),
        ("server.variable.sql_mode", Fact::ok("STRICT_TRANS_TABLES", "", "SHOW GLOBAL VARIABLES")),
        ("server.variable.bind_address", Fact::ok("10.1.2.3", "", "x")),
        ("server.variable.report_host", Fact::ok("0.0.0.0", "", "x")),
        ("schema.most_indexes", Fact::ok(json!({"table": "acme.user", "indexes": 3}), "", "x")),
        ("storage.datadir.path", Fact::ok("/srv/acme/mysql", "", "x")),
        (
            "storage.datadir.device",
            Fact::missing(Status::Absent { why: "zfs on /srv/acme: none".to_owned() }, "/srv/acme"),
        ),
        (
            "schema.largest",
            Fact::ok(json!([{"table": "acme.customers", "rows": 7}]), "", "mysql.innodb_table_stats"),
        ),
        (
            "schema.text_primary_keys",
            Fact::ok(json!([{"table": "acme.customers", "type": "char(36)"}]), "", "x"),
        ),
        ("server.accounts.total", Fact::missing(denied, "x")),
        ("server.replication.to-acme.lag_s", Fact::ok(3, "", "x")),
        (
            "server.process.command_line",
            Fact::ok(json!(["/usr/sbin/mariadbd", "--datadir=/srv/acme/mysql", "--port=3306"]), "", "x"),
        ),
    ]);
    let after = redact_with(&before, b"salt");
    let text = serde_json::to_string(&after).unwrap();
    for name in ["acme", "customers", "carol", "10.9.8.7", "10.1.2.3", "user\"", ".user"] {
        assert!(!text.contains(name), "{name} in {text}");
    }
    assert_eq!(after.facts.len(), before.facts.len());
    for id in [
        "host.cpu.model",
        "server.variable.report_host",
        "server.variable.sync_binlog",
        "server.variable.sql_mode",
    ] {
        assert_eq!(after.facts[id], before.facts[id], "{id}");
    }
    let acme = after
        .text("storage.datadir.path")
        .unwrap()
        .strip_prefix("/srv/")
        .unwrap()
        .strip_suffix("/mysql")
        .unwrap();
    assert!(text.contains(&format!("zfs on /srv/{acme}: none")), "{text}");
    assert_eq!(after.value("schema.largest").unwrap()[0]["rows"], json!(7));
    assert_eq!(after.value("schema.text_primary_keys").unwrap()[0]["type"], json!("char(36)"));
    let line = after.value("server.process.command_line").unwrap();
    assert_eq!(line[1], json!(format!("--datadir=/srv/{acme}/mysql")));
    assert_eq!(line[2], json!("--port=3306"));
}

#[test]
fn every_list_and_record_of_a_schema_hides_its_names() {
    let collectors = crate::catalogue::all();
    let of_schema = || collectors.iter().flat_map(|c| c.facts).filter(|f| f.id.starts_with("schema."));
    let listed = of_schema().filter(|f| f.unit.is_empty() && !f.is_family());
    let facts: Vec<(&str, Fact)> = listed
        .flat_map(|info| {
            let one = json!({"table": "acme.orders", "index": "by_customer", "columns": ["vip"], "rows": 7});
            [json!([one]), one, json!(["acme.orders"]), json!("acme.orders")].map(|value| (info.id, value))
        })
        .map(|(id, value)| (id, Fact::ok(value, "", "q")))
        .collect();
    assert!(facts.iter().any(|(id, _)| *id == "schema.unused_indexes"), "{facts:?}");
    for (id, fact) in facts {
        let text = redact_with(&set(&[(id, fact)]), b"salt").to_json();
        for name in ["acme", "orders", "by_customer", "vip"] {
            assert!(!text.contains(name), "{id}: {name} is left in {text}");
        }
    }
}

/// Facts without a unit whose texts are words of the kernel, the server or this program, and no names of users.
const PLAIN: &str = include_str!("plain_facts.txt");

#[test]
fn every_fact_that_is_not_listed_as_plain_hides_its_names() {
    let collectors = crate::catalogue::all();
    let texts = collectors.iter().flat_map(|c| c.facts).filter(|fact| fact.unit.is_empty());
    let shown: Vec<&str> = texts
        .map(|fact| fact.id)
        .filter(|id| {
            let entry = json!([{"about": "acme", "error": "cannot connect to acme"}]);
            redact_with(&set(&[(id, Fact::ok(entry, "", "q"))]), b"salt").to_json().contains("acme")
        })
        .collect();
    let unlisted: Vec<&&str> = shown.iter().filter(|id| PLAIN.lines().all(|line| line != **id)).collect();
    assert!(unlisted.is_empty(), "name them in NAMED, or list them as plain: {unlisted:#?}");
    let gone: Vec<&str> = PLAIN.lines().filter(|line| !shown.contains(line)).collect();
    assert!(gone.is_empty(), "these hide their names, or are no facts: {gone:#?}");
}

#[test]
fn no_field_of_a_fact_with_names_shows_them_for_being_called_as_a_plain_one() {
    for id in ["server.replication_unused", "server.exposure.logs_moved", "server.tls.authorities"] {
        let entry = json!([{"source": "acme", "name": "acme", "written": "/acme", "status": "acme"}]);
        let text = redact_with(&set(&[(id, Fact::ok(entry, "", "q"))]), b"salt").to_json();
        assert!(!text.contains("acme"), "{id}: {text}");
    }
    let option = Fact::ok(json!([{"name": "max_connections", "value": "acme"}]), "", "q");
    let text = redact_with(&set(&[("server.options.set", option)]), b"salt").to_json();
    assert!(text.contains("max_connections") && !text.contains("acme"), "{text}");
}

#[test]
fn tokens_are_the_same_in_one_bundle_and_others_in_the_next() {
    let before =
        set(&[("host.name", Fact::ok("acme", "", "x")), ("storage.redo.path", Fact::ok("/acme", "", "x"))]);
    let first = redact(&before).unwrap();
    assert_eq!(first.text("storage.redo.path").unwrap(), format!("/{}", first.text("host.name").unwrap()));
    assert_ne!(first.text("host.name"), redact(&before).unwrap().text("host.name"));
}

#[test]
fn names_in_variables_are_hidden_though_they_are_no_paths() {
    let before = set(&[
        ("server.variable.slow_query_log_file", Fact::ok("acme-db7-slow.log", "", "q")),
        ("server.variable.replicate_do_db", Fact::ok("payroll,crm", "", "q")),
        ("server.variable.wsrep_sst_donor", Fact::ok("acme-node2", "", "q")),
        ("server.variable.relay_log", Fact::ok("acme-relay", "", "q")),
        ("server.variable.wsrep_on", Fact::ok("OFF", "", "q")),
        ("server.variable.innodb_flush_method", Fact::ok("O_DIRECT", "", "q")),
    ]);
    let after = redact(&before).unwrap();
    let text = after.to_json();
    for name in ["acme", "payroll", "crm", "db7", "node2"] {
        assert!(!text.contains(name), "{name} is left in {text}");
    }
    assert_eq!(after.text("server.variable.wsrep_on"), Some("OFF"));
    assert_eq!(after.text("server.variable.innodb_flush_method"), Some("O_DIRECT"));
}

#[test]
fn mount_options_that_everybody_has_stay_and_so_does_why_the_host_is_hidden() {
    let options = Fact::ok(json!(["rw", "nobarrier", "barrier=0", "acme=1"]), "", "q");
    let mut before = set(&[("storage.datadir.mount_options", options)]);
    before.extra.insert("host_not_visible".to_owned(), "the server is not on acme".into());
    before.extra.insert("other".to_owned(), "acme".into());
    let after = redact(&before).unwrap();
    let options = after.value("storage.datadir.mount_options").unwrap();
    assert_eq!(options.as_array().unwrap()[..3], [json!("rw"), json!("nobarrier"), json!("barrier=0")]);
    assert!(after.extra["host_not_visible"].as_str().unwrap().starts_with("the server is not on n"));
    assert!(!after.to_json().contains("acme"), "{}", after.to_json());
}

#[test]
fn a_live_look_redacted_does_not_name_its_host() {
    let set = crate::collect(&crate::Source::live(), None, Some(std::process::id()));
    let name = set.text("host.name").unwrap().to_owned();
    let after = redact(&set).unwrap();
    assert_ne!(after.text("host.name"), Some(name.as_str()));
    assert_eq!(after.number("host.memory.total_bytes"), set.number("host.memory.total_bytes"));
}
