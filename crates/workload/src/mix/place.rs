//! Where something stands in a file, and what is wrong with it.

use thiserror::Error;

/// What is wrong with a mix, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct MixError {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong, and what is expected.
    pub problem: String,
}

/// Line and column, from 1, of a byte of a text.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_line_ends() {
        let text = "a = 1\nä = \"ö\"\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, 6), (2, 1));
        assert_eq!(line_and_column(text, text.find('"').unwrap()), (2, 5));
        assert_eq!(line_and_column(text, 7), (2, 1), "inside of a character");
        assert_eq!(line_and_column(text, 999), (3, 1));
    }
}
