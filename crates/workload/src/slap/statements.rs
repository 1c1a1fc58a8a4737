//! The statements of `slap`.

use std::fmt::Write as _;

use mydyno_stats::rng::Rng;
use mydyno_tables::generator::{Generator, RowPosition};
use mydyno_tables::own_tables::OwnTables;

use super::shape::{Key, Shape, TABLE, TEXT_BYTES};
use crate::data::Purpose;

/// Generates statements with random values.
pub struct Statements {
    shape: Shape,
    table: OwnTables,
    rng: Rng,
}

impl Statements {
    /// Statements for a table of this shape; values come from the seed.
    pub fn new(shape: Shape, table: OwnTables, seed: u64) -> Self {
        Self { shape, table, rng: Rng::stream(seed, &[Purpose::Operations as u64]) }
    }

    fn int(&mut self) -> u64 {
        self.rng.below(1 << 31)
    }

    fn text(&mut self) -> String {
        let generator = Generator::Alphanumeric { min: TEXT_BYTES, max: TEXT_BYTES };
        let mut text = Vec::new();
        generator.make(&mut self.rng, RowPosition::Row(1), &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The key of one of the prepared rows, as an SQL literal.
    fn key(&mut self) -> String {
        let row = self.rng.below(self.table.rows()) + 1;
        match self.shape.key {
            Key::Guid => self.table.value(0, 0, row),
            _ => format!("'{row}'"),
        }
    }

    /// An insert of one row.
    pub fn insert(&mut self) -> String {
        let mut values: Vec<String> = match self.shape.key {
            Key::None => Vec::new(),
            Key::AutoIncrement => vec!["NULL".to_owned()],
            Key::Guid => vec!["uuid()".to_owned()],
        };
        values.extend((0..self.shape.guids).map(|_| "uuid()".to_owned()));
        for _ in 0..self.shape.ints {
            values.push(self.int().to_string());
        }
        for _ in 0..self.shape.chars {
            values.push(format!("'{}'", self.text()));
        }
        format!("INSERT INTO {TABLE} VALUES ({})", values.join(","))
    }

    /// An update: of one row if there is a key, else of the whole table.
    pub fn update(&mut self) -> String {
        let mut sets = Vec::new();
        for column in self.shape.ints().collect::<Vec<_>>() {
            sets.push(format!("{column} = {}", self.int()));
        }
        for column in self.shape.chars().collect::<Vec<_>>() {
            sets.push(format!("{column} = '{}'", self.text()));
        }
        let mut sql = format!("UPDATE {TABLE} SET {}", sets.join(","));
        if self.shape.key != Key::None {
            let _ = write!(sql, " WHERE id = {}", self.key());
        }
        sql
    }

    /// A read: of one row if `one` is set and there is a key, else of the whole table.
    pub fn select(&mut self, one: bool) -> String {
        let columns: Vec<String> = self.shape.ints().chain(self.shape.chars()).collect();
        let mut sql = format!("SELECT {} FROM {TABLE}", columns.join(","));
        if one && self.shape.key != Key::None {
            let _ = write!(sql, " WHERE id = {}", self.key());
        }
        sql
    }
}
