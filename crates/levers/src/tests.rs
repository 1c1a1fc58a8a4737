//! Tests of parsed lists of levers.

use std::time::Duration;

use mydyno_host::Machine;
use mydyno_host::disk::Medium;
use mydyno_host::emulated::mechanism::CacheMode;
use mydyno_host::emulated::{DriveKind, Spec as Drive};

use crate::family::disk::{EMULATED_BYTES, FILE_BYTES};
use crate::{LeverSet, When, list};

fn parse(wanted: &[(&str, &str)]) -> Result<LeverSet, Vec<String>> {
    let owned: Vec<_> = wanted.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect();
    LeverSet::parse(&owned).map_err(|all| all.iter().map(ToString::to_string).collect())
}

#[test]
fn each_lever_is_read_into_its_place() {
    let lever_set = parse(&[
        ("vm.swappiness", "1"),
        ("swap.file", "64M"),
        ("cgroup.memory", "512M"),
        ("cgroup.io", "read_iops=200,write_bytes=1M"),
        ("disk.file_system", "ext4"),
        ("disk.mount_options", "noatime,barrier=0"),
        ("server.nice", "5"),
        ("server.allocator", "jemalloc"),
        ("server.sync_delay", "5ms"),
        ("env.MALLOC_ARENA_MAX", "2"),
        ("option.innodb_doublewrite", "0"),
        ("variable.max_connections", "50"),
        ("server.engine", "mariadb-10.11"),
        ("server.basedir", "/opt/x"),
        ("server.option_file", "/etc/my.cnf"),
        ("schema.statement", "ALTER TABLE t ENGINE=Aria"),
        ("workload.tables", "3"),
    ])
    .unwrap();
    assert_eq!(
        (lever_set.server.engine.as_deref(), lever_set.server.basedir.clone()),
        (Some("mariadb-10.11"), Some("/opt/x".into()))
    );
    assert_eq!(lever_set.server.option_file, Some("/etc/my.cnf".into()));
    assert_eq!(lever_set.workload, [("tables".to_owned(), "3".to_owned())]);
    assert_eq!(lever_set.schema, ["ALTER TABLE t ENGINE=Aria"]);
    assert_eq!(lever_set.of_the_host(), ["vm.swappiness=1", "swap.file=67108864"]);
    assert_eq!(lever_set.server.arrangement.limits.memory_bytes, Some(512 << 20));
    let io = lever_set.server.arrangement.limits.io.unwrap();
    assert_eq!((io.read_iops, io.write_bytes, io.write_iops), (Some(200), Some(1 << 20), None));
    assert_eq!(lever_set.server.arrangement.sync_delay, Some(Duration::from_millis(5)));
    let disk = lever_set.server.arrangement.disk.unwrap();
    assert_eq!((disk.file_system.name(), disk.bytes), ("ext4", FILE_BYTES));
    assert_eq!(lever_set.server.options, ["innodb_doublewrite=0"]);
    assert_eq!(lever_set.server.variables, [("max_connections".to_owned(), "50".to_owned())]);
    assert_eq!(lever_set.ledger.len(), 4, "{:?}", lever_set.ledger);
}

#[test]
fn no_spelling_of_a_variable_hides_its_price() {
    for option in [
        "innodb-flush-log-at-trx-commit",
        "INNODB_FLUSH_LOG_AT_TRX_COMMIT",
        "loose_innodb_flush_log_at_trx_commit",
        "innodb_flush_log_at_trx_c",
    ] {
        let lever_set = parse(&[(&format!("option.{option}"), "2")]).unwrap();
        let price = "durability: innodb_flush_log_at_trx_commit=2. ";
        assert!(
            lever_set.ledger.len() == 1 && lever_set.ledger[0].starts_with(price),
            "{option}: {:?}",
            lever_set.ledger
        );
    }
    // The name may also abbreviate innodb_flush_log_at_timeout.
    assert_eq!(parse(&[("option.loose-innodb-flush-l", "2")]).unwrap().ledger.len(), 2);
    assert_eq!(parse(&[("option.skip-innodb-doublewrite", "1")]).unwrap().ledger.len(), 1);
    assert_eq!(parse(&[("variable.Sync_Binlog", "0")]).unwrap().ledger.len(), 1);
}

