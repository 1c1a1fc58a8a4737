//! `mydyno compare A B A B`: the verdict on kept runs of two sides that were measured in turns.

use std::path::PathBuf;

use mydyno_model::experiment::Role;
use mydyno_model::record::{RunRecord, file};
use mydyno_prove::verdict::of_runs::{RunsRequest, SideRun, of_runs};
use mydyno_report::RunView;
use mydyno_report::contrast::of_sides;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::proving::{status, tell, usage};
use crate::ui::Ui;
use crate::verbs::runs::{Kept, found};

/// The folders of runs that these words name; `None` where no word names one.
///
/// # Errors
/// A word among those of runs names none.
pub fn folders(words: &[&str]) -> Result<Option<Vec<PathBuf>>, Failure> {
    let is_run = |folder: &PathBuf| folder.join(file::MANIFEST).is_file();
    let all: Vec<Result<PathBuf, Failure>> = words.iter().map(|word| found(word.as_ref())).collect();
    if !all.iter().flatten().any(is_run) {
        return Ok(None);
    }
    let mut folders = Vec::new();
    for (word, folder) in words.iter().zip(all) {
        let folder = folder?;
        if !is_run(&folder) {
            return Err(Failure::usage(format!(
                "{word} is no kept run, and others of these words are (`mydyno runs` lists them)"
            )));
        }
        folders.push(folder);
    }
    Ok(Some(folders))
}

/// Prints the verdict on the runs, the first of which is of the baseline, the next of the treatment, and so on in turns. Two
/// runs are shown side by side before it.
pub fn run(folders: &[PathBuf], delta: f64, fail_if_worse: bool, ui: &Ui) -> Result<Status, Failure> {
    let runs = folders.iter().map(|folder| Kept::read(folder)).collect::<Result<Vec<_>, _>>()?;
    let side = |number: usize| if number.is_multiple_of(2) { Role::Baseline } else { Role::Treatment };
    let of = |wanted: Role| -> Vec<&RunRecord> {
        let numbered = runs.iter().enumerate().filter(|(number, _)| side(*number) == wanted);
        numbered.map(|(_, run)| &run.record).collect()
    };
    let contrast = of_sides(&of(Role::Baseline), &of(Role::Treatment));
    let sides = runs.iter().enumerate();
    let sides =
        sides.map(|(number, run)| SideRun { side: side(number), record: &run.record, summary: &run.summary });
    let wanted = RunsRequest {
        runs: sides.collect(),
        differs: contrast.differs.into_iter().map(|c| (c.name, c.a, c.b)).collect(),
        varies: contrast.varies,
        delta,
    };
    let verdict = of_runs(&wanted, OffsetDateTime::now_utc()).map_err(usage)?;
    if let ([_, _], false) = (runs.as_slice(), ui.json) {
        let views: Vec<RunView<'_>> = runs.iter().map(Kept::view).collect();
        ui.out(&mydyno_report::terminal(&views, ui.color, ui.width()));
    }
    tell(&verdict, ui);
    Ok(status(&verdict, fail_if_worse))
}
