//! Tokenises a text and records each token's position.

use super::ast::Part;
use super::parser::ParseError;
use super::token::Token;
use super::unit;

/// A position in an expression; both numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// Maximum length of an expression, in bytes: far above any that a person can read.
const LONGEST: usize = 10_000;

const SYMBOLS: [&str; 19] =
    ["==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "(", ")", "[", "]", ",", ":", "!"];

/// All tokens of a text; the last one is the end.
///
/// # Errors
/// An invalid character or unit, or an unterminated text.
pub fn words(text: &str) -> Result<Vec<(Token, Position)>, ParseError> {
    let mut lexer = Lexer { rest: text, at: Position { line: 1, column: 1 }, behind_value: false };
    if text.len() > LONGEST {
        return Err(lexer.error(format!("is longer than {LONGEST} bytes: split it with [let]")));
    }
    let mut words = Vec::new();
    loop {
        let (token, at) = lexer.next()?;
        let end = token == Token::End;
        words.push((token, at));
        if end {
            return Ok(words);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    at: Position,
    /// Whether the previous token is `$name`, a field or a closing bracket, without anything in between.
    behind_value: bool,
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Lexer<'a> {
    fn error(&self, text: impl Into<String>) -> ParseError {
        ParseError { at: self.at, text: text.into() }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        for c in taken.chars() {
            if c == '\n' {
                self.at = Position { line: self.at.line + 1, column: 1 };
            } else {
                self.at.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, inside: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !inside(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn skip_blank(&mut self) {
        loop {
            let before = self.rest.len();
            self.take_while(char::is_whitespace);
            if self.peek() == Some('#') {
                self.take_while(|c| c != '\n');
            }
            if self.rest.len() == before {
                return;
            }
            self.behind_value = false;
        }
    }

    fn next(&mut self) -> Result<(Token, Position), ParseError> {
        self.skip_blank();
        let at = self.at;
        let Some(c) = self.peek() else { return Ok((Token::End, at)) };
        let field = self.behind_value && c == '.';
        let token = if field {
            self.take(1);
            Token::Field(self.name_after("a field's name")?)
        } else if c.is_ascii_digit() {
            self.number()?
        } else if c == '"' || c == '\'' {
            self.text(c)?
        } else if c == '$' {
            self.take(1);
            Token::Local(self.name_after("a name")?)
        } else if self.rest.starts_with("@@") {
            self.take(2);
            self.variable()?
        } else if starts_name(c) {
            self.name()?
        } else {
            self.symbol(c)?
        };
        self.behind_value = matches!(token, Token::Local(_) | Token::Field(_) | Token::Symbol(")"));
        Ok((token, at))
    }

    fn name_after(&mut self, what: &str) -> Result<String, ParseError> {
        if !self.peek().is_some_and(starts_name) {
            return Err(self.error(format!("here {what} is expected")));
        }
        Ok(self.take_while(in_name).to_owned())
    }

    fn symbol(&mut self, c: char) -> Result<Token, ParseError> {
        let found = SYMBOLS.iter().find(|s| self.rest.starts_with(**s));
        match found.copied() {
            Some("&&") => Err(self.error("write \"and\" for \"&&\"")),
            Some("||") => Err(self.error("write \"or\" for \"||\"")),
            Some("!") => Err(self.error("write \"not\" for \"!\"")),
            Some(symbol) => {
                self.take(symbol.len());
                Ok(Token::Symbol(symbol))
            }
            None if c == '=' => Err(self.error("write \"==\" to compare")),
            None => Err(self.error(format!("{c:?} means nothing here"))),
        }
    }

    fn text(&mut self, quote: char) -> Result<Token, ParseError> {
        let begun = self.at;
        self.take(1);
        match self.rest.find(quote) {
            Some(end) => {
                let text = self.take(end).to_owned();
                self.take(1);
                Ok(Token::Text(text))
            }
            None => {
                Err(ParseError { at: begun, text: format!("this text does not end: a {quote} is missing") })
            }
        }
    }

    fn number(&mut self) -> Result<Token, ParseError> {
        let begun = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '.' || c == '_').to_owned();
        match digits.matches('.').count() {
            0 | 1 if !digits.ends_with('.') => {}
            2 if !digits.ends_with('.') && !digits.contains("..") => return Ok(Token::Version(digits)),
            _ => {
                return Err(ParseError {
                    at: begun,
                    text: format!("{digits:?} is neither a number nor a version"),
                });
            }
        }
        // One blank is allowed before a unit.
        let before = (self.rest, self.at);
        if self.peek() == Some(' ') {
            self.take(1);
        }
        let unit_at = self.at;
        let mut unit = self.take_while(|c| c.is_ascii_alphabetic() || c == '%').to_owned();
        let per = self.rest.strip_prefix('/').map(|rest| {
            let end = rest.find(|c: char| !in_name(c) && c != '.').unwrap_or(rest.len());
            &rest[..end]
        });
        if let Some(per @ ("s" | "min" | "h" | "d")) = per {
            self.take(1 + per.len());
            unit = format!("{unit}/{per}");
        }
        if unit.is_empty() || ["and", "or", "in", "not", "contains", "where"].contains(&unit.as_str()) {
            (self.rest, self.at) = before;
            unit.clear();
        } else if unit::of_literal(&unit).is_none() {
            let known = "B KiB MiB GiB TiB (or K M G T), us ms s min h d, %, and /s /min /h /d behind them";
            return Err(ParseError {
                at: unit_at,
                text: format!("{unit:?} is not a unit; there are {known}"),
            });
        }
        Ok(Token::Number { digits: digits.replace('_', ""), unit })
    }

    /// `@@name` is a variable of the server.
    fn variable(&mut self) -> Result<Token, ParseError> {
        let mut parts = vec![Part::Name("server".to_owned()), Part::Name("variable".to_owned())];
        if self.rest.starts_with("global.") {
            self.take("global.".len());
        }
        parts.push(Part::Name(self.name_after("a variable's name")?.to_ascii_lowercase()));
        self.dotted(&mut parts)?;
        Ok(Token::Fact(parts))
    }

    fn name(&mut self) -> Result<Token, ParseError> {
        let first = self.take_while(in_name).to_owned();
        if !self.rest.starts_with('.') {
            return Ok(Token::Word(first));
        }
        let mut parts = vec![Part::Name(first)];
        self.dotted(&mut parts)?;
        Ok(Token::Fact(parts))
    }

    /// The parts after the dots. A part may contain hyphens, as in `dm-0` and `fs.aio-max-nr`.
    fn dotted(&mut self, parts: &mut Vec<Part>) -> Result<(), ParseError> {
        while self.rest.starts_with('.') {
            self.take(1);
            match self.peek() {
                Some('*') => {
                    self.take(1);
                    parts.push(Part::Star);
                }
                Some('$') => {
                    self.take(1);
                    parts.push(Part::Local(self.name_after("a name")?));
                }
                Some(c) if in_name(c) => {
                    let mut part = self.take_while(in_name).to_owned();
                    while self.rest.starts_with('-') && self.rest[1..].starts_with(in_name) {
                        part.push_str(self.take(1));
                        part.push_str(self.take_while(in_name));
                    }
                    parts.push(Part::Name(part));
                }
                _ => return Err(self.error("here the next part of a fact's name is expected")),
            }
        }
        Ok(())
    }
}
