//! A materialised result.

use std::borrow::Cow;

use crate::column::Column;

/// A result. Cells hold text as the text protocol sends it, also those of prepared statements; `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// Columns in order; empty where the statement gives no rows.
    pub columns: Vec<Column>,
    /// Rows in order, each with one cell a column.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// Rows that the statement changed, where it gives none.
    pub affected_rows: u64,
    /// Warnings.
    pub warnings: u16,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Position of a column, names compared without regard to case.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// A cell as text; `None` where it is NULL or not there.
    pub fn text(&self, row: usize, column: usize) -> Option<Cow<'_, str>> {
        self.rows.get(row)?.get(column)?.as_deref().map(String::from_utf8_lossy)
    }

    /// A cell as text, by the name of its column.
    pub fn named(&self, row: usize, column: &str) -> Option<Cow<'_, str>> {
        self.text(row, self.column(column)?)
    }

    /// A cell as a number.
    pub fn number<T: std::str::FromStr>(&self, row: usize, column: usize) -> Option<T> {
        self.text(row, column)?.trim().parse().ok()
    }

    /// The first cell of the first row: the answer to `SELECT @@version`.
    pub fn scalar(&self) -> Option<Cow<'_, str>> {
        self.text(0, 0)
    }
}
