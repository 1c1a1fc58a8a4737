//! A connection of tests that answers from a script.

use std::time::Duration;

use mydyno_facts::{ReadOnly, Sql, SqlError, Table};

use crate::values::Values;

type Answer = Box<dyn FnMut(&str) -> Result<Table, SqlError> + Send>;

/// Answers statements by a function of their text.
pub struct Scripted(Answer);

impl Scripted {
    /// Answers each statement with what `answer` gives for it.
    pub fn by(answer: impl FnMut(&str) -> Result<Table, SqlError> + Send + 'static) -> Self {
        Self(Box::new(answer))
    }

    /// Answers every statement with the same table.
    pub fn always(table: Table) -> Self {
        Self::by(move |_| Ok(table.clone()))
    }

    /// Answers every statement with the same error.
    pub fn failing(error: SqlError) -> Self {
        Self::by(move |_| Err(error.clone()))
    }
}

impl Sql for Scripted {
    fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
        (self.0)(sql)
    }
}

/// A table of cells that are not NULL.
pub fn table(columns: &[&str], rows: &[&[&str]]) -> Table {
    let cells = |row: &&[&str]| row.iter().map(|cell| Some((*cell).to_owned())).collect();
    let columns = columns.iter().map(|c| (*c).to_owned()).collect();
    Table { columns, rows: rows.iter().map(cells).collect() }
}

/// The values of one reading, and how it ended.
pub fn read(
    mut answer: Scripted,
    mut reading: impl FnMut(&mut ReadOnly<'_>, &mut Values) -> Result<(), SqlError>,
) -> (Values, Result<(), SqlError>) {
    let mut values = Values::default();
    let ended = reading(&mut ReadOnly::new(&mut answer), &mut values);
    (values, ended)
}
