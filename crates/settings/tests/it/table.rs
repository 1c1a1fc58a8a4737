//! The table of settings that is shipped.

use mydyno_settings::knobs::Knobs;
use mydyno_settings::{Table, table};

#[test]
fn the_files_are_valid_and_every_row_has_a_lever_a_known_knob_and_a_row_of_the_ledger_where_it_names_one() {
    // A mistake in a file would leave the table of the program empty.
    Table::embedded().unwrap_or_else(|mistakes| panic!("knobs/{mistakes}"));
    assert!(table().rows().count() > 80, "{}", table().rows().count());
    let knobs = Knobs::embedded().unwrap();
    for row in table().rows() {
        if let Some(knob) = &row.knob {
            assert!(knobs.get(knob).is_some(), "{}: no knob {knob}", row.id);
        }
        if let Some(name) = &row.ledger {
            assert!(mydyno_settings::ledger().get(name).is_some(), "{}: no row {name} in the ledger", row.id);
        }
        // A setting without a lever is there to go back with another.
        let goes_along = table().rows().any(|other| other.along.contains(&row.id));
        assert!(
            row.lever.is_some() || (goes_along && row.path.is_some()),
            "{}: give it a `lever`; a row without one has a `path` and is in `along` of another row",
            row.id
        );
        assert_eq!(table().resolve(&row.id).map(|found| found.lever), Some(row.lever.clone()), "{}", row.id);
    }
    assert!(Table::read([("settings/x.toml", "[a]\nform = { type = \"size\" }\nfakt = \"b\"\n")]).is_err());
}

#[test]
fn one_setting_is_found_by_each_of_its_names() {
    for (name, lever) in [
        ("host.thp.enabled", "thp.enabled"),
        ("transparent_hugepage.enabled", "thp.enabled"),
        ("thp.enabled", "thp.enabled"),
        ("host.sysctl.vm.swappiness", "vm.swappiness"),
        ("vm.dirty_bytes", "vm.dirty"),
        ("block.sda.write_cache", "queue.*.write_cache"),
        ("queue.nvme0n1.scheduler", "queue.*.scheduler"),
        ("server.large_pages", "option.large_pages"),
        ("server.variable.sync_binlog", "variable.sync_binlog"),
        ("sync_binlog", "variable.sync_binlog"),
    ] {
        let row = table().resolve(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(row.lever.as_deref(), Some(lever), "{name}");
    }
    assert!(table().resolve("no.such.setting").is_none());
    let row = table().resolve("innodb_redo_log_capacity").unwrap();
    assert_eq!(row.servers, [("mysql-9.7".to_owned(), "mysql-9.7".to_owned())]);
}

#[test]
fn a_lever_that_is_none_is_refused_with_the_nearest() {
    for (name, near) in [
        ("host.thp.enabled", "thp.enabled"),
        ("thp.enable", "thp.enabled"),
        ("server.sync_binlog", "variable.sync_binlog"),
        ("option.sync_binlogg", "option.sync_binlog"),
        ("variable.large_pages", "option.large_pages"),
    ] {
        let error = table().lever(name).unwrap_err().to_string();
        assert!(error.contains(near), "{name}: {error}");
    }
    assert!(table().lever("option.sync_binlog").is_ok() && table().lever("variable.sync_binlog").is_ok());
}
