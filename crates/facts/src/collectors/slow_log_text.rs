//! The text of a statement without its values, in the form of performance_schema's digests.

use std::collections::BTreeSet;

/// Words that are no names. Those of functions are written so where a bracket follows.
const KEYWORDS: [&str; 98] = [
    "SELECT",
    "FROM",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "LIKE",
    "BETWEEN",
    "EXISTS",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "OUTER",
    "CROSS",
    "STRAIGHT_JOIN",
    "ON",
    "USING",
    "AS",
    "ORDER",
    "GROUP",
    "BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "ASC",
    "DESC",
    "DISTINCT",
    "ALL",
    "UNION",
    "INSERT",
    "INTO",
    "REPLACE",
    "VALUES",
    "VALUE",
    "UPDATE",
    "SET",
    "DELETE",
    "IGNORE",
    "FOR",
    "LOCK",
    "SHARE",
    "MODE",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "INTERVAL",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MONTH",
    "YEAR",
    "WEEK",
    "TRUE",
    "FALSE",
    "DIV",
    "MOD",
    "XOR",
    "REGEXP",
    "RLIKE",
    "BINARY",
    "ANY",
    "SOME",
    "MATCH",
    "AGAINST",
    "FORCE",
    "USE",
    "INDEX",
    "KEY",
    "WITH",
    "RECURSIVE",
    "OVER",
    "PARTITION",
    "SQL_NO_CACHE",
    "SQL_CALC_FOUND_ROWS",
    "CREATE",
    "ALTER",
    "DROP",
    "TABLE",
    "TEMPORARY",
    "IF",
    "CALL",
    "SHOW",
    "DUPLICATE",
    "ROLLUP",
    "LOW_PRIORITY",
    "COLLATE",
    "COUNT",
    "SUM",
    "MIN",
    "MAX",
    "AVG",
];

/// Words that are parts of a date, or functions, where they are no names.
const BEFORE_BRACKET: [&str; 11] =
    ["COUNT", "SUM", "MIN", "MAX", "AVG", "DAY", "HOUR", "MINUTE", "SECOND", "MONTH", "YEAR"];

/// Longest text that is kept, in bytes.
const LONGEST: usize = 1000;

/// A statement without its values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Normal {
    /// The text, a blank between all words; names stand in backticks, each value is a `?`.
    pub(super) text: String,
    /// Columns that are compared with a number, in lower case.
    pub(super) with_numbers: BTreeSet<String>,
    /// Whether the rest is left out: the text is long, or the session's mode decides what of the rest is quoted.
    pub(super) cut: bool,
}

/// A part of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A keyword, a name in backticks, or a sign.
    Word(String),
    /// A value: whether it is a number.
    Value(bool),
}

impl Token {
    fn is(&self, text: &str) -> bool {
        matches!(self, Self::Word(word) if word == text)
    }
}

/// Takes all values out of a statement. A text that ends within a quoted value loses it whole. Where a backslash stands before a quote,
/// only what is the same with and without NO_BACKSLASH_ESCAPES is kept: each session can set that mode.
pub(super) fn normalised(statement: &str) -> Normal {
    let mut tokens = tokens(statement, true);
    let mut cut = false;
    if ["\\'", "\\\""].iter().any(|both| statement.contains(both)) {
        let others = self::tokens(statement, false);
        let same = tokens.iter().zip(&others).take_while(|(one, other)| one == other).count();
        cut = same < tokens.len() || same < others.len();
        tokens.truncate(same);
    }
    let compares = |token: &Token| ["=", "<", ">", "<=", ">=", "IN"].iter().any(|sign| token.is(sign));
    let mut with_numbers = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let Some(name) = word.strip_prefix('`').and_then(|word| word.strip_suffix('`')) else { continue };
        let sign = tokens.get(at + 1).filter(|sign| compares(sign));
        let value = sign.and_then(|sign| tokens.get(at + if sign.is("IN") { 3 } else { 2 }));
        if value == Some(&Token::Value(true)) {
            with_numbers.insert(name.to_lowercase());
        }
    }
    let mut text = String::new();
    let mut at = 0;
    while at < tokens.len() && text.len() < LONGEST {
        let (word, next) = match list_from(&tokens, at) {
            Some(end) => ("(...)", end),
            None => match &tokens[at] {
                Token::Word(word) => (word.as_str(), at + 1),
                Token::Value(_) => ("?", at + 1),
            },
        };
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
        at = next;
        // Further rows of an INSERT.
        while word == "(...)" && tokens.get(at).is_some_and(|token| token.is(",")) {
            let Some(end) = values(&tokens, at + 1) else { break };
            at = end;
        }
    }
    cut |= at < tokens.len();
    Normal { text, with_numbers, cut }
}

