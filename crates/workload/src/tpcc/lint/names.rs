//! The names that drivers give to the nine tables.

use std::collections::BTreeMap;

use mydyno_tables::mark;
use thiserror::Error;

use crate::tpcc::sets::with_words;

/// The names of this crate's tables, each with those of other drivers.
const KNOWN: [(&str, &[&str]); 9] = [
    ("warehouse", &["warehouse"]),
    ("district", &["district"]),
    ("customer", &["customer"]),
    ("history", &["history"]),
    ("new_order", &["new_order", "new_orders", "neworder"]),
    ("orders", &["orders", "oorder", "order"]),
    ("order_line", &["order_line", "order_lines", "orderline"]),
    ("stock", &["stock"]),
    ("item", &["item"]),
];

/// The nine tables of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    database: String,
    /// The driver's name by ours.
    names: BTreeMap<&'static str, String>,
    /// Numbers of further sets in the database; empty when there is one set.
    others: Vec<u32>,
}

/// The database does not hold the nine tables.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("database {database:?} has no tables of TPC-C{}: {missing} missing{}", set.map(|n| format!(" with the number {n}")).unwrap_or_default(), if sets.is_empty() { String::new() } else { format!("; --set takes {sets}") })]
pub struct NamesError {
    database: String,
    set: Option<u32>,
    missing: String,
    sets: String,
}

impl Names {
    /// Finds the nine tables among those of a database. Drivers with several sets number their tables (`stock1`); without a
    /// number the plain names are taken, else the lowest number.
    ///
    /// # Errors
    /// Some of the nine are missing.
    pub fn find(database: &str, tables: &[String], set: Option<u32>) -> Result<Self, NamesError> {
        let named = |set: Option<u32>| -> BTreeMap<&'static str, String> {
            let suffix = set.map(|n| n.to_string()).unwrap_or_default();
            let of = |aliases: &[&str]| {
                let wanted = |table: &&String| {
                    aliases.iter().any(|alias| table.eq_ignore_ascii_case(&format!("{alias}{suffix}")))
                };
                tables.iter().find(wanted).cloned()
            };
            KNOWN.iter().filter_map(|(ours, aliases)| Some((*ours, of(aliases)?))).collect()
        };
        let mut sets: Vec<u32> = tables
            .iter()
            .filter_map(|table| table.to_ascii_lowercase().strip_prefix("warehouse")?.parse().ok())
            .collect();
        sets.sort_unstable();
        sets.dedup();
        let plain = named(None);
        let chosen = match set {
            Some(number) => named(Some(number)),
            None if plain.len() == KNOWN.len() => plain,
            None => sets.first().map_or(plain, |first| named(Some(*first))),
        };
        if chosen.len() < KNOWN.len() {
            let missing: Vec<&str> =
                KNOWN.iter().map(|(ours, _)| *ours).filter(|ours| !chosen.contains_key(ours)).collect();
            let sets: Vec<String> = sets.iter().take(10).map(ToString::to_string).collect();
            return Err(NamesError {
                database: database.to_owned(),
                set,
                missing: missing.join(", "),
                sets: sets.join(", "),
            });
        }
        let others = sets.into_iter().filter(|n| chosen["warehouse"] != format!("warehouse{n}")).collect();
        Ok(Self { database: database.to_owned(), names: chosen, others })
    }

    /// The driver's names by ours.
    pub fn all(&self) -> BTreeMap<String, String> {
        self.names.iter().map(|(ours, name)| ((*ours).to_owned(), name.clone())).collect()
    }

    /// Numbers of further sets in the database.
    pub fn others(&self) -> &[u32] {
        &self.others
    }

    /// A statement on our tables as one on the driver's: each word that is the name of a table gets the driver's, with its
    /// database.
    pub fn renamed(&self, sql: &str) -> String {
        with_words(sql, |word| {
            let name = self.names.get(word)?;
            Some(format!("{}.{}", mark::quoted(&self.database), mark::quoted(name)))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tables(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    const NINE: [&str; 9] = [
        "warehouse",
        "district",
        "customer",
        "history",
        "new_orders",
        "ORDERS",
        "order_line",
        "stock",
        "item",
    ];

    #[test]
    fn names_of_other_drivers_are_found_and_stand_in_the_statements() {
        let names = Names::find("db", &tables(&NINE), None).unwrap();
        assert_eq!(
            names.renamed("SELECT no_o_id, orders_x FROM new_order, orders AS o"),
            "SELECT no_o_id, orders_x FROM `db`.`new_orders`, `db`.`ORDERS` AS o"
        );
        assert!(names.others().is_empty());
    }

    #[test]
    fn numbered_sets_are_told_apart() {
        let numbered = |n: u32| NINE.map(|name| format!("{}{n}", name.to_lowercase()));
        let all: Vec<String> = (1..=3).flat_map(numbered).collect();
        let first = Names::find("db", &all, None).unwrap();
        assert_eq!((first.all()["stock"].as_str(), first.others()), ("stock1", &[2, 3][..]));
        let third = Names::find("db", &all, Some(3)).unwrap();
        assert_eq!((third.all()["new_order"].as_str(), third.others()), ("new_orders3", &[1, 2][..]));
        let none = Names::find("db", &all, Some(7)).unwrap_err().to_string();
        assert!(none.contains("with the number 7") && none.contains("--set takes 1, 2, 3"), "{none}");
    }

    #[test]
    fn missing_tables_are_named() {
        let text = Names::find("db", &tables(&NINE[..7]), None).unwrap_err().to_string();
        assert_eq!(text, "database \"db\" has no tables of TPC-C: stock, item missing");
    }
}
