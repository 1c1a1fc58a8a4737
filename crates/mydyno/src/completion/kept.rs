//! Candidates that come from the kept runs.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use mydyno_model::run_list::KeptRun;
use mydyno_run::kept;

use super::{candidate, state};

fn all() -> Vec<KeptRun> {
    state().and_then(|state| kept::list(&state.runs()).ok()).unwrap_or_default()
}

/// The runs by number, name and folder; or folders, where a path is being typed.
pub fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    if typed.contains('/') || typed.starts_with(['.', '~']) {
        return PathCompleter::dir().complete(current);
    }
    let mut found = of(&all());
    found.retain(|one| one.get_value().to_string_lossy().starts_with(&*typed));
    found
}

/// The words that mean runs.
fn of(runs: &[KeptRun]) -> Vec<CompletionCandidate> {
    let about = |run: &KeptRun| format!("{}  {}", run.created, run.subject);
    let numbers = runs.iter().map(|run| candidate(run.number.to_string(), about(run)));
    let names = runs.iter().filter_map(|run| Some(candidate(run.label.name.as_ref()?, about(run))));
    let folders = runs.iter().map(|run| candidate(&run.folder, about(run)));
    numbers.chain(names).chain(folders).collect()
}

/// The workloads and experiments of the runs.
pub fn subjects() -> Vec<CompletionCandidate> {
    once(all().into_iter().map(|run| run.subject))
}

/// The tags of the runs.
pub fn tags() -> Vec<CompletionCandidate> {
    once(all().into_iter().flat_map(|run| run.label.tags))
}

fn once(words: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    words.collect::<BTreeSet<_>>().into_iter().map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use mydyno_model::run_list::{RunKind, RunLabel};

    use super::*;

    #[test]
    fn runs_are_offered_by_number_name_and_folder() {
        let run = KeptRun {
            number: 1,
            folder: "20261128-010236-tpcc".to_owned(),
            path: "/state/runs/20261128-010236-tpcc".to_owned(),
            kind: RunKind::Run,
            created: "2026-11-28T01:02:36Z".to_owned(),
            subject: "tpcc".to_owned(),
            server: String::new(),
            label: RunLabel { name: Some("before".to_owned()), tags: Vec::new() },
        };
        let words: Vec<String> =
            of(&[run]).iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect();
        assert_eq!(words, ["1", "before", "20261128-010236-tpcc"]);
    }
}
