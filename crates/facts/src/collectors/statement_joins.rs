//! Joins of columns whose types, character sets or collations differ, by the text of a digest.

use serde_json::Value;

use crate::collectors::statement_digest::Digest;
use crate::collectors::statement_hints::{TEXT, column};
use crate::collectors::statement_sums::{Digests, LISTED};
use crate::sql::{ReadOnly, quoted};

/// Character sets each of which a server converts to those behind it.
const WIDER: [&str; 4] = ["ascii", "latin1", "utf8mb3", "utf8mb4"];

/// Pairs of a join that are looked up.
const PAIRS: usize = 3;

/// Kinds of integers.
const INTEGERS: [&str; 5] = ["tinyint", "smallint", "mediumint", "int", "bigint"];

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    schema: Option<String>,
    table: String,
    column: String,
}

/// A column as the server tells it.
#[derive(Debug, Clone, Default)]
struct Type {
    data_type: String,
    column_type: String,
    charset: String,
    collation: String,
}

impl Type {
    fn is_text(&self) -> bool {
        TEXT.contains(&self.data_type.as_str())
    }

    fn is_integer(&self) -> bool {
        INTEGERS.contains(&self.data_type.as_str())
    }

    fn width(&self) -> Option<usize> {
        WIDER.iter().position(|charset| *charset == self.charset)
    }
}

/// The pairs of columns that a statement joins by `=` or USING.
fn pairs(text: &str) -> Vec<[Place; 2]> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let name = |at: usize| words.get(at).and_then(column);
    let is = |at: usize, word: &str| words.get(at).is_some_and(|w| w.eq_ignore_ascii_case(word));
    let mut tables: Vec<(String, Option<String>, String)> = Vec::new();
    let mut found = Vec::new();
    for at in 0..words.len() {
        if is(at, "FROM") || is(at, "JOIN") || is(at, "UPDATE") {
            let Some(first) = name(at + 1) else { continue };
            let (schema, table, after) = match (is(at + 2, "."), name(at + 3)) {
                (true, Some(table)) => (Some(first.to_owned()), table, at + 4),
                _ => (None, first, at + 2),
            };
            let after = if is(after, "AS") { after + 1 } else { after };
            let alias = name(after).unwrap_or(table);
            tables.push((alias.to_lowercase(), schema, table.to_owned()));
        }
        if is(at, "USING")
            && let (Some(joined), [.., one, other]) = (name(at + 2), &tables[..])
        {
            let place = |(_, schema, table): &(String, Option<String>, String)| Place {
                schema: schema.clone(),
                table: table.clone(),
                column: joined.to_owned(),
            };
            found.push([place(one), place(other)]);
        }
    }
    let place = |at: usize| {
        let (alias, of_alias) = (name(at)?.to_lowercase(), name(at + 2).filter(|_| is(at + 1, "."))?);
        let (_, schema, table) = tables.iter().find(|(known, ..)| *known == alias)?;
        Some(Place { schema: schema.clone(), table: table.clone(), column: of_alias.to_owned() })
    };
    for at in (3..words.len()).filter(|at| is(*at, "=")) {
        if let (Some(one), Some(other)) = (place(at - 3), place(at + 1))
            && one.table != other.table
        {
            found.push([one, other]);
        }
    }
    found.truncate(PAIRS);
    found
}

/// The difference of two columns for which no index of one of them serves the join.
fn difference(one: (&str, &Type), other: (&str, &Type)) -> Option<String> {
    let ((a, of_a), (b, of_b)) = (one, other);
    if of_a.is_text() && of_b.is_integer() || of_b.is_text() && of_a.is_integer() {
        let ((text, of_text), (number, of_number)) = if of_a.is_text() { (one, other) } else { (other, one) };
        return Some(format!(
            "{text} is {} and {number} {}: the server makes a number of each text, which keeps an index on {text} from being used; give both one type",
            of_text.column_type, of_number.column_type
        ));
    }
    if !(of_a.is_text() && of_b.is_text()) {
        return None;
    }
    if of_a.charset != of_b.charset {
        let a_is_narrow = of_a.width().zip(of_b.width()).map(|(a, b)| a < b)?;
        let (narrow, wide) = if a_is_narrow { (one, other) } else { (other, one) };
        return Some(format!(
            "{} is in {} and {} in {}: the server converts each value of {}, which keeps an index on it from being used; give both one character set",
            narrow.0, narrow.1.charset, wide.0, wide.1.charset, narrow.0
        ));
    }
    (of_a.collation != of_b.collation).then(|| {
        format!(
            "{a} has the collation {} and {b} {}: an index on one of them is not used; give both one collation",
            of_a.collation, of_b.collation
        )
    })
}

/// Whether the server compares with the values of an index of utf8mb3 as they are.
fn narrows(sql: &mut ReadOnly<'_>) -> bool {
    let rows = sql.rows("SELECT @@GLOBAL.optimizer_switch").unwrap_or_default();
    rows.into_iter().flatten().flatten().any(|switches| switches.contains("cset_narrowing=on"))
}

