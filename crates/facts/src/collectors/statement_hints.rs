//! Why a statement reads a whole table, by the text of its digest and by the indexes of its table.

use std::collections::BTreeMap;

/// The columns of a table that an index begins with, with the types of their values.
pub(super) type Indexed = BTreeMap<String, String>;

/// Words before a bracket that are no functions of columns.
const NO_FUNCTIONS: [&str; 16] = [
    "IN", "AND", "OR", "NOT", "EXISTS", "ANY", "ALL", "SOME", "BETWEEN", "VALUES", "VALUE", "MATCH", "WHERE",
    "ON", "SELECT", "XOR",
];

/// Functions of a column around which programs write a comparison.
pub(super) const FUNCTIONS: [&str; 22] = [
    "CAST",
    "COALESCE",
    "CONCAT",
    "CONVERT",
    "DATE",
    "DATE_FORMAT",
    "DATEDIFF",
    "DAY",
    "HOUR",
    "IFNULL",
    "LEFT",
    "LOWER",
    "MONTH",
    "REPLACE",
    "STR_TO_DATE",
    "SUBSTR",
    "SUBSTRING",
    "TO_DAYS",
    "TRIM",
    "UNIX_TIMESTAMP",
    "UPPER",
    "YEAR",
];

/// Types of text.
pub(super) const TEXT: [&str; 6] = ["char", "varchar", "tinytext", "text", "mediumtext", "longtext"];

/// The table that a statement reads first: its schema, where the text names one, and its name.
pub(super) fn table(text: &str) -> Option<(Option<&str>, &str)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let verb = if words.first()?.eq_ignore_ascii_case("UPDATE") { "UPDATE" } else { "FROM" };
    let at = words.iter().position(|word| word.eq_ignore_ascii_case(verb))?;
    let name = |at: usize| words.get(at).and_then(|word| word.strip_prefix('`')?.strip_suffix('`'));
    match (name(at + 1)?, words.get(at + 2), name(at + 3)) {
        (schema, Some(&"."), Some(table)) => Some((Some(schema), table)),
        (table, ..) => Some((None, table)),
    }
}

