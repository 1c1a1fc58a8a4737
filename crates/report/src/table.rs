//! Tables of the HTML report.

use maud::{Markup, PreEscaped, html};
use mydyno_model::Estimate;

use crate::figures::{Unit, interval};
use crate::text::html as text;

/// A cell: its text, and a small text below it.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    small: Option<String>,
    class: &'static str,
    /// A drawing after the text.
    drawing: Markup,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, small: None, class: "", drawing: PreEscaped(String::new()) }
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
    pub fn drawing(drawing: Markup) -> Self {
        Self { drawing, class: "drawing", ..Self::from("") }
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
    pub fn html(&self) -> Markup {
        let table = self.in_frame();
        html! {
            @if self.behind_chart {
                details.values { summary { "Values as a table" } (table) }
            } @else {
                (table)
            }
            "\n"
        }
    }

    fn in_frame(&self) -> Markup {
        let class = match (self.stacks, self.prose) {
            (true, _) => Some("stacks"),
            (_, true) => Some("prose"),
            _ => None,
        };
        let is_prose =
            |n: usize| self.rows.first().and_then(|row| row.get(n)).is_some_and(|cell| cell.class == "sql");
        html! {
            div.scroll {
                table class=[class] {
                    thead {
                        tr {
                            @for (n, cell) in self.head.iter().enumerate() {
                                th scope="col" class=[is_prose(n).then_some("sql")] { (text(cell)) }
                            }
                        }
                    }
                    tbody {
                        "\n"
                        @for row in &self.rows {
                            tr { @for (n, cell) in row.iter().enumerate() { (self.cell(n, cell)) } }
                            "\n"
                        }
                    }
                }
            }
        }
    }

    fn cell(&self, n: usize, cell: &Cell) -> Markup {
        let class = Some(cell.class).filter(|class| !class.is_empty());
        let heading = self.stacks.then(|| text(self.head.get(n).map_or("", String::as_str)));
        let content = html! {
            (text(&cell.text)) (cell.drawing)
            @if let Some(small) = &cell.small { small { (text(small)) } }
        };
        html! {
            @if n == 0 {
                th scope="row" class=[class] data-h=[heading] { (content) }
            } @else {
                td class=[class] data-h=[heading] { (content) }
            }
        }
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
        let PreEscaped(html) = table.html();
        for text in ["h", "i", "a", "b", "c"] {
            assert!(
                html.contains(&format!("&lt;{text}&gt;")) && !html.contains(&format!("<{text}>")),
                "{html}"
            );
        }
        assert!(html.contains("data-h=\"&lt;i&gt;\""), "{html}");
    }
}
