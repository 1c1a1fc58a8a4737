//! Text templates with values: `the pool of {@@innodb_buffer_pool_size
//! bytes} …`.

use mydyno_model::claim::StepKind;
use mydyno_model::facts::FactSet;

use crate::expr::{
    Bindings, CUT_AFTER, Call, Dimension, Expr, ParseError, Scope, Value, evaluate, parse_with,
};

/// Destination of a text, which determines how values are formatted and quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Prose for people.
    Prose,
    /// An SQL statement.
    Sql,
    /// A shell command.
    Shell,
    /// A line of a configuration file.
    Config,
}

impl From<StepKind> for Place {
    fn from(kind: StepKind) -> Self {
        match kind {
            StepKind::Sql => Self::Sql,
            StepKind::Shell => Self::Shell,
            StepKind::Text => Self::Prose,
            StepKind::Cnf
            | StepKind::Sysctl
            | StepKind::Udev
            | StepKind::Systemd
            | StepKind::Tmpfiles
            | StepKind::Kernel => Self::Config,
        }
    }
}

/// Format of a value, after a `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The default of the destination.
    Plain,
    /// A number as bytes, for people.
    Bytes,
    /// A number as seconds, for people.
    Seconds,
    /// A ratio as percent, for people.
    Percent,
    /// A number of bytes as whole MiB, as in `512M`.
    Mebibytes,
    /// An SQL name, in backticks: `a.b` is a table of a schema.
    Identifier,
}

const FORMS: [(&str, Form); 5] = [
    ("bytes", Form::Bytes),
    ("seconds", Form::Seconds),
    ("percent", Form::Percent),
    ("M", Form::Mebibytes),
    ("ident", Form::Identifier),
];

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Value(Expr, Form),
}

/// A template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template(Vec<Piece>);

/// A value in prose that could not be read.
pub const NOT_KNOWN: &str = "(not known)";

/// A filled template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// The text; a missing value appears as its expression in angle brackets, in prose as [`NOT_KNOWN`].
    pub text: String,
    /// Whether all values were available and could be formatted.
    pub whole: bool,
    /// Facts that the values come from.
    pub facts: Vec<String>,
    /// Values with `(s)` or `(es)` in them, which are no endings there.
    pub bracketed: Vec<String>,
}

impl Template {
    /// Whether a value stands between quotes. Values of statements get their quotes when they are filled in.
    pub fn quotes_a_value(&self) -> bool {
        let mut open = false;
        self.0.iter().any(|piece| match piece {
            Piece::Text(text) => {
                open ^= text.matches('\'').count() % 2 == 1;
                false
            }
            Piece::Value(_, form) => open && *form == Form::Plain,
        })
    }

