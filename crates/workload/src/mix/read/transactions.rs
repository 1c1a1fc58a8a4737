//! Transactions of a mix and their statements.

use std::ops::Range;

use mydyno_settings::nearest;
use toml::de::DeTable;

use super::reader::{Reader, in_order};
use super::values::{self, Described};
use crate::mix::described::{MOST_COUNTERS, MOST_PARAMS, MOST_VALUES, Param, Slot, Statement, Transaction};
use mydyno_tables::generator::Generator;
use mydyno_tables::sql_text::{self, Token};

/// Bytes reserved for a text whose length only the server knows; longer texts work too.
const KEPT_TEXT_BYTES: usize = 64;

impl Reader<'_> {
    pub(super) fn transaction(
        &mut self,
        name: &str,
        at: Range<usize>,
        table: &DeTable<'_>,
    ) -> Option<Transaction> {
        let before = self.mistakes();
        self.unknown_keys(table, &["weight", "begin", "values", "statements"], "a transaction");
        let weight = table.get("weight").map_or(Some(1), |w| self.count(w, 0, 1_000_000_000));
        let begin = table.get("begin").map(|b| self.switch(b).unwrap_or(true));
        let mut names = Names { list: Vec::new(), drawn: 0 };
        let mut values = Vec::new();
        for (value_name, at, value) in
            table.get("values").and_then(|v| self.table(v)).map(in_order).unwrap_or_default()
        {
            let generator = values::read_made(self, value);
            // An invalid value keeps its name, since otherwise each use of it would be a further mistake.
            let text = generator.as_ref().and_then(|g| g.is_text().then(|| g.longest()));
            names.add(self, value_name, text, at);
            if let Some(generator) = generator {
                self.counted(&generator, &value.span());
                values.push(generator);
            }
        }
        names.drawn = names.list.len();
        let list = self.required(table, "statements", "a transaction", &at).and_then(|s| self.array(s));
        let mut statements = Vec::new();
        for statement in list.into_iter().flatten() {
            if let Some(table) = self.table(statement) {
                let number = statements.len() + 1;
                statements.extend(self.statement(name, number, statement.span(), table, &mut names));
            }
        }
        if list.is_some_and(|l| l.is_empty()) {
            self.error(at, "a transaction needs a statement".to_owned());
        }
        let several = statements.len() > 1 || statements.iter().any(|s| s.repeat > 1);
        let begin = begin.unwrap_or(several);
        (self.mistakes() == before).then_some(Transaction { weight: weight?, begin, values, statements })
    }

    /// Counts a generator that needs a counter.
    fn counted(&mut self, generator: &Generator, at: &Range<usize>) {
        if matches!(generator, Generator::Sequence { .. } | Generator::Unique) {
            self.counters += 1;
            if self.counters == MOST_COUNTERS + 1 {
                self.error(
                    at.clone(),
                    format!(
                        "the transactions of a mix have at most {MOST_COUNTERS} sequences and unique numbers"
                    ),
                );
            }
        }
    }

    fn statement(
        &mut self,
        transaction: &str,
        number: usize,
        at: Range<usize>,
        table: &DeTable<'_>,
        names: &mut Names,
    ) -> Option<Statement> {
        let before = self.mistakes();
        self.unknown_keys(table, &["name", "sql", "params", "repeat", "keep"], "a statement");
        let name = table.get("name").and_then(|n| self.string(n)).unwrap_or_else(|| number.to_string());
        let repeat = table.get("repeat").map_or(Some(1), |r| self.count(r, 1, 100_000));
        let value = self.required(table, "sql", "a statement", &at)?;
        let sql = self.one_statement(value)?;
        if let Some((Token::Word(word), _)) = sql_text::tokens(&sql).first()
            && ["BEGIN", "START", "COMMIT", "ROLLBACK"].iter().any(|w| w.eq_ignore_ascii_case(word))
        {
            self.error(
                value.span(),
                "BEGIN and COMMIT are set by the transaction's `begin = true`".to_owned(),
            );
        }
        let (sql, params) = self.params(&sql, value.span(), table, names);
        if params.len() > MOST_PARAMS {
            self.error(value.span(), format!("a statement has at most {MOST_PARAMS} parameters"));
        }
        let mut keep = Vec::new();
        for (kept, at, kind) in
            table.get("keep").and_then(|k| self.table(k)).map(in_order).unwrap_or_default()
        {
            let text = match self.string(kind).as_deref() {
                Some("int") => None,
                Some("text") => Some(KEPT_TEXT_BYTES),
                _ => {
                    self.error(kind.span(), "a kept column is \"int\" or \"text\"".to_owned());
                    continue;
                }
            };
            keep.extend(names.add(self, kept, text, at));
        }
        let (name, place) = (format!("{transaction}.{name}"), self.place(&value.span()));
        let repeat = u32::try_from(repeat?).ok()?;
        (self.mistakes() == before).then_some(Statement { name, place, sql, params, repeat, keep })
    }

    /// The text with `?` for each parameter, and the parameters.
    fn params(
        &mut self,
        sql: &str,
        at: Range<usize>,
        table: &DeTable<'_>,
        names: &Names,
    ) -> (String, Vec<Param>) {
        let (mut text, mut end) = (String::with_capacity(sql.len()), 0);
        let (mut named, mut marks) = (Vec::new(), 0);
        for (token, place) in sql_text::tokens(sql) {
            match token {
                Token::Parameter => marks += 1,
                Token::Named(name) => {
                    text.push_str(&sql[end..place.start]);
                    text.push('?');
                    end = place.end;
                    named.extend(names.find(self, name, at.clone()).map(Param::Slot));
                }
                _ => {}
            }
        }
        text.push_str(&sql[end..]);
        let given = table.get("params").map(|p| (p.span(), self.array(p)));
        match given {
            None if marks > 0 => {
                self.error(at, format!("the statement has {marks} `?`: `params` must say what goes there"));
            }
            Some((span, _)) if end > 0 => {
                self.error(span, "a statement has either `?` with params, or :names".to_owned());
            }
            Some((span, Some(list))) => {
                if list.len() != marks {
                    self.error(span, format!("the statement has {marks} `?` and {} params", list.len()));
                }
                for value in list {
                    named.extend(match values::read(self, value) {
                        Some(Described::Made(generator)) => {
                            self.counted(&generator, &value.span());
                            Some(Param::Made(generator))
                        }
                        Some(Described::Value(name, at)) => names.find(self, &name, at).map(Param::Slot),
                        None => None,
                    });
                }
            }
            _ => {}
        }
        (text, named)
    }
}

