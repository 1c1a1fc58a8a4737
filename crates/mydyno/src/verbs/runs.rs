//! `mydyno runs`: recorded runs and experiments.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mydyno_host::StateDir;
use mydyno_model::document::{Document, Header};
use mydyno_model::record::RunRecord;
use mydyno_model::run_list::{KeptRun, RunKind, RunList};
use mydyno_model::summary::Summary;
use mydyno_model::text;
use mydyno_report::RunView;
use mydyno_run::archive;
use mydyno_run::kept::{self, KeptError};
use mydyno_run::summarise::summarise;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::signals;
use crate::ui::Ui;

/// Options of `mydyno runs`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    step: Option<Step>,
    /// Only those of this workload or experiment.
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
    /// Only those with this tag; repeatable, all are required.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Step {
    /// Give a run a name that stands for its folder in every command.
    Name {
        /// Folder, name or number of the run.
        run: PathBuf,
        /// The name; without one the name is removed.
        name: Option<String>,
    },
    /// Add tags to a run.
    Tag {
        /// Folder, name or number of the run.
        run: PathBuf,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
        /// Remove them instead.
        #[arg(long)]
        remove: bool,
    },
    /// Show runs side by side, as `mydyno report` does.
    Compare(super::report::Args),
    /// Write a run into one file, to archive or send it.
    Export {
        /// Folder, name or number of the run.
        run: PathBuf,
        /// The file [default: the folder's name with .tar.zst, in this folder].
        #[arg(long, short = 'o', value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Add a run that was exported from another host or state folder.
    Import {
        /// The file.
        file: PathBuf,
    },
    /// Delete runs with their folders.
    Delete {
        /// Folders, names or numbers of runs.
        #[arg(required = true)]
        runs: Vec<PathBuf>,
    },
}

/// Lists, labels, compares, exports, imports or deletes kept runs.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let runs = runs_folder()?;
    match &args.step {
        None => list(args, &runs, ui)?,
        Some(Step::Name { run, name }) => {
            let folder = found(run)?;
            let kept = kept::list(&runs).map_err(failure)?;
            if let Some(why) = name.as_ref().and_then(|name| taken(&kept, &folder, name)) {
                return Err(Failure::usage(why));
            }
            kept::relabel(&folder, |label| label.name.clone_from(name)).map_err(failure)?;
        }
        Some(Step::Tag { run, tags, remove }) => {
            let change = |label: &mut mydyno_model::run_list::RunLabel| {
                label.tags.retain(|tag| !tags.contains(tag));
                if !remove {
                    label.tags.extend(tags.iter().cloned());
                }
            };
            kept::relabel(&found(run)?, change).map_err(failure)?;
        }
        Some(Step::Compare(report)) if report.runs.len() < 2 => {
            return Err(Failure::usage("two runs or more are compared, as in `mydyno runs compare 1 2`"));
        }
        Some(Step::Compare(report)) => return super::report::run(report, ui),
        Some(Step::Export { run, output }) => {
            let folder = found(run)?;
            let name = || folder.canonicalize().ok().and_then(|real| real.file_name().map(OsString::from));
            let output = match output {
                Some(output) => output.clone(),
                None => {
                    let mut name = name().unwrap_or_else(|| "run".into());
                    name.push(".tar.zst");
                    name.into()
                }
            };
            archive::export(&folder, &output, &*signals::stop_flag()?).map_err(failure)?;
            ui.note(&format!("{} is written; `mydyno runs import FILE` reads it", output.display()));
        }
        Some(Step::Import { file }) => {
            let state = StateDir::default_path().and_then(|path| StateDir::open(&path));
            state.map_err(|e| Failure::environment(e.to_string()))?;
            let folder = archive::import(&runs, file, &*signals::stop_flag()?).map_err(failure)?;
            ui.note(&format!("{} is added", folder.display()));
        }
        Some(Step::Delete { runs: words }) => {
            // All are found before the first is deleted, because deleting renumbers the others.
            let real = |word: &PathBuf| found(word).map(|folder| folder.canonicalize().unwrap_or(folder));
            let folders = words.iter().map(real).collect::<Result<BTreeSet<_>, _>>()?;
            for folder in folders {
                kept::delete(&runs, &folder).map_err(failure)?;
                ui.note(&format!("{} is deleted", folder.display()));
            }
        }
    }
    Ok(Status::Fine)
}

