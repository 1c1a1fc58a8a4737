//! Compares written options with the variables of the running server.

use mydyno_model::facts::FactSet;
use mydyno_model::knob::{KnobSeen, KnobType};
use serde_json::Value;

use super::value::{is_collective_mode, whole};
use crate::knobs::Rules;

/// A difference between the written and the running value.
pub struct Differs {
    /// The difference is only rounding.
    pub slight: bool,
}

/// The server's running value, as text.
pub fn value_of(facts: &FactSet, name: &str) -> Option<String> {
    match facts.value(&format!("server.variable.{name}"))? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(if *is { "ON" } else { "OFF" }.to_owned()),
        _ => None,
    }
}

/// A value in a canonical form for comparison.
pub fn canonical(kind: KnobType, rules: &Rules, value: &str) -> String {
    let lower = value.trim().to_ascii_lowercase();
    match kind {
        KnobType::Bool => match lower.as_str() {
            "on" | "true" | "1" | "yes" => "on".to_owned(),
            "off" | "false" | "0" | "" | "no" => "off".to_owned(),
            _ => lower,
        },
        KnobType::Integer => whole(rules, value).map_or(lower, |number| number.to_string()),
        KnobType::Number => value.parse::<f64>().map_or(lower, |number| number.to_string()),
        KnobType::Set => {
            let mut parts: Vec<&str> =
                lower.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
            parts.sort_unstable();
            parts.join(",")
        }
        KnobType::Enum => lower,
        KnobType::Flags | KnobType::Text => value.to_owned(),
    }
}

/// Compares the running with the requested value. `None` also where the server is asked to choose, and where one value
/// has several forms: paths, lists, sets other than sql_mode, and that with a collective name.
pub fn differs(seen: &KnobSeen, rules: &Rules, asked: &str, now: &str) -> Option<Differs> {
    let (wanted, has) = (canonical(seen.kind, rules, asked), canonical(seen.kind, rules, now));
    if wanted == has {
        return None;
    }
    match seen.kind {
        KnobType::Bool => ["on", "off"].contains(&wanted.as_str()).then_some(Differs { slight: false }),
        KnobType::Integer | KnobType::Number => {
            let (wanted, has): (f64, f64) = (wanted.parse().ok()?, has.parse().ok()?);
            // 0 and -1 let the server choose.
            (wanted > 0.0)
                .then_some(Differs { slight: (wanted - has).abs() <= 0.1 * wanted.abs().max(has.abs()) })
        }
        KnobType::Enum => {
            let at = |name: &str| match name.parse::<usize>() {
                Ok(number) => Some(number),
                Err(_) => {
                    let is = |known: &&String| known.to_ascii_lowercase().starts_with(name);
                    let exact = seen.values.iter().position(|known| known.eq_ignore_ascii_case(name));
                    exact.or_else(|| {
                        (seen.values.iter().filter(is).count() == 1)
                            .then(|| seen.values.iter().position(|k| is(&k)))?
                    })
                }
            };
            (at(&wanted)? != at(&has)?).then_some(Differs { slight: false })
        }
        KnobType::Set if seen.values.iter().any(|known| known == "STRICT_TRANS_TABLES") => {
            (is_plain_mode(seen, &wanted) && is_plain_mode(seen, &has)).then_some(Differs { slight: false })
        }
        KnobType::Set | KnobType::Flags | KnobType::Text => None,
    }
}

/// Whether a canonical sql_mode has modes in full only, and none that stands for several or is a number.
fn is_plain_mode(seen: &KnobSeen, modes: &str) -> bool {
    let known = |mode: &str| seen.values.iter().any(|value| value.eq_ignore_ascii_case(mode));
    modes.is_empty() || modes.split(',').all(|mode| known(mode) && !is_collective_mode(&seen.values, mode))
}
