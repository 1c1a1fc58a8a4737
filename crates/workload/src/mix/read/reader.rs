//! Reads the parts of a TOML document one by one, and records mistakes with their positions.

use std::collections::BTreeMap;
use std::ops::Range;

use mydyno_settings::nearest;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::mix::MixError;
use crate::mix::place::Places;
use mydyno_tables::sql_text::{self, NotOne};

/// Maximum number of mistakes that are listed; further ones are counted.
pub(super) const MOST_ERRORS: usize = 100;

/// Longest key for which a similar name is searched, in bytes.
const LONGEST_KEY: usize = 100;

/// Reads parts of a document and records mistakes.
pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) places: Places<'a>,
    /// The first [`MOST_ERRORS`] mistakes.
    pub(super) errors: Vec<MixError>,
    /// Number of mistakes beyond those.
    pub(super) more: usize,
    /// Numbers of rows of the tables.
    pub(super) rows: BTreeMap<String, u64>,
    /// Number of sequences and unique numbers so far.
    pub(super) counters: usize,
}

/// Entries in the order of the file.
pub(super) fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t str, Range<usize>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> =
        table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value)).collect();
    entries.sort_by_key(|(_, key, _)| key.start);
    entries
}

impl Reader<'_> {
    pub(super) fn error(&mut self, at: Range<usize>, problem: String) {
        if self.is_full() {
            self.more += 1;
            return;
        }
        let (line, column) = self.places.line_and_column(at.start);
        self.errors.push(MixError { file: self.file.to_owned(), line, column, problem });
    }

    /// Whether further mistakes are only counted, so that their texts are not needed.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// Number of mistakes so far.
    pub(super) fn mistakes(&self) -> usize {
        self.errors.len() + self.more
    }

    pub(super) fn place(&self, at: &Range<usize>) -> String {
        let (line, column) = self.places.line_and_column(at.start);
        format!("{}:{line}:{column}", self.file)
    }

    /// Records every unknown key.
    pub(super) fn unknown_keys(&mut self, table: &DeTable<'_>, known: &[&str], of: &str) {
        for (key, at, _) in in_order(table) {
            if !known.contains(&key) {
                if self.is_full() {
                    self.more += 1;
                    continue;
                }
                let (key, near) = match key.char_indices().nth(LONGEST_KEY) {
                    Some((end, _)) => (&key[..end], None),
                    None => (key, nearest(key, known.iter().copied())),
                };
                let hint = match near {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("it may have {}", known.join(", ")),
                };
                self.error(at, format!("{of} has no key {key:?}: {hint}"));
            }
        }
    }

    pub(super) fn wrong_type(&mut self, value: &Spanned<DeValue<'_>>, expected: &str) {
        let problem = format!("{} where {expected} is expected", value.get_ref().type_str());
        self.error(value.span(), problem);
    }

    pub(super) fn string(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong_type(value, "a text");
        }
        text
    }

    pub(super) fn int(&mut self, value: &Spanned<DeValue<'_>>) -> Option<i64> {
        let Some(given) = value.get_ref().as_integer() else {
            self.wrong_type(value, "a whole number");
            return None;
        };
        let number = i64::from_str_radix(given.as_str(), given.radix()).ok();
        if number.is_none() {
            self.error(value.span(), "the number does not fit 64 bits".to_owned());
        }
        number
    }

    /// A whole number between two bounds, both included.
    pub(super) fn count(&mut self, value: &Spanned<DeValue<'_>>, min: i64, max: i64) -> Option<u64> {
        let number = self.int(value)?;
        if !(min..=max).contains(&number) {
            self.error(value.span(), format!("{number} is not a whole number from {min} to {max}"));
            return None;
        }
        u64::try_from(number).ok()
    }

    pub(super) fn number(&mut self, value: &Spanned<DeValue<'_>>) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Float(given) => given.as_str().parse().ok(),
            DeValue::Integer(_) => return self.int(value).map(|n| n as f64),
            _ => None,
        };
        if number.is_none() {
            self.wrong_type(value, "a number");
        }
        number
    }

    pub(super) fn switch(&mut self, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        let switch = value.get_ref().as_bool();
        if switch.is_none() {
            self.wrong_type(value, "true or false");
        }
        switch
    }

    pub(super) fn only_true(&mut self, value: &Spanned<DeValue<'_>>, key: &str) -> bool {
        let is = value.get_ref().as_bool() == Some(true);
        if !is {
            self.error(value.span(), format!("write {key} = true"));
        }
        is
    }

    pub(super) fn array<'v, 'i>(&mut self, value: &'v Spanned<DeValue<'i>>) -> Option<&'v DeArray<'i>> {
        let array = value.get_ref().as_array();
        if array.is_none() {
            self.wrong_type(value, "a list");
        }
        array
    }

    pub(super) fn table<'v, 'i>(&mut self, value: &'v Spanned<DeValue<'i>>) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(value, "a table");
        }
        table
    }

    /// `[low, high]`.
    pub(super) fn range(&mut self, value: &Spanned<DeValue<'_>>) -> Option<(i64, i64)> {
        let list = self.array(value)?;
        let ends: Vec<i64> = list.iter().map(|end| self.int(end)).collect::<Option<_>>()?;
        let [low, high] = ends.as_slice() else {
            self.error(value.span(), "a range is [lowest, highest]".to_owned());
            return None;
        };
        if low > high {
            self.error(value.span(), format!("a range goes upward: [{high}, {low}]"));
            return None;
        }
        Some((*low, *high))
    }

    /// `[low, high]`, or the name of a table for the range of its row numbers.
    pub(super) fn range_or_rows(&mut self, value: &Spanned<DeValue<'_>>) -> Option<(i64, i64)> {
        let Some(name) = value.get_ref().as_str() else { return self.range(value) };
        match self.rows.get(name) {
            Some(0) => {
                self.error(value.span(), format!("table {name} has no rows in the beginning"));
                None
            }
            Some(rows) => Some((1, *rows as i64)),
            None => {
                let similar = !self.is_full() && name.len() <= LONGEST_KEY;
                let names = self.rows.keys().map(String::as_str).filter(|_| similar);
                let hint = nearest(name, names);
                let hint = hint.map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
                self.error(
                    value.span(),
                    format!("the mix has no table {name:?}{hint}: give [lowest, highest] or a table"),
                );
                None
            }
        }
    }

    /// A required key.
    pub(super) fn required<'t, 'i>(
        &mut self,
        table: &'t DeTable<'i>,
        key: &str,
        of: &str,
        at: &Range<usize>,
    ) -> Option<&'t Spanned<DeValue<'i>>> {
        let value = table.get(key);
        if value.is_none() {
            self.error(at.clone(), format!("{of} needs {key}"));
        }
        value
    }

    /// Exactly one statement, without its semicolon.
    pub(super) fn one_statement(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let sql = self.string(value)?;
        match sql_text::single(&sql) {
            Ok(single) => Some(single.to_owned()),
            Err(NotOne::Empty) => {
                self.error(value.span(), "there is no statement in this text".to_owned());
                None
            }
            Err(NotOne::Several(_)) => {
                self.error(value.span(), "these are several statements: give one at a time".to_owned());
                None
            }
        }
    }
}