/// The first pair of columns of a join that differ so that no index serves it.
pub(super) fn told(sql: &mut ReadOnly<'_>, digest: &Digest) -> Option<String> {
    if !digest.has(" JOIN ") {
        return None;
    }
    for [one, other] in pairs(&digest.text) {
        let [of_one, of_other] = [read(sql, &one, &digest.schema)?, read(sql, &other, &digest.schema)?];
        let names = [&one, &other].map(|place| format!("{}.{}", place.table, place.column));
        let (a, b) = ((names[0].as_str(), &of_one), (names[1].as_str(), &of_other));
        let of_unicode = [a.1, b.1].iter().all(|of| of.charset.starts_with("utf8"));
        if let Some(told) = difference(a, b)
            && !(of_unicode && a.1.charset != b.1.charset && narrows(sql))
        {
            return Some(told);
        }
    }
    None
}

fn read(sql: &mut ReadOnly<'_>, place: &Place, schema: &str) -> Option<Type> {
    let statement = format!(
        "SELECT DATA_TYPE, COLUMN_TYPE, COALESCE(CHARACTER_SET_NAME, ''), COALESCE(COLLATION_NAME, '') FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND COLUMN_NAME = {}",
        quoted(place.schema.as_deref().unwrap_or(schema))?,
        quoted(&place.table)?,
        quoted(&place.column)?
    );
    let mut cells = sql.rows(&statement).ok()?.into_iter().next()?.into_iter().flatten();
    let mut next = || cells.next().map(|cell| cell.to_ascii_lowercase());
    let (data_type, column_type, charset, collation) = (next()?, next()?, next()?, next()?);
    // Servers write one character set and its collations in two ways.
    let charset = if charset == "utf8" { "utf8mb3".to_owned() } else { charset };
    let collation = collation.strip_prefix("utf8_").map_or(collation.clone(), |end| format!("utf8mb3_{end}"));
    Some(Type { data_type, column_type, charset, collation })
}

/// The statements with the most joins without an index, each with what keeps one from being used, where that is told.
pub(super) fn full(sql: &mut ReadOnly<'_>, digests: &Digests) -> Value {
    let is = |d: &Digest| d.full_joins > 0.0 && d.count >= 3.0 && !d.of_server();
    let found = digests.most(LISTED, |d| d.full_joins, is);
    let entry = |digest: &Digest| {
        let mut entry = digests.entry(digest);
        entry["full_joins"] = digest.full_joins.into();
        entry["hint"] = told(sql, digest).unwrap_or_default().into();
        entry
    };
    found.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Vec<[String; 2]> {
        let name = |place: &Place| match &place.schema {
            Some(schema) => format!("{schema}.{}.{}", place.table, place.column),
            None => format!("{}.{}", place.table, place.column),
        };
        pairs(text).iter().map(|pair| pair.each_ref().map(name)).collect()
    }

    #[test]
    fn the_columns_of_a_join_are_told_by_their_tables() {
        let of = |one: &str, other: &str| vec![[one.to_owned(), other.to_owned()]];
        for text in [
            "SELECT * FROM `carts` `c` JOIN `cart_items` `i` ON `i` . `token` = `c` . `token` WHERE `c` . `x` = ?",
            "SELECT * FROM `carts` AS `c` LEFT JOIN `cart_items` AS `i` ON ( `i` . `token` = `c` . `token` )",
        ] {
            assert_eq!(joined(text), of("cart_items.token", "carts.token"), "{text}");
        }
        let text = "SELECT * FROM `shop` . `a` JOIN `b` USING ( `k` )";
        assert_eq!(joined(text), of("shop.a.k", "b.k"));
        assert_eq!(
            joined("SELECT * FROM `a` JOIN `b` ON `a` . `x` > `b` . `y` WHERE `a` . `x` = ?"),
            [[""; 2]; 0]
        );
    }

    #[test]
    fn columns_that_differ_are_told_by_what_is_converted() {
        let text = |charset: &str, collation: &str| Type {
            data_type: "varchar".to_owned(),
            column_type: "varchar(64)".to_owned(),
            charset: charset.to_owned(),
            collation: collation.to_owned(),
        };
        let number =
            Type { data_type: "bigint".to_owned(), column_type: "bigint(20)".to_owned(), ..Type::default() };
        let (old, new) = (text("utf8mb3", "utf8mb3_bin"), text("utf8mb4", "utf8mb4_bin"));
        let found = difference(("a.x", &new), ("b.y", &old)).unwrap();
        assert!(found.starts_with("b.y is in utf8mb3 and a.x in utf8mb4"), "{found}");
        let found = difference(("a.x", &number), ("b.y", &old)).unwrap();
        assert!(found.contains("makes a number of each text"), "{found}");
        let other = text("utf8mb4", "utf8mb4_general_ci");
        assert!(difference(("a.x", &new), ("b.y", &other)).unwrap().contains("one collation"));
        assert_eq!(difference(("a.x", &new), ("b.y", &new)), None);
        assert_eq!(difference(("a.x", &number), ("b.y", &number)), None);
        assert_eq!(difference(("a.x", &text("sjis", "sjis_bin")), ("b.y", &new)), None);
    }
}
