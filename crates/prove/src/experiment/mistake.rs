//! Mistakes in the file of an experiment, each with its place.

use std::fmt;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file, as it was named.
    pub file: String,
    /// Line and column, both from 1, where they are known.
    pub place: Option<(usize, usize)>,
    /// Description of the mistake, and the way out.
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

/// Where a value is written in a text: the first place that has it in quotes, else the first that has it as a word.
pub(super) fn place_of(text: &str, value: &str) -> Option<(usize, usize)> {
    if value.is_empty() {
        return None;
    }
    let quoted = [format!("\"{value}\""), format!("'{value}'")];
    let at = quoted.iter().find_map(|value| text.find(value.as_str()));
    at.or_else(|| text.find(value)).map(|byte| place(text, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "a = 1\nwhy = \"ä\"\nb = \"x=1\"";
        assert_eq!(place(text, 0), (1, 1));
        assert_eq!(place_of(text, "x=1"), Some((3, 5)));
        assert_eq!(place_of(text, "ä"), Some((2, 7)));
        assert_eq!(place_of(text, "nothing"), None);
    }
}
