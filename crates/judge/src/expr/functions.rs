//! The functions of the language.

use super::ast::{Call, Expr};
use super::eval::{Lookup, Machine};
use super::stop::{Found, Stop};
use super::unit::Dimension;
use super::value::{Value, Version};

/// Calls a function. The parser has checked the number of arguments.
///
/// # Errors
/// A fact is missing, or a value has the wrong kind or dimension.
pub fn call(machine: &mut Machine<'_>, function: Call, arguments: &[Expr], whole: &Expr) -> Found {
    let [first, rest @ ..] = arguments else {
        return Err(Stop::Fault(format!("{whole}: a value is missing")));
    };
    match function {
        Call::Exists => exists(machine, first, whole),
        Call::Default => default(machine, first, one(rest, whole)?),
        Call::On | Call::Limit | Call::Version | Call::Number | Call::Length => {
            converted(function, machine.value(first)?, whole)
        }
        Call::Min | Call::Max => extreme(machine, function == Call::Min, first, rest, whole),
        Call::StartsWith | Call::EndsWith => {
            let (text, part) = (machine.value(first)?, machine.value(one(rest, whole)?)?);
            begins_or_ends(function == Call::StartsWith, text, part, whole)
        }
        Call::Bytes => with_dimension(machine.number(first)?, Dimension::BYTES, whole),
        Call::Seconds => with_dimension(machine.number(first)?, Dimension::SECONDS, whole),
        Call::If => {
            let [then, otherwise] = rest else {
                return Err(Stop::Fault(format!("{whole}: takes three values")));
            };
            if machine.truth(first)? { machine.value(then) } else { machine.value(otherwise) }
        }
        Call::Enough => {
            let value = one(rest, whole)?;
            if machine.truth(first)? {
                return machine.value(value);
            }
            Err(Stop::undefined(first.to_string(), "too little was seen to tell"))
        }
        Call::RoundUp | Call::RoundDown => {
            let (n, multiple) = (machine.number(first)?, machine.number(one(rest, whole)?)?);
            rounded(function == Call::RoundUp, n, multiple, whole)
        }
    }
}

/// The second of two arguments.
fn one<'e>(rest: &'e [Expr], whole: &Expr) -> Result<&'e Expr, Stop> {
    match rest {
        [second] => Ok(second),
        _ => Err(Stop::Fault(format!("{whole}: takes two values"))),
    }
}

fn fault(whole: &Expr, value: &Value, expected: &str) -> Found {
    Err(Stop::Fault(format!("{whole}: {} is not {expected}", value.kind())))
}

fn exists(machine: &mut Machine<'_>, fact: &Expr, whole: &Expr) -> Found {
    let Expr::Fact(fact) = fact else {
        return Err(Stop::Fault(format!("{whole}: exists() takes the name of a fact")));
    };
    match machine.look_up(fact)? {
        Lookup::Value(_) => Ok(Value::Bool(true)),
        Lookup::Absent(_) => Ok(Value::Bool(false)),
        Lookup::Unknown(stop) => Err(stop),
    }
}

fn default(machine: &mut Machine<'_>, value: &Expr, fallback: &Expr) -> Found {
    if let Expr::Fact(fact) = value {
        return match machine.look_up(fact)? {
            Lookup::Value(value) => Ok(value),
            Lookup::Absent(_) => machine.value(fallback),
            Lookup::Unknown(stop) => Err(stop),
        };
    }
    match machine.value(value)? {
        Value::Nothing => machine.value(fallback),
        value => Ok(value),
    }
}

