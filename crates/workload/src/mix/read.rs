//! The file of a mix, read with all its mistakes at once.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::MixError;
use super::place::line_and_column;
use super::values::{self, Described};
use crate::generator::Generator;
use crate::options::nearest;
use crate::own_tables::{CheckSpec, ColumnSpec, TableSpec};
use crate::session::ParamType;
use crate::sql_text::{self, Class, NotOne, Token};

/// Parameters of a statement, and values of a transaction, at the most.
pub const MOST_PARAMS: usize = 64;
pub const MOST_VALUES: usize = 32;
/// Sequences and unique numbers of all transactions, at the most.
pub const MOST_COUNTERS: usize = 8;

/// Bytes that are laid out for a text whose length only the server knows; longer ones work too.
const KEPT_TEXT_BYTES: usize = 64;

/// What a file describes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Description {
    pub about: String,
    pub think_s: f64,
    pub tables: Vec<TableSpec>,
    pub checks: Vec<CheckSpec>,
    pub transactions: Vec<Transaction>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    pub weight: u64,
    /// BEGIN and COMMIT around the statements.
    pub begin: bool,
    /// Drawn at the start of each transaction: the first slots.
    pub values: Vec<Generator>,
    pub statements: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// As in `buy.pick`.
    pub name: String,
    /// As in `shop.toml:12`.
    pub place: String,
    /// Parameters as `?`.
    pub sql: String,
    pub params: Vec<Param>,
    pub repeat: u32,
    /// Where the first row's values go, column after column.
    pub keep: Vec<Slot>,
}

/// A value of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub number: u8,
    /// Bytes to lay out when it is a text; `None` for numbers.
    pub text: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    /// Drawn anew each time.
    Made(Generator),
    /// A value of the transaction.
    Slot(Slot),
}

impl Param {
    pub fn wire_type(&self) -> ParamType {
        let text = match self {
            Self::Made(generator) => generator.is_text().then(|| generator.longest()),
            Self::Slot(slot) => slot.text,
        };
        text.map_or(ParamType::Int, ParamType::Bytes)
    }
}

/// Reads a file.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn read(file: &str, text: &str) -> Result<Description, Vec<MixError>> {
    let (document, syntax) = DeTable::parse_recoverable(text);
    let mut reader = Reader { file, text, errors: Vec::new(), rows: BTreeMap::new(), counters: 0 };
    for error in syntax {
        reader.error(error.span().unwrap_or(0..0), error.message().to_owned());
    }
    // What was not understood would only give rise to further complaints.
    let description =
        if reader.errors.is_empty() { reader.document(document.get_ref()) } else { Description::default() };
    if reader.errors.is_empty() {
        return Ok(description);
    }
    reader.errors.sort_by_key(|e| (e.line, e.column));
    Err(reader.errors)
}

/// Reads pieces of a document and notes what is wrong with them.
pub struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    errors: Vec<MixError>,
    /// Rows of the tables.
    rows: BTreeMap<String, u64>,
    /// Sequences and unique numbers so far.
    counters: usize,
}

/// Entries in the order of the file.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t str, Range<usize>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> =
        table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value)).collect();
    entries.sort_by_key(|(_, key, _)| key.start);
    entries
}