    /// Parses a template. `{{` and `}}` stand for braces.
    ///
    /// # Errors
    /// An unmatched brace, or an invalid expression.
    pub fn read(text: &str, bindings: &Bindings, locals: &[&str]) -> Result<Self, ParseError> {
        let at = |bytes: usize| {
            let before = &text[..bytes];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
            crate::expr::Position { line, column }
        };
        let wrong = |bytes: usize, what: &str| ParseError { at: at(bytes), text: what.to_owned() };
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = 0;
        while let Some(found) = text[rest..].find(['{', '}']) {
            let brace = rest + found;
            plain.push_str(&text[rest..brace]);
            let doubled = text[brace..].starts_with("{{") || text[brace..].starts_with("}}");
            if doubled {
                plain.push_str(&text[brace..=brace]);
                rest = brace + 2;
                continue;
            }
            if text[brace..].starts_with('}') {
                return Err(wrong(brace, "a } without its {; write }} for a brace"));
            }
            let Some(length) = text[brace..].find('}') else {
                return Err(wrong(brace, "a { without its }; write {{ for a brace"));
            };
            let inner = &text[brace + 1..brace + length];
            let (inner, form) = match inner.rsplit_once('|') {
                None => (inner, Form::Plain),
                Some((inner, name)) => {
                    let form = FORMS.iter().find(|(known, _)| *known == name.trim());
                    let form = form.ok_or_else(|| {
                        let known: Vec<&str> = FORMS.iter().map(|(known, _)| *known).collect();
                        wrong(
                            brace,
                            &format!("{:?} is not a form; there are {}", name.trim(), known.join(", ")),
                        )
                    })?;
                    (inner, form.1)
                }
            };
            let expr = parse_with(inner, bindings, locals).map_err(|e| wrong(brace, &e.text))?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Value(expr, form));
            rest = brace + length + 1;
        }
        plain.push_str(&text[rest..]);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }

    /// Fills in the values.
    pub fn fill(&self, facts: &FactSet, scope: Scope<'_>, place: Place) -> Filled {
        let mut filled = Filled { text: String::new(), whole: true, facts: vec![], bracketed: vec![] };
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.text.push_str(text),
                Piece::Value(expr, form) => {
                    let found = evaluate(expr, facts, scope);
                    let as_it_is = *form == Form::Plain && place != Place::Prose;
                    let text = found.result.ok().and_then(|value| {
                        // A condition chooses between texts, one of which may be empty; an empty fact is shown as such.
                        if let (Expr::Call(Call::If, _), Value::Text(text)) = (expr, &value)
                            && text.is_empty()
                        {
                            return Some(String::new());
                        }
                        // Blanks at its ends belong to the sentence.
                        if let (Expr::Call(Call::If, _), Value::Text(text)) = (expr, &value)
                            && place == Place::Prose
                        {
                            let ends = |blank: bool| if blank { " " } else { "" };
                            let (before, after) = (text.starts_with(' '), text.ends_with(' '));
                            return Some(format!(
                                "{}{}{}",
                                ends(before),
                                mydyno_model::text::line(text),
                                ends(after)
                            ));
                        }
                        // The number of entries that a list keeps at most is no number of what there is.
                        if let (Expr::Call(Call::Length, _), Value::Number(number, _)) = (expr, &value)
                            && *number == CUT_AFTER as f64
                            && place == Place::Prose
                        {
                            return Some(format!("{CUT_AFTER} or more"));
                        }
                        let exact = || whole_fact(expr, &found.facts, &value, facts);
                        as_it_is.then(exact).flatten().or_else(|| written(&value, *form, place))
                    });
                    filled.facts.extend(found.facts);
                    match text {
                        Some(text) => {
                            let is_own = matches!(expr, Expr::Call(Call::If, _));
                            if !is_own && (text.contains("(s)") || text.contains("(es)")) {
                                filled.bracketed.push(text.clone());
                            }
                            filled.text.push_str(&text);
                        }
                        None => {
                            filled.whole = false;
                            match place {
                                Place::Prose => filled.text.push_str(NOT_KNOWN),
                                _ => filled.text.push_str(&format!("<{expr}>")),
                            }
                        }
                    }
                }
            }
        }
        filled
    }

    /// The text in prose without what says a value that is not known: a sentence, or its part behind the last colon,
    /// comma, semicolon or bracket before that value. `None` where nothing is left.
    pub fn known_sentences(filled: &Filled) -> Option<String> {
        if filled.whole {
            return Some(filled.text.clone());
        }
        let known = |sentence: &str| -> Option<String> {
            let Some(at) = sentence.find(NOT_KNOWN) else { return Some(sentence.to_owned()) };
            let before = &sentence[..at];
            let end = [": ", ", ", "; ", " ("].iter().filter_map(|sign| before.rfind(sign)).max()?;
            Some(format!("{}. ", &before[..end]))
        };
        let text = filled.text.split_inclusive(". ").filter_map(known).collect::<String>();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The expressions in the template.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Value(expr, _) => Some(expr),
            Piece::Text(_) => None,
        })
    }
}