/// The remedy for a statement that reads a table without an index.
pub(super) fn hint(text: &str, indexed: &Indexed) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let has = |parts: &[&str]| words.windows(parts.len()).any(|some| same(some, parts));
    let condition = condition(&words);
    if has(&["RAND", "("]) {
        return "ORDER BY RAND() reads and sorts every row each time: draw ids in the program, and ask for those".to_owned();
    }
    if has(&["SQL_CALC_FOUND_ROWS"]) {
        return "SQL_CALC_FOUND_ROWS reads every row in spite of the LIMIT: ask for one row more than a page shows, or count apart".to_owned();
    }
    if condition.is_empty() {
        let is_limited = has(&["ORDER", "BY"]) && words.iter().any(|word| word.eq_ignore_ascii_case("LIMIT"));
        return match words.first().map(|word| word.to_ascii_uppercase()).as_deref() {
            Some("UPDATE") => "it has no WHERE: it changes, and locks, every row".to_owned(),
            Some("DELETE") => "it has no WHERE: it deletes every row; TRUNCATE does so at once".to_owned(),
            _ if has(&["FROM", "("]) => {
                "it has no WHERE: it reads all that the SELECT within its brackets gives; EXPLAIN that one".to_owned()
            }
            _ if has(&["COUNT", "("]) && !has(&["GROUP", "BY"]) => {
                "COUNT without a WHERE reads a whole index each time: keep the number, or take the estimate of information_schema.TABLES".to_owned()
            }
            _ if has(&["GROUP", "BY"]) && has(&["ORDER", "BY"]) => {
                "it has no WHERE: it groups all rows before it sorts the groups. No index changes that: keep a table of sums, or narrow the rows".to_owned()
            }
            _ if is_limited && sorted_by(&words).is_some_and(|column| indexed.contains_key(&column)) => {
                "it has no WHERE: it reads as many rows as LIMIT and its offset add up to where the index on that column gives the order, and all of them where the server sorts, as it does for large offsets. Go on from the last value seen (WHERE key > ?)".to_owned()
            }
            _ if is_limited => {
                "it has no WHERE: an index on the columns of its ORDER BY lets it read no more rows than the LIMIT, and its offset, ask for".to_owned()
            }
            _ => "it has no WHERE: it reads the whole table, whatever indexes there are".to_owned(),
        };
    }
    if let Some((function, column)) = wrapped(condition) {
        let there = if indexed.contains_key(&column.to_ascii_lowercase()) {
            "has an index, which"
        } else {
            "could have an index, which"
        };
        return format!(
            "{column} {there} {function}() around it keeps from being used: compare the column itself (a range of dates, a value in the column's collation), or index the expression"
        );
    }
    if has(&["->>"]) || has(&["->"]) {
        return "it compares a part of a JSON document, which no index of the column finds: index a generated column, or from MySQL 8.0.13 on the expression itself".to_owned();
    }
    let joins = has(&["JOIN"]);
    let text_column = compared(condition).find(|column| {
        indexed.get(&column.to_ascii_lowercase()).is_some_and(|kind| TEXT.contains(&kind.as_str()))
    });
    if let Some(column) = text_column.filter(|_| !has(&["OR"]) && !joins) {
        return format!(
            "{column} is a text and has an index, which is not used where the value is a number or has another collation: send a text"
        );
    }
    if has(&["NOT", "IN", "(", "SELECT"]) {
        return "NOT IN with a subquery: NOT EXISTS, with an index on the column that it compares, reads less".to_owned();
    }
    if has(&["LIKE", "?"]) {
        return "a LIKE whose pattern begins with % uses no index: use a FULLTEXT index, or a pattern with a fixed beginning".to_owned();
    }
    if has(&["OR"]) {
        return "columns that OR joins need an index each, or two statements with UNION".to_owned();
    }
    if joins {
        return "EXPLAIN it, and give it an index on the columns of its WHERE and of its joins; joined columns of different types or character sets keep an index from being used".to_owned();
    }
    let there = compared(condition).find(|column| indexed.contains_key(&column.to_ascii_lowercase()));
    if let Some(column) = there.filter(|_| !has(&["AND"])) {
        return format!(
            "an index begins with {column}, and the server reads more than that: EXPLAIN tells which index it takes. Old statistics (ANALYZE TABLE) or ORDER BY with LIMIT make it take another; where many rows have the value, no index is better"
        );
    }
    match serving(condition) {
        Some(columns) => format!("EXPLAIN it, and give it an index on ({columns})"),
        None => "EXPLAIN it, and give it an index on the columns of its WHERE".to_owned(),
    }
}

/// The columns of an index that serves conditions which AND joins: those that are compared by `=`, then one of a range. What stands in
/// brackets, as another SELECT, is passed over.
fn serving(condition: &[&str]) -> Option<String> {
    let (mut equal, mut ranges) = (Vec::new(), Vec::new());
    let mut depth = 0_usize;
    for (at, word) in condition.iter().enumerate() {
        match *word {
            "(" => depth += 1,
            ")" => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            word if ["OR", "XOR", "NOT"].iter().any(|other| word.eq_ignore_ascii_case(other)) => return None,
            _ => {
                let Some(sign) = condition.get(at + 1) else { continue };
                let next = condition.get(at + 2);
                // MySQL writes a column whose name is a word of the language, as STATUS, without quotes.
                let is_value = next.is_some_and(|next| ["?", "(...)", "("].contains(next));
                let is_bare = word.chars().all(|c| c.is_ascii_alphabetic() || c == '_') && is_value;
                let Some(name) =
                    column(word).map(str::to_owned).or_else(|| is_bare.then(|| word.to_lowercase()))
                else {
                    continue;
                };
                let with_column = next.is_some_and(|next| column(next).is_some());
                let list = match sign.to_ascii_uppercase().as_str() {
                    "=" | "IN" => &mut equal,
                    "<" | ">" | "<=" | ">=" | "BETWEEN" => &mut ranges,
                    _ => continue,
                };
                if !with_column && !list.contains(&name) {
                    list.push(name);
                }
            }
        }
    }
    ranges.truncate(1);
    ranges.retain(|name| !equal.contains(name));
    equal.extend(ranges);
    (!equal.is_empty()).then(|| equal.join(", "))
}

