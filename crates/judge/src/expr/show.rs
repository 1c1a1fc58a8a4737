//! Formats expressions in their notation, optionally with the values of their parts.

use std::fmt;

use super::ast::{Call, Compare, Expr, Over, Part, shown_parts};
use super::value::Value;

/// Precedence of an expression; brackets enclose one with a lower precedence than its context.
fn binds(expr: &Expr) -> u8 {
    match expr {
        Expr::Or(..) => 1,
        Expr::And(..) => 2,
        Expr::Not(_) => 3,
        Expr::Compare(..) | Expr::In(..) | Expr::Contains(..) => 4,
        Expr::Arithmetic(operation, ..) => {
            if matches!(operation.symbol(), "+" | "-") {
                5
            } else {
                6
            }
        }
        Expr::Negative(_) => 7,
        _ => 9,
    }
}

/// Formats an expression; `leaf` may supply the text of a part.
fn write(expr: &Expr, leaf: &mut dyn FnMut(&Expr) -> Option<String>) -> String {
    if let Some(text) = leaf(expr) {
        return text;
    }
    let here = binds(expr);
    let mut within = |inner: &Expr, least: u8| {
        let text = write(inner, leaf);
        if binds(inner) < least { format!("({text})") } else { text }
    };
    match expr {
        Expr::Bool(b) => b.to_string(),
        Expr::Number { value, unit } => match unit.as_str() {
            "" => value.to_string(),
            unit if unit.starts_with('/') => format!("{value}{unit}"),
            unit => format!("{value} {unit}"),
        },
        Expr::Text(text) if text.contains('"') => format!("'{text}'"),
        Expr::Text(text) => format!("\"{text}\""),
        Expr::Version(version) => version.to_string(),
        Expr::List(items) => {
            format!("[{}]", items.iter().map(|i| within(i, 0)).collect::<Vec<_>>().join(", "))
        }
        Expr::Fact(fact) => fact_name(&fact.0),
        Expr::Local(name) | Expr::Named(name, _) => format!("${name}"),
        Expr::Field(inner, name) => format!("{}.{name}", within(inner, 9)),
        Expr::Not(inner) => format!("not {}", within(inner, 3)),
        Expr::Negative(inner) => format!("-{}", within(inner, 7)),
        Expr::And(a, b) => format!("{} and {}", within(a, 2), within(b, 3)),
        Expr::Or(a, b) => format!("{} or {}", within(a, 1), within(b, 2)),
        Expr::Compare(compare, a, b) => {
            if let Some(word) = family(*compare, a, b) {
                return word;
            }
            format!("{} {} {}", within(a, 5), compare.symbol(), within(b, 5))
        }
        Expr::In(a, b, negated) => {
            format!("{} {} {}", within(a, 5), if *negated { "not in" } else { "in" }, within(b, 5))
        }
        Expr::Contains(a, b) => format!("{} contains {}", within(a, 5), within(b, 5)),
        Expr::Arithmetic(operation, a, b) => {
            format!("{} {} {}", within(a, here), operation.symbol(), within(b, here + 1))
        }
        Expr::Each(quantifier, name, over, body) => {
            let over = match over {
                Over::Names(fact) => shown_parts(&fact.0),
                Over::Items(items) => within(items, 5),
            };
            format!("{}({name} in {over}: {})", quantifier.name(), within(body, 0))
        }
        Expr::Call(Call::Version, arguments) => match arguments.first() {
            Some(Expr::Fact(fact)) if shown_parts(&fact.0) == "server.version_number" => "version".to_owned(),
            Some(Expr::Fact(fact)) if shown_parts(&fact.0) == "host.kernel.release" => "kernel".to_owned(),
            other => format!("version({})", other.map(|o| within(o, 0)).unwrap_or_default()),
        },
        Expr::Call(call, arguments) => {
            let arguments: Vec<String> = arguments.iter().map(|a| within(a, 0)).collect();
            format!("{}({})", call.name(), arguments.join(", "))
        }
    }
}

/// `@@name` for a variable of the server, as its users write it.
fn fact_name(parts: &[Part]) -> String {
    let text = shown_parts(parts);
    text.strip_prefix("server.variable.").map_or(text.clone(), |name| format!("@@{name}"))
}

/// `mysql`, `mariadb`
fn family(compare: Compare, a: &Expr, b: &Expr) -> Option<String> {
    match (compare, a, b) {
        (Compare::Equal, Expr::Fact(fact), Expr::Text(family))
            if shown_parts(&fact.0) == "server.family" && ["mysql", "mariadb"].contains(&family.as_str()) =>
        {
            Some(family.clone())
        }
        _ => None,
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write(self, &mut |_| None))
    }
}

/// A comparison with the values of its sides: `@@innodb_buffer_pool_size [8 GiB] <= 75 % * … [4 GiB] = 3 GiB`.
///
/// `value_of` evaluates a part.
pub fn with_values(expr: &Expr, value_of: &mut dyn FnMut(&Expr) -> Option<Value>) -> String {
    let mut side = |expr: &Expr| {
        let text = write(expr, &mut |part| match part {
            Expr::Fact(fact) => {
                let value = value_of(part)?;
                Some(format!("{} [{}]", fact_name(&fact.0), value.shown()))
            }
            Expr::Local(name) => Some(format!("${name} [{}]", value_of(part)?.shown())),
            // A named expression is written out once elsewhere; here its value follows its name.
            Expr::Named(name, _) => Some(format!("${name} [{}]", value_of(part)?.shown())),
            Expr::Call(Call::Version, _) => Some(format!("{part} [{}]", value_of(part)?.shown())),
            _ => None,
        });
        let calculated = matches!(expr, Expr::Arithmetic(..) | Expr::Call(..) | Expr::Each(..))
            && !matches!(expr, Expr::Call(Call::Version, _));
        match value_of(expr) {
            // A boolean result is not appended: the step itself ends with it.
            Some(value) if calculated && !matches!(value, Value::Bool(_)) => {
                format!("{text} = {}", value.shown())
            }
            _ => text,
        }
    };
    match expr {
        Expr::Compare(compare, a, b) => match family(*compare, a, b) {
            Some(word) => word,
            None => format!("{} {} {}", side(a), compare.symbol(), side(b)),
        },
        Expr::In(a, b, negated) => {
            format!("{} {} {}", side(a), if *negated { "not in" } else { "in" }, side(b))
        }
        Expr::Contains(a, b) => format!("{} contains {}", side(a), side(b)),
        other => side(other),
    }
}
