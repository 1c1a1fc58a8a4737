//! Comparisons and arithmetic of values with dimensions.

use super::ast::{Arithmetic, Compare, Expr};
use super::stop::{Found, Stop};
use super::unit::Dimension;
use super::value::Value;

/// Whether two values are equal; texts are compared case-insensitively, since servers differ in case.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.eq_ignore_ascii_case(b),
        (Value::Number(a, d), Value::Number(b, e)) => d.fits(*e) && a == b,
        _ => a == b,
    }
}

/// Compares two values; their expressions are used in messages.
///
/// # Errors
/// The values have different dimensions or types, or no order.
pub fn compared(compare: Compare, left: (&Expr, &Value), right: (&Expr, &Value)) -> Result<bool, Stop> {
    let ordering = match (left.1, right.1) {
        (Value::Number(a, d), Value::Number(b, e)) => {
            if !d.fits(*e) || lacks_percent(left, right) || lacks_percent(right, left) {
                let text = format!("{} is {d}, {} is {e}: they cannot be compared", left.0, right.0);
                return Err(Stop::Fault(text));
            }
            a.partial_cmp(b)
        }
        (Value::Version(a), Value::Version(b)) => Some(a.cmp(b)),
        _ => {
            let same = match (left.1, right.1) {
                (Value::Text(_), Value::Text(_)) | (Value::Bool(_), Value::Bool(_)) | (_, Value::Nothing) => {
                    equal(left.1, right.1)
                }
                (Value::Nothing, _) => false,
                (a, b) => {
                    let text = format!(
                        "{} is {}, {} is {}: they cannot be compared",
                        left.0,
                        a.kind(),
                        right.0,
                        b.kind()
                    );
                    return Err(Stop::Fault(text));
                }
            };
            return match compare {
                Compare::Equal => Ok(same),
                Compare::Unequal => Ok(!same),
                _ => Err(Stop::Fault(format!("{} and {} have no order", left.0, right.0))),
            };
        }
    };
    let Some(ordering) = ordering else {
        return Err(Stop::undefined(left.0.to_string(), "it is not a number"));
    };
    Ok(match compare {
        Compare::Equal => ordering.is_eq(),
        Compare::Unequal => ordering.is_ne(),
        Compare::Less => ordering.is_lt(),
        Compare::LessOrEqual => ordering.is_le(),
        Compare::Greater => ordering.is_gt(),
        Compare::GreaterOrEqual => ordering.is_ge(),
    })
}

/// Whether a share is compared with a bare number: 20 % is stored as 0.2, so `20` would be wrong without any message.
fn lacks_percent(share: (&Expr, &Value), literal: (&Expr, &Value)) -> bool {
    matches!(share.1, Value::Number(_, Dimension::Share))
        && matches!(literal.0, Expr::Number { value, unit } if unit.is_empty() && *value != 0.0)
}

/// Computes with two numbers and their dimensions.
///
/// # Errors
/// The dimensions do not match, or there is no result.
pub fn arithmetic(
    operation: Arithmetic,
    expr: &Expr,
    (a, d): (f64, Dimension),
    (b, e): (f64, Dimension),
) -> Found {
    let sum = || {
        if d.fits(e) { Ok(d.sum(e)) } else { Err(Stop::Fault(format!("{expr}: {d} and {e} do not add up"))) }
    };
    let (n, dimension) = match operation {
        Arithmetic::Add => (a + b, sum()?),
        Arithmetic::Subtract => (a - b, sum()?),
        Arithmetic::Multiply => (a * b, d.product(e)),
        Arithmetic::Divide if b == 0.0 => {
            return Err(Stop::undefined(expr.to_string(), "it would divide by 0"));
        }
        Arithmetic::Divide => (a / b, d.quotient(e)),
    };
    if n.is_nan() {
        return Err(Stop::undefined(expr.to_string(), "it has no result"));
    }
    Ok(Value::Number(n, dimension))
}