/// The first column of ORDER BY, in lower case, where it is a column and not a place, a function or an alias.
fn sorted_by(words: &[&str]) -> Option<String> {
    let at = words.windows(2).position(|some| same(some, &["ORDER", "BY"]))?;
    let first = column(words.get(at + 2)?)?;
    // The name of a table may stand before that of the column.
    let of_table = words.get(at + 3) == Some(&".");
    let name = if of_table { words.get(at + 4).and_then(column)? } else { first };
    Some(name.to_ascii_lowercase())
}

fn same(words: &[&str], parts: &[&str]) -> bool {
    words.iter().zip(parts).all(|(word, part)| word.trim_matches('`').eq_ignore_ascii_case(part))
}

/// The words between the first WHERE and what follows the condition.
pub(super) fn condition<'a, 'w>(words: &'w [&'a str]) -> &'w [&'a str] {
    let Some(start) = words.iter().position(|word| word.eq_ignore_ascii_case("WHERE")) else { return &[] };
    let rest = &words[start + 1..];
    let end = rest
        .iter()
        .position(|word| ["GROUP", "ORDER", "LIMIT", "HAVING"].iter().any(|w| word.eq_ignore_ascii_case(w)));
    &rest[..end.unwrap_or(rest.len())]
}

/// A name in backticks.
pub(super) fn column<'a>(word: &&'a str) -> Option<&'a str> {
    word.strip_prefix('`')?.strip_suffix('`')
}

/// The first function whose only or first argument is a column, with that column.
pub(super) fn wrapped<'a>(condition: &[&'a str]) -> Option<(String, &'a str)> {
    condition.windows(3).enumerate().find_map(|(at, some)| {
        let function = some[0].trim_matches('`');
        let is_function = !function.is_empty()
            && function.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && function.starts_with(|c: char| c.is_ascii_alphabetic())
            && !NO_FUNCTIONS.iter().any(|word| function.eq_ignore_ascii_case(word));
        if !is_function || some[1] != "(" {
            return None;
        }
        let mut argument = column(&some[2])?;
        // The name of a table may stand before that of the column.
        if let (Some(&"."), Some(of_table)) = (condition.get(at + 3), condition.get(at + 4).and_then(column))
        {
            argument = of_table;
        }
        Some((function.to_ascii_uppercase().trim_start_matches("SQL_TSI_").to_owned(), argument))
    })
}

