//! Run records as HTML, Markdown and terminal text. Reads documents only and gives text: no I/O, nothing measured.
//!
//! [`html`], [`markdown`] and [`terminal`] take one run, or several whose first is the baseline.

mod chart;
mod charts;
mod compare;
mod figures;
pub mod findings;
mod latency;
mod markdown;
mod page;
mod scale;
mod scaling;
mod series;
mod sheet;
mod table;
mod terminal;
mod text;
mod usage;
pub mod verdict;
mod words;

use std::path::Path;

use mydyno_model::record::RunRecord;
use mydyno_model::summary::Summary;

/// A run to be shown: its record, the summary derived from it, and where the record lies.
#[derive(Debug, Clone, Copy)]
pub struct RunView<'a> {
    /// The record as its folder holds it.
    pub record: &'a RunRecord,
    /// Derived from the record.
    pub summary: &'a Summary,
    /// The run folder, to be named to the reader; `None` leaves it out.
    pub folder: Option<&'a Path>,
}

impl<'a> RunView<'a> {
    /// A run whose folder is not named.
    pub fn new(record: &'a RunRecord, summary: &'a Summary) -> Self {
        Self { record, summary, folder: None }
    }

    /// The same run, with the folder that the reader can be sent to.
    #[must_use]
    pub fn at(mut self, folder: &'a Path) -> Self {
        self.folder = Some(folder);
        self
    }
}

/// One self-contained HTML file.
pub fn html(runs: &[RunView<'_>]) -> String {
    page::page(runs)
}

/// Plain text for a terminal that is `width` columns wide, with ANSI colours when `color` is set.
pub fn terminal(runs: &[RunView<'_>], color: bool, width: usize) -> String {
    terminal::terminal(runs, color, width)
}

/// Markdown (CommonMark with tables).
pub fn markdown(runs: &[RunView<'_>]) -> String {
    markdown::markdown(runs)
}
