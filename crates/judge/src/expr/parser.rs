//! Parses tokens into a tree, by precedence.

use std::collections::BTreeMap;
use std::sync::Arc;

use mydyno_settings::nearest;

use super::ast::{Arithmetic, Call, Compare, Expr, FactRef, Over, Part, Quantifier};
use super::lexer::{Position, words};
use super::size;
use super::token::Token;
use super::unit;
use super::value::Version;

/// A mistake in an expression, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {text}", at.line, at.column)]
pub struct ParseError {
    /// Position.
    pub at: Position,
    /// The mistake and what is expected.
    pub text: String,
}

/// Names that stand for other expressions, written `$name`.
pub type Bindings = BTreeMap<String, Arc<Expr>>;

/// Maximum number of tokens. A chain of operators becomes a tree as deep as the chain is long, and trees are walked
/// recursively.
const MOST_WORDS: usize = 1000;

/// Maximum nesting depth of brackets and quantifiers.
const DEEPEST: usize = 40;

/// Parses an expression.
///
/// # Errors
/// The first invalid position, with what is expected there.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    parse_with(text, &Bindings::new(), &[])
}

/// Parses an expression that may use `bindings` and `locals`.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(text: &str, bindings: &Bindings, locals: &[&str]) -> Result<Expr, ParseError> {
    let words = words(text)?;
    if let Some((_, at)) = words.get(MOST_WORDS) {
        let text = format!("an expression has at most {MOST_WORDS} words: split it with [let]");
        return Err(ParseError { at: *at, text });
    }
    let locals = locals.iter().map(|l| (*l).to_owned()).collect();
    let mut parser = Parser { words, next: 0, bindings, locals, depth: 0 };
    let expr = parser.either()?;
    match parser.peek() {
        Token::End => match size::check(&expr) {
            Ok(_) => Ok(expr),
            Err(text) => Err(ParseError { at: Position { line: 1, column: 1 }, text }),
        },
        other => Err(parser.error(format!("{} is not expected here", other.shown()))),
    }
}