/// Functions of one value without other dependencies.
fn converted(function: Call, value: Value, whole: &Expr) -> Found {
    match function {
        Call::On => on(value, whole),
        Call::Limit => match value {
            Value::Number(n, dimension) => Ok(Value::Number(n, dimension)),
            Value::Text(text) if ["unlimited", "max", "infinity"].contains(&text.as_str()) => {
                Ok(Value::Number(f64::INFINITY, Dimension::Any))
            }
            other => fault(whole, &other, "a limit"),
        },
        Call::Version => {
            let version = match &value {
                Value::Version(version) => Some(*version),
                Value::Number(n, _) => Version::from_number(*n),
                Value::Text(text) => Version::read(text),
                _ => None,
            };
            version.map_or_else(|| fault(whole, &value, "a version"), |v| Ok(Value::Version(v)))
        }
        Call::Length => match value {
            Value::List(items) => Ok(Value::plain(items.len() as f64)),
            Value::Text(text) => Ok(Value::plain(text.chars().count() as f64)),
            other => fault(whole, &other, "a list or a text"),
        },
        _ => match value {
            Value::Text(text) => match text.trim().parse::<f64>() {
                Ok(n) if n.is_finite() => Ok(Value::Number(n, Dimension::Any)),
                _ => fault(whole, &Value::Text(text), "a number"),
            },
            Value::Number(n, dimension) => Ok(Value::Number(n, dimension)),
            other => fault(whole, &other, "a number"),
        },
    }
}

/// A switch in the spellings that servers and kernels use.
fn on(value: Value, whole: &Expr) -> Found {
    match value {
        Value::Bool(b) => Ok(Value::Bool(b)),
        Value::Number(n, _) if n == 0.0 || n == 1.0 => Ok(Value::Bool(n == 1.0)),
        Value::Text(text) => match text.to_ascii_uppercase().as_str() {
            "ON" | "YES" | "TRUE" | "1" | "Y" | "ENABLED" => Ok(Value::Bool(true)),
            "OFF" | "NO" | "FALSE" | "0" | "N" | "DISABLED" => Ok(Value::Bool(false)),
            _ => fault(whole, &Value::Text(text), "ON or OFF"),
        },
        other => fault(whole, &other, "ON or OFF"),
    }
}

/// The smallest or the largest of several numbers.
fn extreme(machine: &mut Machine<'_>, smallest: bool, first: &Expr, rest: &[Expr], whole: &Expr) -> Found {
    let mut best = machine.number(first)?;
    for expr in rest {
        let (n, dimension) = machine.number(expr)?;
        if !best.1.fits(dimension) {
            return Err(Stop::Fault(format!("{whole}: {} and {dimension} cannot be compared", best.1)));
        }
        let better = if smallest { n < best.0 } else { n > best.0 };
        best = (if better { n } else { best.0 }, best.1.sum(dimension));
    }
    Ok(Value::Number(best.0, best.1))
}

fn begins_or_ends(begins: bool, text: Value, part: Value, whole: &Expr) -> Found {
    match (text, part) {
        (Value::Text(text), Value::Text(part)) => {
            let cut = match begins {
                true => text.get(..part.len()),
                false => text.len().checked_sub(part.len()).and_then(|from| text.get(from..)),
            };
            Ok(Value::Bool(cut.is_some_and(|cut| cut.eq_ignore_ascii_case(&part))))
        }
        (other, _) => fault(whole, &other, "a text"),
    }
}

/// A number that receives a dimension, or already has it.
fn with_dimension((n, dimension): (f64, Dimension), wanted: Dimension, whole: &Expr) -> Found {
    match dimension {
        Dimension::Any | Dimension::Plain => Ok(Value::Number(n, wanted)),
        same if same == wanted => Ok(Value::Number(n, wanted)),
        other => Err(Stop::Fault(format!("{whole}: {other} cannot be {wanted}"))),
    }
}

fn rounded(up: bool, (n, d): (f64, Dimension), (m, e): (f64, Dimension), whole: &Expr) -> Found {
    if !d.fits(e) || m <= 0.0 {
        return Err(Stop::Fault(format!("{whole}: {d} cannot be rounded to {m} {e}")));
    }
    let times = if up { (n / m).ceil() } else { (n / m).floor() };
    Ok(Value::Number(times * m, d.sum(e)))
}
