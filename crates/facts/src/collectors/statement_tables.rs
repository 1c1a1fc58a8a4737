//! Explanations by the tables of a statement: hidden indexes, views, stored functions, partitions, and the order of an index's
//! columns.

use std::collections::{BTreeMap, BTreeSet};

use crate::collectors::counted::few_tables;
use crate::collectors::schema::indexes::hidden;
use crate::collectors::schema::statistics::recomputes;
use crate::collectors::statement_digest::Digest;
use crate::collectors::statement_hints::{Indexed, column, condition, table, wrapped};
use crate::collectors::statement_joins;
use crate::context::Context;
use crate::sql::{ReadOnly, quoted};

/// A table, as far as it explains a statement.
#[derive(Debug, Default, Clone)]
pub(super) struct Known {
    /// Columns that an index begins with which statements may use.
    pub(super) first: Indexed,
    /// Columns that only hidden indexes begin with, with the name of one.
    hidden: BTreeMap<String, String>,
    /// Indexes that statements may use, with their columns in order.
    indexes: Vec<(String, Vec<String>)>,
    /// How many partitions it has, and by which expression.
    partitions: Option<(u64, String)>,
    /// The definition, where it is a view.
    view: Option<String>,
}

/// The place of the table that a statement reads first.
pub(super) fn place(digest: &Digest) -> Option<(String, String)> {
    let (schema, name) = table(&digest.text)?;
    Some((schema.unwrap_or(&digest.schema).to_owned(), name.to_owned()))
}

/// Reads a table; of its indexes no more than which columns begin one, where the server would compute statistics to tell them.
pub(super) fn known(context: &Context, sql: &mut ReadOnly<'_>, schema: &str, table: &str) -> Known {
    let mut known = Known::default();
    let (Some(schema), Some(table)) = (quoted(schema), quoted(table)) else { return known };
    let of = |columns: &str, view: &str, rest: &str| {
        format!(
            "SELECT {columns} FROM information_schema.{view} WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}{rest}"
        )
    };
    if recomputes(context) {
        let rows = sql.rows(&of("COLUMN_NAME, DATA_TYPE", "COLUMNS", " AND COLUMN_KEY <> ''"));
        for row in rows.unwrap_or_default() {
            let [Some(name), Some(kind)] = &row[..] else { continue };
            known.first.insert(name.to_ascii_lowercase(), kind.to_ascii_lowercase());
        }
        return known;
    }
    let parts = format!("INDEX_NAME, COLUMN_NAME, {}", hidden(sql.dialect()));
    let rows = sql.rows(&of(&parts, "STATISTICS", " ORDER BY INDEX_NAME, SEQ_IN_INDEX")).unwrap_or_default();
    let mut concealed: Vec<(String, String)> = Vec::new();
    for row in rows {
        let [Some(index), column, is_hidden] = &row[..] else { continue };
        let column = column.clone().unwrap_or_default().to_ascii_lowercase();
        if is_hidden.as_deref() == Some("1") {
            if concealed.iter().all(|(name, _)| name != index) {
                concealed.push((index.clone(), column));
            }
            continue;
        }
        match known.indexes.last_mut().filter(|(name, _)| name == index) {
            Some((_, columns)) => columns.push(column),
            None => known.indexes.push((index.clone(), vec![column])),
        }
    }
    let first: BTreeSet<&String> = known.indexes.iter().filter_map(|(_, columns)| columns.first()).collect();
    known.hidden = concealed
        .into_iter()
        .filter(|(_, column)| !first.contains(column))
        .map(|(index, column)| (column, index))
        .collect();
    let types = sql.rows(&of("COLUMN_NAME, DATA_TYPE", "COLUMNS", "")).unwrap_or_default();
    for row in types {
        let [Some(name), Some(kind)] = &row[..] else { continue };
        let name = name.to_ascii_lowercase();
        if first.contains(&name) {
            known.first.insert(name, kind.to_ascii_lowercase());
        }
    }
    let made = "COUNT(DISTINCT PARTITION_NAME), COALESCE(MAX(PARTITION_EXPRESSION), '')";
    let rows = sql.rows(&of(made, "PARTITIONS", " AND PARTITION_NAME IS NOT NULL")).unwrap_or_default();
    if let Some([Some(count), Some(expression)]) = rows.first().map(|row| &row[..]) {
        known.partitions = count.parse().ok().filter(|n: &u64| *n > 1).map(|n| (n, expression.clone()));
    }
    if known.indexes.is_empty() {
        let rows = sql.rows(&of("VIEW_DEFINITION", "VIEWS", "")).unwrap_or_default();
        known.view = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
    }
    known
}

