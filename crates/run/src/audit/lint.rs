//! Checks of option files: those of the audited server, or a given one, for its release or another.

use std::path::Path;

use indexmap::IndexMap;
use mydyno_facts::Source;
use mydyno_facts::option_files::{facts_of, groups, read, suffixed};
use mydyno_judge::knobs::{Knobs, Target};
use mydyno_judge::{counts, lint};
use mydyno_model::Header;
use mydyno_model::claim::StepKind;
use mydyno_model::facts::{Fact, FactSet};
use mydyno_model::finding::{Finding, Findings, MissingFact, RemedyStep, Scope, State};
use time::OffsetDateTime;

use super::plan::Judging;
use crate::error::RunError;

/// Whether an id of `--only` or `--skip` is one of the lint's.
pub fn is_check(id: &str) -> bool {
    lint::CHECKS.iter().any(|check| lint::is_of(id, check.id))
}

/// The options of a file and of the files that it includes, as a server of a release would read them.
///
/// # Errors
/// The file cannot be read.
pub fn facts(path: &Path, release: &Target, suffix: Option<&str>) -> Result<FactSet, RunError> {
    let failed = |source| RunError::OptionFile { path: path.to_owned(), source };
    let real = path.canonicalize().map_err(failed)?;
    // A file that is too large is read up to its limit, which the audit reports; a path that is no file is refused
    // here.
    mydyno_facts::read_regular(&real, mydyno_facts::option_files::LARGEST_FILE)
        .map(drop)
        .or_else(|e| if e.kind() == std::io::ErrorKind::InvalidData { Ok(()) } else { Err(e) })
        .map_err(failed)?;
    let number = u64::from(release.version.major) * 10_000 + u64::from(release.version.minor) * 100;
    let knobs = Knobs::embedded()?;
    // The groups that a queried server of this series reported.
    let asked = knobs.nearest_server(release).filter(|server| server.series() == release.version.series());
    let groups = match asked {
        Some(server) => suffixed(server.rules.groups.clone(), suffix),
        None => groups(&release.family, number, suffix),
    };
    let reading = read(&Source::live(), "", &[real.display().to_string()], &groups);
    let mut facts: IndexMap<String, Fact> = facts_of(&groups, reading)
        .into_iter()
        .map(|(id, value)| (id.to_owned(), Fact::ok(value, "", "option files")))
        .collect();
    let of_release =
        [("server.family", release.family.clone()), ("server.version", release.version.to_string())];
    facts.extend(of_release.map(|(id, value)| (id.to_owned(), Fact::ok(value, "", "--for"))));
    let header = Header::of::<FactSet>(OffsetDateTime::now_utc());
    Ok(FactSet { header, facts, extra: serde_json::Map::new() })
}

/// The scope of findings that rest on an option file alone.
pub(super) fn scope(facts: &FactSet) -> Scope {
    let server = format!(
        "{} {}",
        facts.text("server.family").unwrap_or_default(),
        facts.text("server.version").unwrap_or_default()
    );
    let notes = vec!["Only option files were read; no server was asked and no host looked at.".to_owned()];
    Scope { server, host: "not_visible".to_owned(), notes, ..Scope::default() }
}

/// Adds the findings of the lint, sorted by state and rank.
pub(super) fn add(findings: &mut Findings, facts: &FactSet, judging: &Judging<'_>) -> Result<(), RunError> {
    let Some(target) = judging.release.clone().or_else(|| Target::of_facts(facts)) else { return Ok(()) };
    if !judging.lint {
        return Ok(());
    }
    let knobs = Knobs::embedded()?;
    let is_wanted = |finding: &Finding| {
        let is = |id: &String| lint::is_of(&finding.claim, id);
        (judging.only.is_empty() || judging.only.iter().any(is)) && !judging.skip.iter().any(is)
    };
    findings.findings.extend(lint::lint(facts, &knobs, &target).into_iter().filter(is_wanted));
    findings.findings.sort_by(|a, b| a.state.cmp(&b.state).then(b.rank.total_cmp(&a.rank)));
    findings.counts = counts(&findings.findings);
    Ok(())
}

/// The findings with those of the lint reduced to their checks: number and severity, without names. Accepted ones stay
/// separate.
pub(super) fn withhold(mut findings: Findings) -> Findings {
    let (of_lint, mut all): (Vec<Finding>, Vec<Finding>) =
        findings.findings.into_iter().partition(|finding| is_check(&finding.claim));
    for check in &lint::CHECKS {
        for (state, accepted) in [
            (State::Violated, false),
            (State::Violated, true),
            (State::Unknown, false),
            (State::Holds, false),
        ] {
            let of_check = of_lint.iter().filter(|f| {
                lint::is_of(&f.claim, check.id) && f.state == state && f.accepted.is_some() == accepted
            });
            let of_check: Vec<&Finding> = of_check.collect();
            let gravest = of_check.iter().max_by(|a, b| a.severity.cmp(&b.severity));
            all.extend(gravest.map(|gravest| bare(gravest, check.id, of_check.len())));
        }
    }
    all.sort_by(|a, b| a.state.cmp(&b.state).then(b.rank.total_cmp(&a.rank)));
    findings.counts = counts(&all);
    findings.findings = all;
    findings
}

/// A finding that stands for `times` findings of its check.
fn bare(finding: &Finding, check: &str, times: usize) -> Finding {
    const SEE: &str = "audit without --redact to see them";
    let state = finding.state;
    let mut bare = Finding {
        claim: check.to_owned(),
        summary: match state {
            State::Violated => format!("This does not hold in {times} places; {SEE}."),
            State::Unknown => format!("Unknown in {times} places; {SEE}."),
            State::Holds | State::NotApplicable => format!("{}.", finding.title),
        },
        evidence: vec![],
        arithmetic: vec![],
        traps: vec![],
        ..finding.clone()
    };
    if state == State::Unknown {
        bare.missing = vec![MissingFact {
            fact: "server.options.set".to_owned(),
            status: "denied".to_owned(),
            why: format!("the reason names what is hidden here: {SEE}"),
        }];
    }
    if let Some(remedy) = &mut bare.remedy {
        let text = format!("The lines are hidden here: {SEE}.");
        remedy.persistent = vec![RemedyStep { kind: StepKind::Text, text }];
    }
    bare
}
