//! `mydyno report`: reports of recorded runs and experiments.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mydyno_host::StateDir;
use mydyno_model::Document;
use mydyno_model::record::file;
use mydyno_prove::classes::holds_classes;
use mydyno_prove::factorial::execute::holds_factors;
use mydyno_prove::store;
use mydyno_prove::verdict::of_folder;
use mydyno_report::RunView;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::ui::Ui;
use crate::verbs::runs::Kept;

/// Options of `mydyno report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Runs by folder, name or number in `mydyno runs`; several are shown side by side; or an experiment. Without one,
    /// the latest run.
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
    /// Short for --format html.
    #[arg(long, conflicts_with_all = ["format", "markdown"])]
    pub html: bool,
    /// Short for --format markdown.
    #[arg(long, visible_alias = "md", conflicts_with = "format")]
    pub markdown: bool,
    /// File to write instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One self-contained page.
    Html,
    /// Markdown.
    Markdown,
    /// Text for a terminal.
    Terminal,
    /// The summary document; of several runs the comparison with the first.
    Json,
}

/// Renders runs.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let folders: Vec<PathBuf> = match args.runs.as_slice() {
        [] => vec![latest()?],
        words => words.iter().map(|word| super::runs::found(word)).collect::<Result<_, _>>()?,
    };
    if let ([folder], true) = (folders.as_slice(), folders.iter().any(|folder| holds_factors(folder))) {
        return factorial(folder, args, ui);
    }
    if let ([folder], true) = (folders.as_slice(), folders.iter().any(|folder| holds_classes(folder))) {
        return classes(folder, args, ui);
    }
    if let Some(experiment) = folders.iter().find(|folder| store::holds_experiment(folder)) {
        return match folders.as_slice() {
            [_] => verdict(experiment, args, ui),
            _ => Err(Failure::usage(format!(
                "{} is the folder of an experiment, which is reported alone: `mydyno prove --again` pools several",
                experiment.display()
            ))),
        };
    }
    let runs = folders.iter().map(|folder| Kept::read(folder)).collect::<Result<Vec<_>, _>>()?;
    let views: Vec<RunView<'_>> = runs.iter().map(Kept::view).collect();
    let text = match (args.form(), ui.json) {
        (Format::Json, _) | (_, true) => json(&views),
        (Format::Html, _) => mydyno_report::html(&views),
        (Format::Markdown, _) => mydyno_report::markdown(&views),
        (Format::Terminal, _) => {
            mydyno_report::terminal(&views, ui.color && args.output.is_none(), ui.width())
        }
    };
    write(&text, args, ui)?;
    let damaged = runs.iter().any(|run| !run.record.damage.is_empty());
    Ok(if damaged { Status::Bad } else { Status::Fine })
}

impl Args {
    /// The requested format, by either option.
    fn form(&self) -> Format {
        match (self.html, self.markdown) {
            (true, _) => Format::Html,
            (_, true) => Format::Markdown,
            _ => self.format,
        }
    }
}

/// Renders the verdict of an experiment; for an unfinished one, that of its slices so far.
fn verdict(folder: &Path, args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let verdict =
        of_folder(folder, OffsetDateTime::now_utc()).map_err(|e| Failure::environment(e.to_string()))?;
    let text = match (args.form(), ui.json) {
        (Format::Json, _) | (_, true) => verdict.to_json(),
        (Format::Html, _) => mydyno_report::verdict::html(&verdict),
        (Format::Markdown, _) => mydyno_report::verdict::markdown(&verdict),
        (Format::Terminal, _) => {
            mydyno_report::verdict::terminal(&verdict, ui.color && args.output.is_none())
        }
    };
    write(&text, args, ui)?;
    Ok(Status::Fine)
}

/// Renders a comparison of two builds by classes of statements; of one that was killed, with the rounds so far.
fn classes(folder: &Path, args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let result = mydyno_prove::classes::of_folder(folder).map_err(|e| Failure::environment(e.to_string()))?;
    let text = match (args.form(), ui.json) {
        (Format::Json, _) | (_, true) => result.to_json(),
        (Format::Html, _) => mydyno_report::classes::html(&result),
        (Format::Markdown, _) => mydyno_report::classes::markdown(&result),
        (Format::Terminal, _) => mydyno_report::classes::terminal(&result, ui.color && args.output.is_none()),
    };
    write(&text, args, ui)?;
    Ok(Status::Fine)
}

/// Renders an experiment with several factors; its text is the same on a terminal and in Markdown.
fn factorial(folder: &Path, args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let result =
        mydyno_prove::factorial::of_folder(folder).map_err(|e| Failure::environment(e.to_string()))?;
    let text = match (args.form(), ui.json) {
        (Format::Json, _) | (_, true) => result.to_json(),
        (Format::Html, _) => mydyno_report::factorial::html(&result),
        (Format::Markdown, _) => {
            format!("```\n{}```\n", mydyno_report::factorial::terminal(&result, false))
        }
        (Format::Terminal, _) => {
            mydyno_report::factorial::terminal(&result, ui.color && args.output.is_none())
        }
    };
    write(&text, args, ui)?;
    Ok(Status::Fine)
}

fn write(text: &str, args: &Args, ui: &Ui) -> Result<(), Failure> {
    match &args.output {
        None => ui.out(text),
        Some(path) => {
            mydyno_run::writer::write_output(path, text).map_err(|e| Failure::environment(e.to_string()))?;
            ui.note(&format!("Written to {}", path.display()));
        }
    }
    Ok(())
}

/// One run is its summary document; several are compared with the first.
fn json(views: &[RunView<'_>]) -> String {
    match views {
        [run] => run.summary.to_json(),
        _ => mydyno_report::comparison(views, OffsetDateTime::now_utc()).to_json(),
    }
}

/// The latest run in the state folder.
fn latest() -> Result<PathBuf, Failure> {
    let none =
        || Failure::usage("there is no run to report: name its folder, or make one with `mydyno bench`");
    let path = StateDir::default_path().map_err(|e| Failure::environment(e.to_string()))?;
    let runs: &Path = &path.join("runs");
    let entries = std::fs::read_dir(runs).map_err(|_| none())?;
    entries
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|folder| folder.join(file::MANIFEST).exists())
        .max_by_key(|folder| std::fs::metadata(folder.join(file::MANIFEST)).and_then(|m| m.modified()).ok())
        .ok_or_else(none)
}