struct Parser<'a> {
    words: Vec<(Token, Position)>,
    next: usize,
    bindings: &'a Bindings,
    locals: Vec<String>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        // The last token is the end, and `take` never advances beyond it.
        &self.words[self.next].0
    }

    fn at(&self) -> Position {
        self.words[self.next].1
    }

    fn take(&mut self) -> Token {
        let token = self.words[self.next].0.clone();
        self.next = (self.next + 1).min(self.words.len() - 1);
        token
    }

    fn error(&self, text: impl Into<String>) -> ParseError {
        ParseError { at: self.at(), text: text.into() }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.take();
        }
        is
    }

    fn took(&mut self, symbol: &str) -> bool {
        let is = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        if is {
            self.take();
        }
        is
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ParseError> {
        if self.took(symbol) {
            return Ok(());
        }
        Err(self.error(format!("here {symbol:?} is expected, not {}", self.peek().shown())))
    }

    fn either(&mut self) -> Result<Expr, ParseError> {
        let mut left = self.both()?;
        while self.accept_word("or") {
            left = Expr::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Expr, ParseError> {
        let mut left = self.negation()?;
        while self.accept_word("and") {
            left = Expr::And(Box::new(left), Box::new(self.negation()?));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Expr, ParseError> {
        if self.is_word("not") {
            self.deeper()?;
            self.take();
            let inner = self.negation()?;
            self.depth -= 1;
            return Ok(Expr::Not(Box::new(inner)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, ParseError> {
        let left = self.sum()?;
        let compared = self.relation(left)?;
        if self.comparing().is_some() {
            return Err(self.error("comparisons cannot be chained: join two of them with \"and\""));
        }
        Ok(compared)
    }

    fn comparing(&self) -> Option<Compare> {
        let Token::Symbol(symbol) = self.peek() else { return None };
        Some(match *symbol {
            "==" => Compare::Equal,
            "!=" => Compare::Unequal,
            "<" => Compare::Less,
            "<=" => Compare::LessOrEqual,
            ">" => Compare::Greater,
            ">=" => Compare::GreaterOrEqual,
            _ => return None,
        })
    }

    fn relation(&mut self, left: Expr) -> Result<Expr, ParseError> {
        if let Some(compare) = self.comparing() {
            self.take();
            let at = self.next;
            let right = self.sum()?;
            let right = self.as_version_beside(&left, right, at);
            return Ok(Expr::Compare(compare, Box::new(left), Box::new(right)));
        }
        if self.accept_word("contains") {
            return Ok(Expr::Contains(Box::new(left), Box::new(self.sum()?)));
        }
        if self.accept_word("in") {
            return Ok(Expr::In(Box::new(left), Box::new(self.sum()?), false));
        }
        if self.is_word("not") && matches!(&self.words[self.next + 1].0, Token::Word(w) if w == "in") {
            self.take();
            self.take();
            return Ok(Expr::In(Box::new(left), Box::new(self.sum()?), true));
        }
        Ok(left)
    }

    /// `kernel >= 5.10`: beside a version a number is a version as well, so that 5.10 is above 5.9.
    fn as_version_beside(&self, left: &Expr, right: Expr, at: usize) -> Expr {
        if !is_version(left) {
            return right;
        }
        match (&self.words[at].0, &right) {
            (Token::Number { digits, unit }, Expr::Number { .. }) if unit.is_empty() => {
                Version::read(digits).map_or(right, Expr::Version)
            }
            _ => right,
        }
    }

    fn sum(&mut self) -> Result<Expr, ParseError> {
        let mut left = self.product()?;
        loop {
            let operation = match self.peek() {
                Token::Symbol("+") => Arithmetic::Add,
                Token::Symbol("-") => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            self.take();
            left = Expr::Arithmetic(operation, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expr, ParseError> {
        let mut left = self.sign()?;
        loop {
            let operation = match self.peek() {
                Token::Symbol("*") => Arithmetic::Multiply,
                Token::Symbol("/") => Arithmetic::Divide,
                _ => return Ok(left),
            };
            self.take();
            left = Expr::Arithmetic(operation, Box::new(left), Box::new(self.sign()?));
        }
    }

    fn sign(&mut self) -> Result<Expr, ParseError> {
        if matches!(self.peek(), Token::Symbol("-")) {
            self.deeper()?;
            self.take();
            let inner = self.sign()?;
            self.depth -= 1;
            return Ok(Expr::Negative(Box::new(inner)));
        }
        let mut value = self.value()?;
        while let Token::Field(name) = self.peek() {
            let name = name.clone();
            self.take();
            value = Expr::Field(Box::new(value), name);
        }
        Ok(value)
    }

    fn deeper(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error(format!("nested more than {DEEPEST} deep: split it with [let]")));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Expr, ParseError> {
        self.deeper()?;
        let value = self.value_here();
        self.depth -= 1;
        value
    }

    fn value_here(&mut self) -> Result<Expr, ParseError> {
        let at = self.at();
        let wrong = |text: String| ParseError { at, text };
        match self.take() {
            Token::Number { digits, unit } => {
                debug_assert!(unit::of_literal(&unit).is_some());
                let value = digits.parse().map_err(|_| wrong(format!("{digits:?} is not a number")))?;
                Ok(Expr::Number { value, unit })
            }
            Token::Version(text) => Version::read(&text)
                .map(Expr::Version)
                .ok_or_else(|| wrong(format!("{text:?} is not a version"))),
            Token::Text(text) => Ok(Expr::Text(text)),
            Token::Fact(parts) => self.fact(parts).map(Expr::Fact).map_err(|e| wrong(e.text)),
            Token::Local(name) => self.named(&name).ok_or_else(|| wrong(self.unknown_name(&name))),
            Token::Symbol("(") => {
                let inner = self.either()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("[") => self.items("]").map(Expr::List),
            Token::Word(word) => self.word(&word, at),
            other => Err(wrong(format!("here a value is expected, not {}", other.shown()))),
        }
    }

    fn named(&self, name: &str) -> Option<Expr> {
        if self.locals.iter().any(|l| l == name) {
            return Some(Expr::Local(name.to_owned()));
        }
        self.bindings.get(name).map(|expr| Expr::Named(name.to_owned(), Arc::clone(expr)))
    }

    fn unknown_name(&self, name: &str) -> String {
        let known: Vec<&str> = self.locals.iter().chain(self.bindings.keys()).map(String::as_str).collect();
        match nearest(name, known) {
            Some(near) => format!("nothing is called ${name}; did you mean ${near}?"),
            None => format!(
                "nothing is called ${name}: name it in [let], or go over something as in any(x in …: …)"
            ),
        }
    }

    fn fact(&self, parts: Vec<Part>) -> Result<FactRef, ParseError> {
        for part in &parts {
            match part {
                Part::Star => {
                    return Err(
                        self.error("a * stands only in what is gone over, as in any(d in block.*: …)")
                    );
                }
                Part::Local(name) if !self.locals.contains(name) => {
                    return Err(self.error(self.unknown_name(name)));
                }
                _ => {}
            }
        }
        Ok(FactRef(parts))
    }

    fn items(&mut self, close: &'static str) -> Result<Vec<Expr>, ParseError> {
        let mut items = Vec::new();
        while !self.took(close) {
            if !items.is_empty() {
                self.expect(",")?;
                if self.took(close) {
                    break;
                }
            }
            items.push(self.either()?);
        }
        Ok(items)
    }

    fn word(&mut self, word: &str, at: Position) -> Result<Expr, ParseError> {
        let called = matches!(self.peek(), Token::Symbol("("));
        let family = |name: &str| {
            Expr::Compare(
                Compare::Equal,
                Box::new(fact(&["server", "family"])),
                Box::new(Expr::Text(name.to_owned())),
            )
        };
        match word {
            "true" => return Ok(Expr::Bool(true)),
            "false" => return Ok(Expr::Bool(false)),
            "mysql" | "mariadb" => return Ok(family(word)),
            "kernel" => return Ok(Expr::Call(Call::Version, vec![fact(&["host", "kernel", "release"])])),
            "version" if !called => {
                return Ok(Expr::Call(Call::Version, vec![fact(&["server", "version_number"])]));
            }
            _ => {}
        }
        let each = [Quantifier::Any, Quantifier::All, Quantifier::Count, Quantifier::Sum, Quantifier::Which];
        if let Some(quantifier) = each.into_iter().find(|q| q.name() == word)
            && called
        {
            return self.each(quantifier);
        }
        let Some((_, call, takes)) = Call::ALL.iter().find(|(name, ..)| *name == word) else {
            return Err(ParseError { at, text: unknown_word(word) });
        };
        self.expect("(")?;
        let arguments = self.items(")")?;
        if !takes.contains(&arguments.len()) {
            let text = format!("{word}() takes {} value(s), not {}", takes.start(), arguments.len());
            return Err(ParseError { at, text });
        }
        if *call == Call::Exists && !matches!(arguments[0], Expr::Fact(_)) {
            return Err(ParseError { at, text: "exists() takes the name of a fact".to_owned() });
        }
        Ok(Expr::Call(*call, arguments))
    }

    fn each(&mut self, quantifier: Quantifier) -> Result<Expr, ParseError> {
        self.expect("(")?;
        let name = match self.take() {
            Token::Word(name) => name,
            other => {
                let text = format!(
                    "here a name is expected, as in {}(d in block.*: …), not {}",
                    quantifier.name(),
                    other.shown()
                );
                return Err(self.error(text));
            }
        };
        if !self.accept_word("in") {
            return Err(self.error("here \"in\" is expected"));
        }
        let over = self.over()?;
        self.expect(":")?;
        self.locals.push(name.clone());
        let body = self.either()?;
        self.locals.pop();
        self.expect(")")?;
        Ok(Expr::Each(quantifier, name, over, Box::new(body)))
    }

    /// Parses the collection of a quantifier: a fact name with a star, or a list.
    fn over(&mut self) -> Result<Over, ParseError> {
        if let Token::Fact(parts) = self.peek()
            && parts.contains(&Part::Star)
        {
            let parts = parts.clone();
            let stars = parts.iter().filter(|p| **p == Part::Star).count();
            if stars > 1 {
                return Err(self.error("only one * can be gone over; nest another any(), all() or count()"));
            }
            self.take();
            return Ok(Over::Names(FactRef(parts)));
        }
        Ok(Over::Items(Box::new(self.sum()?)))
    }
}

/// Reads `NAME in COLLECTION` or `NAME in COLLECTION where CONDITION`.
///
/// # Errors
/// As [`parse`].
pub fn parse_for(text: &str, bindings: &Bindings) -> Result<(String, Over, Option<Expr>), ParseError> {
    let mut parser = Parser { words: words(text)?, next: 0, bindings, locals: vec![], depth: 0 };
    let Token::Word(name) = parser.take() else {
        return Err(parser.error("here \"NAME in COLLECTION\" is expected"));
    };
    if !parser.accept_word("in") {
        return Err(parser.error("here \"in\" is expected"));
    }
    let over = parser.over()?;
    parser.locals.push(name.clone());
    let condition = if parser.accept_word("where") { Some(parser.either()?) } else { None };
    match parser.peek() {
        Token::End => Ok((name, over, condition)),
        other => Err(parser.error(format!("{} is not expected here", other.shown()))),
    }
}

fn fact(parts: &[&str]) -> Expr {
    Expr::Fact(FactRef(parts.iter().map(|p| Part::Name((*p).to_owned())).collect()))
}

fn is_version(expr: &Expr) -> bool {
    match expr {
        Expr::Call(Call::Version, _) | Expr::Version(_) => true,
        Expr::Named(_, inner) => is_version(inner),
        _ => false,
    }
}

fn unknown_word(word: &str) -> String {
    let mut known: Vec<&str> = Call::ALL.iter().map(|(name, ..)| *name).collect();
    known.extend([
        "any", "all", "count", "sum", "which", "true", "false", "mysql", "mariadb", "kernel", "version",
        "and", "or", "not", "in", "contains",
    ]);
    match nearest(word, known) {
        Some(near) => format!("{word:?} means nothing; did you mean {near:?}?"),
        None => format!("{word:?} means nothing: facts have dots in their names, texts stand in quotes"),
    }
}