#[test]
fn a_storage_engine_without_transactions_has_its_price() {
    let ledger = |id: &str, value: &str| parse(&[(id, value)]).unwrap().ledger;
    for (id, value) in [
        ("workload.storage-engine", "myisam"),
        ("schema.statement", "ALTER TABLE mydyno.sbtest1 ENGINE = Aria, ROW_FORMAT=PAGE"),
        ("schema.statement", "alter table mydyno.sbtest1 engine MEMORY"),
    ] {
        let found = ledger(id, value);
        assert!(found.len() == 1 && found[0].contains("no transactions"), "{id}={value}: {found:?}");
    }
    for (id, value) in [
        ("workload.storage-engine", "innodb"),
        ("workload.table-size", "7"),
        ("schema.statement", "ALTER TABLE mydyno.sbtest1 ENGINE=InnoDB"),
        ("schema.statement", "DROP INDEX k_1 ON mydyno.sbtest1"),
    ] {
        assert!(ledger(id, value).is_empty(), "{id}={value}");
    }
}

#[test]
fn keeping_flushes_from_a_disk_of_the_host_has_its_price() {
    let ledger = |value| parse(&[("queue.sda.write_cache", value)]).unwrap().ledger;
    let price = ledger("write through");
    assert!(
        price.len() == 1 && price[0].starts_with("durability: queue.write_cache=write through"),
        "{price:?}"
    );
    assert!(ledger("write back").is_empty());
}

#[test]
fn a_queue_without_its_disk_is_refused() {
    let problems = parse(&[("disk.queue.nr_requests", "64")]).unwrap_err();
    assert!(problems.len() == 1 && problems[0].contains("disk.file_system"), "{problems:?}");
}

#[test]
fn a_disk_has_features_of_its_file_system_and_a_share_of_the_dirty_memory() {
    let lever_set = parse(&[
        ("disk.file_system", "ext3"),
        ("disk.features", "^dir_index"),
        ("disk.bdi.max_ratio", "5"),
        ("disk.queue.nr_requests", "64"),
    ])
    .unwrap();
    let arrangement = lever_set.server.arrangement;
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let settings = [setting("bdi.*.max_ratio", "5"), setting("queue.*.nr_requests", "64")];
    assert_eq!(arrangement.disk_settings, settings);
    let disk = arrangement.disk.unwrap();
    assert_eq!((disk.file_system.name(), disk.features.to_string()), ("ext3", "^dir_index".to_owned()));
    for (wanted, says) in [
        (&[("disk.features", "^dir_index")][..], "disk.file_system"),
        (&[("disk.file_system", "xfs"), ("disk.features", "^dir_index")], "it knows none"),
        (&[("disk.bdi.max_ratio", "5")], "disk.bdi.max_ratio"),
    ] {
        let problems = parse(wanted).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(says), "{problems:?}");
    }
}

