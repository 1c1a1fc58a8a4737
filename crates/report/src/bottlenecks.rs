//! Bottlenecks of a run's steps, from the counters that were sampled beside the load.

use mydyno_model::diagnosis::Bottleneck;
use mydyno_model::units::three_digits;

use crate::RunView;
use crate::figures::percent;
use crate::words::{GroupedWarning, Seen};

/// Most bottlenecks of a step that are shown; the document has all.
const MOST: usize = 2;

/// The bottlenecks by name, each with its evidence in each step and what follows; none where no step has a diagnosis.
pub fn bottlenecks(run: &RunView<'_>) -> Vec<GroupedWarning> {
    let mut grouped: Vec<GroupedWarning> = Vec::new();
    for step in &run.summary.steps {
        for found in step.diagnosis.iter().flat_map(|d| d.bottlenecks.iter().take(MOST)) {
            let seen = Seen { steps: vec![step.step], text: observation(found) };
            match grouped.iter_mut().find(|group| group.id == found.id) {
                Some(group) => group.seen.push(seen),
                None => grouped.push(GroupedWarning {
                    id: found.id.clone(),
                    next_step: next(found),
                    seen: vec![seen],
                }),
            }
        }
    }
    grouped
}

/// Whether some step has a diagnosis, with bottlenecks or without.
pub fn is_diagnosed(run: &RunView<'_>) -> bool {
    run.summary.steps.iter().any(|step| step.diagnosis.is_some())
}

/// The text for a run without any bottleneck in its diagnosis.
pub const NONE: &str = "none that the server's counters can show";

fn observation(found: &Bottleneck) -> String {
    let evidence: Vec<String> =
        found.evidence.iter().map(|e| format!("{} {}", e.figure, three_digits(e.value))).collect();
    let share = percent(found.share);
    let statements = found.statements.iter().map(|statement| {
        let words = statement.text.as_deref().unwrap_or(&statement.digest);
        format!(" · {} sessions in: {words}", three_digits(statement.threads))
    });
    let all = statements.collect::<String>();
    format!("{} (about {share} of the running sessions' time): {}{all}", found.title, evidence.join(" · "))
}

/// The advice, with the commands that check and prove it.
fn next(found: &Bottleneck) -> String {
    let claims = found.claims.iter().map(|claim| format!("`mydyno claims {claim}`"));
    let experiment = found.experiment.iter().map(|name| format!("`mydyno prove {name}`"));
    let commands: Vec<String> = claims.chain(experiment).filter(|c| !found.next.contains(c)).collect();
    if commands.is_empty() { found.next.clone() } else { format!("{} ({})", found.next, commands.join(", ")) }
}

#[cfg(test)]
mod tests {
    use mydyno_model::diagnosis::Evidence;

    use super::*;

    #[test]
    fn a_bottleneck_has_its_figures_and_commands_that_its_advice_lacks() {
        let found = Bottleneck {
            id: "redo-sync.fsync".to_owned(),
            title: "Commits wait".to_owned(),
            share: 0.414,
            held: 1.0,
            evidence: vec![Evidence { figure: "server.sessions.committing".to_owned(), value: 3.25 }],
            statements: Vec::new(),
            next: "See `mydyno prove commits`.".to_owned(),
            claims: vec!["slow-sync".to_owned()],
            experiment: Some("commits".to_owned()),
        };
        assert_eq!(
            observation(&found),
            "Commits wait (about 41.4 % of the running sessions' time): server.sessions.committing 3.25"
        );
        assert_eq!(next(&found), "See `mydyno prove commits`. (`mydyno claims slow-sync`)");
    }
}
