//! Tables and checks of a mix.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, in_order};
use super::values;
use mydyno_tables::condition::Condition;
use mydyno_tables::own_tables::{ColumnSpec, TableSpec, changes_rows, target};
use mydyno_tables::sql_text::{self, Class, Token};

impl Reader<'_> {
    pub(super) fn mix_table(
        &mut self,
        name: &str,
        at: Range<usize>,
        table: &DeTable<'_>,
    ) -> Option<TableSpec> {
        let before = self.mistakes();
        self.unknown_keys(table, &["create", "rows", "columns", "after"], "a table");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) || name.starts_with("mydyno") {
            self.error(
                at.clone(),
                format!(
                    "{name:?} is not a name for a table: letters, digits and _, not beginning with mydyno"
                ),
            );
        }
        let create = self.required(table, "create", "a table", &at);
        let create = create.and_then(|value| Some((self.one_statement(value)?, value.span())));
        if let Some((sql, at)) = &create {
            if created(sql) != Some(name) {
                self.error(at.clone(), format!("this should be CREATE TABLE {name} (…)"));
            }
            self.stays_home(sql, at);
        }
        let rows = match table.get("rows") {
            Some(rows) => self.count(rows, 0, 10_000_000_000).unwrap_or(0),
            None => 0,
        };
        let columns = table.get("columns").and_then(|c| self.table(c)).map(in_order).unwrap_or_default();
        let columns: Vec<ColumnSpec> = columns
            .into_iter()
            .filter_map(|(column, at, value)| {
                let generator = values::read_made(self, value)?;
                Some(ColumnSpec { name: column.to_owned(), generator, place: self.place(&at) })
            })
            .collect();
        if rows > 0 && columns.is_empty() && self.mistakes() == before {
            self.error(
                at.clone(),
                format!("table {name} has rows: [tables.{name}.columns] must say what is in them"),
            );
        }
        let after = match table.get("after").and_then(|a| self.array(a)) {
            None => Vec::new(),
            Some(list) => list.iter().filter_map(|value| self.finishing(value)).collect(),
        };
        let place = self.place(&at);
        let (create, _) = create?;
        let name = name.to_owned();
        (self.mistakes() == before).then_some(TableSpec { name, create, columns, rows, after, place })
    }

    /// Parses a statement that runs after the filling.
    fn finishing(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let sql = self.one_statement(value)?;
        let Some(table) = target(&sql) else {
            self.error(
                value.span(),
                "after the rows may come CREATE INDEX … ON, ALTER TABLE, ANALYZE TABLE, INSERT, UPDATE, DELETE"
                    .to_owned(),
            );
            return None;
        };
        let before = self.mistakes();
        self.stays_home(&sql, &value.span());
        if self.mistakes() == before && !self.rows.contains_key(table) {
            self.error(
                value.span(),
                format!("the mix has no table {table:?}: after the rows its own tables are finished only"),
            );
            return None;
        }
        Some(sql)
    }

    /// Checks that a statement that creates the mix's data names no other database.
    fn stays_home(&mut self, sql: &str, at: &Range<usize>) {
        let tokens = sql_text::tokens(sql);
        if tokens.iter().any(|(token, _)| *token == Token::Executable) {
            self.error(at.clone(), "a comment that servers execute may do anything: take it out".to_owned());
        }
        let named =
            if changes_rows(sql) { sql_text::named_databases(sql) } else { sql_text::dotted_names(sql) };
        if let Some(database) = named.first() {
            self.error(
                at.clone(),
                format!("{database:?} looks like another database: tables of a mix are named without one"),
            );
        }
    }

    pub(super) fn check(&mut self, check: &DeTable<'_>, at: Range<usize>) -> Option<Condition> {
        self.unknown_keys(check, &["about", "sql", "expect"], "a check");
        let about = self.required(check, "about", "a check", &at).and_then(|v| self.string(v));
        let sql = self.required(check, "sql", "a check", &at).and_then(|value| {
            let sql = self.one_statement(value)?;
            if sql_text::classify(&sql) != Class::Reads {
                self.error(value.span(), "a check only reads".to_owned());
            }
            Some(sql)
        });
        let expected =
            self.required(check, "expect", "a check", &at).and_then(|value| match value.get_ref() {
                DeValue::Integer(_) => self.int(value).map(|n| n.to_string()),
                _ => self.string(value),
            });
        Some(Condition { about: about?, sql: sql?, expected: expected? })
    }
}

/// The table that a statement creates.
fn created(sql: &str) -> Option<&str> {
    let tokens = sql_text::tokens(sql);
    let word = |at: usize, wanted: &str| matches!(tokens.get(at), Some((Token::Word(w), _)) if w.eq_ignore_ascii_case(wanted));
    if !word(0, "CREATE") || !word(1, "TABLE") {
        return None;
    }
    match tokens.get(2) {
        Some((Token::Word(name) | Token::Name(name), _)) => Some(name),
        _ => None,
    }
}