#[test]
fn an_emulated_disk_concerns_the_whole_host_and_names_its_price() {
    let lever_set = parse(&[
        ("disk.file_system", "ext4"),
        ("disk.medium", "emulated"),
        ("disk.cache", "ignores-flushes"),
        ("disk.depth", "32"),
    ])
    .unwrap();
    assert!(lever_set.of_the_host()[0].contains("emulated disk"), "{:?}", lever_set.of_the_host());
    assert!(lever_set.ledger[0].contains("ignores flushes"), "{:?}", lever_set.ledger);
    let disk = lever_set.server.arrangement.disk.unwrap();
    let drive = Drive { cache: CacheMode::IgnoresFlushes, depth: 32, ..Drive::default() };
    assert_eq!((disk.medium, disk.bytes), (Medium::Emulated(drive), EMULATED_BYTES));
    let problems = parse(&[("disk.file_system", "ext4"), ("disk.cache", "off")]).unwrap_err();
    assert!(problems[0].contains("emulated"), "{problems:?}");
    assert!(parse(&[("disk.medium", "emulated")]).unwrap_err()[0].contains("disk.file_system"));
    let drive = |id: &str, value: &str| {
        let disk = [("disk.file_system", "ext4"), ("disk.medium", "emulated"), (id, value)];
        let lever_set = parse(&disk).unwrap();
        assert_eq!(lever_set.ledger, [""; 0]);
        match lever_set.server.arrangement.disk.unwrap().medium {
            Medium::Emulated(drive) => drive,
            Medium::File => panic!("{id}"),
        }
    };
    assert_eq!(drive("disk.cache", "protected").cache, CacheMode::Protected);
    assert_eq!((drive("disk.drive", "ssd").kind, drive("disk.heads", "4").heads), (DriveKind::Ssd, 4));
}

#[test]
fn a_bundle_stands_for_its_levers_and_names_its_price() {
    let lever_set = parse(&[("bundle.relaxed", "on")]).unwrap();
    assert_eq!(lever_set.server.options, ["sync_binlog=0", "innodb_flush_log_at_trx_commit=2"]);
    assert_eq!(lever_set.ledger.len(), 2);
}

#[test]
fn all_mistakes_are_named_at_once() {
    let problems = parse(&[
        ("vm.swapiness", "1"),
        ("cgroup.memory", "much"),
        ("server.nice", "99"),
        ("disk.mount_options", "noatime"),
        ("option.datadir", "/x"),
        ("cgroup.io", "iops=3"),
        ("server.sync_delay", "0"),
    ])
    .unwrap_err();
    assert_eq!(problems.len(), 7, "{problems:#?}");
    for says in [
        "did you mean vm.swappiness",
        "512M",
        "from -20 to 19",
        "sets this itself",
        "read_iops",
        "from 100us to 1s",
    ] {
        assert!(problems.iter().any(|p| p.contains(says)), "{says}: {problems:#?}");
    }
}

#[test]
fn every_listed_lever_says_what_it_takes_and_can_be_asked_for_by_its_name() {
    let machine = Machine::real().unwrap();
    let levers = list(&machine);
    for lever in &levers {
        assert!(!lever.takes.is_empty() && !lever.what.is_empty(), "{lever:?}");
        let id = lever.id.replace("VARIABLE", "max_connections");
        let unknown = parse(&[(&id, "?")]).err().unwrap_or_default();
        assert!(unknown.iter().all(|p| !p.contains("there is no lever")), "{id}: {unknown:?}");
    }
    let mut ids: Vec<&str> = levers.iter().map(|l| l.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), levers.len());
}

#[test]
fn levers_are_split_by_the_moment_at_which_they_take_effect() {
    let lever_set = parse(&[
        ("vm.swappiness", "1"),
        ("variable.max_connections", "50"),
        ("option.innodb_doublewrite", "0"),
        ("schema.statement", "DROP INDEX k_1 ON mydyno.sbtest1"),
        ("workload.table-size", "7"),
    ])
    .unwrap();
    let at = |when| lever_set.at(when).map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(at(When::Host), ["vm.swappiness"]);
    assert_eq!(at(When::ServerRunning), ["variable.max_connections"]);
    assert_eq!(at(When::ServerStart), ["option.innodb_doublewrite"]);
    assert_eq!(at(When::Schema), ["schema.statement"]);
    assert_eq!(at(When::Workload), ["workload.table-size"]);
    assert!(!lever_set.is_in_place());
    assert!(parse(&[("vm.swappiness", "1"), ("variable.max_connections", "50")]).unwrap().is_in_place());
    let refused = lever_set.check_no_load().unwrap_err().to_string();
    assert!(refused.contains("schema.statement=DROP INDEX"), "{refused}");
}

