//! The table behind a chart, for screen readers and for readers who need the figures.

use super::{Chart, Group, Series};
use crate::scale::clock;
use crate::table::Table;

/// Maximum number of rows; in longer charts a row spans several points.
const MOST_ROWS: usize = 60;

impl Chart {
    /// The chart's values; a row that spans several points gives their lowest and highest value.
    pub fn table(&self) -> Table {
        let head = std::iter::once(self.x_label.clone()).chain(self.series.iter().map(|s| s.name.clone()));
        let mut table = Table::new(head);
        let windows = self.windows();
        for (from, to) in &windows {
            let inside = |x: f64| x >= *from && x < *to;
            let cells: Vec<String> = self.series.iter().map(|s| self.cell(s, inside)).collect();
            if cells.iter().any(|c| !c.is_empty()) {
                table.row(std::iter::once(self.x_name(*from, *to)).chain(cells));
            }
        }
        table.behind_chart = true;
        table
    }

    fn cell(&self, series: &Series, inside: impl Fn(f64) -> bool) -> String {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for point in series.points.iter().filter(|p| inside(p.x)) {
            let Some(y) = point.y else { continue };
            // A whisker is the interval of its estimate; a band is the range of the seconds behind the point.
            let (bottom, top) = point.range.unwrap_or((y, y));
            if series.whiskers && point.range.is_some() {
                let show = |v| self.y_unit.show(v);
                return format!("{} ({} – {})", show(y), show(bottom), show(top));
            }
            (low, high) = (low.min(bottom), high.max(top));
        }
        match (self.y_unit.show(low), self.y_unit.show(high)) {
            _ if low > high => String::new(),
            (low, high) if low == high => low,
            (low, high) => format!("{low} – {high}"),
        }
    }

    /// Half-open intervals of the horizontal axis, one for each row.
    fn windows(&self) -> Vec<(f64, f64)> {
        if !self.rows_at.is_empty() {
            return self.rows_at.iter().map(|x| (x - 1e-9, x + 1e-9)).collect();
        }
        let xs = || self.series.iter().flat_map(|s| s.points.iter().map(|p| p.x));
        let (low, high) = xs().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        if low > high {
            return Vec::new();
        }
        let (low, high) = (low.floor(), high.floor() + 1.0);
        let width = ((high - low) / MOST_ROWS as f64).ceil().max(1.0);
        let count = ((high - low) / width).ceil() as usize;
        (0..count).map(|n| (low + n as f64 * width, low + (n + 1) as f64 * width)).collect()
    }

    fn x_name(&self, from: f64, to: f64) -> String {
        let middle = (from + to) / 2.0;
        match self.group {
            Group::Time => format!("{} – {}", clock(from, from), clock(to, to)),
            Group::Nines => format!("{} %", trimmed(middle * 100.0)),
            Group::Load => trimmed(middle),
        }
    }
}

/// At most five decimals, without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.5}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
