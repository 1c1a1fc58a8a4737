//! Why a statement of one table takes long, by its text and by the indexes of the table, as far as both tell.

use crate::collectors::schema::shapes::rows;
use crate::collectors::session_list::{is_catalogue, verb_and_table};
use crate::collectors::statement_hints::{FUNCTIONS, TEXT};
use crate::collectors::statement_tables::known;
use crate::collectors::stored_text::words;
use crate::context::Context;
use crate::sql::ReadOnly;

/// Rows of a table that it takes some time to read.
const MANY_ROWS: u64 = 1000;

/// Words that end a condition.
const ENDS: [&str; 6] = ["GROUP", "ORDER", "LIMIT", "HAVING", "FOR", "LOCK"];

/// Words of a condition on more than one table, or on one of several columns.
const OTHERS: [&str; 7] = ["OR", "XOR", "JOIN", "SELECT", "UNION", "MATCH", "NOT"];

/// Kind of value that a column is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum With {
    Number,
    Other,
}

/// A statement of one table.
#[derive(Debug, Default, PartialEq, Eq)]
struct Statement {
    schema: Option<String>,
    table: String,
    /// Whether it sorts by RAND().
    at_random: bool,
    /// A column that LIKE looks for in the middle of.
    within: Option<String>,
    /// A function, and the column in it.
    wrapped: Option<(String, String)>,
    /// Columns that are compared, in lower case.
    compared: Vec<(String, bool, Option<With>)>,
}

/// The table of a statement, and why it takes long; `None` where text and indexes do not tell it.
pub(super) fn told(
    context: &Context,
    sql: &mut ReadOnly<'_>,
    schema: &str,
    text: &str,
) -> Option<(String, String)> {
    if is_catalogue(text) {
        return Some((
            verb_and_table(text).rsplit(' ').next().unwrap_or_default().to_owned(),
            "to tell sizes the server opens every table: ask mysql.innodb_table_stats, or once a day"
                .to_owned(),
        ));
    }
    let one = statement(text)?;
    let schema = one.schema.clone().unwrap_or_else(|| schema.to_owned());
    let table = format!("{schema}.{}", one.table);
    if rows(sql, &table).is_none_or(|rows| rows < MANY_ROWS) {
        return None;
    }
    let known = known(context, sql, &schema, &one.table);
    if one.at_random {
        let why = "ORDER BY RAND() reads and sorts every row each time: draw ids in the program";
        return Some((table, why.to_owned()));
    }
    let is_first = |column: &str| known.first.contains_key(column);
    let is_text = |column: &str| known.first.get(column).is_some_and(|kind| TEXT.contains(&kind.as_str()));
    let by_number =
        one.compared.iter().find(|(column, _, with)| *with == Some(With::Number) && is_text(column));
    // An index finds the rows by another column.
    let mut found =
        one.compared.iter().filter(|(column, _, with)| !(*with == Some(With::Number) && is_text(column)));
    if found.any(|(column, _, _)| is_first(column)) || known.first.is_empty() {
        return None;
    }
    let why = if let Some((column, ..)) = by_number {
        format!("{column} is a text with an index, which a number keeps from being used: send it in quotes")
    } else if let Some((function, column)) = &one.wrapped {
        format!(
            "{function}() around {column} keeps any index from being used: compare {column} itself with a range"
        )
    } else if let Some(column) = &one.within {
        format!(
            "a LIKE on {column} whose pattern begins with % uses no index: use a FULLTEXT index, or keep a flag"
        )
    } else {
        let equal = one.compared.iter().filter(|(_, equal, _)| *equal);
        let ranges = one.compared.iter().filter(|(_, equal, _)| !*equal).take(1);
        let mut columns: Vec<&str> = equal.chain(ranges).map(|(column, ..)| column.as_str()).collect();
        columns.dedup();
        if columns.is_empty() {
            return None;
        }
        format!("no index begins with a column of its WHERE: it needs one on ({})", columns.join(", "))
    };
    Some((table, why))
}