/// Values of a transaction by their names.
struct Names {
    list: Vec<(String, Slot)>,
    /// Number of names drawn at its start; the others are kept from results.
    drawn: usize,
}

impl Names {
    /// Adds a name; it replaces one of the same name from here on.
    fn add(
        &mut self,
        reader: &mut Reader<'_>,
        name: &str,
        text: Option<usize>,
        at: Range<usize>,
    ) -> Option<Slot> {
        if self.list.len() == MOST_VALUES {
            reader.error(at, format!("a transaction has at most {MOST_VALUES} values"));
            return None;
        }
        if self.list.iter().any(|(known, _)| known == name) {
            reader.error(at, format!("this transaction has a value {name:?} already"));
            return None;
        }
        let slot = Slot { number: self.list.len() as u8, text };
        self.list.push((name.to_owned(), slot));
        Some(slot)
    }

    fn find(&self, reader: &mut Reader<'_>, name: &str, at: Range<usize>) -> Option<Slot> {
        let found = self.list.iter().find(|(known, _)| known == name).map(|(_, slot)| *slot);
        if found.is_none() {
            let hint = nearest(name, self.list.iter().map(|(known, _)| known.as_str()));
            let hint = hint.map(|n| format!(", did you mean :{n}?")).unwrap_or_default();
            reader.error(
                at,
                format!("nothing gives :{name} a value: name it in `values`, or in `keep` of an earlier statement{hint}"),
            );
        }
        found
    }
}
