//! The catalogue: every workload by name.

use thiserror::Error;

use crate::bulk_insert;
use crate::hot_row::{self, HotRow};
use crate::mix::{self, Mix};
use crate::oltp::{self, Oltp};
use crate::options::{OptionError, OptionSpec, Options, nearest};
use crate::sbtest;
use crate::select_random::{self, Shape};
use crate::slap::{self, Slap};
use crate::sql::{self, Sql};

/// Description of a workload, from which the command line, the catalogue and the documentation are made.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Name on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What one transaction asks, for people.
    pub transaction: &'static str,
    /// Options.
    pub options: &'static [OptionSpec],
    /// Which behaviour runs it.
    pub kind: Kind,
}

/// Behaviours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The OLTP family on sysbench's tables.
    Oltp(oltp::Mix),
    /// Single rows into sysbench's tables.
    OltpInsert,
    /// Several places of an index of sysbench's tables.
    SelectRandom(Shape),
    /// A table for each connection to fill.
    BulkInsert,
    /// Many sessions on few rows.
    HotRow,
    /// What mysqlslap generates.
    Slap,
    /// The user's statements.
    Sql,
    /// A file that describes tables and transactions.
    Mix,
}

/// All workloads.
pub const ALL: &[Spec] = &[
    Spec {
        name: "oltp_point_select",
        summary: "reads one row by its primary key",
        transaction: "1 statement: a row by primary key; no BEGIN or COMMIT",
        options: oltp::OPTIONS,
        kind: Kind::Oltp(oltp::Mix::PointSelect),
    },
    Spec {
        name: "oltp_read_only",
        summary: "reads rows and ranges in a transaction",
        transaction: "16 statements: BEGIN, 10 rows by primary key, 4 ranges (plain, sum, ordered, distinct), COMMIT",
        options: oltp::OPTIONS,
        kind: Kind::Oltp(oltp::Mix::ReadOnly),
    },
    Spec {
        name: "oltp_write_only",
        summary: "updates, deletes and inserts in a transaction",
        transaction: "6 statements: BEGIN, update of an indexed column, update of another, delete, insert, COMMIT",
        options: oltp::OPTIONS,
        kind: Kind::Oltp(oltp::Mix::WriteOnly),
    },
    Spec {
        name: "oltp_read_write",
        summary: "reads and writes in a transaction: the classic mix",
        transaction: "20 statements: BEGIN, 10 rows by primary key, 4 ranges, 2 updates, delete, insert, COMMIT",
        options: oltp::OPTIONS,
        kind: Kind::Oltp(oltp::Mix::ReadWrite),
    },
    Spec {
        name: "oltp_insert",
        summary: "inserts one row",
        transaction: "1 statement, sent as text: a row into one of the tables; no BEGIN or COMMIT",
        options: oltp::OPTIONS,
        kind: Kind::OltpInsert,
    },
    Spec {
        name: "oltp_delete",
        summary: "deletes one row by its primary key",
        transaction: "1 statement: DELETE by primary key, also of rows that are gone; no BEGIN or COMMIT",
        options: oltp::OPTIONS,
        kind: Kind::Oltp(oltp::Mix::Delete),
    },
    Spec {
        name: "oltp_update_index",
        summary: "updates an indexed column of one row",
        transaction: "as many statements as --index-updates says, 1 by default: k = k + 1 by primary key; no BEGIN or COMMIT",
        options: oltp::OPTIONS,
        kind: Kind::Oltp(oltp::Mix::UpdateIndex),
    },
    Spec {
        name: "oltp_update_non_index",
        summary: "updates a column without index of one row",
        transaction: "as many statements as --non-index-updates says, 1 by default: another c by primary key; no BEGIN or COMMIT",
        options: oltp::OPTIONS,
        kind: Kind::Oltp(oltp::Mix::UpdateNonIndex),
    },
    Spec {
        name: "select_random_points",
        summary: "reads the rows of some values of an indexed column",
        transaction: "1 statement on the first table: k IN (10 values), each drawn from the whole table; no BEGIN or COMMIT",
        options: select_random::POINTS_OPTIONS,
        kind: Kind::SelectRandom(Shape::Points),
    },
    Spec {
        name: "select_random_ranges",
        summary: "counts the rows of some ranges of an indexed column",
        transaction: "1 statement on the first table: 10 times k BETWEEN … AND …, joined by OR, each drawn from the whole table; no BEGIN or COMMIT",
        options: select_random::RANGES_OPTIONS,
        kind: Kind::SelectRandom(Shape::Ranges),
    },
    Spec {
        name: "bulk_insert",
        summary: "fills one table a connection, many rows a statement",
        transaction: "1 statement, sent as text: an INSERT of as many rows as fit into --bulk-bytes; each step begins with empty tables",
        options: bulk_insert::OPTIONS,
        kind: Kind::BulkInsert,
    },
    Spec {
        name: "hot_row",
        summary: "many sessions sell from few rows: the flash sale",
        transaction: "1 statement: a row's stock less one, if there is any; with an order, a lock or a chosen sequence of the statements 3 to 5, BEGIN and COMMIT included",
        options: hot_row::OPTIONS,
        kind: Kind::HotRow,
    },
    Spec {
        name: "slap",
        summary: "the load that mysqlslap generates by itself, in its five kinds",
        transaction: "1 statement, sent as text: a read of the whole table or by key, an insert, an update, or inserts and reads in turn",
        options: slap::OPTIONS,
        kind: Kind::Slap,
    },
    Spec {
        name: "sql",
        summary: "your own statements on your own tables",
        transaction: "1 of the given statements, drawn by weight; with --transaction all of them, BEGIN and COMMIT around",
        options: sql::OPTIONS,
        kind: Kind::Sql,
    },
    Spec {
        name: "mix",
        summary: "tables, transactions and values that a TOML file describes; `mydyno bench FILE.toml` is short for it",
        transaction: "one of the file's transactions, drawn by weight (docs/guides/mixes.md)",
        options: mix::OPTIONS,
        kind: Kind::Mix,
    },
];

