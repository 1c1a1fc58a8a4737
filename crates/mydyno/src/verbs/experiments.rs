//! `mydyno experiments`: the catalogue of experiments, one explained, or a folder of them examined.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mydyno_judge::Claims;
use mydyno_model::catalogue::ExperimentList;
use mydyno_model::experiment::definition::{Definition, Extent};
use mydyno_model::{Document, Header, text};
use mydyno_prove::experiment::{Experiment, Experiments, unnamed};
use serde_json::Map;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// Largest file of an experiment in bytes.
pub const LARGEST_FILE: u64 = 1 << 20;

/// Options of `mydyno experiments`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Explain one experiment.
    pub name: Option<String>,
    /// Folder with your own experiments, which replace those with the same name.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    pub experiments: Option<PathBuf>,
    /// Check a folder of experiments: format, levers and their levels, load, extents, and the claims in both directions.
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub check: Option<PathBuf>,
}

/// Lists, explains or examines.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    if let Some(folder) = &args.check {
        return check(folder, ui);
    }
    let all = load(args.experiments.as_deref())?;
    let chosen: Vec<&Experiment> = match &args.name {
        Some(name) => vec![all.find(name).map_err(|e| Failure::usage(e.to_string()))?],
        None => all.iter().collect(),
    };
    if ui.json {
        let header = Header::of::<ExperimentList>(OffsetDateTime::now_utc());
        let experiments = chosen.iter().map(|experiment| experiment.definition.clone()).collect();
        ui.out(&ExperimentList { header, experiments, extra: Map::new() }.to_json());
    } else if let (Some(_), [experiment]) = (&args.name, chosen.as_slice()) {
        ui.prose(&text::visible(&explain(&experiment.definition)));
    } else {
        let width = chosen.iter().map(|e| e.definition.name.len()).max().unwrap_or(0);
        for experiment in chosen {
            let d = &experiment.definition;
            ui.prose(&format!("{:<width$}  {:<9}  {}", d.name, d.execution.mode.name(), d.question));
        }
    }
    Ok(Status::Fine)
}

/// The experiments in the program, replaced and extended by those of a folder.
///
/// # Errors
/// The folder cannot be read, or all mistakes of its experiments.
pub fn load(folder: Option<&Path>) -> Result<Experiments, Failure> {
    let embedded = Experiments::embedded().map_err(|e| Failure::environment(e.to_string()))?;
    let Some(folder) = folder else { return Ok(embedded) };
    let files = files(folder)?;
    let own = Experiments::read(files.iter().map(|(file, text)| (file.as_str(), text.as_str())));
    let own = own.map_err(|e| Failure {
        status: Status::Usage,
        problems: e.to_string().lines().map(str::to_owned).collect(),
    })?;
    Ok(embedded.with(own))
}

/// Texts of a folder's `NAME.toml`.
fn files(folder: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let failed = |path: &Path, e: std::io::Error| Failure::usage(format!("{}: {e}", path.display()));
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|e| failed(folder, e))? {
        let path = entry.map_err(|e| failed(folder, e))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = mydyno_facts::read_regular(&path, LARGEST_FILE).map_err(|e| failed(&path, e))?;
            found.insert(path.display().to_string(), text);
        }
    }
    if found.is_empty() {
        let text = format!("{}: it holds no experiments; each is a file NAME.toml", folder.display());
        return Err(Failure::usage(text));
    }
    Ok(found)
}

fn check(folder: &Path, ui: &Ui) -> Result<Status, Failure> {
    let files = files(folder)?;
    let claims = Claims::embedded().map_err(|e| Failure::environment(e.to_string()))?;
    let mut bad = 0;
    for (file, text) in &files {
        let mistakes: Vec<String> = match Experiment::read(file, text) {
            Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
            Ok(read) => unnamed(&read, &claims).into_iter().map(|id| format!("{file}: {id}")).collect(),
        };
        bad += usize::from(!mistakes.is_empty());
        mistakes.iter().for_each(|mistake| ui.out(&text::line(mistake)));
    }
    ui.out(&format!("{} experiments, {bad} with mistakes", files.len()));
    Ok(if bad == 0 { Status::Fine } else { Status::Bad })
}

fn explain(d: &Definition) -> String {
    let mut text = format!("{}: {}\n\n{}\n", d.name, d.question, d.why.trim());
    let mut part = |name: &str, lines: &[String]| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{name}:\n  {}\n", lines.join("\n  ")));
        }
    };
    let levers = |levers: &[String]| {
        if levers.is_empty() { vec!["the server as it is".to_owned()] } else { levers.to_vec() }
    };
    if d.factors.is_empty() {
        part("Baseline", &levers(&d.baseline.levers));
        part("Treatment", &levers(&d.treatment.levers));
    }
    part("Factors, low and high level", &d.factors);
    let curve = d.curve.iter().map(|curve| format!("{} = {}", curve.lever, curve.levels.join(", ")));
    part("Curve", &curve.collect::<Vec<_>>());
    part("All arms have", &d.set_up);
    let options = d.load.options.iter().map(|(name, value)| format!("{name} = {value}"));
    let connections = d.load.connections.map(|n| format!("connections = {n}"));
    part("Load", &[d.load.name()].into_iter().chain(options).chain(connections).collect::<Vec<_>>());
    let jobs = d.jobs.iter().map(|job| serde_json::to_string(job).unwrap_or_default());
    part("Beside the load", &jobs.collect::<Vec<_>>());
    let responses = d.responses.iter().map(|r| format!("{}, δ {}", r.name, r.delta));
    part("Responses", &responses.collect::<Vec<_>>());
    part("How", &[format!("{}: {}", d.execution.mode.name(), d.execution.why)]);
    part("Quick", &[extent(&d.quick)]);
    part("Full", &[extent(&d.full)]);
    part("By construction", &d.expects.iter().cloned().collect::<Vec<_>>());
    part("Claims", &d.claims);
    let published =
        d.published.iter().map(|p| format!("{} {} ({}; {})", p.figure, p.unit, p.source, p.conditions));
    part("Published", &published.collect::<Vec<_>>());
    part("Stand-in", &d.stand_in.iter().cloned().collect::<Vec<_>>());
    text.push_str(&format!("\nTry it: mydyno prove {} --quick\n", d.name));
    text
}

fn extent(extent: &Extent) -> String {
    format!("{}, slices of {} after {} that are cut", extent.budget, extent.slice, extent.settle)
}
