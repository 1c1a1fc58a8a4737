//! Tables that lack an index which nearly all others of their name have, by InnoDB's statistics: of very many tables their definitions
//! are read first. The statistics alone say nothing, as they know only tables that were opened.

use std::collections::BTreeMap;

use super::rows::{OURS, text, whole};
use super::statistics::statistics;
use crate::sql::{ReadOnly, Row, quoted};

/// Tables of a name from which on they are compared.
const FEWEST: u64 = 10;

/// Indexes that are looked for, and tables without one that are named of each: more would outweigh the others that are read.
const INDEXES: usize = 5;
const TABLES: usize = 3;

/// Tables, by schema and name, that lack an index of nine in ten tables of their name.
pub fn lacking(sql: &mut ReadOnly<'_>) -> Vec<(String, String)> {
    let statement = format!(
        "SELECT table_name, index_name, COUNT(*) FROM mysql.innodb_index_stats WHERE stat_name = 'size' AND database_name NOT IN {OURS} AND LEFT(LOWER(table_name), 4) NOT IN ('fts_', '#sql') GROUP BY table_name, index_name HAVING COUNT(*) >= {FEWEST} LIMIT 20000"
    );
    let rows = statistics(sql, &statement).unwrap_or_default();
    let mut found = Vec::new();
    for (table, index) in uneven(&rows) {
        let (Some(name), Some(index)) = (quoted(&table), quoted(&index)) else { continue };
        let statement = format!(
            "SELECT t.database_name FROM mysql.innodb_table_stats t LEFT JOIN mysql.innodb_index_stats i ON i.database_name = t.database_name AND i.table_name = t.table_name AND i.index_name = {index} AND i.stat_name = 'size' WHERE t.table_name = {name} AND i.index_name IS NULL LIMIT {TABLES}"
        );
        let schemas = sql.rows(&statement).unwrap_or_default();
        found.extend(schemas.into_iter().flatten().flatten().map(|schema| (schema, table.clone())));
    }
    found.sort();
    found.dedup();
    found
}

/// The indexes that nine in ten tables of a name have, and not all, those of the most frequent names first.
fn uneven(rows: &[Row]) -> Vec<(String, String)> {
    let mut of_table: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for row in rows {
        of_table.entry(text(row, 0)).or_default().push((text(row, 1), whole(row, 2).unwrap_or(0)));
    }
    let mut found = Vec::new();
    for (table, indexes) in of_table {
        let all = indexes.iter().map(|(_, tables)| *tables).max().unwrap_or(0);
        let some = |tables: u64| tables < all && tables * FEWEST >= all * (FEWEST - 1);
        found.extend(
            indexes.iter().filter(|(_, tables)| some(*tables)).map(|(index, _)| (all, table, *index)),
        );
    }
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().take(INDEXES).map(|(_, table, index)| (table.to_owned(), index.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_some_tables_of_a_name_lack_is_told() {
        let row = |cells: [&str; 3]| -> Row { cells.map(|cell| Some(cell.to_owned())).to_vec() };
        let rows = [
            row(["invoices", "PRIMARY", "1000"]),
            row(["invoices", "by_customer", "998"]),
            row(["invoices", "by_hand", "899"]),
            row(["orders", "PRIMARY", "1000"]),
            row(["orders", "by_day", "1000"]),
            row(["notes", "PRIMARY", "10"]),
            row(["notes", "by_day", "9"]),
        ];
        let of = |table: &str, index: &str| (table.to_owned(), index.to_owned());
        assert_eq!(uneven(&rows), [of("invoices", "by_customer"), of("notes", "by_day")]);
    }
}
