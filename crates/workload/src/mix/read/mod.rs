//! Parses the file of a mix, and reports all its mistakes at once.

mod reader;
mod tables;
mod transactions;
mod values;

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::MixError;
use super::described::Description;
use super::place::Places;
use reader::{Reader, in_order};

/// Parses a file.
///
/// # Errors
/// All mistakes, in the order of the file.
pub fn read(file: &str, text: &str) -> Result<Description, Vec<MixError>> {
    let (document, syntax) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        file,
        places: Places::new(text),
        errors: Vec::new(),
        more: 0,
        rows: BTreeMap::new(),
        counters: 0,
    };
    for error in syntax {
        reader.error(error.span().unwrap_or(0..0), error.message().to_owned());
    }
    // A part that could not be parsed would only cause follow-up mistakes.
    let description =
        if reader.errors.is_empty() { reader.document(document.get_ref()) } else { Description::default() };
    if reader.errors.is_empty() {
        return Ok(description);
    }
    reader.errors.sort_by_key(|e| (e.line, e.column));
    if reader.more > 0 {
        let last = reader.errors.last();
        reader.errors.push(MixError {
            file: file.to_owned(),
            line: last.map_or(1, |e| e.line),
            column: last.map_or(1, |e| e.column),
            problem: format!("and {} more mistakes", reader.more),
        });
    }
    Err(reader.errors)
}

impl Reader<'_> {
    fn document(&mut self, document: &DeTable<'_>) -> Description {
        self.unknown_keys(document, &["about", "think_time", "tables", "transactions", "checks"], "a mix");
        let mut description = Description::default();
        if let Some(about) = document.get("about") {
            description.about = self.string(about).unwrap_or_default();
        }
        if let Some(think) = document.get("think_time") {
            description.think_s = self.duration_s(think);
        }
        let tables = document.get("tables").and_then(|t| self.table(t)).map(in_order).unwrap_or_default();
        for (name, _, table) in &tables {
            let rows = table.get_ref().as_table().and_then(|t| t.get("rows"));
            let rows = rows.and_then(|r| r.get_ref().as_integer()?.as_str().parse().ok()).unwrap_or(0);
            self.rows.insert((*name).to_owned(), rows);
        }
        for (name, at, table) in tables {
            if let Some(table) = self.table(table).and_then(|t| self.mix_table(name, at, t)) {
                description.tables.push(table);
            }
        }
        if let Some(checks) = document.get("checks").and_then(|c| self.array(c)) {
            for check in checks {
                description.checks.extend(self.table(check).and_then(|c| self.check(c, check.span())));
            }
        }
        let transactions = document.get("transactions").and_then(|t| self.table(t)).map(in_order);
        match transactions {
            None if document.get("transactions").is_some() => {}
            Some(list) if !list.is_empty() => {
                let (first, before) = (list[0].1.clone(), self.mistakes());
                for (name, at, transaction) in list {
                    if let Some(table) = self.table(transaction) {
                        description.transactions.extend(self.transaction(name, at, table));
                    }
                }
                if self.mistakes() == before && description.transactions.iter().all(|t| t.weight == 0) {
                    self.error(first, "at least one transaction needs a weight above 0".to_owned());
                }
            }
            _ => {
                self.error(0..0, "a mix needs a transaction: [transactions.NAME] with statements".to_owned())
            }
        }
        description
    }

    fn duration_s(&mut self, value: &Spanned<DeValue<'_>>) -> f64 {
        let Some(text) = self.string(value) else { return 0.0 };
        match mydyno_model::units::parse_duration(&text) {
            Ok(duration) => duration.as_secs_f64(),
            Err(error) => {
                self.error(value.span(), error.to_string());
                0.0
            }
        }
    }
}
