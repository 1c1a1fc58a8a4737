//! Columns as information_schema tells them.

use super::super::described;
use crate::sql::Row;

/// A column as information_schema tells it.
pub struct Column {
    pub name: String,
    pub data_type: String,
    pub column_type: String,
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub auto_increment: bool,
    pub on_update: bool,
    pub generated: bool,
    pub zero_date: bool,
}

impl Column {
    /// The type, with the collation of a text.
    pub fn whole(&self) -> String {
        match &self.collation {
            Some(collation) => format!("{} {collation}", self.column_type),
            None => self.column_type.clone(),
        }
    }

    /// The column as further properties of a table follow from it.
    pub fn described(&self) -> described::Column<'_> {
        described::Column {
            name: &self.name,
            data_type: &self.data_type,
            column_type: &self.column_type,
            collation: self.collation.as_deref(),
            auto_increment: self.auto_increment,
            on_update: self.on_update,
            generated: self.generated,
            zero_date: self.zero_date,
        }
    }
}

/// Columns that a column of a table is read by, behind the table's name.
pub const TOLD: &str = "COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, CONCAT(EXTRA, IF(DATA_TYPE IN ('date', 'datetime', 'timestamp') AND TRIM(LEADING '''' FROM COLUMN_DEFAULT) LIKE '0000-00-00%', ' a date of zeros', ''))";
/// Text that the mode adds to a column whose default is a date of zeros.
const ZERO_DATE: &str = " a date of zeros";

/// A column from its row: name, types, character set, collation, and what else it does.
pub fn column(row: Row) -> Option<Column> {
    let mut cells = row.into_iter();
    let mut next = || cells.next().flatten();
    let (name, data_type, column_type) = (next()?, next()?, next()?);
    let (charset, collation) = (next(), next());
    let extra = next().unwrap_or_default().to_ascii_lowercase();
    let (auto_increment, on_update) = (extra.contains("auto_increment"), extra.contains("on update"));
    // DEFAULT_GENERATED is a default that is an expression.
    let generated = extra.contains("generated") && !extra.contains("default_generated");
    let zero_date = extra.ends_with(ZERO_DATE);
    Some(Column {
        name,
        data_type,
        column_type,
        charset,
        collation,
        auto_increment,
        on_update,
        generated,
        zero_date,
    })
}

/// The largest value of an integer type.
pub fn largest(column_type: &str) -> Option<f64> {
    let kind = column_type.to_ascii_lowercase();
    let name: String = kind.chars().take_while(char::is_ascii_alphabetic).collect();
    let bits = match name.as_str() {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        "bigint" => 64,
        _ => return None,
    };
    let sign = i32::from(!kind.contains("unsigned"));
    Some(2f64.powi(bits - sign) - 1.0)
}