/// Reads a SELECT, UPDATE or DELETE of one table whose conditions are joined by AND.
fn statement(text: &str) -> Option<Statement> {
    // What the list cuts may go on with anything.
    let is_cut = [100, 1000].contains(&text.chars().count());
    // The session's mode decides whether this backslash escapes the quote.
    if ["\\'", "\\\""].iter().any(|both| text.contains(both)) {
        return None;
    }
    let words = without_values_of_others(&words(text))?;
    let is =
        |at: usize, name: &str| words.get(at).is_some_and(|word: &String| word.eq_ignore_ascii_case(name));
    let verb = words.first()?;
    let from = match verb.to_ascii_uppercase().as_str() {
        "UPDATE" => 0,
        "SELECT" | "DELETE" => words.iter().position(|word| word.eq_ignore_ascii_case("FROM"))?,
        _ => return None,
    };
    let (schema, table, mut at) = match (words.get(from + 1)?, is(from + 2, ".")) {
        (schema, true) => (Some(schema.clone()), words.get(from + 3)?.clone(), from + 4),
        (table, false) => (None, table.clone(), from + 2),
    };
    if is(from + 1, "(") || is(at, ",") || is(at, "JOIN") {
        return None;
    }
    let mut one = Statement { schema, table, ..Statement::default() };
    one.at_random = (at..words.len()).any(|at| is(at, "BY") && is(at + 1, "RAND") && is(at + 2, "("));
    at = match (at..words.len()).find(|at| is(*at, "WHERE")) {
        Some(place) => place + 1,
        None if one.at_random && !(at..words.len()).any(|at| is(at, "JOIN") || is(at, "SELECT")) => {
            return Some(one);
        }
        None => return None,
    };
    let end = (at..words.len()).find(|at| ENDS.iter().any(|word| is(*at, word))).unwrap_or(words.len());
    let has = |words: &[String], others: &[&str]| {
        words.iter().any(|word| others.iter().any(|other| word.eq_ignore_ascii_case(other)))
    };
    let between = &words[from + 2..at];
    let joins = has(between, &["JOIN"]) || from > 0 && has(between, &[","]);
    if joins || is_cut && end == words.len() || has(&words[at..end], &OTHERS) {
        return None;
    }
    one.condition(&words[at..end])?;
    // A pattern with a fixed beginning is a range.
    if let Some(column) = one.within.take_if(|_| !begins_with_any(text)) {
        one.compared.push((column, false, None));
    }
    Some(one)
}

