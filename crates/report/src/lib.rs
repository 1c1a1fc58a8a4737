//! Renders run records as HTML, Markdown and terminal text. The crate reads documents and returns text: no I/O, no measurement.
//!
//! [`html`], [`markdown`] and [`terminal`] take one run, or several whose first is the baseline.

mod answer;
mod bottlenecks;
mod budget;
mod chart;
mod charts;
pub mod checkup;
pub mod classes;
mod compare;
mod comparison;
pub mod contrast;
mod details;
pub mod factorial;
mod figures;
pub mod findings;
mod first_errors;
pub mod flame;
mod intervals;
mod latency;
mod markdown;
mod merge;
mod page;
mod scale;
mod scaling;
mod series;
mod sheet;
mod stand_alone;
mod table;
mod terminal;
mod text;
mod tpcc;
mod usage;
pub mod verdict;
mod words;

use std::path::Path;

pub use comparison::document as comparison;
use mydyno_model::record::RunRecord;
use mydyno_model::summary::Summary;

/// A run to display: its record, the summary derived from it, and the folder of the record.
#[derive(Debug, Clone, Copy)]
pub struct RunView<'a> {
    /// The record as its folder holds it.
    pub record: &'a RunRecord,
    /// The summary, derived from the record.
    pub summary: &'a Summary,
    /// The run folder that the report names; `None` leaves it out.
    pub folder: Option<&'a Path>,
}

impl<'a> RunView<'a> {
    /// A view without a folder name.
    pub fn new(record: &'a RunRecord, summary: &'a Summary) -> Self {
        Self { record, summary, folder: None }
    }

    /// The same view, with the folder that the report names.
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