#[test]
fn each_row_of_the_ledger_prints_its_price_for_a_value_that_costs_and_none_for_one_that_is_safe() {
    let mut tried = 0;
    for (name, row) in mydyno_settings::ledger().iter() {
        let levers: Vec<String> = match name {
            "schema.engine" => vec!["workload.storage-engine".to_owned()],
            "queue.write_cache" => vec!["queue.sda.write_cache".to_owned()],
            name if name.contains('.') => vec![name.to_owned()],
            name => vec![format!("option.{name}"), format!("variable.{name}")],
        };
        for lever in levers {
            let ledger = |value: &str| {
                let disk = [("disk.file_system", "ext4"), ("disk.medium", "emulated")];
                let of_disk = disk.into_iter().filter(|(id, _)| lever.starts_with("disk.") && *id != lever);
                parse(&of_disk.chain([(lever.as_str(), value)]).collect::<Vec<_>>())
                    .map(|lever_set| lever_set.ledger)
            };
            for safe in &row.safe {
                let Ok(found) = ledger(safe) else { continue };
                assert!(found.is_empty(), "{lever}={safe}: {found:?}");
            }
            let costs = match &row.costs[..] {
                [] => vec!["2700".to_owned(), "7".to_owned()],
                costs => costs.to_vec(),
            };
            for value in costs.iter().filter(|value| !row.safe.contains(value)) {
                let Ok(found) = ledger(value) else { continue };
                assert!(found.len() == 1 && found[0].contains(&row.note), "{lever}={value}: {found:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
    for (lever, value) in [
        ("option.sync_frm", "0"),
        ("option.innodb_support_xa", "0"),
        ("option.innodb_flush_log_at_timeout", "2700"),
        ("option.sync_relay_log_info", "0"),
        ("option.skip-log-bin", "1"),
    ] {
        assert_eq!(parse(&[(lever, value)]).unwrap().ledger.len(), 1, "{lever}={value}");
    }
    assert!(parse(&[("option.log_bin", "binary")]).unwrap().ledger.is_empty());
    assert!(parse(&[("bundle.durable", "on")]).unwrap().ledger.is_empty());
}

#[test]
fn every_lever_stands_in_the_table_and_every_lever_of_the_table_exists() {
    let machine = Machine::real().unwrap();
    let table = mydyno_settings::table();
    for info in list(&machine) {
        let of_table =
            !info.id.starts_with("bundle.") && !["option.VARIABLE", "variable.VARIABLE"].contains(&&*info.id);
        if of_table {
            let row = table.lever(&info.id).unwrap_or_else(|_| {
                panic!("{} has no row with `lever = …` in knobs/settings: add one", info.id)
            });
            for value in &info.values {
                assert!(row.form.accepts(&value.value), "{}={}", info.id, value.value);
            }
        }
    }
    for lever in table.levers() {
        let id = lever.replace("queue.*", "queue.sda").replace("bdi.*", "bdi.sda").replace("irq.*", "irq.1");
        let id = id.replace('*', "tables");
        let refused = parse(&[(&id, "?")]).err().unwrap_or_default();
        assert!(refused.iter().all(|problem| !problem.contains("there is no lever")), "{id}: {refused:?}");
    }
}

#[test]
fn every_factor_of_a_claim_is_a_lever_that_takes_its_levels() {
    let mut tried = 0;
    for claim in mydyno_judge::Claims::embedded().unwrap().iter() {
        let proof = &claim.document.proof;
        let Some(factor) = &proof.factor else { continue };
        let row = mydyno_settings::table().lever(factor).unwrap();
        for level in &proof.levels {
            let text = level.as_str().map_or_else(|| level.to_string(), str::to_owned);
            let value = row.form.value_of_level(&text, 8 << 30);
            let disk = [("disk.file_system", "ext4")];
            let of_disk =
                disk.into_iter().filter(|(id, _)| factor.starts_with("disk.") && *id != factor.as_str());
            parse(&of_disk.chain([(factor.as_str(), value.as_str())]).collect::<Vec<_>>())
                .unwrap_or_else(|problems| panic!("{}: {factor}={value}: {problems:?}", claim.document.id));
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
}
