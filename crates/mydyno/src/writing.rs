//! Output of a finished run: the report beside its record, the summary on the terminal.

use std::path::Path;

use mydyno_model::Document;
use mydyno_model::record::file;
use mydyno_model::summary::Summary;
use mydyno_report::RunView;

use crate::failure::Failure;
use crate::ui::Ui;

/// Writes the HTML report into the run folder and prints the summary, as JSON or for people.
///
/// # Errors
/// The folder cannot be read or written.
pub fn show(folder: &Path, summary: &Summary, ui: &Ui) -> Result<(), Failure> {
    let failed = |e: mydyno_run::RunError| Failure::environment(e.to_string());
    let record = mydyno_run::folder::read(folder).map_err(failed)?;
    let view = RunView::new(&record, summary).at(folder);
    let html = mydyno_report::html(std::slice::from_ref(&view));
    mydyno_run::writer::write_whole(&folder.join(file::REPORT), &html).map_err(failed)?;
    if ui.json {
        ui.out(&summary.to_json());
    } else {
        ui.out(&mydyno_report::terminal(&[view], ui.color, ui.width()));
        for bound in &summary.bounds {
            let state = if bound.broken { "broken" } else { "kept" };
            ui.out(&format!(
                "{}: {state}, it is {} with {} connections",
                bound.bound, bound.found, bound.connections
            ));
        }
        ui.note(&format!("The page with charts: {}", folder.join(file::REPORT).display()));
    }
    Ok(())
}
