//! Columns that by their names refer to the key of another table, as `customer_id` to that of `customers`, and differ from it
//! in a way that keeps a join from using the key, or hold fewer numbers than it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::described::Column;
use super::indexes::Index;

/// A column's type, as far as comparisons depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    column: String,
    /// As the server writes it, with the collation.
    shown: String,
    text: bool,
    whole: bool,
    /// Bits of the largest number of an integer.
    bits: Option<u8>,
    collation: Option<String>,
}

impl Kind {
    fn of(column: &Column<'_>) -> Self {
        let data_type = column.data_type.to_ascii_lowercase();
        Self {
            column: column.name.to_owned(),
            shown: match column.collation {
                Some(collation) => format!("{} {collation}", column.column_type),
                None => column.column_type.to_owned(),
            },
            text: column.collation.is_some(),
            whole: data_type.ends_with("int"),
            bits: bits(&data_type, column.column_type),
            collation: column.collation.map(str::to_ascii_lowercase),
        }
    }

    /// Whether an index on one of both serves a comparison with the other. Integers of any size compare as they are.
    fn fits(&self, other: &Self) -> bool {
        match (self.text, other.text) {
            (true, true) => self.collation == other.collation,
            (false, false) => self.whole || !other.whole,
            _ => false,
        }
    }
}

/// Bits of the largest number that an integer type holds. No key comes to the end of either BIGINT.
fn bits(data_type: &str, column_type: &str) -> Option<u8> {
    let all = match data_type {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        "bigint" => return Some(63),
        _ => return None,
    };
    Some(all - u8::from(!column_type.to_ascii_lowercase().contains("unsigned")))
}

/// A column: its table, its type, and whether it is unique by itself.
type OfTable = (String, Kind, bool);

/// Keys and columns of the tables that were read.
#[derive(Default)]
pub struct References {
    /// Primary keys of one column, by schema and table in lower case, with the table's name.
    keys: BTreeMap<(String, String), (String, Kind)>,
    /// Columns that are unique by themselves and named as a number or a code, likewise, beside their tables' names.
    uniques: BTreeMap<(String, String), Vec<(String, Kind)>>,
    /// Columns whose names end in `_id` or `_uuid`, or as a number or a code: schema, table, column.
    columns: Vec<(String, String, Kind)>,
    /// Those with `_id` or `_uuid` that no index begins with, and the index that has them behind another column.
    without_index: Vec<(String, String, String, Option<String>)>,
    /// Text columns that an index begins with, by schema and name in lower case.
    texts: BTreeMap<(String, String), Vec<OfTable>>,
}

/// Names of columns that are unique in tables which have nothing to do with each other.
const COMMON_NAMES: [&str; 14] = [
    "id", "name", "title", "slug", "status", "type", "label", "key", "value", "code", "token", "hash",
    "uuid", "path",
];

