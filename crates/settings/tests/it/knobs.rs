//! The knobs that are shipped.

use std::collections::BTreeSet;

use mydyno_model::knob::KnobType;
use mydyno_settings::knobs::{Knobs, Presence, Target, Version};

fn knobs() -> Knobs {
    Knobs::embedded().unwrap()
}

#[test]
fn every_engine_of_the_tests_was_asked_and_has_hundreds_of_knobs() {
    let knobs = knobs();
    let engines: Vec<&str> = knobs.servers().iter().map(|server| server.engine.as_str()).collect();
    assert_eq!(
        engines,
        [
            "mariadb-10.1",
            "mariadb-10.2",
            "mariadb-10.5",
            "mariadb-10.11",
            "mariadb-11.4",
            "mariadb-11.8",
            "mysql-5.5",
            "mysql-5.6",
            "mysql-5.7",
            "mysql-8.0",
            "mysql-9.7"
        ]
    );
    for server in knobs.servers() {
        assert!(server.knobs.len() > 350, "{} {}", server.engine, server.knobs.len());
        assert!(server.rules.groups.iter().any(|group| group == "mysqld"));
    }
}

#[test]
fn what_everybody_knows_of_the_servers_is_there() {
    let knobs = knobs();
    let seen = |name: &str, engine: &str| {
        let knob = knobs.get(name).unwrap_or_else(|| panic!("{name}"));
        knob.servers
            .iter()
            .find(|on| on.engine == engine)
            .unwrap_or_else(|| panic!("{name} {engine}"))
            .seen
            .clone()
    };
    for (name, engine, default) in [
        ("innodb_flush_log_at_trx_commit", "mysql-5.5", "1"),
        ("innodb_flush_log_at_trx_commit", "mariadb-11.8", "1"),
        ("sync_binlog", "mysql-5.6", "0"),
        ("sync_binlog", "mysql-5.7", "1"),
        ("sync_binlog", "mariadb-10.11", "0"),
        ("innodb_buffer_pool_size", "mysql-5.5", "134217728"),
        ("innodb_io_capacity", "mysql-9.7", "10000"),
        ("max_connections", "mysql-8.0", "151"),
        ("binlog_format", "mariadb-10.1", "STATEMENT"),
        ("binlog_format", "mysql-8.0", "ROW"),
        ("long_query_time", "mysql-5.7", "10"),
    ] {
        assert_eq!(seen(name, engine).default.as_deref(), Some(default), "{name} {engine}");
    }
    assert_eq!(seen("innodb_flush_log_at_trx_commit", "mysql-9.7").max.as_deref(), Some("2"));
    assert_eq!(seen("innodb_flush_log_at_trx_commit", "mariadb-10.5").max.as_deref(), Some("3"));
    for (name, engine, dynamic) in [
        ("innodb_buffer_pool_size", "mysql-5.6", false),
        ("innodb_buffer_pool_size", "mysql-5.7", true),
        ("innodb_log_file_size", "mariadb-10.5", false),
        ("innodb_log_file_size", "mariadb-10.11", true),
        ("sync_binlog", "mysql-5.5", true),
        ("datadir", "mysql-9.7", false),
    ] {
        assert_eq!(seen(name, engine).dynamic, Some(dynamic), "{name} {engine}");
    }
    assert!(seen("innodb_file_format", "mariadb-10.11").ignored);
    assert_eq!(seen("slave_net_timeout", "mysql-9.7").instead.as_deref(), Some("replica_net_timeout"));
    assert_eq!(seen("log_bin", "mysql-8.0").kind, KnobType::Text, "the option takes a name");
    assert_eq!(seen("slow_query_log", "mariadb-10.1").kind, KnobType::Bool);
}