/// The whole number of an expression that is a single fact. Expressions compute in floating point, which cannot represent
/// 18446744073709551615, the value that servers use for no limit.
fn whole_fact(expr: &Expr, rests_on: &[String], value: &Value, facts: &FactSet) -> Option<String> {
    let (Expr::Fact(_), [id], Value::Number(number, _)) = (expr, rests_on, value) else { return None };
    let fact = facts.value(id)?;
    // The number of a fact in another than the base unit differs.
    let same = fact.as_f64() == Some(*number);
    (same && (fact.is_u64() || fact.is_i64())).then(|| fact.to_string())
}

/// A value formatted for its destination; `None` where that cannot be done safely.
fn written(value: &Value, form: Form, place: Place) -> Option<String> {
    let number = || match value {
        Value::Number(n, _) if n.is_finite() => Some(*n),
        _ => None,
    };
    match form {
        Form::Bytes => Some(Value::Number(number()?, Dimension::BYTES).shown()),
        Form::Seconds => Some(Value::Number(number()?, Dimension::SECONDS).shown()),
        Form::Percent => Some(Value::Number(number()?, Dimension::Share).shown()),
        Form::Mebibytes => Some(format!("{:.0}M", (number()? / 1_048_576.0).ceil())),
        Form::Identifier => match value {
            Value::Text(text) => Some(identifier(text)),
            _ => None,
        },
        Form::Plain => plain(value, place),
    }
}

fn plain(value: &Value, place: Place) -> Option<String> {
    if place == Place::Prose {
        return Some(mydyno_model::text::line(&value.shown()));
    }
    let text = match value {
        // Files and statements take the number in its base unit, without decimals if it is whole.
        Value::Number(n, _) if n.is_finite() => {
            // 7 % is stored as 0.07, and 0.07 × 100 is 7.000000000000001.
            let near = n.round();
            let whole = (n - near).abs() <= 1e-9 * near.abs();
            return Some(if whole { format!("{near:.0}") } else { n.to_string() });
        }
        Value::Bool(b) => if *b { "1" } else { "0" }.to_owned(),
        Value::Text(text) => text.clone(),
        Value::Version(version) => version.to_string(),
        _ => return None,
    };
    if text.chars().any(char::is_control) {
        return None;
    }
    let harmless = |extra: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
    };
    match place {
        Place::Sql if text == "ON" || text == "OFF" => Some(text),
        Place::Sql => Some(format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))),
        Place::Shell if harmless("_-./:,=+@%") => Some(text),
        Place::Shell => Some(format!("'{}'", text.replace('\'', "'\\''"))),
        // A quote or a comment sign could end the value or the line.
        Place::Config if text.contains(['"', '\'', '#', '\\']) => None,
        Place::Config | Place::Prose => Some(text),
    }
}

/// `schema.table` as two names; a dot within a name cannot be distinguished from the separator.
fn identifier(text: &str) -> String {
    let parts: Vec<String> = text.split('.').map(|part| format!("`{}`", part.replace('`', "``"))).collect();
    without_control(&parts.join("."))
}