/// Whether a view is made whole before a condition on it is looked at.
fn is_made_whole(definition: &str) -> bool {
    let text = definition.to_ascii_lowercase();
    [" group by ", "select distinct ", " union ", " limit ", "sum(", "count("]
        .iter()
        .any(|part| text.contains(part))
}

/// Letters, digits and what compares, in lower case: servers write blanks, quotes and brackets in different ways.
fn bare(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '<' | '>' | '=' | '*'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// The view whose definition a statement is: MySQL 5.7 and 8.0 count the views of a statement with their definitions in the place of
/// their names.
pub(super) fn view_of(sql: &mut ReadOnly<'_>, digest: &Digest) -> Option<String> {
    if !["GROUP BY", "DISTINCT", "UNION"].iter().any(|part| digest.has(part)) || digest.schema.is_empty() {
        return None;
    }
    few_tables(sql).ok()?;
    let schema = quoted(&digest.schema)?;
    let text = bare(&digest.text);
    let rows = sql
        .rows(&format!(
            "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {schema} LIMIT 100"
        ))
        .ok()?;
    rows.into_iter().find_map(|row| {
        let mut cells = row.into_iter();
        let (name, definition) = (cells.next()??, bare(&cells.next()??));
        // The text of a digest is cut.
        let same = definition == text || text.len() >= 100 && definition.starts_with(&text);
        same.then_some(name)
    })
}

/// Whether a function is one of those that are stored in a schema.
fn is_stored(sql: &mut ReadOnly<'_>, schema: &str, function: &str) -> bool {
    let (Some(schema), Some(function)) = (quoted(schema), quoted(function)) else { return false };
    let found = sql.rows(&format!(
        "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {schema} AND ROUTINE_NAME = {function} AND ROUTINE_TYPE = 'FUNCTION'"
    ));
    found.is_ok_and(|rows| !rows.is_empty())
}

/// Whether a statement says itself which index is used.
pub(super) fn forces(digest: &Digest) -> bool {
    ["FORCE INDEX", "FORCE KEY", "USE INDEX", "IGNORE INDEX"].iter().any(|part| digest.has(part))
}

/// The hint for a statement that names its index.
pub(super) const FORCED: &str = "The program says itself which index is used (FORCE, USE or IGNORE INDEX): EXPLAIN it without, and take that out where the plan is better";

/// The explanation by the tables of a statement, before its text is looked at.
pub(super) fn explained(sql: &mut ReadOnly<'_>, digest: &Digest, known: &Known) -> Option<String> {
    if forces(digest) {
        return Some(FORCED.to_owned());
    }
    let name = table(&digest.text).map_or("", |(_, name)| name);
    let whole = |view: &str| {
        format!(
            "the view {view} groups, sums or joins by UNION, so it is made whole for each query before the condition is looked at: ask its tables, with the condition inside, or keep a table of sums"
        )
    };
    if known.view.as_deref().is_some_and(is_made_whole) {
        return Some(whole(name));
    }
    if let Some(differs) = statement_joins::told(sql, digest) {
        return Some(differs);
    }
    let words: Vec<&str> = digest.text.split_whitespace().collect();
    let condition = condition(&words);
    if let Some((function, _)) = wrapped(condition)
        && is_stored(sql, &digest.schema, &function)
    {
        return Some(format!(
            "{function}() is a stored function, which is called, with its own statements, for each row that is read: keep its result in a column, or join what it looks up"
        ));
    }
    let concealed =
        bounded(condition).find_map(|column| known.hidden.get_key_value(&column.to_ascii_lowercase()));
    if let Some((column, index)) = concealed {
        return Some(format!(
            "{column} has an index, {index}, that is hidden from the optimizer (INVISIBLE in MySQL, IGNORED in MariaDB): make it visible again"
        ));
    }
    if let Some((count, expression)) = &known.partitions
        && let Some(told) = unpruned(condition, expression)
    {
        return Some(format!(
            "it reads all {count} partitions of {name}, which are made by {expression}: {told}"
        ));
    }
    if let Some((index, column)) = wrong_order(digest, known) {
        return Some(format!(
            "its index {index} begins with the column of the range: one that begins with {column}, which is compared by =, finds the rows"
        ));
    }
    view_of(sql, digest).map(|view| whole(&view))
}

/// The columns that a condition compares with a value, or bounds by a range, which an index finds.
fn bounded<'a, 'w>(condition: &'w [&'a str]) -> impl Iterator<Item = &'a str> + 'w {
    const SIGNS: [&str; 8] = ["=", "IN", "<", ">", "<=", ">=", "BETWEEN", "LIKE"];
    let compares = |word: &str| SIGNS.iter().any(|sign| word.eq_ignore_ascii_case(sign));
    condition.windows(2).filter(move |some| compares(some[1])).filter_map(|some| column(&some[0]))
}