impl Reader<'_> {
    pub fn error(&mut self, at: Range<usize>, problem: String) {
        let (line, column) = line_and_column(self.text, at.start);
        self.errors.push(MixError { file: self.file.to_owned(), line, column, problem });
    }

    /// Mistakes so far.
    pub fn mistakes(&self) -> usize {
        self.errors.len()
    }

    fn place(&self, at: &Range<usize>) -> String {
        format!("{}:{}", self.file, line_and_column(self.text, at.start).0)
    }

    /// Notes every key that is not known.
    pub fn unknown_keys(&mut self, table: &DeTable<'_>, known: &[&str], of: &str) {
        for (key, at, _) in in_order(table) {
            if !known.contains(&key) {
                let hint = match nearest(key, known.iter().copied()) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("it may have {}", known.join(", ")),
                };
                self.error(at, format!("{of} has no key {key:?}: {hint}"));
            }
        }
    }

    fn wrong_type(&mut self, value: &Spanned<DeValue<'_>>, expected: &str) {
        let problem = format!("{} where {expected} is expected", value.get_ref().type_str());
        self.error(value.span(), problem);
    }

    pub fn string(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong_type(value, "a text");
        }
        text
    }

    pub fn int(&mut self, value: &Spanned<DeValue<'_>>) -> Option<i64> {
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

    /// A whole number between two bounds, both allowed.
    fn count(&mut self, value: &Spanned<DeValue<'_>>, min: i64, max: i64) -> Option<u64> {
        let number = self.int(value)?;
        if !(min..=max).contains(&number) {
            self.error(value.span(), format!("{number} is not a whole number from {min} to {max}"));
            return None;
        }
        u64::try_from(number).ok()
    }

    pub fn number(&mut self, value: &Spanned<DeValue<'_>>) -> Option<f64> {
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

    fn switch(&mut self, value: &Spanned<DeValue<'_>>) -> Option<bool> {
        let switch = value.get_ref().as_bool();
        if switch.is_none() {
            self.wrong_type(value, "true or false");
        }
        switch
    }

    pub fn only_true(&mut self, value: &Spanned<DeValue<'_>>, key: &str) -> bool {
        let is = value.get_ref().as_bool() == Some(true);
        if !is {
            self.error(value.span(), format!("write {key} = true"));
        }
        is
    }

    pub fn array<'v, 'i>(&mut self, value: &'v Spanned<DeValue<'i>>) -> Option<&'v DeArray<'i>> {
        let array = value.get_ref().as_array();
        if array.is_none() {
            self.wrong_type(value, "a list");
        }
        array
    }

    fn table<'v, 'i>(&mut self, value: &'v Spanned<DeValue<'i>>) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(value, "a table");
        }
        table
    }

    /// `[low, high]`.
    pub fn range(&mut self, value: &Spanned<DeValue<'_>>) -> Option<(i64, i64)> {
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

    /// `[low, high]`, or the name of a table for the numbers of its rows.
    pub fn range_or_rows(&mut self, value: &Spanned<DeValue<'_>>) -> Option<(i64, i64)> {
        let Some(name) = value.get_ref().as_str() else { return self.range(value) };
        match self.rows.get(name) {
            Some(0) => {
                self.error(value.span(), format!("table {name} has no rows in the beginning"));
                None
            }
            Some(rows) => Some((1, *rows as i64)),
            None => {
                let hint = nearest(name, self.rows.keys().map(String::as_str));
                let hint = hint.map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
                self.error(
                    value.span(),
                    format!("the mix has no table {name:?}{hint}: give [lowest, highest] or a table"),
                );
                None
            }
        }
    }

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

    /// A key that must be there.
    fn required<'t, 'i>(
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

    fn mix_table(&mut self, name: &str, at: Range<usize>, table: &DeTable<'_>) -> Option<TableSpec> {
        let before = self.mistakes();
        self.unknown_keys(table, &["create", "rows", "columns", "after"], "a table");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) || name.starts_with("mydyno") {
            self.error(
                at.clone(),
                format!("{name:?} is no name for a table: letters, digits and _, not beginning with mydyno"),
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
            .filter_map(|(column, _, value)| {
                let generator = values::read_made(self, value)?;
                Some(ColumnSpec { name: column.to_owned(), generator })
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

    /// A statement for after the rows are in.
    fn finishing(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let sql = self.one_statement(value)?;
        let Some(table) = finished(&sql) else {
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

    /// A statement that makes the mix's data must not reach into other databases.
    fn stays_home(&mut self, sql: &str, at: &Range<usize>) {
        let tokens = sql_text::tokens(sql);
        if tokens.iter().any(|(token, _)| *token == Token::Executable) {
            self.error(at.clone(), "a comment that servers execute may do anything: take it out".to_owned());
        }
        let changes_rows =
            matches!(tokens.first(), Some((token, _)) if is_word(*token, &["INSERT", "UPDATE", "DELETE"]));
        let named = if changes_rows { sql_text::named_databases(sql) } else { sql_text::dotted_names(sql) };
        if let Some(database) = named.first() {
            self.error(
                at.clone(),
                format!("{database:?} looks like another database: tables of a mix are named without one"),
            );
        }
    }

    /// Exactly one statement, without its semicolon.
    fn one_statement(&mut self, value: &Spanned<DeValue<'_>>) -> Option<String> {
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

    fn check(&mut self, check: &DeTable<'_>, at: Range<usize>) -> Option<CheckSpec> {
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
        Some(CheckSpec { about: about?, sql: sql?, expected: expected? })
    }

    fn transaction(&mut self, name: &str, at: Range<usize>, table: &DeTable<'_>) -> Option<Transaction> {
        let before = self.mistakes();
        self.unknown_keys(table, &["weight", "begin", "values", "statements"], "a transaction");
        let weight = table.get("weight").map_or(Some(1), |w| self.count(w, 0, 1_000_000_000));
        let begin = table.get("begin").map(|b| self.switch(b).unwrap_or(true));
        let mut names = Names { list: Vec::new(), drawn: 0 };
        let mut values = Vec::new();
        for (value_name, at, value) in
            table.get("values").and_then(|v| self.table(v)).map(in_order).unwrap_or_default()
        {
            if let Some(generator) = values::read_made(self, value) {
                let text = generator.is_text().then(|| generator.longest());
                names.add(self, value_name, text, at);
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

    /// Counts a generator that needs a counter of its own.
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

    /// The text with `?` for each parameter, and what goes there.
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

fn is_word(token: Token<'_>, list: &[&str]) -> bool {
    matches!(token, Token::Word(word) if list.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// The table that a statement for after the rows is about; `None` of any other statement.
fn finished(sql: &str) -> Option<&str> {
    let tokens: Vec<Token<'_>> = sql_text::tokens(sql).into_iter().map(|(token, _)| token).collect();
    let (first, rest) = tokens.split_first()?;
    let behind = |between: &[&str]| {
        let at = rest.iter().position(|token| !is_word(*token, between))?;
        Some((&rest[..at], rest[at]))
    };
    let has = |words: &[Token<'_>], word: &str| words.iter().any(|token| is_word(*token, &[word]));
    let table = if is_word(*first, &["ALTER", "ANALYZE"]) {
        let between = ["ONLINE", "IGNORE", "LOCAL", "NO_WRITE_TO_BINLOG", "TABLE", "IF", "EXISTS"];
        behind(&between).filter(|(words, _)| has(words, "TABLE"))?.1
    } else if is_word(*first, &["CREATE"]) {
        behind(&["UNIQUE", "FULLTEXT", "SPATIAL", "INDEX"]).filter(|(words, _)| has(words, "INDEX"))?;
        rest[rest.iter().position(|token| is_word(*token, &["ON"]))? + 1..].first().copied()?
    } else if is_word(*first, &["INSERT", "UPDATE", "DELETE"]) {
        behind(&["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO", "FROM"])?.1
    } else {
        return None;
    };
    match table {
        Token::Word(name) | Token::Name(name) => Some(name),
        _ => None,
    }
}

/// Values of a transaction by their names.
struct Names {
    list: Vec<(String, Slot)>,
    /// How many of them are drawn at its start; the others are kept from results.
    drawn: usize,
}

impl Names {
    /// A new one; one of the same name is replaced from here on.
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