#[test]
fn no_note_contradicts_a_server_that_was_asked() {
    let knobs = knobs();
    for knob in knobs.iter() {
        for history in &knob.history {
            let of = |text: &Option<String>| {
                text.as_deref().map(|t| Version::parse(t).unwrap_or_else(|| panic!("{}: {t}", knob.name)))
            };
            let (since, removed) = (of(&history.since), of(&history.removed));
            for server in knobs.of_family(&history.family).filter(|_| since.is_some() || removed.is_some()) {
                let has = knob.servers.iter().any(|on| on.engine == server.engine && !on.seen.ignored);
                let stated = since.is_none_or(|since| server.release() >= since)
                    && removed.is_none_or(|r| server.release() < r);
                let sound = if has { stated } else { !stated || since.is_none() };
                assert!(sound, "{} on {} {}", knob.name, server.engine, server.version);
            }
            if let Some(new) = &history.renamed_to {
                assert!(knobs.get(new).is_some(), "{} is said to be {new} now", knob.name);
            }
        }
    }
}

#[test]
fn the_ledger_holds_what_the_guard_of_the_remedies_knows() {
    let knobs = knobs();
    let priced: BTreeSet<&str> =
        knobs.iter().filter(|k| k.ledger.is_some()).map(|k| k.name.as_str()).collect();
    for name in [
        "innodb_flush_log_at_trx_commit",
        "sync_binlog",
        "innodb_doublewrite",
        "innodb_checksum_algorithm",
        "innodb_flush_method",
        "innodb_force_recovery",
        "sync_relay_log",
        "relay_log_recovery",
        "vm.overcommit_memory",
        "queue.write_cache",
    ] {
        assert!(priced.contains(name), "{name}");
    }
    // A value that costs nothing is one that some server takes.
    for knob in knobs.iter() {
        for safe in knob.ledger.iter().flat_map(|price| &price.safe) {
            let values: BTreeSet<String> =
                knob.servers.iter().flat_map(|on| &on.seen.values).map(|v| v.to_lowercase()).collect();
            let plain = safe.parse::<f64>().is_ok()
                || ["ON", "OFF"].contains(&safe.as_str())
                || knob.host.is_some()
                || knob.servers.iter().any(|on| on.seen.values.is_empty());
            assert!(
                plain || values.is_empty() || values.contains(&safe.to_lowercase()),
                "{} {safe} {values:?}",
                knob.name
            );
        }
    }
    assert!(knobs.iter().filter(|k| k.host.is_some()).count() >= 40);
    assert!(knobs.iter().filter(|k| !k.servers.is_empty() && k.what.is_some()).count() >= 120);
    assert!(priced.len() >= 90, "{}", priced.len());
}

#[test]
fn names_are_found_as_people_write_them_and_the_nearest_is_offered() {
    let knobs = knobs();
    for written in ["innodb-buffer-pool-size", "--INNODB_buffer_pool_size", "loose_innodb_buffer_pool_size"] {
        assert_eq!(knobs.find(written).unwrap().name, "innodb_buffer_pool_size", "{written}");
    }
    assert_eq!(knobs.find("vm.swappiness").unwrap().name, "vm.swappiness");
    for (written, near) in [
        ("inodb_bufer_pool_size", "innodb_buffer_pool_size"),
        ("buffer_pool_size", "innodb_buffer_pool_size"),
        ("vm.swapiness", "vm.swappiness"),
    ] {
        let reported = knobs.find(written).unwrap_err().to_string();
        assert!(reported.contains(near), "{reported}");
    }
    assert!(knobs.find("zzzzzzzzzzzz").unwrap_err().to_string().contains("mydyno knobs"));
}

#[test]
fn every_server_has_in_its_own_release_what_it_said() {
    let knobs = knobs();
    for server in knobs.servers() {
        let target: Target = format!("{}-{}", server.family(), server.version).parse().unwrap();
        for name in server.knobs.keys() {
            assert!(
                matches!(knobs.presence(name, &target), Presence::Has { .. }),
                "{name} {}",
                server.engine
            );
        }
    }
}
