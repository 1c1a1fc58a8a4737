//! Mistakes in the file of an experiment, each with its position.

use std::fmt;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file, as it was named.
    pub file: String,
    /// Line and column, both from 1, where they are known.
    pub place: Option<(usize, usize)>,
    /// Description of the mistake, and the remedy.
    pub text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}

/// Line and column of a byte of a text, both from 1.
pub(super) fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// The position of a key's value in a text: behind the key's own line where there is one, else the first occurrence of
/// the value; a quoted value before an unquoted one. A key may be qualified by its table, as in `execution.why`.
pub(super) fn place_of(text: &str, key: &str, value: &str) -> Option<(usize, usize)> {
    if value.is_empty() {
        return None;
    }
    let quoted = [format!("\"{value}\""), format!("'{value}'")];
    let find = |from: usize| {
        let text = &text[from..];
        let at = quoted.iter().find_map(|value| text.find(value.as_str())).or_else(|| text.find(value));
        at.map(|at| from + at)
    };
    let behind = key.split('.').try_fold(0, |from, segment| line_of(text, from, segment));
    behind.and_then(find).or_else(|| find(0)).map(|byte| place(text, byte))
}

/// The first line from `from` on that sets a key or opens the table of that name.
fn line_of(text: &str, from: usize, key: &str) -> Option<usize> {
    let mut at = 0;
    text.split_inclusive('\n').find_map(|line| {
        let start = at;
        at += line.len();
        let rest = line.trim_start().trim_start_matches('[').strip_prefix(key)?;
        let ends = rest.trim_start().starts_with(['=', ']', '.']);
        (ends && at > from).then_some(start.max(from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "a = 1\nwhy = \"ä\"\nb = \"x=1\"";
        assert_eq!(place(text, 0), (1, 1));
        assert_eq!(place_of(text, "b", "x=1"), Some((3, 5)));
        assert_eq!(place_of(text, "why", "ä"), Some((2, 7)));
        assert_eq!(place_of(text, "why", "nothing"), None);
    }

    #[test]
    fn a_value_is_found_behind_its_key() {
        let text = "name = \"5%\"\n[load]\ntime = \"1s\"\n[[response]]\ndelta = \"5%\"\n";
        assert_eq!(place_of(text, "response.delta", "5%"), Some((5, 9)));
        assert_eq!(place_of(text, "delta", "5%"), Some((5, 9)));
        assert_eq!(place_of(text, "load", "1s"), Some((3, 8)));
        // Without such a key: the first occurrence of the value.
        assert_eq!(place_of(text, "quick.slice", "5%"), Some((1, 8)));
    }
}