fn without_control(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_model::Header;
    use mydyno_model::facts::Fact;
    use serde_json::{Map, json};
    use time::OffsetDateTime;

    fn filled(text: &str, place: Place) -> Filled {
        let list = [
            ("a.size", json!(8_589_934_592_u64), "bytes"),
            ("a.name", json!("it's; rm -rf /"), ""),
            ("a.word", json!("O_DIRECT"), ""),
            ("a.table", json!("shop.or`der"), ""),
            ("a.lines", json!("x\ny"), ""),
            ("a.share", json!(0.25), ""),
            ("a.unlimited", json!(u64::MAX), ""),
            ("a.least", json!(i64::MIN), ""),
        ];
        let facts = list.into_iter().map(|(id, v, unit)| (id.to_owned(), Fact::ok(v, unit, "t"))).collect();
        let set =
            FactSet { header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH), facts, extra: Map::new() };
        Template::read(text, &Bindings::new(), &[]).unwrap().fill(&set, &[], place)
    }

    #[test]
    fn a_share_times_a_hundred_is_written_as_the_percent_that_it_was() {
        let seven = Value::Number(0.07 * 100.0, Dimension::Plain);
        assert_eq!(written(&seven, Form::Plain, Place::Config), Some("7".to_owned()));
        let half = Value::Number(0.5, Dimension::Plain);
        assert_eq!(written(&half, Form::Plain, Place::Config), Some("0.5".to_owned()));
    }

    #[test]
    fn values_are_written_as_their_place_needs_them() {
        assert_eq!(
            filled("pool {a.size}, {a.share | percent}, {{x}}", Place::Prose).text,
            "pool 8 GiB, 25 %, {x}"
        );
        assert_eq!(filled("x = {a.size}", Place::Config).text, "x = 8589934592");
        assert_eq!(filled("x = {a.size / 3 | M}", Place::Config).text, "x = 2731M");
        assert_eq!(filled("SET x = {a.word}", Place::Sql).text, "SET x = 'O_DIRECT'");
        assert_eq!(filled("{a.size}", Place::Prose).facts, ["a.size"]);
        assert_eq!(filled("SET x = {a.unlimited}", Place::Sql).text, "SET x = 18446744073709551615");
        assert_eq!(filled("x = {a.least}", Place::Config).text, "x = -9223372036854775808");
    }

    #[test]
    fn names_that_servers_and_users_chose_cannot_break_out() {
        assert_eq!(filled("SET x = {a.name}", Place::Sql).text, "SET x = 'it''s; rm -rf /'");
        assert_eq!(filled("echo {a.name}", Place::Shell).text, "echo 'it'\\''s; rm -rf /'");
        assert_eq!(filled("ALTER TABLE {a.table | ident}", Place::Sql).text, "ALTER TABLE `shop`.`or``der`");
        for place in [Place::Sql, Place::Shell, Place::Config] {
            let found = filled("x = {a.lines}", place);
            assert!(!found.whole && found.text == "x = <a.lines>", "{found:?}");
        }
        assert!(!filled("x = {a.name}", Place::Config).whole);
    }

    #[test]
    fn a_condition_may_choose_no_words() {
        assert_eq!(filled("it{if(a.size > 1 GiB, '', ' small')}.", Place::Prose).text, "it.");
        assert_eq!(filled("it{if(a.size > 1 GiB, ' is: ', '')}{a.size}", Place::Prose).text, "it is: 8 GiB");
    }

    #[test]
    fn a_value_that_could_not_be_had_is_named() {
        let found = filled("x = {b.c}", Place::Sql);
        assert_eq!((found.text.as_str(), found.whole), ("x = <b.c>", false));
    }

    #[test]
    fn a_sentence_without_its_value_is_left_out() {
        let known = |text: &str| Template::known_sentences(&filled(text, Place::Prose));
        assert_eq!(known("It has {a.size}. {b.c} are made a second."), Some("It has 8 GiB.".to_owned()));
        assert_eq!(known("{b.c} are made. It is {a.word}."), Some("It is O_DIRECT.".to_owned()));
        assert_eq!(known("{b.c} are made a second."), None);
        assert_eq!(known("Of {a.size}, {b.c} are free."), Some("Of 8 GiB.".to_owned()));
        assert_eq!(known("It is {a.word}: {b.c}. It is so."), Some("It is O_DIRECT. It is so.".to_owned()));
        assert_eq!(known("It has {a.size}. It is so."), Some("It has 8 GiB. It is so.".to_owned()));
    }

    #[test]
    fn mistakes_are_placed() {
        let wrong = |text: &str| Template::read(text, &Bindings::new(), &[]).unwrap_err();
        assert_eq!(wrong("ab {c").at.column, 4);
        assert_eq!(wrong("a}").at.column, 2);
        assert!(wrong("{a.b | kilo}").text.contains("there are bytes"));
        assert!(wrong("{1 +}").text.contains("value is expected"));
    }
}
