//! The text of a routine or a trigger, as words.

use crate::sql::Row;

/// A routine or a trigger.
pub(super) struct Code {
    pub schema: String,
    pub name: String,
    pub words: Vec<String>,
    /// The account whose privileges it runs with, where these are its definer's.
    pub runs_as: Option<String>,
    /// The account that made it, or that is named as such.
    pub definer: String,
    /// Whether the sql_mode that it was made with, and runs with, is not strict.
    pub lax: bool,
    /// The statements that a trigger fires on, and its table.
    pub fires: Option<String>,
}

impl Code {
    pub(super) fn of(row: &Row) -> Option<Self> {
        let mut cells = row.iter().cloned();
        let (schema, name, text) = (cells.next()??, cells.next()??, cells.next()??);
        let security = cells.next().flatten().unwrap_or_default();
        let definer = cells.next().flatten().unwrap_or_default();
        let runs_as = security.eq_ignore_ascii_case("DEFINER").then(|| definer.clone());
        let lax = cells.next().flatten().is_some_and(|mode| !mode.contains("STRICT_"));
        let fires = cells.next().flatten();
        Some(Self { schema, name, words: words(&text), runs_as, definer, lax, fires })
    }

    /// Whether it runs with the privileges of root or of another administrator.
    pub(super) fn runs_as_one_of(&self, administrators: &[String]) -> bool {
        self.runs_as
            .as_ref()
            .is_some_and(|account| account.starts_with("root@") || administrators.contains(account))
    }

    /// Whether it prepares a statement from something else than a fixed text. MariaDB takes any expression there.
    pub(super) fn prepares(&self) -> bool {
        let is = |word: &String, name: &str| word.eq_ignore_ascii_case(name);
        let made = |word: &String| !word.starts_with('\'');
        let prepared = |some: &[String]| is(&some[0], "PREPARE") && is(&some[2], "FROM") && made(&some[3]);
        let at_once =
            |some: &[String]| is(&some[0], "EXECUTE") && is(&some[1], "IMMEDIATE") && made(&some[2]);
        self.words.windows(4).any(prepared) || self.words.windows(3).any(at_once)
    }
}

/// The words of a routine: names without backticks but marked as names, strings as `'`, signs by themselves; no comments.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                while let Some(inside) = rest.next() {
                    if inside == '\\' {
                        rest.next();
                    } else if inside == c {
                        break;
                    }
                }
                words.push("'".to_owned());
            }
            '`' => words.push(rest.by_ref().take_while(|c| *c != '`').collect()),
            '#' => while rest.next_if(|c| *c != '\n').is_some() {},
            '-' if rest.peek() == Some(&'-') => while rest.next_if(|c| *c != '\n').is_some() {},
            '/' if rest.peek() == Some(&'*') => {
                let mut last = ' ';
                rest.next();
                for inside in rest.by_ref() {
                    if last == '*' && inside == '/' {
                        break;
                    }
                    last = inside;
                }
            }
            c if c.is_alphanumeric() || c == '_' || c == '$' || c == '@' => {
                let mut word = String::from(c);
                while let Some(more) = rest.next_if(|c| c.is_alphanumeric() || *c == '_' || *c == '$') {
                    word.push(more);
                }
                words.push(word);
            }
            c if c.is_whitespace() => {}
            sign => words.push(sign.to_string()),
        }
    }
    words
}