/// Where a list of values behind IN or VALUES ends that begins here.
fn list_from(tokens: &[Token], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map(|before| &tokens[before])?;
    let takes_list = ["IN", "VALUES", "VALUE"].iter().any(|word| before.is(word));
    takes_list.then(|| values(tokens, at))?
}

/// Where a bracket that holds values only ends.
fn values(tokens: &[Token], at: usize) -> Option<usize> {
    tokens.get(at).filter(|token| token.is("("))?;
    let length = tokens[at + 1..].iter().position(|token| token.is(")"))?;
    let within = &tokens[at + 1..at + 1 + length];
    let plain = |token: &Token| {
        matches!(token, Token::Value(_)) || [",", "NULL", "-", "TRUE", "FALSE"].iter().any(|w| token.is(w))
    };
    (!within.is_empty() && within.iter().all(plain)).then_some(at + length + 2)
}

fn tokens(statement: &str, escapes: bool) -> Vec<Token> {
    let all: Vec<char> = statement.chars().collect();
    let mut found: Vec<Token> = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let c = all[at];
        let next = all.get(at + 1).copied().unwrap_or(' ');
        match c {
            c if c.is_whitespace() => at += 1,
            '\'' | '"' => {
                at = behind_quote(&all, at, escapes);
                // Two texts side by side are one.
                if found.last() != Some(&Token::Value(false)) {
                    found.push(Token::Value(false));
                }
            }
            '`' => {
                let end = all[at + 1..].iter().position(|c| *c == '`').map_or(all.len(), |n| at + 1 + n);
                found.push(Token::Word(format!("`{}`", all[at + 1..end].iter().collect::<String>())));
                at = end + 1;
            }
            '#' => at = behind_line(&all, at),
            '-' if next == '-' && all.get(at + 2).is_none_or(|c| c.is_whitespace()) => {
                at = behind_line(&all, at);
            }
            '/' if next == '*' => {
                let end = all[at..].windows(2).position(|two| two == ['*', '/']);
                let end = end.map_or(all.len(), |n| at + n + 2);
                // mysqldump marks its statements so.
                if all[at..end].iter().collect::<String>().contains("SQL_NO_CACHE") {
                    found.push(Token::Word("SQL_NO_CACHE".to_owned()));
                }
                at = end;
            }
            c if c.is_ascii_digit() || c == '.' && next.is_ascii_digit() => {
                let length = all[at..]
                    .iter()
                    .take_while(|c| c.is_ascii_alphanumeric() || **c == '.' || **c == '_')
                    .count();
                found.push(Token::Value(true));
                at += length;
            }
            // A sign of a number behind what compares, a bracket or a comma.
            '-' | '+' if next.is_ascii_digit() && found.last().is_some_and(takes_sign) => at += 1,
            c if is_of_name(c) => {
                let length = all[at..].iter().take_while(|c| is_of_name(**c)).count();
                let name: String = all[at..at + length].iter().collect();
                at += length;
                let quote = all.get(at).is_some_and(|c| *c == '\'' || *c == '"');
                // x'…', b'…', n'…' and _utf8mb4'…' are values.
                let of_value = name.len() == 1 && "xXbBnN".contains(&name) || name.starts_with('_');
                if quote && of_value {
                    continue;
                }
                let bracket = all[at..].iter().find(|c| !c.is_whitespace()) == Some(&'(');
                found.push(word(&name, bracket, found.last()));
            }
            _ => {
                let signs = ["<=>", "->>", "<=", ">=", "<>", "!=", ":=", "||", "&&", "->", "<<", ">>"];
                let rest: String = all[at..all.len().min(at + 3)].iter().collect();
                let sign = signs.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.map_or_else(|| c.to_string(), |sign| (*sign).to_owned());
                at += sign.chars().count();
                // What ends a statement says nothing.
                if sign != ";" {
                    found.push(Token::Word(sign));
                }
            }
        }
    }
    found
}