/// The columns that are compared with a value.
pub(super) fn compared<'a, 'w>(condition: &'w [&'a str]) -> impl Iterator<Item = &'a str> + 'w {
    condition.windows(3).filter_map(|some| {
        let compares = ["=", "IN"].iter().any(|word| some[1].eq_ignore_ascii_case(word));
        (compares && ["?", "(...)", "("].contains(&some[2])).then(|| column(&some[0]))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed_as(columns: &[(&str, &str)]) -> Indexed {
        columns.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
    }

    #[test]
    fn the_table_of_a_digest_is_the_first_that_it_names() {
        assert_eq!(table("SELECT * FROM `shop` . `orders` WHERE `a` = ?"), Some((Some("shop"), "orders")));
        assert_eq!(table("UPDATE `users` SET `a` = ?"), Some((None, "users")));
        assert_eq!(table("DELETE FROM `log` WHERE `a` < ?"), Some((None, "log")));
        assert_eq!(table("SELECT ?"), None);
    }

    #[test]
    fn each_kind_of_scan_has_its_own_hint() {
        let indexes = indexed_as(&[("created", "datetime"), ("phone", "varchar"), ("id", "int")]);
        for (text, part) in [
            (
                "SELECT * FROM `o` WHERE DATE ( `created` ) = ?",
                "created has an index, which DATE() around it",
            ),
            (
                "SELECT * FROM `o` WHERE `o` . `x` = ? AND YEAR ( `o` . `created` ) = ?",
                "created has an index, which YEAR()",
            ),
            ("SELECT * FROM `o` WHERE SQL_TSI_MONTH ( `day` ) = ?", "day could have an index, which MONTH()"),
            (
                "SELECT `name` , COUNT ( * ) FROM `c` GROUP BY `name` ORDER BY ? DESC LIMIT ?",
                "it groups all rows before it sorts",
            ),
            ("SELECT * FROM `d` WHERE `doc` ->> ? = ?", "a part of a JSON document"),
            ("SELECT * FROM `c` ORDER BY `id` LIMIT ?, ...", "Go on from the last value seen"),
            ("SELECT * FROM `c` ORDER BY `c` . `id` LIMIT ?, ...", "Go on from the last value seen"),
            ("SELECT * FROM `c` ORDER BY `age` LIMIT ?", "an index on the columns of its ORDER BY"),
            ("SELECT * FROM `c` WHERE `phone` = ?", "phone is a text and has an index"),
            ("SELECT * FROM `c` WHERE `mail` = ?", "give it an index"),
            ("SELECT * FROM `c` WHERE `id` = ?", "an index begins with id"),
            ("SELECT * FROM `c` WHERE `id` = ? AND `x` > ?", "give it an index on (id, x)"),
            (
                "SELECT * FROM `c` WHERE STATUS = ? AND `x` > ? ORDER BY `id`",
                "give it an index on (status, x)",
            ),
            (
                "SELECT COUNT ( * ) + ? FROM `s` WHERE `p` > ( SELECT `p` FROM `s` WHERE `n` = ? ) AND `z` = ?",
                "give it an index on (z, p)",
            ),
            (
                "SELECT * FROM `c` JOIN `d` ON `c` . `x` = `d` . `y` WHERE `phone` = ?",
                "different types or character sets",
            ),
            ("SELECT * FROM `c` ORDER BY `RAND` ( ) LIMIT ?", "ORDER BY RAND()"),
            ("SELECT * FROM `c` ORDER BY RAND ( ) LIMIT ?", "ORDER BY RAND()"),
            (
                "SELECT * FROM `c` JOIN `d` ON `c` . `x` = `d` . `y` WHERE `c` . `a` > ?",
                "different types or character sets",
            ),
            ("SELECT * FROM `c` WHERE `name` LIKE ?", "begins with %"),
            ("SELECT `id` FROM `c` WHERE `id` NOT IN ( SELECT `x` FROM `y` )", "NOT EXISTS"),
            (
                "SELECT COUNT ( * ) FROM ( SELECT `a` FROM `c` ORDER BY `a` LIMIT ? ) `d`",
                "within its brackets",
            ),
            ("SELECT COUNT ( * ) FROM `c`", "COUNT without a WHERE"),
            ("SELECT `id` FROM `c` ORDER BY `total` LIMIT ?, ...", "columns of its ORDER BY"),
            ("SELECT `id` FROM `c`", "no WHERE: it reads"),
            ("SELECT * FROM `c` ORDER BY `id`", "no WHERE: it reads"),
            ("UPDATE `users` SET `grp` = `grp` + ?", "changes, and locks, every row"),
            ("SELECT * FROM `c` WHERE `a` = ? OR `b` = ?", "need an index each"),
            ("SELECT SQL_CALC_FOUND_ROWS * FROM `c` WHERE `a` = ? LIMIT ?", "in spite of the LIMIT"),
        ] {
            let found = hint(text, &indexes);
            assert!(found.contains(part), "{text}: {found}");
        }
    }
}
