//! Columns, as far as properties of tables follow from them.

/// A column: its name, its type, and what it does by itself.
pub struct Column<'a> {
    pub name: &'a str,
    pub data_type: &'a str,
    pub column_type: &'a str,
    pub collation: Option<&'a str>,
    pub auto_increment: bool,
    /// Whether each UPDATE of the row sets it to the current time.
    pub on_update: bool,
    /// Whether its value follows from other columns.
    pub generated: bool,
    /// Whether its default is a date of zeros.
    pub zero_date: bool,
}

#[cfg(test)]
impl<'a> Column<'a> {
    /// A column for tests that does nothing by itself; its data type is the first word of `column_type`.
    pub fn of(name: &'a str, column_type: &'a str, collation: Option<&'a str>) -> Self {
        Self {
            name,
            data_type: column_type.split(['(', ' ']).next().unwrap_or_default(),
            column_type,
            collation,
            auto_increment: false,
            on_update: false,
            generated: false,
            zero_date: false,
        }
    }
}
