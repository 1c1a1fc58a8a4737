//! Properties of a statement that its text alone shows: its parameters, and whether it writes. A statement whose effect
//! is uncertain counts as writing.

use std::ops::Range;

/// A piece of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A word without quotes: a keyword or a name.
    Word(&'a str),
    /// A name in backticks, without them.
    Name(&'a str),
    /// A text in quotes, or a number.
    Literal,
    /// `?`
    Parameter,
    /// `:name`, without the colon.
    Named(&'a str),
    /// A comment that servers execute, as in `/*! … */`.
    Executable,
    /// Any other character.
    Mark(char),
}

/// The tokens of a text with their positions, without spaces and comments.
pub fn tokens(sql: &str) -> Vec<(Token<'_>, Range<usize>)> {
    let bytes = sql.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = sql[at..].chars().next() {
        let start = at;
        let rest = &sql[at..];
        let token = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '#' => {
                at = line_end(sql, at);
                continue;
            }
            '-' if rest.starts_with("--") && bytes.get(at + 2).is_none_or(|b| b.is_ascii_whitespace()) => {
                at = line_end(sql, at);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                at = rest.find("*/").map_or(sql.len(), |end| start + end + 2);
                if !(rest.starts_with("/*!") || rest.starts_with("/*M!")) {
                    continue;
                }
                Token::Executable
            }
            '\'' | '"' => {
                at = quote_end(bytes, at, true);
                Token::Literal
            }
            '`' => {
                at = quote_end(bytes, at, false);
                Token::Name(sql[start + 1..at].strip_suffix('`').unwrap_or(&sql[start + 1..at]))
            }
            '?' => {
                at += 1;
                Token::Parameter
            }
            ':' if rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                at = word_end(sql, at + 1);
                Token::Named(&sql[start + 1..at])
            }
            c if is_word(c) => {
                at = word_end(sql, at);
                let word = &sql[start..at];
                if word.bytes().all(|b| b.is_ascii_digit()) { Token::Literal } else { Token::Word(word) }
            }
            c => {
                at += c.len_utf8();
                Token::Mark(c)
            }
        };
        found.push((token, start..at));
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || c == '@'
}

fn word_end(sql: &str, from: usize) -> usize {
    sql[from..].find(|c| !is_word(c)).map_or(sql.len(), |end| from + end)
}

fn line_end(sql: &str, from: usize) -> usize {
    sql[from..].find('\n').map_or(sql.len(), |end| from + end + 1)
}

/// Position after a quoted token that begins here. A doubled quote is part of it; a backslash escapes the next
/// character if `escapes` is set, as on servers with the default `sql_mode`.
fn quote_end(bytes: &[u8], start: usize, escapes: bool) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while at < bytes.len() {
        let escaped = bytes[at] == b'\\' && escapes;
        let doubled = bytes[at] == quote && bytes.get(at + 1) == Some(&quote);
        if escaped || doubled {
            at += 2;
        } else if bytes[at] == quote {
            return at + 1;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Effect of a statement, as far as its text shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// It only reads.
    Reads,
    /// It changes or locks rows; the names are those of databases that it seems to name, for tables that it writes or
    /// reads.
    Writes(Vec<String>),
    /// Anything else, or uncertain.
    Other,
}

/// Defect of a text that should be one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOne {
    /// Nothing but spaces and comments.
    Empty,
    /// More text after a semicolon, at this byte.
    Several(usize),
}

/// The statement without its final semicolon.
///
/// # Errors
/// The text has no statement, or several.
pub fn single(sql: &str) -> Result<&str, NotOne> {
    let tokens = tokens(sql);
    let Some((first, _)) = tokens.first() else { return Err(NotOne::Empty) };
    if *first == Token::Mark(';') {
        return Err(NotOne::Empty);
    }
    match tokens.iter().position(|(token, _)| *token == Token::Mark(';')) {
        None => Ok(sql.trim()),
        Some(end) => match tokens[end..].iter().find(|(token, _)| *token != Token::Mark(';')) {
            Some((_, place)) => Err(NotOne::Several(place.start)),
            None => Ok(sql[..tokens[end].1.start].trim()),
        },
    }
}

/// Words that turn a reading statement into one that writes, locks, or leaves something behind.
const NOT_ONLY_READING: &[&str] = &["INTO", "UPDATE", "DELETE", "LOCK", "SHARE", "PROCEDURE"];

/// Classifies the effect of the statement.
pub fn classify(sql: &str) -> Class {
    let tokens = tokens(sql);
    if tokens.iter().any(|(token, _)| *token == Token::Executable) {
        return Class::Other;
    }
    let words = || {
        tokens.iter().filter_map(|(token, _)| match token {
            Token::Word(word) => Some(word.to_ascii_uppercase()),
            _ => None,
        })
    };
    let has = |list: &[&str]| words().any(|word| list.contains(&word.as_str()));
    match words().next().as_deref() {
        Some("SELECT" | "VALUES" | "TABLE") if !has(NOT_ONLY_READING) => Class::Reads,
        Some("WITH") if !has(NOT_ONLY_READING) => Class::Reads,
        Some("EXPLAIN" | "DESCRIBE" | "DESC") if !has(&["ANALYZE"]) => Class::Reads,
        Some("SHOW") => Class::Reads,
        Some("SELECT") if !has(&["INTO", "PROCEDURE"]) => Class::Writes(databases(&tokens)),
        Some("INSERT" | "REPLACE" | "UPDATE" | "DELETE") => Class::Writes(databases(&tokens)),
        _ => Class::Other,
    }
}

/// Databases that a statement seems to name.
pub fn named_databases(sql: &str) -> Vec<String> {
    databases(&tokens(sql))
}

/// First parts of all dotted names: statements that create tables and indexes need no dots in names.
pub fn dotted_names(sql: &str) -> Vec<String> {
    let tokens = tokens(sql);
    let dotted = tokens.windows(2).filter_map(|pair| match (pair[0].0, pair[1].0) {
        (Token::Word(name) | Token::Name(name), Token::Mark('.')) => Some(name.to_owned()),
        _ => None,
    });
    dotted.collect()
}

/// Words after which a dotted name is a column.
const BEFORE_COLUMNS: &[&str] =
    &["SET", "WHERE", "AND", "OR", "ON", "BY", "NOT", "SELECT", "HAVING", "BETWEEN", "LIKE", "DISTINCT"];

/// First parts of dotted names that are not clearly columns of a table.
fn databases(tokens: &[(Token<'_>, Range<usize>)]) -> Vec<String> {
    let name = |place: usize| match tokens.get(place).map(|(token, _)| token) {
        Some(Token::Word(name) | Token::Name(name)) => Some((*name).to_owned()),
        _ => None,
    };
    let is = |place: usize, c: char| tokens.get(place).is_some_and(|(token, _)| *token == Token::Mark(c));
    let mut found: Vec<String> = Vec::new();
    for place in 0..tokens.len() {
        let Some(first) = name(place).filter(|_| is(place + 1, '.')) else { continue };
        let inside = place > 0 && is(place - 1, '.');
        let of_three = name(place + 2).is_some() && is(place + 3, '.');
        let before = place.checked_sub(1).map(|before| tokens[before].0);
        let behind_column_word = match before {
            Some(Token::Word(word)) => BEFORE_COLUMNS.iter().any(|known| word.eq_ignore_ascii_case(known)),
            Some(Token::Mark(c)) => "=<>+-*/%!".contains(c),
            _ => false,
        };
        // Columns are not called: the name before the dot is a database, whose function may do anything.
        let called = name(place + 2).is_some() && is(place + 3, '(');
        if !inside && (of_three || called || !behind_column_word) && !found.contains(&first) {
            found.push(first);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    fn writes(databases: &[&str]) -> Class {
        Class::Writes(databases.iter().map(|d| (*d).to_owned()).collect())
    }

    #[test]
    fn what_only_reads_is_told_from_what_does_not() {
        for sql in [
            "SELECT 1",
            "  select a from t where s = 'insert into x' -- update\n",
            "(SELECT 1) UNION (SELECT 2)",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "SHOW TABLES",
            "EXPLAIN UPDATE t SET a = 1",
            "SELECT REPLACE(a, 'x', 'y'), `update` FROM t",
            "/* DELETE */ SELECT 1 # UPDATE",
        ] {
            assert_eq!(classify(sql), Class::Reads, "{sql}");
        }
        for sql in [
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "/*! DELETE FROM t */",
            "SELECT /*!50000 SLEEP(1) INTO @a */ 1",
            "DROP TABLE t",
            "CALL p()",
            "SET GLOBAL read_only = 0",
            "WITH a AS (SELECT 1) DELETE FROM t",
            "EXPLAIN ANALYZE SELECT f()",
            "ANALYZE UPDATE t SET a = 1",
            "DO f()",
            "",
        ] {
            assert_eq!(classify(sql), Class::Other, "{sql}");
        }
        for sql in ["INSERT INTO t VALUES (1)", "update t set a = 1", "SELECT a FROM t FOR UPDATE"] {
            assert_eq!(classify(sql), writes(&[]), "{sql}");
        }
    }

    #[test]
    fn databases_that_a_writing_statement_names_are_found() {
        assert_eq!(classify("UPDATE other.t SET a = 1"), writes(&["other"]));
        assert_eq!(classify("INSERT INTO `x` . `t` SELECT a.b FROM y.a"), writes(&["x", "y"]));
        assert_eq!(classify("DELETE FROM t WHERE t.id = 5 AND t.a < t.b"), writes(&[]));
        assert_eq!(classify("DELETE FROM t WHERE x.t.id = 5"), writes(&["x"]));
        assert_eq!(classify("UPDATE t, z.u SET t.a = 1.5"), writes(&["z"]));
        assert_eq!(classify("UPDATE t SET a = 1 WHERE t.id = z.f(1) AND t.b IN (1)"), writes(&["z"]));
        assert_eq!(named_databases("SELECT `z`.`f` (1), t.a FROM t"), ["z", "t"]);
    }

    #[test]
    fn one_statement_is_told_from_none_and_several() {
        assert_eq!(single(" SELECT ';' ; \n"), Ok("SELECT ';'"));
        assert_eq!(single("SELECT 1 -- ; x"), Ok("SELECT 1 -- ; x"));
        assert_eq!(single("SELECT 1; SELECT 2"), Err(NotOne::Several(10)));
        assert_eq!(single(" -- nothing"), Err(NotOne::Empty));
        assert_eq!(single(";"), Err(NotOne::Empty));
        assert_eq!(single("SELECT 'it''s \\'; ok'"), Ok("SELECT 'it''s \\'; ok'"));
    }

    #[test]
    fn parameters_are_found_outside_of_texts_and_comments() {
        let sql = "SELECT ':no', \"?\", `:n`, @a := 1, b /* :no ? */ FROM t WHERE a = :yes_1 AND c = ?";
        let found: Vec<Token<'_>> = tokens(sql)
            .into_iter()
            .map(|(token, _)| token)
            .filter(|t| matches!(t, Token::Parameter | Token::Named(_)))
            .collect();
        assert_eq!(found, [Token::Named("yes_1"), Token::Parameter]);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart_without_losing_its_place(sql in ".{0,60}") {
            let mut end = 0;
            for (_, place) in tokens(&sql) {
                prop_assert!(place.start >= end && place.end > place.start && place.end <= sql.len());
                end = place.end;
            }
            let _ = (classify(&sql), single(&sql));
        }
    }
}
