//! Prices of variables in durability.

use crate::settings::bare_name;

/// Variables with which a crash loses acknowledged transactions, or more.
const DURABILITY: &[&str] = &[
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "innodb_doublewrite",
    "innodb_checksum_algorithm",
    "innodb_flush_method",
    "innodb_fast_shutdown",
    "sync_master_info",
    "sync_relay_log",
];

/// The prices of variables, each once, sorted.
pub fn prices<'a>(variables: impl Iterator<Item = &'a str>) -> Vec<String> {
    let of = |variable| {
        let bare = bare_name(variable);
        // Servers accept any unambiguous beginning of an option's name.
        let name = DURABILITY.iter().find(|name| name.starts_with(&bare))?;
        Some(format!("durability: {name} decides what a crash can lose"))
    };
    let mut prices: Vec<String> = variables.filter_map(of).collect();
    prices.sort();
    prices.dedup();
    prices
}
