//! Tables of the same name in many schemas, as applications make them for each of their customers: one that lacks an index or has
//! another type of a column was left out of a change.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::indexes::Index;
use super::rows::LISTED;

/// Tables of a name from which on they are compared, and one of so many may differ.
const FEWEST: usize = 10;

/// Names of tables that are kept; a server with more has no tenants of this kind.
const NAMES: usize = 2000;

/// Forms of one name that are kept.
const FORMS: usize = 50;

/// Parts of a table: its columns with their types, and its indexes with their columns.
type Form = BTreeSet<String>;

/// The tables of one form.
#[derive(Default)]
struct Alike {
    tables: usize,
    /// The first of them, as places to look.
    first: Vec<String>,
}

/// Tables by their names.
#[derive(Default)]
pub struct Tenants {
    by_name: BTreeMap<String, BTreeMap<Form, Alike>>,
}

impl Tenants {
    /// Adds a table: the types of its columns, in their order, and its indexes.
    pub fn table(
        &mut self,
        schema: &str,
        table: &str,
        columns: impl Iterator<Item = String>,
        indexes: &[Index],
    ) {
        let is_known = self.by_name.contains_key(table);
        if !is_known && self.by_name.len() >= NAMES {
            return;
        }
        let of_columns = columns.map(|column| format!("column {column}"));
        let of_indexes = indexes.iter().map(|index| {
            let parts: Vec<&str> = index.parts.iter().map(|(column, _)| column.as_str()).collect();
            let kind = if index.unique { "unique index" } else { "index" };
            format!("{kind} ({})", parts.join(", "))
        });
        let form: Form = of_columns.chain(of_indexes).collect();
        let forms = self.by_name.entry(table.to_owned()).or_default();
        if forms.len() >= FORMS && !forms.contains_key(&form) {
            return;
        }
        let alike = forms.entry(form).or_default();
        alike.tables += 1;
        if alike.first.len() < LISTED {
            alike.first.push(schema.to_owned());
        }
    }

    /// The tables that differ from nine in ten of their name, with what they lack and what they have instead.
    pub fn unlike(&self) -> Vec<Value> {
        let mut found = Vec::new();
        for (name, forms) in &self.by_name {
            let all: usize = forms.values().map(|alike| alike.tables).sum();
            let Some((usual, most)) = forms.iter().max_by_key(|(_, alike)| alike.tables) else { continue };
            if all < FEWEST || most.tables * FEWEST < all * (FEWEST - 1) {
                continue;
            }
            for (form, alike) in forms.iter().filter(|(form, _)| *form != usual) {
                let only = |one: &Form, other: &Form| one.difference(other).cloned().collect::<Vec<String>>();
                let first = alike.first.first().map_or("", String::as_str);
                found.push(json!({
                    "table": format!("{first}.{name}"), "tables": alike.tables, "schemas": alike.first,
                    "lacks": only(usual, form), "has": only(form, usual), "others": most.tables,
                }));
            }
        }
        found.truncate(LISTED);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(columns: &[&str]) -> Index {
        Index {
            name: columns.join("_"),
            unique: false,
            kind: "BTREE".to_owned(),
            parts: columns.iter().map(|column| ((*column).to_owned(), None)).collect(),
            hidden: false,
        }
    }

    fn with(tables: usize, unlike: usize) -> Tenants {
        let mut all = Tenants::default();
        for number in 0..tables {
            let columns = ["id int", if number < unlike { "customer int" } else { "customer bigint" }];
            let indexes = if number < unlike { vec![] } else { vec![index(&["customer", "id"])] };
            let columns = columns.iter().map(|column| (*column).to_owned());
            all.table(&format!("tenant{number}"), "orders", columns, &indexes);
        }
        all
    }

    #[test]
    fn the_one_that_a_change_left_out_is_told_with_what_it_lacks() {
        let found = with(20, 1).unlike();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["table"], "tenant0.orders");
        assert_eq!(found[0]["lacks"], json!(["column customer bigint", "index (customer, id)"]));
        assert_eq!((&found[0]["has"], &found[0]["others"]), (&json!(["column customer int"]), &json!(19)));
    }

    #[test]
    fn few_tables_of_a_name_and_those_of_several_forms_are_not_compared() {
        assert_eq!(with(9, 1).unlike(), Vec::<Value>::new());
        assert_eq!(with(20, 3).unlike(), Vec::<Value>::new());
        let two = with(20, 2).unlike();
        assert_eq!(two.len(), 1);
        assert_eq!((&two[0]["tables"], &two[0]["schemas"]), (&json!(2), &json!(["tenant0", "tenant1"])));
        assert_eq!(with(20, 0).unlike(), Vec::<Value>::new());
    }
}
