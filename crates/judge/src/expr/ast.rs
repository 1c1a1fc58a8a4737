//! Expressions as trees.

use std::sync::Arc;

use super::value::Version;

/// A part of a fact's name between dots.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A literal name.
    Name(String),
    /// The value of a name that `any`, `all`, `count`, `sum` or `for` has bound.
    Local(String),
    /// Any name; allowed only in the collection of a quantifier.
    Star,
}

/// The name of a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct FactRef(pub Vec<Part>);

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Compare {
    /// Its notation.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// The comparison that is true exactly where this one is false.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::Unequal,
            Self::Unequal => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }
}

/// `+ - * /`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl Arithmetic {
    /// Its notation.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }
}

/// A function over several items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// Whether the condition is true for at least one item.
    Any,
    /// Whether the condition is true for each item.
    All,
    /// Number of items for which the condition is true.
    Count,
    /// Sum of a number over the items.
    Sum,
    /// The items for which the condition is true.
    Which,
}

impl Quantifier {
    /// Its notation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::All => "all",
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Which => "which",
        }
    }
}

/// The items of a quantifier.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// The names that match the star.
    Names(FactRef),
    /// The items of a list.
    Items(Box<Expr>),
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Whether the system has a fact.
    Exists,
    /// A fact's value, or the second argument if the system does not have the fact.
    Default,
    /// Whether a setting is on (`ON`, `1`, `YES`, `TRUE`).
    On,
    /// A limit as a number: `unlimited`, `max` and `infinity` are above all numbers.
    Limit,
    /// A version parsed from text or from the server's version number.
    Version,
    /// A number parsed from text.
    Number,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Number of items of a list, or of characters of a text.
    Length,
    /// Whether the first text starts with the second.
    StartsWith,
    /// Whether the first text ends with the second.
    EndsWith,
    /// Interprets a number without a unit as bytes.
    Bytes,
    /// Interprets a number without a unit as seconds.
    Seconds,
    /// The second argument if the first is true, else the third.
    If,
    /// A number rounded up to a multiple of another.
    RoundUp,
    /// A number rounded down to a multiple of another.
    RoundDown,
    /// The second argument if the first is true, else unknown, because too little was observed.
    Enough,
}

impl Call {
    /// All functions, with their names and numbers of arguments.
    pub const ALL: [(&'static str, Self, std::ops::RangeInclusive<usize>); 17] = [
        ("exists", Self::Exists, 1..=1),
        ("default", Self::Default, 2..=2),
        ("on", Self::On, 1..=1),
        ("limit", Self::Limit, 1..=1),
        ("version", Self::Version, 1..=1),
        ("number", Self::Number, 1..=1),
        ("min", Self::Min, 1..=16),
        ("max", Self::Max, 1..=16),
        ("length", Self::Length, 1..=1),
        ("starts_with", Self::StartsWith, 2..=2),
        ("ends_with", Self::EndsWith, 2..=2),
        ("bytes", Self::Bytes, 1..=1),
        ("seconds", Self::Seconds, 1..=1),
        ("if", Self::If, 3..=3),
        ("round_up", Self::RoundUp, 2..=2),
        ("round_down", Self::RoundDown, 2..=2),
        ("enough", Self::Enough, 2..=2),
    ];

    /// Its notation.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, call, _)| *call == self).map_or("", |(name, ..)| name)
    }
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// `true`, `false`
    Bool(bool),
    /// A number with its unit, as written.
    Number {
        /// The number before its unit.
        value: f64,
        /// The unit; empty without one.
        unit: String,
    },
    /// A text.
    Text(String),
    /// A version.
    Version(Version),
    /// `[…]`
    List(Vec<Expr>),
    /// A fact.
    Fact(FactRef),
    /// `$name` of a bound item.
    Local(String),
    /// `$name` of another expression, defined in `[let]`.
    Named(String, Arc<Expr>),
    /// `$name.field`
    Field(Box<Expr>, String),
    /// `not …`
    Not(Box<Expr>),
    /// `-…`
    Negative(Box<Expr>),
    /// `… and …`
    And(Box<Expr>, Box<Expr>),
    /// `… or …`
    Or(Box<Expr>, Box<Expr>),
    /// `… == …` and the other comparisons
    Compare(Compare, Box<Expr>, Box<Expr>),
    /// `… in […]`; `not in` when the flag is set
    In(Box<Expr>, Box<Expr>, bool),
    /// `… contains …`
    Contains(Box<Expr>, Box<Expr>),
    /// `… + …` and the other operations
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// `any(name in …: …)` and the other quantifiers
    Each(Quantifier, String, Over, Box<Expr>),
    /// `name(…)`
    Call(Call, Vec<Expr>),
}

impl Expr {
    /// The direct subexpressions.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Bool(_)
            | Self::Number { .. }
            | Self::Text(_)
            | Self::Version(_)
            | Self::Fact(_)
            | Self::Local(_) => vec![],
            Self::List(items) | Self::Call(_, items) => items.iter().collect(),
            Self::Named(_, inner) => vec![inner],
            Self::Field(inner, _) | Self::Not(inner) | Self::Negative(inner) => vec![inner],
            Self::And(a, b)
            | Self::Or(a, b)
            | Self::Compare(_, a, b)
            | Self::In(a, b, _)
            | Self::Contains(a, b)
            | Self::Arithmetic(_, a, b) => vec![a, b],
            Self::Each(_, _, over, body) => match over {
                Over::Names(_) => vec![body],
                Over::Items(items) => vec![items, body],
            },
        }
    }

    /// The facts that it names, each once. A part that is only known during evaluation is `*`.
    pub fn facts(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.collect_facts(&mut names);
        names.sort();
        names.dedup();
        names
    }

    fn collect_facts(&self, names: &mut Vec<String>) {
        let pattern = |fact: &FactRef| {
            let parts: Vec<&str> = fact
                .0
                .iter()
                .map(|part| match part {
                    Part::Name(name) => name.as_str(),
                    Part::Local(_) | Part::Star => "*",
                })
                .collect();
            parts.join(".")
        };
        match self {
            Self::Fact(fact) => names.push(pattern(fact)),
            // The name up to the star is a prefix of other facts, not a fact.
            Self::Each(_, _, Over::Names(fact), _) if !matches!(fact.0.last(), Some(Part::Star)) => {
                names.push(pattern(fact));
            }
            _ => {}
        }
        for child in self.children() {
            child.collect_facts(names);
        }
    }

    /// Its nesting depth.
    pub fn depth(&self) -> usize {
        1 + self.children().iter().map(|c| c.depth()).max().unwrap_or(0)
    }
}

/// A fact's name in the notation of expressions.
pub fn shown_parts(parts: &[Part]) -> String {
    let texts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            Part::Name(name) => name.clone(),
            Part::Local(name) => format!("${name}"),
            Part::Star => "*".to_owned(),
        })
        .collect();
    texts.join(".")
}