/// No workload has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no workload {name:?}{}; `mydyno workloads` lists them", .nearest.map(|n| format!(", did you mean {n}?")).unwrap_or_default())]
pub struct UnknownWorkload {
    /// What was given.
    pub name: String,
    /// The nearest name that exists.
    pub nearest: Option<&'static str>,
}

/// The workload of this name; `-` and `_` are equal, and a file whose name ends in `.toml` is a mix.
///
/// # Errors
/// [`UnknownWorkload`] offers the nearest name.
pub fn find(name: &str) -> Result<&'static Spec, UnknownWorkload> {
    // A file is a mix.
    let wanted = if name.ends_with(".toml") { "mix".to_owned() } else { name.replace('-', "_") };
    ALL.iter().find(|s| s.name == wanted).ok_or_else(|| UnknownWorkload {
        name: name.to_owned(),
        nearest: nearest(&wanted, ALL.iter().map(|s| s.name)),
    })
}

/// Whether a workload's options fit together.
///
/// # Errors
/// All that do not.
pub fn check(spec: &Spec, options: &Options) -> Result<(), Vec<OptionError>> {
    match spec.kind {
        Kind::Oltp(mix) => {
            let tables = sbtest::data(options, 0).map(drop);
            both(tables, Oltp::new(mix, options, 0).map(drop))
        }
        Kind::OltpInsert | Kind::SelectRandom(_) => sbtest::data(options, 0).map(drop),
        Kind::BulkInsert => Ok(()),
        Kind::HotRow => HotRow::new(options, 0).map(drop),
        Kind::Slap => Slap::new(options, 0).map(drop),
        Kind::Sql => Sql::new(options, 0).map(drop),
        Kind::Mix => Mix::new(options, 0).map(drop),
    }
}

/// Whether mydyno makes tables for a workload; else it asks those that are there.
pub fn brings_tables(spec: &Spec, options: &Options) -> bool {
    match spec.kind {
        Kind::Sql => false,
        Kind::Mix => Mix::new(options, 0).is_ok_and(|mix| mix.tables("").is_some()),
        _ => true,
    }
}

/// Pause between two transactions of a connection that the workload itself asks for, in seconds; 0 for none.
pub fn think_s(spec: &Spec, options: &Options) -> f64 {
    match spec.kind {
        Kind::Mix => Mix::new(options, 0).map_or(0.0, |mix| mix.think_s),
        _ => 0.0,
    }
}

/// Neither, or the errors of both.
fn both(a: Result<(), Vec<OptionError>>, b: Result<(), Vec<OptionError>>) -> Result<(), Vec<OptionError>> {
    match (a, b) {
        (Err(mut first), Err(second)) => {
            first.extend(second);
            Err(first)
        }
        (a, b) => a.and(b),
    }
}

/// A command that shows a workload at its best.
pub fn example(spec: &Spec) -> String {
    let name = spec.name;
    match spec.kind {
        Kind::HotRow => format!(
            "mydyno bench {name} --sandbox --set max_connections=300 --connections 1,8,72,96,144,192,256 --time 10s"
        ),
        Kind::Sql => {
            format!("mydyno bench {name} --sandbox --sql 'SELECT 1' --connections 1,4,16 --time 10s")
        }
        Kind::Mix => "mydyno bench workloads/shop.toml --sandbox --connections 1,4,16 --time 10s".to_owned(),
        _ => format!("mydyno bench {name} --sandbox --connections 1,4,16 --time 10s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = find("oltp_readwrite").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no workload \"oltp_readwrite\", did you mean oltp_read_write?; `mydyno workloads` lists them"
        );
        assert!(!find("zzz").unwrap_err().to_string().contains("did you mean"));
        assert_eq!(find("oltp-read-only").unwrap().name, "oltp_read_only");
    }
}
