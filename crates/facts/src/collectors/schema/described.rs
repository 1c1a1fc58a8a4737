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