/// Why a condition selects no partitions; `None` where it compares their column itself.
fn unpruned(condition: &[&str], expression: &str) -> Option<String> {
    let lower = expression.to_ascii_lowercase();
    let is_made_by = |name: &str| {
        lower
            .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
            .any(|part| part == name.to_ascii_lowercase())
    };
    let named = condition.iter().filter_map(column).find(|name| is_made_by(name));
    match (named, wrapped(condition)) {
        (None, _) => Some("a condition on that column lets it read few of them".to_owned()),
        (Some(_), Some((function, inner))) if is_made_by(inner) => {
            Some(format!("compare {inner} itself with a range, without {function}() around it"))
        }
        _ => None,
    }
}

/// An index whose first column a statement compares by a range, and the second by `=`, while none begins with a column that it
/// compares by `=`: the index, and that column.
pub(super) fn wrong_order(digest: &Digest, known: &Known) -> Option<(String, String)> {
    let words: Vec<&str> = digest.text.split_whitespace().collect();
    let condition = condition(&words);
    let by = |signs: &[&str]| -> BTreeSet<String> {
        let found =
            condition.windows(2).filter(|some| signs.iter().any(|sign| some[1].eq_ignore_ascii_case(sign)));
        found.filter_map(|some| column(&some[0])).map(str::to_ascii_lowercase).collect()
    };
    let (equal, ranges) = (by(&["="]), by(&["<", ">", "<=", ">=", "BETWEEN"]));
    let has_or = condition.iter().any(|word| word.eq_ignore_ascii_case("OR"));
    if has_or
        || known.indexes.iter().any(|(_, columns)| columns.first().is_some_and(|first| equal.contains(first)))
    {
        return None;
    }
    known.indexes.iter().find_map(|(name, columns)| {
        let [first, second, ..] = &columns[..] else { return None };
        (ranges.contains(first) && equal.contains(second)).then(|| (name.clone(), second.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::statement_digest::digest;
    use super::*;

    fn with_index(name: &str, columns: &[&str]) -> Known {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Known { indexes: vec![(name.to_owned(), columns)], ..Known::default() }
    }

    #[test]
    fn an_index_that_begins_with_the_range_is_told() {
        let text =
            "SELECT * FROM `messages` WHERE `tenant_id` = ? AND `created_at` > NOW ( ) - INTERVAL ? DAY";
        let found =
            wrong_order(&digest(text, 100.0, 0.0, 0.0), &with_index("by_time", &["created_at", "tenant_id"]));
        assert_eq!(found, Some(("by_time".to_owned(), "tenant_id".to_owned())));
        let right = with_index("by_tenant", &["tenant_id", "created_at"]);
        assert_eq!(wrong_order(&digest(text, 100.0, 0.0, 0.0), &right), None);
        let mut both = with_index("by_time", &["created_at", "tenant_id"]);
        both.indexes.extend(right.indexes);
        assert_eq!(wrong_order(&digest(text, 100.0, 0.0, 0.0), &both), None);
    }

    #[test]
    fn a_range_is_bounded_as_well_as_a_value() {
        let text =
            "`o` . `created` >= ? AND `created` < ? AND `a` <> ? AND `b` = `c` AND `d` BETWEEN ? AND ?";
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(bounded(&words).collect::<Vec<&str>>(), ["created", "created", "b", "d"]);
    }

    #[test]
    fn partitions_are_told_where_their_column_is_wrapped_or_missing() {
        let words = |text: &'static str| text.split_whitespace().collect::<Vec<&str>>();
        let wrapped = words("DATE_FORMAT ( `read_at` , ? ) = ?");
        assert!(
            unpruned(&wrapped, "to_days(`read_at`)").unwrap().contains("without DATE_FORMAT() around it")
        );
        assert!(
            unpruned(&words("`device` = ?"), "to_days(`read_at`)")
                .unwrap()
                .contains("a condition on that column")
        );
        assert_eq!(unpruned(&words("`read_at` > ?"), "to_days(`read_at`)"), None);
    }

    #[test]
    fn a_view_is_the_same_however_its_text_is_written() {
        let definition = "select `t`.`bk`.`customer_id` AS `customer_id`,sum(`t`.`bk`.`amount`) AS `s` from `t`.`bk` group by `t`.`bk`.`customer_id`";
        let text = "SELECT `t` . `bk` . `customer_id` AS `customer_id` , SUM ( `t` . `bk` . `amount` ) AS `s` FROM `t` . `bk` GROUP BY `t` . `bk` . `customer_id`";
        assert_eq!(bare(definition), bare(text));
        assert!(is_made_whole(definition) && !is_made_whole("select `a` from `b`"));
    }
}
