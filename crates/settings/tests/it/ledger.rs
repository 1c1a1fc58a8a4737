//! The ledger that is shipped.

use mydyno_settings::knobs::Knobs;
use mydyno_settings::{Ledger, ledger, table};

#[test]
fn every_row_is_of_a_knob_or_a_lever() {
    let knobs = Knobs::embedded().unwrap();
    // A mistake in a file would leave the ledger of the program empty.
    Ledger::embedded().unwrap_or_else(|mistakes| panic!("knobs/{mistakes}"));
    assert!(ledger().iter().count() > 90);
    for (name, _) in ledger().iter() {
        let of_lever = table().rows().any(|row| row.ledger.as_deref() == Some(name));
        assert!(
            knobs.get(name).is_some() || of_lever,
            "{name}: no knob, and no row of knobs/settings with `ledger = {name:?}`"
        );
    }
}

#[test]
fn a_variable_without_a_price_that_is_the_beginning_of_one_with_a_price_has_none() {
    let knobs = Knobs::embedded().unwrap();
    let mut beginnings = 0;
    for knob in knobs.iter().filter(|knob| ledger().get(&knob.name).is_none() && !knob.servers.is_empty()) {
        let prices = ledger().prices_of_variable(&knob.name, "7");
        beginnings += usize::from(ledger().iter().any(|(name, _)| name.starts_with(&knob.name)));
        let own = !knob.name.starts_with("skip_") && !knob.name.starts_with("maximum_");
        assert!(!own || prices.is_empty(), "{}: {prices:?}", knob.name);
    }
    assert!(beginnings > 3, "{beginnings}");
}

#[test]
fn spellings_of_one_value_have_one_price() {
    let prices = |name: &str, value: &str| ledger().prices_of_variable(name, value).len();
    for safe in ["1", "ON", "on", "true"] {
        assert_eq!(prices("innodb_doublewrite", safe), 0, "{safe}");
    }
    for costs in ["0", "OFF", "DETECT_ONLY"] {
        assert_eq!(prices("innodb_doublewrite", costs), 1, "{costs}");
    }
    assert_eq!(prices("skip-innodb-doublewrite", "1"), 1);
    assert_eq!(prices("log_bin", "mysql-bin"), 0);
    assert_eq!(prices("transaction-isolation", "repeatable-read"), 0);
    assert_eq!(prices("no_such_variable", "1"), 0);
}
