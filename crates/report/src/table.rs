//! Tables of the HTML report.

use std::fmt::Write;

use mydyno_model::Estimate;

use crate::figures::{Unit, interval};
use crate::text::html as esc;

/// A cell: its text, and a small text below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    small: Option<String>,
    class: &'static str,
    /// Trusted HTML that this crate generated, placed after the text.
    drawing: String,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl Cell {
    /// An estimate with its interval below it; without one, an empty line keeps the rows aligned.
    pub fn estimate(unit: Unit, estimate: Option<&Estimate>) -> Self {
        match estimate {
            None => Self::from("–"),
            Some(e) => Self::from(unit.show(e.value))
                .small(interval(unit, e).unwrap_or_else(|| "no interval".to_owned())),
        }
    }

    /// Adds a second, small line.
    #[must_use]
    pub fn small(mut self, text: impl Into<String>) -> Self {
        self.small = Some(text.into());
        self
    }

    /// Sets a style class.
    #[must_use]
    pub fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }

    /// A cell with a drawing that this crate generated.
    pub fn drawing(html: String) -> Self {
        Self { drawing: html, class: "drawing", ..Self::default() }
    }
}

/// A table; the first column names the row.
#[derive(Debug, Clone, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
    /// Whether the table is collapsed below a chart with the same values.
    pub behind_chart: bool,
    /// Whether each row becomes a card with labelled values on a narrow screen.
    pub stacks: bool,
    /// Whether the cells are text instead of figures: aligned to the left.
    pub prose: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as HTML.
    pub fn html(&self) -> String {
        let mut out = String::new();
        if self.behind_chart {
            out.push_str("<details class=\"values\"><summary>Values as a table</summary>");
        }
        let class = match (self.stacks, self.prose) {
            (true, _) => " class=\"stacks\"",
            (_, true) => " class=\"prose\"",
            _ => "",
        };
        let _ = write!(out, "<div class=\"scroll\"><table{class}><thead><tr>");
        for (n, cell) in self.head.iter().enumerate() {
            let prose = self.rows.first().and_then(|row| row.get(n)).is_some_and(|c| c.class == "sql");
            let class = if prose { " class=\"sql\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", esc(cell));
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (n, cell) in row.iter().enumerate() {
                self.cell(&mut out, n, cell);
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>");
        if self.behind_chart {
            out.push_str("</details>");
        }
        out.push('\n');
        out
    }

    fn cell(&self, out: &mut String, n: usize, cell: &Cell) {
        let tag = if n == 0 { "th" } else { "td" };
        out.push_str(if n == 0 { "<th scope=\"row\"" } else { "<td" });
        if !cell.class.is_empty() {
            let _ = write!(out, " class=\"{}\"", cell.class);
        }
        if self.stacks {
            let _ = write!(out, " data-h=\"{}\"", self.head.get(n).map(|h| esc(h)).unwrap_or_default());
        }
        let _ = write!(out, ">{}{}", esc(&cell.text), cell.drawing);
        if let Some(small) = &cell.small {
            let _ = write!(out, "<small>{}</small>", esc(small));
        }
        let _ = write!(out, "</{tag}>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_table_is_escaped() {
        let mut table = Table::new(["<h>", "<i>"]);
        table.stacks = true;
        table.row([Cell::from("<a>"), Cell::from("<b>").small("<c>")]);
        let html = table.html();
        for text in ["h", "i", "a", "b", "c"] {
            assert!(
                html.contains(&format!("&lt;{text}&gt;")) && !html.contains(&format!("<{text}>")),
                "{html}"
            );
        }
        assert!(html.contains("data-h=\"&lt;i&gt;\""), "{html}");
    }
}
