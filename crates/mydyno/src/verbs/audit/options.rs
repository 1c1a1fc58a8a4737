//! Option files: those of the server that was looked at, or one that is named, for this release or another.

use std::path::Path;

use indexmap::IndexMap;
use mydyno_judge::knobs::{Knobs, Target};
use mydyno_judge::{counts, lint};
use mydyno_model::Header;
use mydyno_model::facts::{Fact, FactSet};
use mydyno_model::finding::{Finding, Findings, Scope};
use mydyno_observe::Source;
use mydyno_observe::option_files::{facts_of, groups, read};
use time::OffsetDateTime;

use super::Args;
use crate::failure::Failure;

/// Whether an id of `--only` or `--skip` is one of the lint's.
pub fn is_check(id: &str) -> bool {
    lint::CHECKS.iter().any(|check| lint::is_of(id, check.id))
}

/// The options of a file and what it includes, as a server of the release that `--for` names would read them.
///
/// # Errors
/// No release is named, or the file cannot be read.
pub fn facts(path: &Path, args: &Args) -> Result<FactSet, Failure> {
    let Some(target) = &args.release else {
        return Err(Failure::usage("--config: say which release it is for, as in --for mysql-9.7"));
    };
    let failed = |e: std::io::Error| Failure::usage(format!("--config {}: {e}", path.display()));
    let path = path.canonicalize().map_err(failed)?;
    std::fs::File::open(&path).map_err(failed)?;
    let number = u64::from(target.version.major) * 10_000 + u64::from(target.version.minor) * 100;
    let groups = groups(&target.family, number, args.target.defaults_group_suffix.as_deref());
    let reading = read(&Source::live(), "", &[path.display().to_string()], &groups);
    let mut facts: IndexMap<String, Fact> = facts_of(&groups, reading)
        .into_iter()
        .map(|(id, value)| (id.to_owned(), Fact::ok(value, "", "option files")))
        .collect();
    let of_target =
        [("server.family", target.family.clone()), ("server.version", target.version.to_string())];
    facts.extend(of_target.map(|(id, value)| (id.to_owned(), Fact::ok(value, "", "--for"))));
    let header = Header::of::<FactSet>(OffsetDateTime::now_utc());
    Ok(FactSet { header, facts, extra: serde_json::Map::new() })
}

/// What can be seen of a server whose file is all there is.
pub fn scope(facts: &FactSet) -> Scope {
    let server = format!(
        "{} {}",
        facts.text("server.family").unwrap_or_default(),
        facts.text("server.version").unwrap_or_default()
    );
    let notes = vec!["Only option files were read; no server was asked and no host looked at.".to_owned()];
    Scope { server, host: "not_visible".to_owned(), server_process: false, notes }
}

/// Adds what the lint finds, in its place by state and rank.
pub fn add(findings: &mut Findings, facts: &FactSet, args: &Args) -> Result<(), Failure> {
    let Some(target) = args.release.clone().or_else(|| Target::of_facts(facts)) else { return Ok(()) };
    if !(args.area.is_empty() || args.area.iter().any(|area| area == lint::AREA)) {
        return Ok(());
    }
    let knobs = Knobs::embedded().map_err(|e| Failure::environment(e.to_string()))?;
    let is_wanted = |finding: &Finding| {
        let is = |id: &String| lint::is_of(&finding.claim, id);
        (args.only.is_empty() || args.only.iter().any(is)) && !args.skip.iter().any(is)
    };
    findings.findings.extend(lint::lint(facts, &knobs, &target).into_iter().filter(is_wanted));
    findings.findings.sort_by(|a, b| a.state.cmp(&b.state).then(b.rank.total_cmp(&a.rank)));
    findings.counts = counts(&findings.findings);
    Ok(())
}