/// The words without SELECT statements whose one value is compared; `None` where one gives a list, or stands in front of the table.
fn without_values_of_others(words: &[String]) -> Option<Vec<String>> {
    let is = |at: usize, names: &[&str]| {
        words.get(at).is_some_and(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
    };
    let mut kept: Vec<String> = Vec::new();
    let mut depth = 0_usize;
    let mut seen_table = false;
    for (at, word) in words.iter().enumerate() {
        let opens = word == "(";
        if depth == 0 && opens && is(at + 1, &["SELECT"]) {
            if !seen_table || at == 0 || is(at - 1, &["IN", "EXISTS", "ANY", "ALL", "SOME", "FROM"]) {
                return None;
            }
            kept.push("(".to_owned());
            depth = 1;
        } else if depth > 0 {
            depth = if opens { depth + 1 } else { depth - usize::from(is(at, &[")"])) };
        } else {
            seen_table |= is(at, &["FROM", "UPDATE"]);
            kept.push(word.clone());
        }
    }
    Some(kept)
}

/// Whether LIKE has a pattern that begins with any characters.
fn begins_with_any(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut parts = lower.split(" like ").skip(1);
    parts.any(|rest| ["'%", "\"%"].iter().any(|start| rest.trim_start().starts_with(start)))
}

impl Statement {
    /// Reads conditions that AND joins; `None` where one is not understood, as it may be what an index finds the rows by.
    fn condition(&mut self, words: &[String]) -> Option<()> {
        let is_and = |word: &String| word.eq_ignore_ascii_case("AND");
        let mut is_between = false;
        for part in words.split(is_and) {
            // The end of the range.
            if std::mem::take(&mut is_between) {
                continue;
            }
            let word = |at: usize| part.get(at).map_or("", String::as_str);
            // A name may stand behind that of its table.
            let start = if word(1) == "." { 2 } else { 0 };
            if word(start + 1) == "(" {
                let function = word(start).to_ascii_uppercase();
                let inner = if word(start + 3) == "." { start + 4 } else { start + 2 };
                let is_column = word(inner).starts_with(|c: char| c.is_alphabetic() || c == '_');
                if !is_column || !FUNCTIONS.contains(&function.as_str()) {
                    return None;
                }
                self.wrapped.get_or_insert((function, word(inner).to_owned()));
                continue;
            }
            let column = word(start).to_lowercase();
            if !column.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                return None;
            }
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let with = |at: usize| if is_number(word(at)) { With::Number } else { With::Other };
            let (equal, with) = match word(start + 1).to_ascii_uppercase().as_str() {
                // An arithmetic expression has more words.
                "=" if part.len() <= start + 3 => (true, Some(with(start + 2))),
                "=" => (true, Some(With::Other)),
                "IN" => (true, Some(with(start + 3))),
                "BETWEEN" => {
                    is_between = true;
                    (false, None)
                }
                "IS" | "<" | ">" => (false, None),
                "LIKE" => {
                    self.within.get_or_insert(column);
                    continue;
                }
                _ => return None,
            };
            self.compared.push((column, equal, with));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conditions_of_a_statement_of_one_table_are_read() {
        let one = statement("SELECT * FROM his.patients WHERE national_id = 8501234567 AND ward='A' LIMIT 1")
            .unwrap();
        assert_eq!((one.schema.as_deref(), one.table.as_str()), (Some("his"), "patients"));
        let number = ("national_id".to_owned(), true, Some(With::Number));
        assert_eq!(one.compared, [number, ("ward".to_owned(), true, Some(With::Other))]);
        let one = statement(
            "select a from t p where p.x IN (1, 2) and p.at >= '2024' and DATE(p.`at`) = CURDATE()",
        )
        .unwrap();
        assert_eq!(
            one.compared,
            [("x".to_owned(), true, Some(With::Number)), ("at".to_owned(), false, None),]
        );
        assert_eq!(one.wrapped, Some(("DATE".to_owned(), "at".to_owned())));
        let one = statement("UPDATE t SET a = 1 WHERE b = n + 1").unwrap();
        assert_eq!(one.compared, [("b".to_owned(), true, Some(With::Other))]);
    }

    #[test]
    fn a_value_that_another_statement_gives_is_passed_over() {
        let text = "SELECT COUNT(*)+1 FROM scores WHERE season_id=12 AND points > (SELECT points FROM scores WHERE player_id=7)";
        let one = statement(text).unwrap();
        let season = ("season_id".to_owned(), true, Some(With::Number));
        assert_eq!(one.compared, [season, ("points".to_owned(), false, None)]);
        assert_eq!(statement("SELECT (SELECT 1 FROM b) FROM a WHERE c = 1"), None);
    }

    #[test]
    fn a_pattern_in_the_middle_and_a_sort_at_random_are_known() {
        let one = statement("SELECT * FROM meta WHERE meta_value LIKE '%premium%'").unwrap();
        assert_eq!(one.within.as_deref(), Some("meta_value"));
        assert_eq!(statement("SELECT * FROM meta WHERE v LIKE 'p%'").unwrap().within, None);
        assert!(statement("SELECT * FROM posts ORDER BY RAND() LIMIT 3").unwrap().at_random);
    }

    #[test]
    fn what_has_several_tables_or_goes_on_behind_its_end_is_left_alone() {
        for text in [
            "SELECT * FROM a JOIN b ON a.x = b.y WHERE a.z = 1",
            "SELECT * FROM a, b WHERE a.z = 1",
            "SELECT * FROM a WHERE b = 1 OR c = 2",
            "SELECT * FROM a WHERE b IN (SELECT c FROM d)",
            "SELECT * FROM (SELECT 1) d WHERE b = 1",
            "SELECT * FROM a",
            "SELECT * FROM a WHERE (b = 5) AND c = 1",
            "SELECT * FROM a WHERE 5 = b AND c = 1",
            "SELECT * FROM a WHERE s.a.b = 5 AND c = 1",
            "SELECT * FROM a WHERE b = 'C:\\' AND c = 'x'",
            "INSERT INTO a VALUES (1)",
            &format!("SELECT * FROM a WHERE b = {}", "1".repeat(74)),
        ] {
            assert_eq!(statement(text), None, "{text}");
        }
    }
}
