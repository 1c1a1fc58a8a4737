//! `mydyno claims`: the catalogue of claims, one explained, or a folder of them examined.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mydyno_judge::{Claim, Claims, examine, unused_bindings};
use mydyno_model::catalogue::{ClaimList, ListedClaim};
use mydyno_model::claim::{Step, StepKind};
use mydyno_model::{Document, Header, text};
use mydyno_prove::experiment::{Experiments, unresolved};
use serde_json::Map;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// Largest claim file in bytes; the text of one is limited to 256 KiB.
const LARGEST_FILE: u64 = 1 << 20;
/// Most claims of a folder, several times those of the program. Each takes about 15 KB of memory.
const MOST_FILES: usize = 2_000;
/// Most bytes of a folder's claims.
const MOST_BYTES: usize = 4 << 20;

/// Options of `mydyno claims`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Explain one claim.
    pub id: Option<String>,
    /// List the claims of one area only.
    #[arg(long, value_name = "AREA", conflicts_with = "id")]
    pub area: Option<String>,
    /// Folder with your own claims, which replace those with the same id.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    pub claims: Option<PathBuf>,
    /// Check a folder of claims: their format, their fixtures, and whether these detect mutations of the expressions.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["id", "area"])]
    pub check: Option<PathBuf>,
    /// Print the facts of a bundle as a fixture of the claim.
    #[arg(long, value_name = "BUNDLE", requires = "id")]
    pub record: Option<PathBuf>,
}

/// Lists, explains or examines.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    if let Some(folder) = &args.check {
        return check(folder, ui);
    }
    let claims = load(args.claims.as_deref())?;
    let chosen: Vec<&Claim> = match &args.id {
        Some(id) => vec![claims.find(id).map_err(|e| Failure::usage(e.to_string()))?],
        None => claims.iter().filter(|c| args.area.as_ref().is_none_or(|a| *a == c.area)).collect(),
    };
    if let (Some(area), true) = (&args.area, chosen.is_empty()) {
        let areas = claims.areas().join(", ");
        return Err(Failure::usage(format!("there is no area {area:?}; the areas are {areas}")));
    }
    if let (Some(bundle), [claim]) = (&args.record, chosen.as_slice()) {
        let facts = mydyno_facts::bundle::load(bundle).map_err(|e| Failure::environment(e.to_string()))?;
        ui.out(&text::visible(&mydyno_judge::record(claim, &facts)));
    } else if ui.json {
        let header = Header::of::<ClaimList>(OffsetDateTime::now_utc());
        let claims = chosen.iter().map(|claim| listed(claim)).collect();
        ui.out(&ClaimList { header, claims, extra: Map::new() }.to_json());
    } else if let (Some(_), [claim]) = (&args.id, chosen.as_slice()) {
        ui.prose(&text::visible(&explain(claim)));
    } else {
        let width = chosen.iter().map(|c| c.document.id.len()).max().unwrap_or(0);
        for claim in chosen {
            let d = &claim.document;
            ui.prose(&format!("{:<width$}  {:<11} {:<8} {}", d.id, claim.area, d.severity.name(), d.title));
        }
    }
    Ok(Status::Fine)
}

/// The claims in the program, replaced and extended by those of a folder.
///
/// # Errors
/// The folder cannot be read, or all mistakes of its claims.
pub fn load(folder: Option<&Path>) -> Result<Claims, Failure> {
    let embedded = Claims::embedded().map_err(|e| Failure::environment(e.to_string()))?;
    let Some(folder) = folder else { return Ok(embedded) };
    let files = files(folder)?;
    let own = Claims::read(files.iter().map(|(f, t)| (f.as_str(), t.as_str())));
    Ok(embedded.with(own.map_err(|e| Failure::usage(e.to_string()))?))
}

/// Texts of a folder's `AREA/ID.toml`.
fn files(folder: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let failed = |path: &Path, e: std::io::Error| Failure::usage(format!("{}: {e}", path.display()));
    let entries = |path: &Path| -> Result<Vec<PathBuf>, Failure> {
        let read = std::fs::read_dir(path).map_err(|e| failed(path, e))?;
        read.map(|e| e.map(|e| e.path()).map_err(|e| failed(path, e))).collect()
    };
    let mut found = BTreeMap::new();
    let mut bytes = 0;
    for area in entries(folder)?.into_iter().filter(|p| p.is_dir()) {
        for path in entries(&area)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
            let text = mydyno_facts::read_regular(&path, LARGEST_FILE).map_err(|e| failed(&path, e))?;
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            bytes += text.len();
            found.insert(name, text);
            if found.len() > MOST_FILES || bytes > MOST_BYTES {
                return Err(Failure::usage(format!(
                    "{}: a folder of claims holds at most {MOST_FILES} files and {} MiB; check or use it in parts",
                    folder.display(),
                    MOST_BYTES >> 20
                )));
            }
        }
    }
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "{}: no claims stand there; each is AREA/ID.toml",
            folder.display()
        )));
    }
    Ok(found)
}

