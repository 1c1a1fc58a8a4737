//! Values in a mix: constants, and generators as tables with one key that names the kind.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::Reader;
use mydyno_tables::generator::{Constant, Generator, pattern};
use mydyno_tables::zipf::Zipf;

/// Default exponent of zipfian numbers: that of the YCSB benchmark.
const EXPONENT: f64 = 0.99;

/// Maximum length of a generated text, in bytes.
const LONGEST_TEXT: i64 = 65_535;

/// Keys of which a value has exactly one, which names its kind.
const KINDS: &[&str] = &[
    "uniform",
    "zipfian",
    "sequence",
    "unique",
    "pattern",
    "alphanumeric",
    "choice",
    "guid",
    "constant",
    "value",
];

/// A described value.
#[derive(Debug, Clone, PartialEq)]
pub enum Described {
    /// Made by a generator.
    Made(Generator),
    /// A value of the same transaction, by its name.
    Value(String, Range<usize>),
}

/// Parses a value; `None` after recording its mistakes.
pub fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Described> {
    match value.get_ref() {
        DeValue::Table(table) => read_table(reader, table, value.span()),
        _ => constant(reader, value).map(|c| Described::Made(Generator::Constant(c))),
    }
}

/// Parses a value that comes from no transaction; `None` after recording its mistakes.
pub fn read_made(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Generator> {
    match read(reader, value)? {
        Described::Made(generator) => Some(generator),
        Described::Value(name, at) => {
            reader.error(at, format!("{name:?} can only be used in `params` of a statement"));
            None
        }
    }
}

fn constant(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Constant> {
    match value.get_ref() {
        DeValue::String(text) => Some(Constant::Text(text.as_ref().into())),
        DeValue::Integer(_) => reader.int(value).map(Constant::Int),
        other => {
            let problem = format!(
                "{} is not a value: give a text, a whole number or a generator like {{ uniform = [1, 100] }}",
                other.type_str()
            );
            reader.error(value.span(), problem);
            None
        }
    }
}

fn read_table(reader: &mut Reader<'_>, table: &DeTable<'_>, at: Range<usize>) -> Option<Described> {
    let kinds: Vec<_> = table.iter().filter(|(key, _)| KINDS.contains(&key.get_ref().as_ref())).collect();
    let [(kind, value)] = kinds.as_slice() else {
        if kinds.is_empty() && !table.is_empty() {
            reader.unknown_keys(table, KINDS, "a generator");
        } else {
            reader.error(at, format!("a generator has exactly one of {}", KINDS.join(", ")));
        }
        return None;
    };
    let more: &[&str] = match kind.get_ref().as_ref() {
        "zipfian" => &["exponent"],
        "sequence" => &["step"],
        "choice" => &["weights"],
        _ => &[],
    };
    let known: Vec<&str> = more.iter().copied().chain([kind.get_ref().as_ref()]).collect();
    let before = reader.mistakes();
    reader.unknown_keys(table, &known, &format!("a {} generator", kind.get_ref()));
    let generator = match kind.get_ref().as_ref() {
        "uniform" => reader.range_or_rows(value).map(|(low, high)| Generator::Uniform { low, high }),
        "zipfian" => zipfian(reader, table, value),
        "sequence" => sequence(reader, table, value),
        "unique" => reader.only_true(value, "unique").then_some(Generator::Unique),
        "guid" => reader.only_true(value, "guid").then_some(Generator::Guid),
        "pattern" => reader.string(value).map(|text| Generator::Pattern(pattern(&text))),
        "alphanumeric" => alphanumeric(reader, value),
        "choice" => choice(reader, table, value),
        "constant" => constant(reader, value).map(Generator::Constant),
        _ => {
            let name = reader.string(value)?;
            return Some(Described::Value(name, value.span()));
        }
    }?;
    (reader.mistakes() == before).then_some(Described::Made(generator))
}

fn zipfian(reader: &mut Reader<'_>, table: &DeTable<'_>, value: &Spanned<DeValue<'_>>) -> Option<Generator> {
    let (low, high) = reader.range_or_rows(value)?;
    let exponent = match table.get("exponent") {
        None => EXPONENT,
        Some(given) => {
            let exponent = reader.number(given)?;
            if !(exponent > 0.0 && exponent <= 10.0) {
                reader.error(given.span(), "an exponent lies above 0 and not above 10".to_owned());
                return None;
            }
            exponent
        }
    };
    let count = high.abs_diff(low).saturating_add(1);
    if count > 1 << 52 {
        reader.error(value.span(), "a zipfian range has at most 2^52 numbers".to_owned());
        return None;
    }
    Some(Generator::Zipfian { low, ranks: Zipf::new(count, exponent) })
}

fn sequence(reader: &mut Reader<'_>, table: &DeTable<'_>, value: &Spanned<DeValue<'_>>) -> Option<Generator> {
    let from = reader.int(value)?;
    let step = match table.get("step") {
        None => 1,
        Some(given) => reader.int(given)?,
    };
    Some(Generator::Sequence { from, step })
}

fn alphanumeric(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Option<Generator> {
    let (min, max) = match value.get_ref() {
        DeValue::Integer(_) => {
            let length = reader.int(value)?;
            (length, length)
        }
        _ => reader.range(value)?,
    };
    if min < 0 || max > LONGEST_TEXT {
        reader.error(value.span(), format!("lengths lie between 0 and {LONGEST_TEXT}"));
        return None;
    }
    Some(Generator::Alphanumeric { min: min as u32, max: max as u32 })
}

fn choice(reader: &mut Reader<'_>, table: &DeTable<'_>, value: &Spanned<DeValue<'_>>) -> Option<Generator> {
    let list = reader.array(value)?;
    let values: Vec<Constant> = list.iter().map(|v| constant(reader, v)).collect::<Option<_>>()?;
    let text = |c: &Constant| matches!(c, Constant::Text(_));
    if values.is_empty() || values.iter().any(|c| text(c) != text(&values[0])) {
        reader.error(value.span(), "a choice is a list of texts, or of whole numbers".to_owned());
        return None;
    }
    let weights: Vec<u64> = match table.get("weights") {
        None => vec![1; values.len()],
        Some(given) => {
            let weights = reader.array(given)?;
            let weights: Vec<i64> = weights.iter().map(|w| reader.int(w)).collect::<Option<_>>()?;
            if weights.len() != values.len() || weights.iter().any(|w| !(0..=1_000_000_000).contains(w)) {
                let problem =
                    format!("weights are {} numbers from 0 to 1000000000, one a value", values.len());
                reader.error(given.span(), problem);
                return None;
            }
            weights.into_iter().map(|w| w as u64).collect()
        }
    };
    let mut sum = 0;
    let up_to: Box<[u64]> = weights
        .iter()
        .map(|w| {
            sum += w;
            sum
        })
        .collect();
    if sum == 0 {
        reader.error(value.span(), "a choice needs a weight above 0".to_owned());
        return None;
    }
    Some(Generator::Choice { values: values.into(), up_to })
}