impl References {
    /// Adds a table with the columns of its primary key and its indexes.
    pub fn table(
        &mut self,
        schema: &str,
        table: &str,
        columns: &[Column<'_>],
        key: &[&str],
        indexes: &[Index],
    ) {
        for column in columns.iter().filter(|c| c.collation.is_some()) {
            let begins = |index: &&Index| index.parts.first().is_some_and(|(name, _)| name == column.name);
            let name = column.name.to_ascii_lowercase();
            if !COMMON_NAMES.contains(&name.as_str()) && indexes.iter().any(|index| begins(&index)) {
                let unique =
                    indexes.iter().filter(begins).any(|index| index.unique && index.parts.len() == 1);
                let same = self.texts.entry((schema.to_owned(), name)).or_default();
                same.push((table.to_owned(), Kind::of(column), unique));
            }
        }
        if let [key] = key
            && let Some(column) = columns.iter().find(|c| c.name == *key)
        {
            let place = (schema.to_owned(), table.to_ascii_lowercase());
            self.keys.insert(place, (table.to_owned(), Kind::of(column)));
        }
        for column in columns.iter().filter(|column| is_number(&column.name.to_ascii_lowercase())) {
            let alone = |index: &Index| matches!(&index.parts[..], [(name, None)] if name == column.name);
            if indexes.iter().any(|index| index.unique && alone(index)) {
                let place = (schema.to_owned(), table.to_ascii_lowercase());
                self.uniques.entry(place).or_default().push((table.to_owned(), Kind::of(column)));
            }
        }
        let refers = |column: &&Column<'_>| stem(column.name).is_some() && !key.contains(&column.name);
        for column in columns.iter().filter(refers) {
            let begins = |index: &Index| index.parts.first().is_some_and(|(name, _)| name == column.name);
            if !indexes.iter().any(begins) {
                let holds = |index: &&Index| index.parts.iter().any(|(name, _)| name == column.name);
                let inside = indexes.iter().find(holds).map(|index| index.name.clone());
                self.without_index.push((
                    schema.to_owned(),
                    table.to_owned(),
                    column.name.to_owned(),
                    inside,
                ));
            }
            self.columns.push((schema.to_owned(), table.to_owned(), Kind::of(column)));
        }
        for column in columns.iter().filter(|column| by_number(column.name).is_some()) {
            self.columns.push((schema.to_owned(), table.to_owned(), Kind::of(column)));
        }
    }

    /// The columns that refer to a table which is there, and that no index begins with.
    pub fn without_index(&self) -> Vec<Value> {
        let found = self.without_index.iter().filter_map(|(schema, table, column, inside)| {
            let of =
                names(&stem(column)?).into_iter().find_map(|name| self.keys.get(&(schema.clone(), name)));
            let tenant = inside.is_some() && TENANTS.contains(&column.to_ascii_lowercase().as_str());
            if of.is_none() && !tenant {
                return None;
            }
            let mut entry = json!({"column": format!("{schema}.{table}.{column}")});
            if let Some((of, _)) = of {
                entry["refers_to"] = format!("{schema}.{of}").into();
            }
            if let Some(inside) = inside {
                entry["inside"] = inside.as_str().into();
            }
            Some(entry)
        });
        found.collect()
    }

    /// The columns that do not fit the key that they refer to.
    pub fn conflicts(&self) -> Vec<Value> {
        let mut found = self.differing(|column, key| !column.fits(key));
        for ((schema, _), same) in &self.texts {
            let Some((of, key, _)) = same.iter().find(|(_, _, unique)| *unique) else { continue };
            for (table, column, _) in same.iter().filter(|(_, column, _)| !column.fits(key)) {
                let entry = beside((schema, table, column), (of, key));
                if !found.iter().any(|other| other["column"] == entry["column"]) {
                    found.push(entry);
                }
            }
        }
        found
    }

    /// The columns of integers that are too narrow for the largest numbers of the key that they refer to.
    pub fn narrow(&self) -> Vec<Value> {
        self.differing(|column, key| matches!((column.bits, key.bits), (Some(own), Some(key)) if own < key))
    }

    /// The table and the column that a column's name tells.
    fn target(&self, schema: &str, table: &str, column: &str) -> Option<(&str, &Kind)> {
        if let Some(stem) = stem(column) {
            let mut tables = names(&stem).into_iter();
            let (of, key) = tables.find_map(|name| self.keys.get(&(schema.to_owned(), name)))?;
            return Some((of, key));
        }
        let (stem, number) = by_number(column)?;
        let is_told = |name: &str| {
            let name = name.to_ascii_lowercase();
            let own =
                name.strip_prefix(stem.as_str()).and_then(|rest| rest.strip_prefix('_')).unwrap_or(&name);
            one_of(own) == Some(number)
        };
        let found = names(&stem).into_iter().find_map(|name| {
            let uniques = self.uniques.get(&(schema.to_owned(), name))?;
            uniques.iter().find(|(_, kind)| is_told(&kind.column))
        });
        found.filter(|(of, _)| of != table).map(|(of, kind)| (of.as_str(), kind))
    }

    /// The columns that differ in some way from the key that they refer to.
    fn differing(&self, differs: impl Fn(&Kind, &Kind) -> bool) -> Vec<Value> {
        let entry = |(schema, table, column): &(String, String, Kind)| {
            let (of, key) = self.target(schema, table, &column.column)?;
            differs(column, key).then(|| beside((schema, table, column), (of, key)))
        };
        self.columns.iter().filter_map(entry).collect()
    }
}

/// A column beside the key that it refers to.
fn beside((schema, table, column): (&str, &str, &Kind), (of, key): (&str, &Kind)) -> Value {
    json!({
        "column": format!("{schema}.{table}.{}", column.column), "type": column.shown,
        "refers_to": format!("{schema}.{of}.{}", key.column), "key_type": key.shown,
    })
}

/// `customer` of `customer_id`, in lower case.
fn stem(column: &str) -> Option<String> {
    let name = column.to_ascii_lowercase();
    let stem = name.strip_suffix("_id").or_else(|| name.strip_suffix("_uuid"))?;
    (!stem.is_empty()).then(|| stem.to_owned())
}

/// Columns by which the rows of one tenant are told from those of the others, and that their indexes begin with.
const TENANTS: [&str; 6] =
    ["tenant_id", "mandant_id", "organization_id", "organisation_id", "org_id", "company_id"];

/// Words for the number or the code of a thing, those of one meaning together.
const NUMBERS: [&[&str]; 4] = [&["no", "nr", "num", "number"], &["code"], &["sku"], &["key"]];

/// Which of them a word is.
fn one_of(word: &str) -> Option<usize> {
    NUMBERS.iter().position(|words| words.contains(&word))
}

/// Whether a column is named as a number or a code: by that word alone, or behind another.
fn is_number(name: &str) -> bool {
    one_of(name.rsplit('_').next().unwrap_or(name)).is_some()
}

/// `customer` of `customer_no`, in lower case, and which word stands behind it.
fn by_number(column: &str) -> Option<(String, usize)> {
    let name = column.to_ascii_lowercase();
    let (stem, word) = name.rsplit_once('_')?;
    let word = one_of(word)?;
    (!stem.is_empty()).then(|| (stem.to_owned(), word))
}

/// The names that a table of such things may have.
fn names(stem: &str) -> Vec<String> {
    let mut names = vec![stem.to_owned(), format!("{stem}s"), format!("{stem}es")];
    if let Some(base) = stem.strip_suffix('y') {
        names.push(format!("{base}ies"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_compared_with_the_key_of_the_table_that_its_name_tells() {
        let mut all = References::default();
        all.table("shop", "Customers", &[Column::of("id", "char", Some("utf8mb4_general_ci"))], &["id"], &[]);
        all.table("shop", "category", &[Column::of("id", "int", None)], &["id"], &[]);
        all.table(
            "shop",
            "city",
            &[Column::of("id", "int", None), Column::of("x", "int", None)],
            &["id", "x"],
            &[],
        );
        all.table(
            "shop",
            "orders",
            &[
                Column::of("id", "int", None),
                Column::of("customer_id", "char", Some("latin1_swedish_ci")),
                Column::of("category_id", "bigint", None),
                Column::of("city_id", "char", Some("latin1_swedish_ci")),
                Column::of("unknown_id", "char", Some("latin1_swedish_ci")),
            ],
            &["id"],
            &[],
        );
        let found = all.conflicts();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["column"], "shop.orders.customer_id");
        assert_eq!(found[0]["refers_to"], "shop.Customers.id");
        all.table("shop", "lines", &[Column::of("category_id", "varchar", Some("utf8mb4_bin"))], &[], &[]);
        assert_eq!(all.conflicts().len(), 2);
    }

    #[test]
    fn a_number_is_compared_with_the_unique_number_of_the_table_that_its_name_tells() {
        let unique = |column: &str| Index {
            name: column.to_owned(),
            unique: true,
            kind: "BTREE".to_owned(),
            parts: vec![(column.to_owned(), None)],
            hidden: false,
        };
        let mut all = References::default();
        let no = [Column::of("id", "int", None), Column::of("no", "varchar", Some("utf8mb4_general_ci"))];
        all.table("shop", "customer", &no, &["id"], &[unique("no")]);
        all.table("shop", "article", &[Column::of("article_nr", "int", None)], &[], &[unique("article_nr")]);
        all.table("shop", "phones", &[Column::of("no", "int", None)], &[], &[]);
        let columns = [
            Column::of("customer_no", "varchar", Some("utf8mb3_general_ci")),
            Column::of("article_no", "varchar", Some("utf8mb4_general_ci")),
            Column::of("phone_no", "varchar", Some("utf8mb4_general_ci")),
            Column::of("article_code", "varchar", Some("utf8mb4_general_ci")),
            Column::of("tax_no", "varchar", Some("utf8mb4_general_ci")),
        ];
        all.table("shop", "orders", &columns, &[], &[]);
        let found = all.conflicts();
        let told: Vec<_> = found.iter().map(|entry| (&entry["column"], &entry["refers_to"])).collect();
        assert_eq!(
            told,
            [
                (&json!("shop.orders.customer_no"), &json!("shop.customer.no")),
                (&json!("shop.orders.article_no"), &json!("shop.article.article_nr")),
            ]
        );
    }

    #[test]
    fn a_column_that_holds_fewer_numbers_than_the_key_that_it_refers_to_is_told() {
        let typed = |name, column_type| Column::of(name, column_type, None);
        let mut all = References::default();
        all.table("shop", "orders", &[typed("id", "bigint(20) unsigned")], &["id"], &[]);
        all.table("shop", "colour", &[typed("id", "smallint(6)")], &["id"], &[]);
        let columns = [typed("order_id", "bigint unsigned"), typed("colour_id", "int"), typed("x_id", "int")];
        all.table("shop", "lines", &columns, &[], &[]);
        assert_eq!(all.narrow(), [0; 0]);
        all.table("shop", "drafts", &[typed("order_id", "bigint(20)")], &[], &[]);
        all.table("shop", "notes", &[typed("order_id", "int(10) unsigned")], &[], &[]);
        let tiny = Column { data_type: "tinyint", ..typed("colour_id", "TINYINT(3) UNSIGNED") };
        all.table("shop", "parts", &[tiny], &[], &[]);
        let found = all.narrow();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(
            (&found[0]["column"], &found[0]["key_type"]),
            (&"shop.notes.order_id".into(), &"bigint(20) unsigned".into())
        );
        assert_eq!(found[1]["column"], "shop.parts.colour_id");
        assert_eq!(all.conflicts(), [0; 0]);
    }

    #[test]
    fn a_column_that_refers_to_a_table_and_that_no_index_begins_with_is_told() {
        let index = |columns: &[&str]| Index {
            name: columns.join("_"),
            unique: false,
            kind: "BTREE".to_owned(),
            parts: columns.iter().map(|column| ((*column).to_owned(), None)).collect(),
            hidden: false,
        };
        let mut all = References::default();
        all.table("shop", "customers", &[Column::of("id", "int", None)], &["id"], &[]);
        let columns = [
            Column::of("id", "int", None),
            Column::of("customer_id", "int", None),
            Column::of("unknown_id", "int", None),
        ];
        all.table("shop", "orders", &columns, &["id"], &[index(&["id"]), index(&["id", "customer_id"])]);
        all.table("shop", "bills", &columns, &["id"], &[index(&["customer_id", "id"])]);
        let found = all.without_index();
        let customer = json!({"column": "shop.orders.customer_id", "refers_to": "shop.customers", "inside": "id_customer_id"});
        assert_eq!(found, [customer]);
        all.table(
            "shop",
            "log",
            &[Column::of("tenant_id", "int", None), Column::of("org_id", "int", None)],
            &[],
            &[index(&["id", "tenant_id"])],
        );
        assert_eq!(all.without_index()[1], json!({"column": "shop.log.tenant_id", "inside": "id_tenant_id"}));
    }

    #[test]
    fn indexed_texts_of_one_name_are_compared_where_one_of_them_is_unique() {
        let index = |column: &str, unique: bool| Index {
            name: column.to_owned(),
            unique,
            kind: "BTREE".to_owned(),
            parts: vec![(column.to_owned(), None)],
            hidden: false,
        };
        let mut all = References::default();
        for (table, collation, unique) in [
            ("products", "utf8mb4_general_ci", true),
            ("lines", "latin1_swedish_ci", false),
            ("stock", "utf8mb4_general_ci", false),
        ] {
            let columns = [
                Column::of("sku", "varchar", Some(collation)),
                Column::of("name", "varchar", Some(collation)),
            ];
            all.table("shop", table, &columns, &[], &[index("sku", unique), index("name", true)]);
        }
        let found = all.conflicts();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["column"], "shop.lines.sku");
        assert_eq!(found[0]["refers_to"], "shop.products.sku");
    }
}
