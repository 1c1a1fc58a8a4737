//! Positions in a file (line and column), and the problems found there.

use thiserror::Error;

/// A mistake in a mix, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct MixError {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The mistake, and the expected form.
    pub problem: String,
}

/// Bytes between two counts of characters.
const STRIDE: usize = 256;

/// Lines and columns of a text. A look-up takes constant time, so that a file with any number of positions is processed
/// in linear time.
#[derive(Debug)]
pub struct Places<'a> {
    text: &'a str,
    /// Byte at which each line begins.
    lines: Vec<usize>,
    /// Number of characters that begin before every [`STRIDE`]th byte.
    characters: Vec<usize>,
}

impl<'a> Places<'a> {
    /// Counts the lines and characters of a text.
    pub fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        let mut count = 0;
        let mut characters = vec![0];
        for chunk in text.as_bytes().chunks(STRIDE) {
            count += starts(chunk);
            characters.push(count);
        }
        Self { text, lines, characters }
    }

    /// Line and column, from 1, of a byte. A byte within a character counts as the character's first.
    pub fn line_and_column(&self, at: usize) -> (usize, usize) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self.lines[line - 1];
        (line, self.characters_before(at) - self.characters_before(start) + 1)
    }

    fn characters_before(&self, at: usize) -> usize {
        let from = at / STRIDE * STRIDE;
        self.characters[at / STRIDE] + starts(&self.text.as_bytes()[from..at])
    }
}

/// Number of characters that begin in a piece of UTF-8.
fn starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// Line and column, from 1, of a byte of a text.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    Places::new(text).line_and_column(at)
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert_eq, proptest};

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

    proptest! {
        #[test]
        fn places_are_those_that_counting_gives(text in "(a|ä|\\n|[a-c]{300}){0,20}", at in 0usize..3000) {
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let before = &text[..at];
            let line = before.rsplit('\n').next().unwrap_or("");
            let counted = (before.matches('\n').count() + 1, line.chars().count() + 1);
            prop_assert_eq!(line_and_column(&text, at), counted);
        }
    }
}
