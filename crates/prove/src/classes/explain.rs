//! Plans of statements, as EXPLAIN shows them.

use mydyno_model::experiment::classes::{PlanStep, QueryPlan};
use mydyno_wire::{Client, Rows};

/// Forms of EXPLAIN: newer servers of MySQL may show a tree by default; older ones and MariaDB do not know the format.
const FORMS: [&str; 2] = ["EXPLAIN FORMAT=TRADITIONAL", "EXPLAIN"];

/// The plan of a statement on the server of a connection; the server's message where it has none.
pub(super) fn plan(client: &mut Client, sql: &str) -> QueryPlan {
    let mut unknown = None;
    for form in FORMS {
        match client.query(&format!("{form} {sql}")) {
            Ok(rows) => {
                let names: Vec<String> =
                    rows.columns.iter().map(|column| column.name.to_ascii_lowercase()).collect();
                if let Some(steps) = steps(&names, &texts(&rows)) {
                    return QueryPlan { steps, unknown: None };
                }
                unknown = Some(format!("EXPLAIN answers with the columns {}", names.join(", ")));
            }
            Err(error) => unknown = Some(error.to_string()),
        }
    }
    QueryPlan { steps: Vec::new(), unknown }
}

/// A plan that is unknown for this reason.
pub(super) fn unknown(why: String) -> QueryPlan {
    QueryPlan { steps: Vec::new(), unknown: Some(why) }
}

/// The cells as text; empty where they are NULL.
fn texts(rows: &Rows) -> Vec<Vec<String>> {
    let cell = |row, column| rows.text(row, column).unwrap_or_default().into_owned();
    (0..rows.len()).map(|row| (0..rows.columns.len()).map(|column| cell(row, column)).collect()).collect()
}

/// The rows of the table that EXPLAIN prints; `None` without its columns.
fn steps(names: &[String], rows: &[Vec<String>]) -> Option<Vec<PlanStep>> {
    let at = |name: &str| names.iter().position(|known| known == name);
    let places = [
        at("select_type")?,
        at("table")?,
        at("type")?,
        at("key")?,
        at("key_len")?,
        at("rows")?,
        at("extra")?,
    ];
    let step = |row: &Vec<String>| {
        let cell = |place: usize| row.get(place).cloned().unwrap_or_default();
        let [select, table, access, key, key_length, rows, extra] = places.map(cell);
        PlanStep { select, table, access, key, key_length, rows, extra }
    };
    Some(rows.iter().map(step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_found_by_their_names_wherever_they_stand() {
        let names = [
            "id",
            "select_type",
            "table",
            "partitions",
            "type",
            "possible_keys",
            "key",
            "key_len",
            "ref",
            "rows",
        ];
        let names: Vec<String> =
            names.iter().chain(&["filtered", "extra"]).map(|n| (*n).to_owned()).collect();
        let row = ["1", "UPDATE", "r", "", "ALL", "", "", "", "", "7", "100.00", ""].map(str::to_owned);
        let found = steps(&names, &[row.into()]).unwrap();
        let known = PlanStep {
            select: "UPDATE".to_owned(),
            table: "r".to_owned(),
            access: "ALL".to_owned(),
            rows: "7".to_owned(),
            ..PlanStep::default()
        };
        assert_eq!(found, [known]);
        assert_eq!(steps(&names[..5], &[]), None);
    }
}
