//! Values of expressions.

use std::fmt;

use mydyno_model::facts::Fact;
use mydyno_model::units::{show_bytes, three_digits};
use serde_json::Value as Json;

use super::unit::{self, Dimension};

/// A version of a server or kernel: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Reads the digits at the start of a text: `10.11.6-MariaDB-log`, `6.1`, `8.0.36`.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.split('.');
        let first = parts.next()?.parse().ok()?;
        let mut next = || parts.next().and_then(|p| p.parse().ok()).unwrap_or(0);
        Some(Self(first, next(), next()))
    }

    /// From major × 10000 + minor × 100 + patch.
    pub fn from_number(number: f64) -> Option<Self> {
        let valid = number.is_finite() && (0.0..1e9).contains(&number) && number.fract() == 0.0;
        let number = number as u32;
        valid.then_some(Self(number / 10_000, number / 100 % 100, number % 100))
    }

    /// The version just below, for mutations: one patch less.
    pub fn below(self) -> Self {
        match self {
            Self(major, minor, patch) if patch > 0 => Self(major, minor, patch - 1),
            Self(major, minor, _) if minor > 0 => Self(major, minor - 1, 99),
            Self(major, ..) => Self(major.saturating_sub(1), 99, 99),
        }
    }

    /// The version just above.
    pub const fn above(self) -> Self {
        Self(self.0, self.1, self.2 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A number in base units.
    Number(f64, Dimension),
    /// Text.
    Text(String),
    /// A version.
    Version(Version),
    /// A list.
    List(Vec<Value>),
    /// An object with named fields, as in facts that list tables or options.
    Record(serde_json::Map<String, Json>),
    /// An empty field of a record.
    Nothing,
}

impl Value {
    /// A plain number.
    pub const fn plain(number: f64) -> Self {
        Self::Number(number, Dimension::Plain)
    }

    /// The value of a fact that was read.
    pub fn of_fact(fact: &Fact) -> Self {
        Self::of_json(&fact.value, &fact.unit)
    }

    /// A JSON value; numbers in it are in `unit`.
    pub fn of_json(json: &Json, unit: &str) -> Self {
        match json {
            Json::Null => Self::Nothing,
            Json::Bool(b) => Self::Bool(*b),
            Json::Number(n) => {
                let (factor, dimension) = unit::of_fact(unit);
                Self::Number(n.as_f64().unwrap_or(f64::NAN) * factor, dimension)
            }
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(|i| Self::of_json(i, unit)).collect()),
            Json::Object(map) => Self::Record(map.clone()),
        }
    }

    /// The kind of the value, for error texts.
    pub fn kind(&self) -> String {
        match self {
            Self::Bool(_) => "yes or no".to_owned(),
            Self::Number(_, dimension) => dimension.to_string(),
            Self::Text(text) => format!("the text {text:?}"),
            Self::Version(v) => format!("the version {v}"),
            Self::List(_) => "a list".to_owned(),
            Self::Record(_) => "a record".to_owned(),
            Self::Nothing => "nothing".to_owned(),
        }
    }

    /// For people: `8 GiB`, `12 %`, `O_DIRECT`.
    pub fn shown(&self) -> String {
        match self {
            Self::Bool(true) => "yes".to_owned(),
            Self::Bool(false) => "no".to_owned(),
            Self::Number(n, dimension) => shown_number(*n, *dimension),
            Self::Text(text) if text.is_empty() => "(empty)".to_owned(),
            Self::Text(text) => text.clone(),
            Self::Version(v) => v.to_string(),
            Self::List(items) => {
                const SHOWN: usize = 8;
                // Long entries: three of them have to do.
                const LONG: usize = 400;
                let mut texts: Vec<String> = Vec::new();
                for item in items.iter().take(SHOWN) {
                    if texts.len() >= 3 && texts.iter().map(String::len).sum::<usize>() >= LONG {
                        break;
                    }
                    texts.push(item.shown());
                }
                // Lists of facts are cut after so many entries: how many there are is not known then.
                match items.len() {
                    CUT_AFTER => texts.push("…".to_owned()),
                    all if all > texts.len() => texts.push(format!("… ({all} in all)")),
                    _ => {}
                }
                // Records have commas of their own.
                let between = if matches!(items.first(), Some(Self::Record(_))) { "; " } else { ", " };
                if texts.is_empty() { "none".to_owned() } else { texts.join(between) }
            }
            Self::Record(map) => shown_record(map),
            Self::Nothing => "nothing".to_owned(),
        }
    }
}

/// Entries that most lists of facts keep.
pub const CUT_AFTER: usize = 20;

/// A record as `shop.orders (index a, covered by b)`: its first field, which names it, and the others behind it.
fn shown_record(map: &serde_json::Map<String, Json>) -> String {
    let mut fields = map.iter();
    let first = match fields.next() {
        Some((_, Json::String(text))) if !text.is_empty() => text.clone(),
        Some((name, value)) => shown_field(name, value),
        None => return "nothing".to_owned(),
    };
    // What is empty tells nothing.
    let tells =
        |value: &Json| value.as_str() != Some("") && value.as_array().is_none_or(|all| !all.is_empty());
    let others = fields.filter(|(_, value)| tells(value)).map(|(name, value)| shown_field(name, value));
    let others: Vec<String> = others.collect();
    if others.is_empty() { first } else { format!("{first} ({})", others.join(", ")) }
}

