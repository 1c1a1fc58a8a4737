//! Several sets of the nine tables in one database: their names, and statements on one of them.

use super::procedures;
use super::schema::{RELATIONS, Relation};

/// The suffix of a set's tables and procedures: none where there is one set, else its number from 1.
pub fn suffix(set: u64, sets: u64) -> String {
    if sets < 2 { String::new() } else { set.to_string() }
}

/// A text in which each word for which `name` has another one is replaced.
pub fn with_words(sql: &str, name: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(sql.len() * 2);
    let mut word = String::new();
    for c in sql.chars().chain(std::iter::once(' ')) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        match name(&word) {
            Some(name) => out.push_str(&name),
            None => out.push_str(&word),
        }
        word.clear();
        out.push(c);
    }
    out.pop();
    out
}

/// A statement on the tables and procedures of a set.
pub fn of_set(sql: &str, suffix: &str) -> String {
    let is_ours =
        |word: &str| RELATIONS.map(Relation::name).contains(&word) || procedures::NAMES.contains(&word);
    with_words(sql, |word| (!suffix.is_empty() && is_ours(word)).then(|| format!("{word}{suffix}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_names_the_tables_of_its_set() {
        let sql = "SELECT o_id, orders_x FROM orders, `new_order` CALL tpcc_payment(?)";
        assert_eq!(of_set(sql, &suffix(1, 1)), sql);
        assert_eq!(
            of_set(sql, &suffix(3, 4)),
            "SELECT o_id, orders_x FROM orders3, `new_order3` CALL tpcc_payment3(?)"
        );
    }
}