fn check(folder: &Path, ui: &Ui) -> Result<Status, Failure> {
    let files = files(folder)?;
    let experiments = Experiments::embedded().map_err(|e| Failure::environment(e.to_string()))?;
    let (mut bad, mut mutations, mut undetected, mut recorded) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut ids: BTreeMap<String, &str> = BTreeMap::new();
    for (file, text) in &files {
        let mut problems: Vec<String> = match Claim::read(file, text) {
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
            Ok(claim) => {
                let found = examine(&claim, &mydyno_facts::catalogue::unit_of);
                mutations += found.mutations;
                undetected += found.undetected.len();
                recorded += found.recorded;
                let unused = unused_bindings(&claim).into_iter().map(|n| format!("nothing uses ${n}"));
                let mutations =
                    found.undetected.iter().map(|u| format!("no fixture detects the mutation: {u}"));
                found
                    .problems
                    .iter()
                    .cloned()
                    .chain(unused)
                    .chain(mutations)
                    .chain(unresolved(&claim, &experiments))
                    .chain(without_cause(&claim, &files))
                    .map(|p| format!("{file}: {p}"))
                    .collect()
            }
        };
        // Even if it cannot be parsed: the name of a file is the name of its claim.
        let id = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(other) = ids.get(&id) {
            problems.push(format!("{file}: {other} has the same id, {id}: only one of them would be used"));
        }
        ids.entry(id).or_insert(file);
        bad += usize::from(!problems.is_empty());
        for problem in problems {
            ui.out(&text::line(&problem));
        }
    }
    ui.out(&format!(
        "{} claims, {bad} with mistakes; {mutations} mutations tried, {undetected} undetected; {recorded} violated fixtures were recorded from live systems",
        files.len()
    ));
    Ok(if bad == 0 { Status::Fine } else { Status::Bad })
}

/// Causes that the claim names and that are no claims of this folder or of the program.
fn without_cause(claim: &Claim, files: &BTreeMap<String, String>) -> Vec<String> {
    let is_known = |id: &String| {
        files.keys().any(|file| Path::new(file).file_stem().is_some_and(|stem| *stem == **id))
            || Claims::embedded().is_ok_and(|ours| ours.find(id).is_ok())
    };
    let unknown = claim.document.same_cause_as.iter().filter(|id| !is_known(id));
    unknown.map(|id| format!("same_cause_as: no claim has the id {id}; mydyno claims lists them")).collect()
}

/// The claim with values derived from its file, without fixtures.
fn listed(claim: &Claim) -> ListedClaim {
    let mut document = claim.document.clone();
    document.facts.clear();
    document.fixtures.clear();
    ListedClaim { area: claim.area.clone(), needs: claim.needs(), claim: document }
}

fn explain(claim: &Claim) -> String {
    let d = &claim.document;
    let mut text = format!(
        "{} ({}, {}): {}\n\n{}\n\n{}\n",
        d.id,
        claim.area,
        d.severity.name(),
        d.title,
        d.what.trim(),
        d.why.trim()
    );
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("\n{name}:\n  {}\n", value.trim().replace('\n', "\n  ")));
        }
    };
    line("It applies when", d.applies_when.as_deref().unwrap_or_default());
    for (name, expression) in &d.bindings {
        line(&format!("${name} is"), expression);
    }
    line("It holds when", &d.check);
    line("It needs", &claim.needs().join("\n"));
    line("Now", &steps(&d.remedy.now));
    line("Lasting", &steps(&d.remedy.persistent));
    line("Risk", &d.remedy.risk);
    if let Some(ledger) = &d.ledger {
        line("Ledger", &ledger.note);
    }
    line("But", &d.traps.join("\n"));
    line("Sources", &d.sources.join("\n"));
    text.push_str(&format!("\nSince {}\n", d.since));
    text
}

fn steps(steps: &[Step]) -> String {
    let one = |step: &Step| -> String {
        let when = step.when.as_ref().map(|w| format!("when {w}: ")).unwrap_or_default();
        let each = step.each.as_ref().map(|e| format!("for {e}: ")).unwrap_or_default();
        let forms = step.forms();
        let forms = forms.iter().map(|(kind, text)| match kind {
            StepKind::Text | StepKind::Sql | StepKind::Shell => (*text).to_owned(),
            other => format!("{}: {text}", format!("{other:?}").to_lowercase()),
        });
        format!("{when}{each}{}", forms.collect::<Vec<_>>().join(", "))
    };
    steps.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_explained_with_its_sources() {
        for claim in Claims::embedded().unwrap().iter() {
            let explained = explain(claim);
            assert!(explained.contains("\nSources:\n"), "{explained}");
        }
    }
}