/// Fields whose text needs no name before it, and names that need other words.
const PLAIN_FIELDS: [&str; 1] = ["why"];
const WORDS: [(&str, &str); 1] = [("asleep_long", "asleep for ten minutes")];

/// Formats a field of a record. The unit is the suffix of the name, as in `free_bytes`.
fn shown_field(name: &str, value: &Json) -> String {
    if let (true, Some(text)) = (PLAIN_FIELDS.contains(&name), value.as_str()) {
        return text.to_owned();
    }
    let name = WORDS.iter().find(|(field, _)| *field == name).map_or(name, |(_, words)| *words);
    if let ("left_s", Some(left)) = (name, value.as_f64())
        && left < 0.0
    {
        return format!("ended {} ago", Value::Number(-left, Dimension::SECONDS).shown());
    }
    if let ("used" | "share" | "of_all", Some(share)) = (name, value.as_f64()) {
        return format!("{} {}", name.replace('_', " "), Value::Number(share, Dimension::Share).shown());
    }
    let (name, unit) = match (name.strip_suffix("_bytes"), name.strip_suffix("_s")) {
        (Some(short), _) => (short, "bytes"),
        (_, Some(short)) => (short, "s"),
        _ => (name, ""),
    };
    format!("{} {}", name.replace('_', " "), Value::of_json(value, unit).shown())
}

fn shown_number(n: f64, dimension: Dimension) -> String {
    if n.is_infinite() {
        return if n > 0.0 { "unlimited" } else { "-unlimited" }.to_owned();
    }
    match dimension {
        Dimension::Share => format!("{} %", trimmed(n * 100.0)),
        Dimension::BYTES => signed(n, show_bytes),
        Dimension::SECONDS => signed(n, mydyno_model::units::show_seconds),
        Dimension::Of { bytes: 1, seconds: -1 } => format!("{}/s", signed(n, show_bytes)),
        Dimension::Of { bytes: 0, seconds: -1 } => format!("{}/s", trimmed(n)),
        _ => trimmed(n),
    }
}

fn signed(n: f64, show: impl Fn(f64) -> String) -> String {
    if n < 0.0 { format!("-{}", show(-n)) } else { show(n) }
}

/// Whole numbers without decimals, others with three digits.
fn trimmed(n: f64) -> String {
    if n.fract() == 0.0 && n.abs() < 1e15 { format!("{n:.0}") } else { three_digits(n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_servers_and_kernels_say() {
        for (text, version) in [
            ("10.11.6-MariaDB-0+deb12u1-log", Version(10, 11, 6)),
            ("8.0.36", Version(8, 0, 36)),
            ("6.18.44", Version(6, 18, 44)),
            ("6.1-rc3", Version(6, 1, 0)),
            ("5.15.0-91-generic", Version(5, 15, 0)),
        ] {
            assert_eq!(Version::read(text), Some(version), "{text}");
        }
        assert_eq!(Version::read("generic"), None);
        assert_eq!(Version::from_number(101_119.0), Some(Version(10, 11, 19)));
        assert!(Version(8, 0, 9) < Version(8, 0, 30) && Version(5, 9, 0) < Version(5, 10, 0));
        assert_eq!(Version(8, 0, 30).below(), Version(8, 0, 29));
        assert_eq!(Version(11, 0, 0).below(), Version(10, 99, 99));
    }

    #[test]
    fn values_are_shown_with_their_unit() {
        assert_eq!(Value::Number(8.0 * 1073741824.0, Dimension::BYTES).shown(), "8 GiB");
        assert_eq!(Value::Number(0.2, Dimension::Share).shown(), "20 %");
        assert_eq!(Value::Number(90.0, Dimension::SECONDS).shown(), "1 min 30 s");
        assert_eq!(Value::Number(3.5, Dimension::Of { bytes: 0, seconds: -1 }).shown(), "3.5/s");
        assert_eq!(Value::plain(1_000_000.0).shown(), "1000000");
        assert_eq!(Value::List(vec![]).shown(), "none");
        let record = serde_json::json!({"table": "shop.log", "free_bytes": 8_589_934_592_u64, "age_s": 90});
        assert_eq!(Value::of_json(&record, "").shown(), "shop.log (free 8 GiB, age 1 min 30 s)");
        let past = serde_json::json!({"table": "shop.log", "left_s": -86_400, "used": 0.7});
        assert_eq!(Value::of_json(&past, "").shown(), "shop.log (ended 24 h ago, used 70 %)");
        let two = serde_json::json!([
            {"table": "shop.orders", "index": "a", "covered_by": "b"},
            {"column": "amount", "types": ["double", "float"]},
            {"session": 17, "user": "app"},
        ]);
        assert_eq!(
            Value::of_json(&two, "").shown(),
            "shop.orders (index a, covered by b); amount (types double, float); session 17 (user app)"
        );
        let bare =
            serde_json::json!([{"user": "app", "schema": "", "why": "it is silent", "asleep_long": 2}]);
        assert_eq!(Value::of_json(&bare, "").shown(), "app (it is silent, asleep for ten minutes 2)");
        let long: Vec<String> = (0..5).map(|n| format!("{n}{}", "x".repeat(200))).collect();
        assert!(Value::of_json(&serde_json::json!(long), "").shown().ends_with("… (5 in all)"));
    }
}
