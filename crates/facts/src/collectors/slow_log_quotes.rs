//! Whether the text of a statement, line by line, is within a quoted text, a quoted name or a comment.

/// Quote or comment that is open at the end of the lines that were taken.
pub(super) struct Quotes {
    /// Whether a backslash escapes the sign behind it, as it does without NO_BACKSLASH_ESCAPES.
    escapes: bool,
    /// The sign that closes it; `*` for a comment.
    open: Option<char>,
}

impl Quotes {
    pub(super) const fn new(escapes: bool) -> Self {
        Self { escapes, open: None }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes the next line of the statement.
    pub(super) fn take(&mut self, line: &str) {
        let mut rest = line.chars().peekable();
        while let Some(c) = rest.next() {
            match self.open {
                Some('*') if c == '*' && rest.next_if_eq(&'/').is_some() => self.open = None,
                Some('\'' | '"') if c == '\\' && self.escapes => drop(rest.next()),
                // A doubled quote closes and opens at once.
                Some(quote) if quote == c && c != '*' => self.open = None,
                Some(_) => {}
                None => match c {
                    '\'' | '"' | '`' => self.open = Some(c),
                    '/' if rest.next_if_eq(&'*').is_some() => self.open = Some('*'),
                    '#' => return,
                    '-' if rest.peek() == Some(&'-') => {
                        rest.next();
                        if rest.peek().is_none_or(|c| c.is_whitespace()) {
                            return;
                        }
                    }
                    _ => {}
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_known_over_lines() {
        for (lines, escapes, open) in [
            (&["SELECT 'a"][..], true, true),
            (&["SELECT 'a", "# b''", "c\\'d' /* it's */ -- it's"], true, false),
            (&["SELECT 'C:\\'"], true, true),
            (&["SELECT 'C:\\'"], false, false),
            (&["SELECT \"it's\" # it's", "`a'b`"], true, false),
            (&["SELECT 1--1 /* a", "' */"], true, false),
        ] {
            let mut quotes = Quotes::new(escapes);
            lines.iter().for_each(|line| quotes.take(line));
            assert_eq!(quotes.is_open(), open, "{lines:?}");
        }
    }
}