/// A keyword, or a name in backticks. Behind a point stands a name.
fn word(name: &str, bracket: bool, before: Option<&Token>) -> Token {
    let upper = name.to_ascii_uppercase();
    let is_keyword = KEYWORDS.contains(&upper.as_str()) && !before.is_some_and(|before| before.is("."));
    // DAY and COUNT are names where no bracket follows, unless they end an interval.
    let needs_bracket = BEFORE_BRACKET.contains(&upper.as_str());
    let ends_interval = before == Some(&Token::Value(true)) || before == Some(&Token::Value(false));
    if is_keyword && (!needs_bracket || bracket || ends_interval) {
        return Token::Word(upper);
    }
    Token::Word(format!("`{name}`"))
}

fn takes_sign(before: &Token) -> bool {
    ["=", "<", ">", "<=", ">=", "<>", "!=", "(", ","].iter().any(|sign| before.is(sign))
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || c == '@'
}

/// The place behind a quoted text; a doubled quote does not end it, nor one behind a backslash where that escapes.
fn behind_quote(all: &[char], from: usize, escapes: bool) -> usize {
    let quote = all[from];
    let mut at = from + 1;
    while at < all.len() {
        match all[at] {
            '\\' if escapes => at += 2,
            c if c == quote && all.get(at + 1) == Some(&quote) => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    all.len()
}

fn behind_line(all: &[char], from: usize) -> usize {
    all[from..].iter().position(|c| *c == '\n').map_or(all.len(), |n| from + n + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_out_and_names_stand_in_backticks() {
        for (statement, text) in [
            (
                "select * from shop.orders o where o.sku=10012345 and name = 'O\\'Brien' limit 5;",
                "SELECT * FROM `shop` . `orders` `o` WHERE `o` . `sku` = ? AND `name` = ?",
            ),
            (
                "SELECT a FROM t WHERE b = '{\\\"c\\\": 1}' AND d = 2",
                "SELECT `a` FROM `t` WHERE `b` = ? AND `d` = ?",
            ),
            ("SELECT count(*) FROM t WHERE a IN (1, 2,3) ", "SELECT COUNT ( * ) FROM `t` WHERE `a` IN (...)"),
            (
                "INSERT INTO t (a,b) VALUES (1,'x'),(2,\"y\"), (-3,NULL)",
                "INSERT INTO `t` ( `a` , `b` ) VALUES (...)",
            ),
            (
                "SELECT /*!40001 SQL_NO_CACHE */ * FROM `t` -- all\nWHERE d >= now() - interval 3 day # end",
                "SELECT SQL_NO_CACHE * FROM `t` WHERE `d` >= `now` ( ) - INTERVAL ? DAY",
            ),
            ("SELECT day, x'4D' FROM t WHERE b = _utf8mb4'a' 'b'", "SELECT `day` , ? FROM `t` WHERE `b` = ?"),
            (
                "SELECT a FROM t WHERE b <= -1.5e3 OR c = 0xFF",
                "SELECT `a` FROM `t` WHERE `b` <= ? OR `c` = ?",
            ),
            ("SELECT a FROM t WHERE b = 'never ends", "SELECT `a` FROM `t` WHERE `b` = ?"),
            ("SELECT a FROM t WHERE DATE(c) = '2026-11-01'", "SELECT `a` FROM `t` WHERE `DATE` ( `c` ) = ?"),
        ] {
            assert_eq!(normalised(statement).text, text, "{statement}");
        }
    }

    #[test]
    fn columns_that_are_compared_with_a_number_are_told() {
        let found = normalised("SELECT * FROM p WHERE p.SKU = 100 AND b = '1' AND c IN (1) AND d > e");
        assert_eq!(found.with_numbers.into_iter().collect::<Vec<String>>(), ["c", "sku"]);
    }

    #[test]
    fn nothing_of_a_value_is_left_whatever_the_text() {
        for statement in [
            "SELECT 'secret''s' , \"secret\" , N'secret' FROM t",
            "SELECT 1 /* secret */ FROM t -- secret",
            "UPDATE t SET a = 'x\\\\' , b = 'secret'",
            "SELECT a FROM t WHERE b = 'C:\\dir\\' AND c = 'secret'",
            "SELECT a FROM t WHERE b = 'C:\\' AND c = 'x' AND d = ' secret '",
            "SELECT a FROM t WHERE b = 'x\nsecret' AND c = 'secret",
        ] {
            assert!(!normalised(statement).text.contains("secret"), "{statement}");
        }
    }
}
