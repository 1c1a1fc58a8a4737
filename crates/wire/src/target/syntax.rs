//! The syntax of option files, as `my_getopt` reads it.

use std::path::PathBuf;

use zeroize::Zeroizing;

/// An option as a file holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its group, without brackets.
    pub group: String,
    /// Its name with dashes, without `loose-`.
    pub name: String,
    /// Its value, quotes and escapes resolved; `None` where there is no `=`.
    pub value: Option<Zeroizing<String>>,
    /// Whether it may be unknown without that being an error (`loose-`).
    pub loose: bool,
    /// Its file.
    pub path: PathBuf,
    /// Its line, from 1.
    pub line: usize,
}

impl std::fmt::Debug for Entry {
    /// Without the value, which may be a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{} [{}] {}", self.path.display(), self.line, self.group, self.name)
    }
}

impl Entry {
    /// Where it stands, for error texts.
    pub(super) fn origin(&self) -> String {
        format!("{}, line {}", self.path.display(), self.line)
    }
}

/// One line that means something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// An option.
    Option(Entry),
    /// `!include FILE`.
    Include(PathBuf),
    /// `!includedir FOLDER`.
    IncludeFolder(PathBuf),
}

/// Reads the text of an option file. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// The number of a line and what is wrong with it.
pub fn parse(bytes: &[u8], path: &std::path::Path) -> Result<Vec<Line>, (usize, String)> {
    let text = Zeroizing::new(String::from_utf8_lossy(bytes).into_owned());
    let mut lines = Vec::new();
    let mut group: Option<String> = None;
    for (i, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let number = i + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('!') {
            lines.push(
                directive(rest).ok_or((number, "expected !include FILE or !includedir FOLDER".to_owned()))?,
            );
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let (name, _) =
                rest.split_once(']').ok_or((number, "a group's name has no closing ]".to_owned()))?;
            group = Some(name.trim_end().to_owned());
            continue;
        }
        let group = group.clone().ok_or((number, "an option stands before any [group]".to_owned()))?;
        let line = without_comment(line);
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, Some(unquoted(value.trim()))),
            None => (line, None),
        };
        let name = name.trim().trim_start_matches("--").replace('_', "-");
        let (name, loose) = match name.strip_prefix("loose-") {
            Some(rest) => (rest.to_owned(), true),
            None => (name, false),
        };
        lines.push(Line::Option(Entry { group, name, value, loose, path: path.to_owned(), line: number }));
    }
    Ok(lines)
}

fn directive(rest: &str) -> Option<Line> {
    let (word, argument) = rest.split_once(char::is_whitespace)?;
    let argument = argument.trim();
    match word {
        _ if argument.is_empty() => None,
        "include" => Some(Line::Include(argument.into())),
        "includedir" => Some(Line::IncludeFolder(argument.into())),
        _ => None,
    }
}

/// A `#` outside quotes starts a comment, also behind a value.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        if matches!(c, '\'' | '"') && !escaped {
            match quote {
                None => quote = Some(c),
                Some(open) if open == c => quote = None,
                Some(_) => {}
            }
        }
        if quote.is_none() && c == '#' {
            return line[..at].trim_end();
        }
        escaped = quote.is_some() && c == '\\' && !escaped;
    }
    line
}

/// A value without the quotes around it, escapes resolved.
fn unquoted(value: &str) -> Zeroizing<String> {
    let inner = match value.chars().next() {
        Some(quote @ ('\'' | '"')) if value.len() >= 2 && value.ends_with(quote) => {
            &value[1..value.len() - 1]
        }
        _ => value,
    };
    let mut out = Zeroizing::new(String::with_capacity(inner.len()));
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('s') => out.push(' '),
            Some(same @ ('"' | '\'' | '\\')) => out.push(same),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(String, String, Option<String>)> {
        parse(text.as_bytes(), "f".as_ref())
            .unwrap()
            .into_iter()
            .map(|line| match line {
                Line::Option(e) => (e.group, e.name, e.value.map(|v| v.to_string())),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn value(line: &str) -> String {
        values(&format!("[client]\n{line}\n"))[0].2.clone().unwrap()
    }

    // Answers of `my_print_defaults` of MariaDB 10.11 and MySQL 9.7.
    #[test]
    fn values_are_read_as_the_clients_read_them() {
        assert_eq!(value("password=abc # comment"), "abc");
        assert_eq!(value("password = 'a#b' # comment"), "a#b");
        assert_eq!(value("password=\"a'b\""), "a'b");
        assert_eq!(value(r"password=a\sb\\c\"), r"a b\c\");
        assert_eq!(value(r"password=\d"), r"\d");
        assert_eq!(value("password='unclosed"), "'unclosed");
        assert_eq!(value("password="), "");
        assert_eq!(value("password=a=b"), "a=b");
        assert_eq!(value("password = 'q' 'r'"), "q' 'r");
        assert_eq!(value(r#"password="tab\tnl""#), "tab\tnl");
        assert_eq!(value(r#"password="esc\"q""#), "esc\"q");
        assert_eq!(value("password=it's # x"), "it's # x");
    }

    #[test]
    fn names_have_dashes_and_comments_count_for_nothing() {
        let text = "# c\n; c\n\n [client ] trailing\n  loose_ssl_mode = x\nskip-auto-rehash\n";
        let expected = [
            ("client".to_owned(), "ssl-mode".to_owned(), Some("x".to_owned())),
            ("client".to_owned(), "skip-auto-rehash".to_owned(), None),
        ];
        assert_eq!(values(text), expected);
    }

    #[test]
    fn mistakes_name_their_line() {
        assert_eq!(parse(b"\nuser=x\n", "f".as_ref()).unwrap_err().0, 2);
        assert_eq!(parse(b"[client\n", "f".as_ref()).unwrap_err().0, 1);
        assert_eq!(parse(b"!incl x\n", "f".as_ref()).unwrap_err().0, 1);
    }

    #[test]
    fn an_entry_prints_without_its_value() {
        let lines = parse(b"[client]\npassword=hunter2\n", "f".as_ref()).unwrap();
        assert!(!format!("{lines:?}").contains("hunter2"));
    }
}
