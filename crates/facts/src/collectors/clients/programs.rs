//! Programs behind sessions: old drivers, and tools that people use by hand.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::hosts::is_local;
use super::sessions::Client;

/// Drivers, with the first version that is not old: what came before knows neither the newer ways to log in nor TLS 1.2.
const DRIVERS: [(&str, &[u32]); 5] = [
    ("MySQL Connector Java", &[8]),
    ("MySQL Connector/J", &[8]),
    ("MariaDB Connector/J", &[2]),
    ("libmysql", &[5, 7]),
    ("mysql-connector-python", &[8]),
];

/// Tools that people use by hand, in lower case.
const BY_HAND: [&str; 9] = [
    "dbeaver",
    "mysqlworkbench",
    "heidisql",
    "datagrip",
    "navicat",
    "phpmyadmin",
    "sqlyog",
    "dbvisualizer",
    "toad",
];

/// Entries of a list.
const LISTED: usize = 5;

/// The numbers of a version.
fn numbers(version: &str) -> Vec<u32> {
    let numeric = version.split(|c: char| !c.is_ascii_digit() && c != '.').find(|part| !part.is_empty());
    numeric.unwrap_or_default().split('.').map_while(|part| part.parse().ok()).collect()
}

/// An old driver, as its name and version.
fn old_driver(client: &Client) -> Option<String> {
    let (name, version) = (client.attribute("_client_name"), client.attribute("_client_version"));
    let (_, first) = DRIVERS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
    let found = numbers(version);
    (!found.is_empty() && found.as_slice() < *first).then(|| format!("{name} {version}"))
}

/// Sessions of old drivers.
pub(super) fn old_drivers(all: &[Client]) -> Value {
    let mut groups: BTreeMap<(&str, &str, String), u64> = BTreeMap::new();
    for client in all {
        if let Some(driver) = old_driver(client) {
            *groups.entry((&client.user, &client.host, driver)).or_default() += 1;
        }
    }
    let mut found: Vec<_> = groups.into_iter().collect();
    found.sort_by_key(|(_, sessions)| std::cmp::Reverse(*sessions));
    found
        .into_iter()
        .take(LISTED)
        .map(|((user, host, driver), sessions)| json!({"user": user, "host": host, "driver": driver, "sessions": sessions}))
        .collect()
}

/// Sessions of tools, with changes of open transactions, or as root from another machine.
pub(super) fn by_hand(all: &[Client], changes: &BTreeMap<u64, u64>) -> Value {
    let found = all.iter().filter_map(|client| {
        let program = client.attribute("program_name");
        let name = program.to_ascii_lowercase().replace([' ', '-', '_'], "");
        let is_tool = BY_HAND.iter().any(|tool| name.starts_with(tool));
        // The server's own client runs scripts as well: it counts where it is silent within its transaction.
        let is_client = ["mysql", "mariadb"].contains(&program);
        let rows_modified = changes.get(&client.session).copied().unwrap_or(0);
        let as_root = client.user.eq_ignore_ascii_case("root") && !is_local(&client.host);
        let told = is_tool && (rows_modified > 0 || as_root)
            || is_client && rows_modified > 0 && client.silent_s() >= 60;
        told.then(|| {
            json!({
                "session": client.session, "user": client.user, "host": client.host, "program": program,
                "rows_modified": rows_modified,
            })
        })
    });
    found.take(LISTED).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sessions::{client, driven};
    use super::*;

    #[test]
    fn old_drivers_are_told_by_name_and_version() {
        let all = [
            driven("MySQL Connector Java", "5.1.17"),
            driven("MySQL Connector/J", "8.0.33"),
            driven("libmysql", "5.6.51"),
            driven("libmysql", "8.4.0"),
            driven("libmariadb", "3.3.1"),
            driven(
                "MySQL Connector Java",
                "mysql-connector-java-5.1.49 ( Revision: ad86f36e100e104cd926c6b81c8cab9565750116 )",
            ),
        ];
        let found = old_drivers(&all);
        let drivers: Vec<&str> =
            found.as_array().unwrap().iter().filter_map(|one| one["driver"].as_str()).collect();
        assert_eq!(drivers.len(), 3, "{drivers:?}");
        assert!(drivers.contains(&"libmysql 5.6.51"));
    }

    #[test]
    fn tools_by_hand_are_told_with_their_changes() {
        let mut one = client("root", "10.8.0.23", "DBeaver 23.1.0 - Main");
        one.session = 9;
        let found = by_hand(&[one], &[(9, 3)].into());
        assert_eq!(found[0]["rows_modified"], json!(3));
        assert_eq!(by_hand(&[client("dba", "10.8.0.23", "MySQLWorkbench")], &BTreeMap::new()), json!([]));
        assert_eq!(by_hand(&[client("root", "localhost", "MySQLWorkbench")], &BTreeMap::new()), json!([]));
    }
}
