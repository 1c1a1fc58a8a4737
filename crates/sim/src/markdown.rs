//! Tables of results.

/// A row of a table.
pub(crate) fn row(cells: impl IntoIterator<Item = String>) -> String {
    format!("| {} |\n", cells.into_iter().collect::<Vec<_>>().join(" | "))
}

/// The line below a table's head.
pub(crate) fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns))
}

/// A share as a percentage with a digit behind the point.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