/// The reason why a name is not free for the run in a folder: another run has it, or another folder is called so, which goes before
/// names.
fn taken(kept: &[KeptRun], folder: &Path, name: &str) -> Option<String> {
    let others = || kept.iter().filter(|other| Path::new(&other.path) != folder);
    if others().any(|other| other.folder == name) {
        return Some(format!(
            "{name:?} is the folder of another run, so it would mean that one: give another name"
        ));
    }
    let other = others().find(|other| other.label.name.as_deref() == Some(name))?;
    Some(format!("{name:?} is the name of {} already", other.folder))
}

/// The folder of a run that the command line names by path, name or number.
pub fn found(word: &Path) -> Result<PathBuf, Failure> {
    kept::find(&runs_folder()?, word).map_err(failure)
}

/// A kept run, read.
#[derive(Debug)]
pub struct Kept {
    /// Its folder.
    pub folder: PathBuf,
    /// Its record.
    pub record: RunRecord,
    /// Results that follow from the record.
    pub summary: Summary,
}

impl Kept {
    /// Reads a run's folder.
    ///
    /// # Errors
    /// The folder holds no run that can be read.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let record = mydyno_run::folder::read(folder).map_err(|e| Failure::environment(e.to_string()))?;
        let summary = summarise(&record, OffsetDateTime::now_utc());
        Ok(Self { folder: folder.to_path_buf(), record, summary })
    }

    /// The run as reports show it.
    pub fn view(&self) -> RunView<'_> {
        RunView::new(&self.record, &self.summary).at(&self.folder)
    }
}

fn runs_folder() -> Result<PathBuf, Failure> {
    let state = StateDir::default_path().map_err(|e| Failure::environment(e.to_string()))?;
    Ok(state.join("runs"))
}

fn failure(error: KeptError) -> Failure {
    match error {
        KeptError::File { .. } | KeptError::Recording(_) => Failure::environment(error.to_string()),
        KeptError::Stopped { .. } => {
            Failure { status: Status::Interrupted, problems: vec![error.to_string()] }
        }
        _ => Failure::usage(error.to_string()),
    }
}

fn list(args: &Args, runs: &Path, ui: &Ui) -> Result<(), Failure> {
    let chosen = |run: &KeptRun| {
        args.of.as_deref().is_none_or(|of| run.subject == of)
            && args.tag.iter().all(|tag| run.label.tags.contains(tag))
    };
    let every = kept::list(runs).map_err(failure)?;
    let is_empty = every.is_empty();
    let all: Vec<KeptRun> = every.into_iter().filter(chosen).collect();
    if ui.json {
        let header = Header::of::<RunList>(OffsetDateTime::now_utc());
        ui.out(&RunList { header, runs: all, extra: serde_json::Map::new() }.to_json());
        return Ok(());
    }
    if is_empty {
        ui.note("No run is kept here: `mydyno bench` and `mydyno prove` make some");
    } else if all.is_empty() {
        ui.note("No kept run is of this name and has these tags: `mydyno runs` lists all");
    }
    for run in all {
        let kind = match run.kind {
            RunKind::Run => "run",
            RunKind::Experiment => "experiment",
        };
        let label = run.label.name.iter().cloned().chain(run.label.tags.iter().map(|tag| format!("#{tag}")));
        let label = label.collect::<Vec<_>>().join(" ");
        let line = format!("{:>4}  {}  {kind:<10}  {}  {label}", run.number, run.created, run.folder);
        ui.out(text::line(&line).trim_end());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use mydyno_model::run_list::RunLabel;

    use super::*;

    #[test]
    fn a_name_that_another_run_or_folder_has_is_taken() {
        let run = |number, folder: &str, name: Option<&str>| KeptRun {
            number,
            folder: folder.to_owned(),
            path: format!("/state/runs/{folder}"),
            kind: RunKind::Run,
            created: String::new(),
            subject: String::new(),
            server: String::new(),
            label: RunLabel { name: name.map(str::to_owned), tags: Vec::new() },
        };
        let kept = [run(1, "20261128-tpcc", None), run(2, "20261127-tpcc", Some("before"))];
        let of_first = |name| taken(&kept, Path::new("/state/runs/20261128-tpcc"), name);
        assert!(of_first("before").unwrap().contains("the name of 20261127-tpcc"));
        assert!(of_first("20261127-tpcc").unwrap().contains("the folder of another run"));
        assert_eq!(of_first("after"), None);
        assert_eq!(of_first("20261128-tpcc"), None);
    }
}
