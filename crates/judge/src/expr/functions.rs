//! The functions of the language.

use super::ast::{Call, Expr};
use super::eval::{Lookup, Machine, Stop};
use super::unit::Dimension;
use super::value::{Value, Version};

/// Calls a function. The parser has seen to the number of its arguments.
pub fn call(
    machine: &mut Machine<'_>,
    function: Call,
    arguments: &[Expr],
    whole: &Expr,
) -> Result<Value, Stop> {
    let fault =
        |value: &Value, what: &str| Err(Stop::Fault(format!("{whole}: {} is not {what}", value.kind())));
    let [first, rest @ ..] = arguments else {
        return Err(Stop::Fault(format!("{whole}: a value is missing")));
    };
    match function {
        Call::Exists => match first {
            Expr::Fact(fact) => match machine.look_up(fact)? {
                Lookup::Value(_) => Ok(Value::Bool(true)),
                Lookup::Absent(_) => Ok(Value::Bool(false)),
                Lookup::Unknown(stop) => Err(stop),
            },
            _ => Err(Stop::Fault(format!("{whole}: exists() takes the name of a fact"))),
        },
        Call::Default => {
            let [fallback] = rest else { return Err(Stop::Fault(format!("{whole}: takes two values"))) };
            if let Expr::Fact(fact) = first {
                return match machine.look_up(fact)? {
                    Lookup::Value(value) => Ok(value),
                    Lookup::Absent(_) => machine.value(fallback),
                    Lookup::Unknown(stop) => Err(stop),
                };
            }
            match machine.value(first)? {
                Value::Nothing => machine.value(fallback),
                value => Ok(value),
            }
        }
        Call::On => match machine.value(first)? {
            Value::Bool(b) => Ok(Value::Bool(b)),
            Value::Number(n, _) if n == 0.0 || n == 1.0 => Ok(Value::Bool(n == 1.0)),
            Value::Text(text) => match text.to_ascii_uppercase().as_str() {
                "ON" | "YES" | "TRUE" | "1" | "Y" | "ENABLED" => Ok(Value::Bool(true)),
                "OFF" | "NO" | "FALSE" | "0" | "N" | "DISABLED" => Ok(Value::Bool(false)),
                _ => fault(&Value::Text(text), "ON or OFF"),
            },
            other => fault(&other, "ON or OFF"),
        },
        Call::Limit => match machine.value(first)? {
            Value::Number(n, dimension) => Ok(Value::Number(n, dimension)),
            Value::Text(text) if ["unlimited", "max", "infinity"].contains(&text.as_str()) => {
                Ok(Value::Number(f64::INFINITY, Dimension::Any))
            }
            other => fault(&other, "a limit"),
        },
        Call::Version => {
            let value = machine.value(first)?;
            let version = match &value {
                Value::Version(version) => Some(*version),
                Value::Number(n, _) => Version::from_number(*n),
                Value::Text(text) => Version::read(text),
                _ => None,
            };
            version.map_or_else(|| fault(&value, "a version"), |v| Ok(Value::Version(v)))
        }
        Call::Number => match machine.value(first)? {
            Value::Text(text) => match text.trim().parse::<f64>() {
                Ok(n) if n.is_finite() => Ok(Value::Number(n, Dimension::Any)),
                _ => fault(&Value::Text(text), "a number"),
            },
            Value::Number(n, dimension) => Ok(Value::Number(n, dimension)),
            other => fault(&other, "a number"),
        },
        Call::Min | Call::Max => {
            let mut best = machine.number(first)?;
            for expr in rest {
                let (n, dimension) = machine.number(expr)?;
                if !best.1.fits(dimension) {
                    return Err(Stop::Fault(format!(
                        "{whole}: {} and {dimension} cannot be compared",
                        best.1
                    )));
                }
                let better = if function == Call::Min { n < best.0 } else { n > best.0 };
                best = (if better { n } else { best.0 }, best.1.sum(dimension));
            }
            Ok(Value::Number(best.0, best.1))
        }
        Call::Length => match machine.value(first)? {
            Value::List(items) => Ok(Value::plain(items.len() as f64)),
            Value::Text(text) => Ok(Value::plain(text.chars().count() as f64)),
            other => fault(&other, "a list or a text"),
        },
        Call::StartsWith | Call::EndsWith => {
            let [part] = rest else { return Err(Stop::Fault(format!("{whole}: takes two values"))) };
            match (machine.value(first)?, machine.value(part)?) {
                (Value::Text(text), Value::Text(part)) => {
                    let cut = match function {
                        Call::StartsWith => text.get(..part.len()),
                        _ => text.len().checked_sub(part.len()).and_then(|from| text.get(from..)),
                    };
                    Ok(Value::Bool(cut.is_some_and(|cut| cut.eq_ignore_ascii_case(&part))))
                }
                (other, _) => fault(&other, "a text"),
            }
        }
        Call::Bytes | Call::Seconds => {
            let wanted = if function == Call::Bytes { Dimension::BYTES } else { Dimension::SECONDS };
            let (n, dimension) = machine.number(first)?;
            match dimension {
                Dimension::Any | Dimension::Plain => Ok(Value::Number(n, wanted)),
                same if same == wanted => Ok(Value::Number(n, wanted)),
                other => Err(Stop::Fault(format!("{whole}: {other} cannot be {wanted}"))),
            }
        }
        Call::If => {
            let [then, otherwise] = rest else {
                return Err(Stop::Fault(format!("{whole}: takes three values")));
            };
            if machine.truth(first)? { machine.value(then) } else { machine.value(otherwise) }
        }
        Call::Enough => {
            let [value] = rest else { return Err(Stop::Fault(format!("{whole}: takes two values"))) };
            if machine.truth(first)? {
                return machine.value(value);
            }
            Err(Stop::undefined(first.to_string(), "too little was seen to tell"))
        }
        Call::RoundUp | Call::RoundDown => {
            let [multiple] = rest else { return Err(Stop::Fault(format!("{whole}: takes two values"))) };
            let ((n, d), (m, e)) = (machine.number(first)?, machine.number(multiple)?);
            if !d.fits(e) || m <= 0.0 {
                return Err(Stop::Fault(format!("{whole}: {d} cannot be rounded to {m} {e}")));
            }
            let times = if function == Call::RoundUp { (n / m).ceil() } else { (n / m).floor() };
            Ok(Value::Number(times * m, d.sum(e)))
        }
    }
}
